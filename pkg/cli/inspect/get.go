package inspect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/text"
)

// GetOptions holds the arguments and flags of the command.
type GetOptions struct {
	*hubclient.Factory
	addOn  string
	where  hubclient.Selection
	output *terminal.Output
}

// NewCmdGet returns the command. If runF is set, it replaces runGet.
func NewCmdGet(f *hubclient.Factory, runF func(context.Context, *GetOptions) error) *cobra.Command {
	o := &GetOptions{Factory: f, output: terminal.NewOutput(terminal.FormatName)}
	if runF == nil {
		runF = runGet
	}
	cmd := &cobra.Command{
		Use:   "get [ADDON]",
		Short: "List add-ons and their status on managed clusters",
		Long: "List the enabled add-ons with their status. VERSION is the desired OperatorVersion of a plan-based add-on; until a\n" +
			"rollout has reached the cluster, it is the previous one. INSTALLED -> DESIRED means that another version was the last to be\n" +
			"installed completely. STATE is blocked if an add-on is available, but its last change cannot be carried out, and waiting if\n" +
			"that is carried out later. REASON is the reason of the state. A second table lists the Instances that belong to no add-on;\n" +
			"child Instances are omitted.\n\n" +
			"The command contacts only the hub.",
		Example: "  kubectl addon get\n" +
			"  kubectl addon get kafka --cluster cluster1,cluster2 -o json",
		Args: terminal.AtMost("ADDON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.where.Check(cmd); err != nil {
				return err
			}
			if cmd.Flags().Changed("namespace") {
				return terminal.Usagef(cmd, "--namespace is not supported: --cluster selects the managed clusters and their namespaces on the hub")
			}
			o.addOn = strings.Join(args, "")
			return runF(cmd.Context(), o)
		},
	}
	o.where.AddFlags(cmd, "the add-ons are on")
	o.output.AddFlag(cmd)
	return cmd
}

func runGet(ctx context.Context, o *GetOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	list, err := listAddOns(ctx, h, o.where, o.addOn, unreadTo(o.ErrOut))
	if err != nil {
		return hubclient.Advise(err, strings.Join(o.where.Names, ","))
	}
	return o.output.Print(o.Out, terminal.Shown{Text: list.text(time.Now()), Data: list, Names: list.names()})
}

// unreadTo returns a function that writes a warning about Instances that the user may not read.
func unreadTo(out io.Writer) func(error) {
	return func(err error) { fmt.Fprintf(out, "Warning: Instances are not shown: %v\n", err) }
}

// addOnList is the output of `get`. Instances are those that belong to no add-on.
type addOnList struct {
	AddOns    []addOnItem    `json:"addOns"`
	Instances []instanceItem `json:"instances"`
}

// addOnItem is an add-on on one cluster.
type addOnItem struct {
	Cluster string `json:"cluster"`
	AddOn   string `json:"addOn"`
	// OperatorVersion is the configured OperatorVersion or, until a rollout has reached the cluster, the one before; empty if the add-on is not
	// plan-based, or it is unknown.
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// InstalledVersion is the OperatorVersion that was last installed completely if it is another one.
	InstalledVersion string `json:"installedVersion,omitempty"`
	// Available and Degraded are the statuses of the conditions; empty if a condition is missing.
	Available metav1.ConditionStatus `json:"available,omitempty"`
	Degraded  metav1.ConditionStatus `json:"degraded,omitempty"`
	fleet.Glimpse
	Created metav1.Time `json:"created"`
}

// instanceItem is an Instance on one cluster.
type instanceItem struct {
	Cluster         string `json:"cluster"`
	Instance        string `json:"instance"`
	OperatorVersion string `json:"operatorVersion"`
	// Ready is the status of the condition; empty if it is missing.
	Ready metav1.ConditionStatus `json:"ready,omitempty"`
	fleet.Glimpse
	Created metav1.Time `json:"created"`
}

// listAddOns returns the add-ons and independent Instances of the selected clusters, all or those of a name, sorted by cluster and name.
// unread gets the error if the user may not read Instances.
func listAddOns(ctx context.Context, h hubclient.Hub, where hubclient.Selection, name string, unread func(error)) (addOnList, error) {
	list, others := addOnList{AddOns: []addOnItem{}, Instances: []instanceItem{}}, map[string]bool{}
	clusters, err := clustersOf(ctx, h, where)
	if err != nil {
		return list, err
	}
	definitions, err := read.Definitions(ctx, h)
	if err != nil {
		return list, err
	}
	isMeant := func(found string) bool { return name == "" || name == found }
	reports := map[client.ObjectKey]fleet.Report{}
	err = h.EachInstance(ctx, clusters, func(instance *kudo.Instance) {
		switch {
		case !isMeant(instance.Name):
		case fleet.IsOfAddOn(instance):
			reports[client.ObjectKeyFromObject(instance)] = fleet.ReportOf(instance)
		case fleet.Independent(instance):
			list.Instances = append(list.Instances, instanceItemOf(instance))
		}
	}, unread)
	if err != nil {
		return list, err
	}
	err = h.EachAddOn(ctx, clusters, func(addOn *addonv1alpha1.ManagedClusterAddOn) {
		if isMeant(addOn.Name) {
			list.AddOns = append(list.AddOns, itemOf(addOn, definitions[addOn.Name], reports[client.ObjectKeyFromObject(addOn)]))
		} else {
			others[addOn.Name] = true
		}
	})
	if err != nil {
		return list, err
	}
	if _, defined := definitions[name]; list.lacks(name) {
		return list, notEnabled(name, defined, slices.Sorted(maps.Keys(others)))
	}
	list.sort()
	return list, nil
}

