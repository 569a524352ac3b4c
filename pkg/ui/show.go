package ui

import (
	"cmp"
	"fmt"
	"html/template"
	"iter"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/notice"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
	"github.com/tandem-addons/tandem/pkg/text"
)

// functions are the functions of the templates.
func functions() template.FuncMap {
	return template.FuncMap{
		"mark": fleet.State.Mark, "statetext": fleet.State.Text, "stateclass": stateClass, "runclass": runClass, "runmark": runMark, "runtext": runText,
		"counted": text.Plural, "oneline": text.JoinMessage, "join": func(names []string) string { return strings.Join(names, ", ") },
		"clusterpath": clusterPath, "whypath": whyPath, "instancepath": instancePath, "addonpath": addOnPath, "packagepath": packagePath,
		"stamp": stamp, "outcomeclass": outcomeClass, "outcomemark": outcomeMark, "limited": func(names []string) string { return text.List(names, 4) },
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

// outcomes are the style class and mark of the ways in which an execution ends; the empty one has not ended.
var outcomes = map[kudo.HistoryOutcome][2]string{
	"": {"busy", "▸"}, kudo.HistoryComplete: {"good", "✓"}, kudo.HistoryFailed: {"bad", "✗"}, kudo.HistoryCancelled: {"gone", "-"}, kudo.HistorySuperseded: {"gone", "-"},
}

func outcomeTexts(outcome kudo.HistoryOutcome) [2]string {
	if known, ok := outcomes[outcome]; ok {
		return known
	}
	return [2]string{"unknown", "?"}
}

func outcomeClass(outcome kudo.HistoryOutcome) string { return outcomeTexts(outcome)[0] }
func outcomeMark(outcome kudo.HistoryOutcome) string  { return outcomeTexts(outcome)[1] }

// moment is a time on a page that was rendered at another time.
type moment struct{ at, now time.Time }

// momentOf returns the moment of a time; of nil, the zero value.
func momentOf(at *metav1.Time, now time.Time) moment {
	if at == nil {
		return moment{}
	}
	return moment{at.Time, now}
}

// IsZero reports whether there is no time.
func (m moment) IsZero() bool { return m.at.IsZero() }

// Machine returns the time for programs.
func (m moment) Machine() string { return m.at.UTC().Format(time.RFC3339) }

// Stamp returns the time for users.
func (m moment) Stamp() string { return stamp(m.at) }

// Ago returns how long ago the time was, without seconds, so that a live page is not sent again each time. A time in the future, by a clock that is
// ahead, is returned as such.
func (m moment) Ago() string {
	switch ago := m.now.Sub(m.at); {
	case ago <= -time.Minute:
		return m.Stamp()
	case ago < time.Minute:
		return "just now"
	case ago < time.Hour:
		return fmt.Sprintf("%dm ago", int(ago.Minutes()))
	case ago < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(ago.Hours()))
	default:
		return fmt.Sprintf("%dd ago", int(ago.Hours()/24))
	}
}

// stamp returns a time for users, in UTC.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05Z") }

// conditionRow is a condition with the time of its last change.
type conditionRow struct {
	metav1.Condition
	Since moment
}

func conditionRows(conditions []metav1.Condition, now time.Time) []conditionRow {
	rows := make([]conditionRow, len(conditions))
	for i, condition := range conditions {
		rows[i] = conditionRow{condition, momentOf(&condition.LastTransitionTime, now)}
	}
	return rows
}

// noticesShown is the number of notices, and of suspensions, on a page about more than one Instance.
const noticesShown = 20

// noticeList has what users should know about Instances that run no plan, the most urgent first.
type noticeList struct {
	Counts []noticeCount
	Rows   []noticeRow
	// More is the number of those that are not shown.
	More int
}

// noticeCount is the number of notices of a kind.
type noticeCount struct {
	notice.Kind
	Count int
}

// noticeRow is a notice about an Instance.
type noticeRow struct {
	Cluster, Name string
	notice.Notice
}

// noticesOf returns the notices that are meant about Instances. It renders the messages of those that are shown only: there may be many Instances.
func noticesOf(instances iter.Seq[*kudo.Instance], isMeant func(*kudo.Instance, notice.Kind) bool) noticeList {
	found := map[notice.Kind][]*kudo.Instance{}
	for instance := range instances {
		for _, kind := range notice.KindsOf(instance) {
			if isMeant(instance, kind) {
				found[kind] = append(found[kind], instance)
			}
		}
	}
	var list noticeList
	for _, kind := range notice.Kinds {
		of := found[kind]
		if len(of) == 0 {
			continue
		}
		list.Counts = append(list.Counts, noticeCount{kind, len(of)})
		slices.SortFunc(of, func(a, b *kudo.Instance) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		shown := min(len(of), noticesShown-len(list.Rows))
		list.More += len(of) - shown
		for _, instance := range of[:shown] {
			list.Rows = append(list.Rows, noticeRow{instance.Namespace, instance.Name, notice.About(kind, instance)})
		}
	}
	return list
}

// everyNotice means all notices.
func everyNotice(*kudo.Instance, notice.Kind) bool { return true }

// pointers returns the Instances of a list without copies of them.
func pointers(instances []kudo.Instance) iter.Seq[*kudo.Instance] {
	return func(yield func(*kudo.Instance) bool) {
		for i := range instances {
			if !yield(&instances[i]) {
				return
			}
		}
	}
}

// suspensionList has what is suspended, the widest suspension first.
type suspensionList struct {
	Rows []notice.Suspension
	// More is the number of those that are not shown.
	More int
}

// suspensionsOf returns the suspensions on the hub. A kind of objects that the user may not read is nil: Instances name those that suspend them.
func suspensionsOf(instances []kudo.Instance, clusters []clusterv1.ManagedCluster, definitions []addonv1alpha1.ClusterManagementAddOn) suspensionList {
	overview := notice.Overview{Read: map[suspension.Kind]bool{suspension.KindCluster: clusters != nil, suspension.KindAddOn: definitions != nil}}
	for i := range clusters {
		if reason, suspended := suspension.ReasonOf(&clusters[i]); suspended {
			overview.AddOrigin(suspension.Origin{Kind: suspension.KindCluster, Name: clusters[i].Name, Reason: reason})
		}
	}
	for i := range definitions {
		if reason, suspended := suspension.ReasonOf(&definitions[i]); suspended {
			overview.AddOrigin(suspension.Origin{Kind: suspension.KindAddOn, Name: definitions[i].Name, Reason: reason})
		}
	}
	for i := range instances {
		overview.AddInstance(&instances[i])
	}
	all := overview.List()
	shown := min(len(all), noticesShown)
	return suspensionList{Rows: all[:shown], More: len(all) - shown}
}

// command returns a command line of the plugin.
func command(format string, names ...string) string {
	return text.Command("kubectl addon "+format, names...)
}
