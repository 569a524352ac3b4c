package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/install"
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
		Long: "List the enabled add-ons with their status. VERSION is the desired OperatorVersion of a plan-based add-on. REASON\n" +
			"is the reason of the first problem, or of condition Available if there is none.\n\n" +
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
	list, err := listAddOns(ctx, h, o.where, o.addOn)
	if err != nil {
		return hubclient.Advise(err, strings.Join(o.where.Names, ","))
	}
	return o.output.Print(o.Out, terminal.Shown{Text: list.text(time.Now()), Data: list, Names: list.names()})
}

// addOnList is the output of `get`.
type addOnList struct {
	AddOns []addOnItem `json:"addOns"`
}

// addOnItem is an add-on on one cluster.
type addOnItem struct {
	Cluster string `json:"cluster"`
	AddOn   string `json:"addOn"`
	// OperatorVersion is the desired OperatorVersion; empty if the add-on is not plan-based, or it is unknown.
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// Available and Degraded are the statuses of the conditions; empty if a condition is missing.
	Available metav1.ConditionStatus `json:"available,omitempty"`
	Degraded  metav1.ConditionStatus `json:"degraded,omitempty"`
	Reason    string                 `json:"reason,omitempty"`
	Created   metav1.Time            `json:"created"`
}

// listAddOns returns the add-ons of the selected clusters, all or those of a name, sorted by cluster and name.
func listAddOns(ctx context.Context, h hubclient.Hub, where hubclient.Selection, name string) (addOnList, error) {
	list, others := addOnList{AddOns: []addOnItem{}}, map[string]bool{}
	var clusters []string
	if !where.Everything() {
		var err error
		if clusters, err = where.Clusters(ctx, h); err != nil {
			return list, err
		}
	}
	definitions, err := hubclient.GatherDefinitions(ctx, h)
	if err != nil {
		return list, err
	}
	err = h.EachAddOn(ctx, clusters, func(addOn *addonv1alpha1.ManagedClusterAddOn) {
		if name == "" || name == addOn.Name {
			list.AddOns = append(list.AddOns, itemOf(addOn, definitions[addOn.Name]))
		} else {
			others[addOn.Name] = true
		}
	})
	if err != nil {
		return list, err
	}
	if _, defined := definitions[name]; len(list.AddOns) == 0 && name != "" {
		names := slices.Sorted(maps.Keys(others))
		if !defined {
			return list, fmt.Errorf("add-on %q%s is not enabled on the selected clusters, and no ClusterManagementAddOn has that name; "+
				"enabled add-ons: %s", name, terminal.DidYouMean(name, names), terminal.Listed(names))
		}
		return list, fmt.Errorf("add-on %q is not enabled on the selected clusters: run 'kubectl addon enable %s --cluster CLUSTER'; "+
			"enabled add-ons: %s", name, name, terminal.Listed(names))
	}
	slices.SortFunc(list.AddOns, func(a, b addOnItem) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.AddOn, b.AddOn))
	})
	return list, nil
}

func itemOf(addOn *addonv1alpha1.ManagedClusterAddOn, definition hubclient.Definition) addOnItem {
	item := addOnItem{Cluster: addOn.Namespace, AddOn: addOn.Name, Reason: reasonOf(addOn), Created: addOn.CreationTimestamp}
	if definition.PlanManaged {
		item.OperatorVersion = install.Configure(definition.Object, addOn, "").OperatorVersion.Name
	}
	if condition := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable); condition != nil {
		item.Available = condition.Status
	}
	if condition := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionDegraded); condition != nil {
		item.Degraded = condition.Status
	}
	return item
}

// reasonOf returns the reason of the first problem of an add-on: not available, degraded, last change held up. Without a problem it returns
// the reason of Available.
func reasonOf(addOn *addonv1alpha1.ManagedClusterAddOn) string {
	if !addOn.DeletionTimestamp.IsZero() {
		return "Deleting"
	}
	conditions := addOn.Status.Conditions
	available := meta.FindStatusCondition(conditions, addonv1alpha1.ConditionAvailable)
	if available == nil || available.Status != metav1.ConditionTrue {
		if resolved := meta.FindStatusCondition(conditions, addonv1alpha1.ConditionResolved); available == nil && resolved != nil {
			return resolved.Reason
		}
		if available == nil {
			return ""
		}
		return available.Reason
	}
	for _, against := range []struct {
		kind string
		Find metav1.ConditionStatus
	}{{addonv1alpha1.ConditionDegraded, metav1.ConditionTrue}, {addonv1alpha1.ConditionResolved, metav1.ConditionFalse}} {
		if condition := meta.FindStatusCondition(conditions, against.kind); condition != nil && condition.Status == against.Find {
			return condition.Reason
		}
	}
	return available.Reason
}

// text returns the list as a table.
func (l addOnList) text(now time.Time) string {
	if len(l.AddOns) == 0 {
		return "No add-ons are enabled.\n"
	}
	orNone := func(text string) string { return cmp.Or(text, "-") }
	rows := make([][]string, 0, len(l.AddOns))
	for _, i := range l.AddOns {
		rows = append(rows, []string{
			i.Cluster, i.AddOn, orNone(i.OperatorVersion), cmp.Or(string(i.Available), "Unknown"), orNone(string(i.Degraded)), orNone(i.Reason),
			duration.HumanDuration(now.Sub(i.Created.Time)),
		})
	}
	return terminal.Table([]string{"CLUSTER", "ADD-ON", "VERSION", "AVAILABLE", "DEGRADED", "REASON", "AGE"}, rows)
}

func (l addOnList) names() []string {
	names := make([]string, 0, len(l.AddOns))
	for _, i := range l.AddOns {
		names = append(names, terminal.ObjectName(addonv1alpha1.GroupVersion.Group, "ManagedClusterAddOn", i.AddOn))
	}
	return names
}