// lacks reports whether nothing was found under a name that was given.
func (l addOnList) lacks(name string) bool { return name != "" && len(l.AddOns)+len(l.Instances) == 0 }

// clustersOf returns the selected clusters; nil if all are.
func clustersOf(ctx context.Context, h hubclient.Hub, where hubclient.Selection) ([]string, error) {
	if where.IsAll() {
		return nil, nil
	}
	return where.Clusters(ctx, h)
}

// notEnabled returns the error that a selected add-on is not enabled, given whether it is defined and the names of those that are enabled.
func notEnabled(name string, defined bool, enabled []string) error {
	if !defined {
		return fmt.Errorf("add-on %q%s is not enabled on the selected clusters, and no ClusterManagementAddOn has that name; "+
			"enabled add-ons: %s", name, text.DidYouMean(name, enabled), text.ListOrNone(enabled))
	}
	return fmt.Errorf("add-on %q is not enabled on the selected clusters: run 'kubectl addon enable %s --cluster CLUSTER'; "+
		"enabled add-ons: %s", name, name, text.ListOrNone(enabled))
}

func (l addOnList) sort() {
	slices.SortFunc(l.AddOns, func(a, b addOnItem) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.AddOn, b.AddOn))
	})
	slices.SortFunc(l.Instances, func(a, b instanceItem) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Instance, b.Instance))
	})
}

// itemOf returns the item of an add-on, given the report of its Instance.
func itemOf(addOn *addonv1alpha1.ManagedClusterAddOn, definition fleet.Definition, report fleet.Report) addOnItem {
	addOn = fleet.Current(addOn, report)
	item := addOnItem{Cluster: addOn.Namespace, AddOn: addOn.Name, Glimpse: fleet.GlimpseOf(addOn), Created: addOn.CreationTimestamp}
	if definition.PlanManaged {
		item.OperatorVersion = install.VersionInUse(definition.Object, addOn).Name
	}
	if item.OperatorVersion != report.Installed && item.OperatorVersion != "" {
		item.InstalledVersion = report.Installed
	}
	if condition := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable); condition != nil {
		item.Available = condition.Status
	}
	if condition := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionDegraded); condition != nil {
		item.Degraded = condition.Status
	}
	return item
}

func instanceItemOf(instance *kudo.Instance) instanceItem {
	item := instanceItem{
		Cluster: instance.Namespace, Instance: instance.Name, OperatorVersion: instance.Spec.OperatorVersion.Name,
		Glimpse: fleet.GlimpseOfInstance(instance), Created: instance.CreationTimestamp,
	}
	if condition := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionReady); condition != nil {
		item.Ready = condition.Status
	}
	return item
}

// text returns the list as a table of add-ons and a table of Instances; either is omitted if it is empty.
func (l addOnList) text(now time.Time) string {
	var tables []string
	if len(l.AddOns) > 0 {
		tables = append(tables, l.addOnTable(now))
	}
	if len(l.Instances) > 0 {
		tables = append(tables, l.instanceTable(now))
	}
	if len(tables) == 0 {
		return "No add-ons are enabled.\n"
	}
	return strings.Join(tables, "\n")
}

func (l addOnList) addOnTable(now time.Time) string {
	rows := make([][]string, 0, len(l.AddOns))
	for _, i := range l.AddOns {
		rows = append(rows, []string{
			i.Cluster, i.AddOn, i.versionText(), i.State.Text(), cmp.Or(string(i.Available), "Unknown"), orNone(string(i.Degraded)), i.ReasonText(),
			duration.HumanDuration(now.Sub(i.Created.Time)),
		})
	}
	return terminal.Table([]string{"CLUSTER", "ADD-ON", "VERSION", "STATE", "AVAILABLE", "DEGRADED", "REASON", "AGE"}, rows)
}

func (l addOnList) instanceTable(now time.Time) string {
	rows := make([][]string, 0, len(l.Instances))
	for _, i := range l.Instances {
		rows = append(rows, []string{
			i.Cluster, i.Instance, orNone(i.OperatorVersion), i.State.Text(), cmp.Or(string(i.Ready), "Unknown"), i.ReasonText(),
			duration.HumanDuration(now.Sub(i.Created.Time)),
		})
	}
	return terminal.Table([]string{"CLUSTER", "INSTANCE", "VERSION", "STATE", "READY", "REASON", "AGE"}, rows)
}

// versionText returns the desired version, after the installed one if that is another one.
func (i addOnItem) versionText() string {
	if i.InstalledVersion == "" {
		return orNone(i.OperatorVersion)
	}
	return i.InstalledVersion + " -> " + orNone(i.OperatorVersion)
}

func orNone(text string) string { return cmp.Or(text, "-") }

func (l addOnList) names() []string {
	names := make([]string, 0, len(l.AddOns)+len(l.Instances))
	for _, i := range l.AddOns {
		names = append(names, text.ObjectName(addonv1alpha1.GroupVersion.Group, "ManagedClusterAddOn", i.AddOn))
	}
	for _, i := range l.Instances {
		names = append(names, text.ObjectName(kudo.GroupVersion.Group, "Instance", i.Instance))
	}
	return names
}
