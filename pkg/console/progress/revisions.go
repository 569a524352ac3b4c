package progress

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Revisions is the output of `history` for a single cluster.
type Revisions struct {
	Instance string `json:"instance"`
	Cluster  string `json:"cluster"`
	// Revisions lists the executions, oldest first.
	Revisions []kudo.HistoryEntry `json:"revisions"`
}

// RevisionsOf returns the history of an Instance.
func RevisionsOf(instance *kudo.Instance) Revisions {
	return Revisions{
		Instance: instance.Name, Cluster: instance.Namespace, Revisions: append([]kudo.HistoryEntry{}, instance.Status.History...),
	}
}

// Last returns the history with its last execution only.
func (r Revisions) Last() Revisions {
	r.Revisions = r.Revisions[max(0, len(r.Revisions)-1):]
	return r
}

// Revision is an execution in a history, with its texts for users.
type Revision struct{ kudo.HistoryEntry }

// VersionText returns the OperatorVersion, and the one before if it is another one.
func (r Revision) VersionText() string {
	version := cmp.Or(text.Word(r.OperatorVersion.Name), "-")
	if r.From == "" {
		return version
	}
	return text.Word(r.From) + " -> " + version
}

// causes are the texts of the causes.
var causes = map[kudo.HistoryCause]string{
	kudo.CauseInstall: "installation", kudo.CauseVersion: "version", kudo.CauseParameters: "parameters", kudo.CauseImageRegistries: "image registries",
	kudo.CauseRequest: "manual", kudo.CauseParent: "parent", kudo.CauseRetry: "retry", kudo.CauseOwed: "owed", kudo.CauseRemoval: "removal",
	kudo.CauseReturn: "return",
}

// maxNames is the number of changed parameters that a short text lists.
const maxNames = 3

// CauseText returns why the plan ran, with the changed parameters; wide lists all of them.
func (r Revision) CauseText(wide bool) string {
	cause := cmp.Or(causes[r.Cause], "unknown")
	names, more := r.Parameters, int(r.MoreParameters)
	if !wide && len(names) > maxNames {
		names, more = names[:maxNames], more+len(names)-maxNames
	}
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = text.Word(name)
	}
	listed := strings.Join(words, ", ")
	if more > 0 {
		listed += fmt.Sprintf(" and %d more", more)
	}
	if listed == "" {
		return cause
	}
	return cause + ": " + listed
}

// ByText returns who asked for the change, or "-" if that is not known: the field manager, which the writer has chosen; wide adds the object that it wrote. Of
// a child this is its parent.
func (r Revision) ByText(wide bool) string {
	by := text.OneLine(text.Escape(r.By))
	at := strings.LastIndex(by, "(")
	switch {
	case by == "":
		return "-"
	case wide || at < 0:
		return by
	default:
		return cmp.Or(strings.TrimSpace(by[:at]), strings.TrimSuffix(by[at+1:], ")"))
	}
}

// ResultText returns how the execution ended.
func (r Revision) ResultText() string {
	result := cmp.Or(string(r.Outcome), "Running")
	switch {
	case r.Retries <= 0:
		return result
	case r.Retries == 1:
		return result + " (1 retry)"
	default:
		return fmt.Sprintf("%s (%d retries)", result, r.Retries)
	}
}

// DurationText returns the duration between two times, up to now if there is no end; empty without a start.
func DurationText(from, to *metav1.Time, now time.Time) string {
	switch {
	case from == nil:
		return ""
	case to != nil:
		return duration.HumanDuration(to.Sub(from.Time))
	default:
		return duration.HumanDuration(now.Sub(from.Time)) + " so far"
	}
}
