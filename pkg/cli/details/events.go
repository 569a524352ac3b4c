package details

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// EventsOptions holds the arguments and flags of the command.
type EventsOptions struct {
	*hubclient.Factory
	hubclient.Selection
	name   string
	output *terminal.Output
}

// NewCmdEvents returns the command. If runF is set, it replaces runEvents.
func NewCmdEvents(f *hubclient.Factory, runF func(context.Context, *EventsOptions) error) *cobra.Command {
	o := &EventsOptions{Factory: f, output: terminal.NewOutput(terminal.FormatWide)}
	if runF == nil {
		runF = runEvents
	}
	cmd := &cobra.Command{
		Use:   "events NAME [--cluster CLUSTER[,CLUSTER]]",
		Short: "Show the events of an Instance or add-on on the hub",
		Long: "Show the events on the hub of an add-on or Instance: those of its ManagedClusterAddOns and Instances on the selected clusters,\n" +
			"all by default, and of its ClusterManagementAddOn, the latest one last. The hub keeps events for a limited time, by default an\n" +
			"hour. Events of plans are on the managed clusters: 'kubectl addon history' shows their results. The command contacts only\n" +
			"the hub.",
		Example: "  kubectl addon events kafka --cluster cluster1\n" +
			"  kubectl addon events kafka -o json",
		Args: terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkSelection(cmd, &o.Selection); err != nil {
				return err
			}
			o.name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.AddFlags(cmd, "run the Instance or add-on")
	o.output.AddFlag(cmd)
	return cmd
}

func runEvents(ctx context.Context, o *EventsOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	return hubclient.Advise(showEvents(ctx, h, o), strings.Join(o.Names, ","))
}

// eventList is the output of `events`, for programs.
type eventList struct {
	// Events is sorted by time, the latest one last.
	Events []event `json:"events"`
}

// event is an event of an object on the hub.
type event struct {
	// Cluster is empty for an event of the ClusterManagementAddOn.
	Cluster  string       `json:"cluster,omitempty"`
	Kind     string       `json:"kind"`
	Name     string       `json:"name"`
	Type     string       `json:"type"`
	Reason   string       `json:"reason"`
	Message  string       `json:"message,omitempty"`
	Reporter string       `json:"reporter,omitempty"`
	Count    int32        `json:"count"`
	First    *metav1.Time `json:"first,omitempty"`
	Last     *metav1.Time `json:"last,omitempty"`
}

// showEvents prints the events.
func showEvents(ctx context.Context, c client.Reader, o *EventsOptions) error {
	found, err := gatherEvents(ctx, c, o)
	if err != nil {
		return err
	}
	shown := eventsText(found, o.output.Format == terminal.FormatWide, time.Now())
	if len(found.Events) == 0 {
		shown = fmt.Sprintf("No events of %s on the hub.\n", text.Word(o.name))
	}
	return o.output.Print(o.Out, terminal.Shown{Text: shown, Data: found})
}

// gatherEvents reads the events of the objects of that name on the selected clusters.
func gatherEvents(ctx context.Context, c client.Reader, o *EventsOptions) (eventList, error) {
	found := eventList{Events: []event{}}
	var clusters []string
	if !o.IsAll() {
		var err error
		if clusters, err = o.Clusters(ctx, c); err != nil {
			return found, err
		}
	}
	namespaces := read.NamespacesOf(clusters)
	if clusters != nil && !slices.Contains(namespaces, metav1.NamespaceAll) {
		namespaces = append(namespaces, metav1.NamespaceDefault) // of cluster-scoped objects
	}
	for _, namespace := range slices.Compact(slices.Sorted(slices.Values(namespaces))) {
		var list corev1.EventList
		err := c.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{"involvedObject.name": o.name})
		if apierrors.IsForbidden(err) && namespace == metav1.NamespaceDefault {
			err = terminal.Warn(o.ErrOut, fmt.Sprintf("events of the ClusterManagementAddOn are not shown: %v", err))
		}
		if err != nil {
			return found, read.ListingProblem("events", namespace, err)
		}
		for i := range list.Items {
			if e, isMeant := eventOf(&list.Items[i], clusters); isMeant {
				found.Events = append(found.Events, e)
			}
		}
	}
	found.sort()
	return found, nil
}

// sort sorts the events by their last time.
func (l eventList) sort() {
	slices.SortStableFunc(l.Events, func(a, b event) int {
		return cmp.Or(timeOf(a.Last).Compare(timeOf(b.Last)), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Reason, b.Reason))
	})
}

// eventOf returns an event, and whether it is of an add-on or Instance on one of the clusters, which are nil for all, or of a
// ClusterManagementAddOn.
func eventOf(e *corev1.Event, clusters []string) (event, bool) {
	of := e.InvolvedObject
	group, _, _ := strings.Cut(of.APIVersion, "/")
	found := event{
		Cluster: of.Namespace, Kind: of.Kind, Name: of.Name, Type: e.Type, Reason: e.Reason, Message: e.Message,
		Reporter: cmp.Or(e.ReportingController, e.Source.Component), Count: max(e.Count, 1), First: firstSeen(e), Last: lastSeen(e),
	}
	if e.Series != nil {
		found.Count = e.Series.Count
	}
	switch {
	case group == addonv1alpha1.GroupVersion.Group && of.Kind == "ClusterManagementAddOn":
		return found, true
	case group == addonv1alpha1.GroupVersion.Group && of.Kind == "ManagedClusterAddOn", group == kudo.GroupVersion.Group && of.Kind == "Instance":
		return found, clusters == nil || slices.Contains(clusters, of.Namespace)
	default:
		return found, false
	}
}

// firstSeen returns when an event occurred for the first time.
func firstSeen(e *corev1.Event) *metav1.Time {
	switch {
	case !e.FirstTimestamp.IsZero():
		return &e.FirstTimestamp
	case !e.EventTime.IsZero():
		return &metav1.Time{Time: e.EventTime.Time}
	default:
		return &e.CreationTimestamp
	}
}

// lastSeen returns when an event occurred last.
func lastSeen(e *corev1.Event) *metav1.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return &metav1.Time{Time: e.Series.LastObservedTime.Time}
	case !e.LastTimestamp.IsZero():
		return &e.LastTimestamp
	default:
		return firstSeen(e)
	}
}

func timeOf(at *metav1.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.Time
}

// eventsText returns the events as a table like that of `kubectl events`.
func eventsText(found eventList, wide bool, now time.Time) string {
	header := []string{"CLUSTER", "LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}
	if wide {
		header = append(header, "REPORTER")
	}
	rows := make([][]string, 0, len(found.Events))
	for _, e := range found.Events {
		row := []string{
			cmp.Or(text.Word(e.Cluster), "-"), seenText(e, now), text.Word(e.Type), text.Word(e.Reason), e.Kind + "/" + text.Word(e.Name),
			cmp.Or(text.JoinMessage(e.Message), "-"),
		}
		if wide {
			row = append(row, cmp.Or(text.Word(e.Reporter), "-"))
		}
		rows = append(rows, row)
	}
	return terminal.Table(header, rows)
}

// seenText returns the age of an event, and how often it has occurred.
func seenText(e event, now time.Time) string {
	seen := duration.HumanDuration(now.Sub(timeOf(e.Last)))
	if e.Count > 1 {
		seen += fmt.Sprintf(" (x%d over %s)", e.Count, duration.HumanDuration(now.Sub(timeOf(e.First))))
	}
	return seen
}
