package ui

import (
	"html/template"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/text"
)

// functions are the functions of the templates.
func functions() template.FuncMap {
	return template.FuncMap{
		"mark": fleet.State.Mark, "statetext": fleet.State.Text, "stateclass": stateClass, "runclass": runClass, "runmark": runMark, "runtext": runText,
		"counted": text.Plural, "oneline": text.JoinMessage, "join": func(names []string) string { return strings.Join(names, ", ") },
		"clusterpath": clusterPath, "whypath": whyPath, "instancepath": instancePath, "addonpath": addOnPath, "packagepath": packagePath,
		"stamp": stamp, "machine": machine, "limited": func(names []string) string { return text.List(names, 4) },
	}
}

func clusterPath(cluster string) string { return "/clusters/" + url.PathEscape(cluster) }
func addOnPath(addOn string) string     { return "/addons/" + url.PathEscape(addOn) }

func whyPath(cluster, addOn string) string {
	return clusterPath(cluster) + "/addons/" + url.PathEscape(addOn)
}

func instancePath(cluster, instance string) string {
	return clusterPath(cluster) + "/instances/" + url.PathEscape(instance)
}

func packagePath(namespace, name string) string {
	return "/packages/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
}

// classes are the style classes of the states.
var classes = map[fleet.State]string{
	fleet.NotAvailable: "bad", fleet.Unknown: "unknown", fleet.Removing: "gone", fleet.Blocked: "blocked", fleet.Degraded: "weak",
	fleet.Waiting: "busy", fleet.Available: "good", fleet.NotEnabled: "none",
}

func stateClass(state fleet.State) string { return classes[state] }

// runs are the style class, mark and text of the states of plans, phases, steps and tasks.
var runs = map[kudo.ExecutionStatus][3]string{
	kudo.NeverRun: {"none", "·", "never run"}, kudo.Pending: {"none", "·", "pending"}, kudo.InProgress: {"busy", "▸", "in progress"},
	kudo.Complete: {"good", "✓", "complete"}, kudo.Error: {"weak", "!", "error, retrying"}, kudo.FatalError: {"bad", "✗", "failed"},
}

func runTexts(status kudo.ExecutionStatus) [3]string {
	if known, ok := runs[status]; ok {
		return known
	}
	return [3]string{"unknown", "?", strings.ToLower(string(status))}
}

func runClass(status kudo.ExecutionStatus) string { return runTexts(status)[0] }
func runMark(status kudo.ExecutionStatus) string  { return runTexts(status)[1] }
func runText(status kudo.ExecutionStatus) string  { return runTexts(status)[2] }

// stamp returns a time for people, in UTC.
func stamp(at any) string {
	if t := timeOf(at); !t.IsZero() {
		return t.UTC().Format("2006-01-02 15:04:05Z")
	}
	return "–"
}

// machine returns a time for programs.
func machine(at any) string { return timeOf(at).UTC().Format(time.RFC3339) }

func timeOf(at any) time.Time {
	switch at := at.(type) {
	case time.Time:
		return at
	case metav1.Time:
		return at.Time
	case *metav1.Time:
		if at != nil {
			return at.Time
		}
	}
	return time.Time{}
}

// took returns the duration between two times for people.
func took(from, to *metav1.Time, now time.Time) string {
	switch {
	case from == nil:
		return ""
	case to != nil:
		return duration.HumanDuration(to.Sub(from.Time))
	default:
		return duration.HumanDuration(now.Sub(from.Time)) + " so far"
	}
}

// command returns a command line of the plugin.
func command(format string, names ...string) string {
	return text.Command("kubectl addon "+format, names...)
}
