package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/dependency"
	"github.com/tandem-addons/tandem/pkg/install"
)

// clusterView is what there is to know of the add-ons on a cluster and of what they depend on.
type clusterView struct {
	cluster string
	// definitions and addOns are keyed by name; the former are those of the whole hub.
	definitions map[string]definition
	addOns      map[string]*addon.ManagedClusterAddOn
	// instances are those of the cluster, by name; none where nobody read them.
	instances map[string]*kudo.Instance
}

// definition is what a ClusterManagementAddOn declares. It is read once, for whoever follows dependencies asks often.
type definition struct {
	needs []addon.AddonDependency
	// malformed says what is wrong with the declaration, where that cannot be judged.
	malformed error
	// byPlans says that Tandem runs the add-on.
	byPlans bool
	object  *addon.ClusterManagementAddOn
}

func definitionOf(object *addon.ClusterManagementAddOn) definition {
	needs, fault := dependency.Declared(object)
	return definition{needs: needs, malformed: fault, byPlans: install.RunsByPlans(object), object: object}
}

// gatherCluster reads the add-ons of a cluster. If there is no such cluster, the error names those that there are.
func gatherCluster(ctx context.Context, c client.Reader, cluster string) (clusterView, error) {
	view := clusterView{cluster: cluster, addOns: map[string]*addon.ManagedClusterAddOn{}}
	var err error
	if view.definitions, err = gatherDefinitions(ctx, c); err != nil {
		return view, err
	}
	var addOns addon.ManagedClusterAddOnList
	if err := c.List(ctx, &addOns, client.InNamespace(cluster)); err != nil {
		return view, fmt.Errorf("listing the add-ons of cluster %q: %w", cluster, err)
	}
	for i := range addOns.Items {
		view.addOns[addOns.Items[i].Name] = &addOns.Items[i]
	}
	if len(view.addOns) > 0 {
		return view, nil
	}
	found, err := gatherClusters(ctx, c, cluster, labels.Everything())
	if err != nil {
		return view, err
	}
	return view, found.missing()
}

// gatherInstances reads the Instances of a cluster; none where the user may not, or the hub has no such kind.
func gatherInstances(ctx context.Context, c client.Reader, cluster string) (map[string]*kudo.Instance, error) {
	var list kudo.InstanceList
	err := c.List(ctx, &list, client.InNamespace(cluster))
	if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the Instances of cluster %q: %w", cluster, err)
	}
	instances := make(map[string]*kudo.Instance, len(list.Items))
	for i := range list.Items {
		instances[list.Items[i].Name] = &list.Items[i]
	}
	return instances, nil
}

// gatherDefinitions reads what all ClusterManagementAddOns declare.
func gatherDefinitions(ctx context.Context, c client.Reader) (map[string]definition, error) {
	var list addon.ClusterManagementAddOnList
	if err := c.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the ClusterManagementAddOns: %w", err)
	}
	definitions := make(map[string]definition, len(list.Items))
	for i := range list.Items {
		definitions[list.Items[i].Name] = definitionOf(&list.Items[i])
	}
	return definitions, nil
}

// lacks is the error for an add-on of which nobody has heard; nil if the hub or the cluster has one of the name.
func (v clusterView) lacks(name string) error {
	if _, defined := v.definitions[name]; defined || v.addOns[name] != nil {
		return nil
	}
	if v.instances[name] != nil {
		return fmt.Errorf("%q is an Instance that belongs to no add-on: see 'kubectl addon plan status %s --cluster %s'", name, name, v.cluster)
	}
	return fmt.Errorf("there is no add-on %q; add-ons of cluster %q: %s; ClusterManagementAddOns: %s",
		name, v.cluster, listed(v.installed()), listed(slices.Sorted(maps.Keys(v.definitions))))
}

// installed are the names of the add-ons on the cluster, sorted.
func (v clusterView) installed() []string { return slices.Sorted(maps.Keys(v.addOns)) }

func (v clusterView) needs(name string) []addon.AddonDependency { return v.definitions[name].needs }

func (v clusterView) see(name string) dependency.Seen {
	seen := dependency.See(nil, v.addOns[name])
	_, seen.Defined = v.definitions[name]
	return seen
}

// judge judges what an add-on depends on as addon-manager does.
func (v clusterView) judge(name string) dependency.Verdict {
	needs := v.needs(name)
	seen := make(map[string]dependency.Seen, len(needs))
	for _, need := range needs {
		s := v.see(need.Name)
		s.Circle = dependency.Circle(name, need.Name, v.needs)
		seen[need.Name] = s
	}
	addOn := v.addOns[name]
	if addOn == nil {
		return dependency.Evaluate(needs, seen, nil)
	}
	return dependency.Evaluate(needs, seen, meta.FindStatusCondition(addOn.Status.Conditions, addon.ConditionDegraded))
}

// once is of, which it asks once for each name.
func once[T any](of func(name string) T) func(name string) T {
	known := map[string]T{}
	return func(name string) T {
		if _, asked := known[name]; !asked {
			known[name] = of(name)
		}
		return known[name]
	}
}

// clusterFlag adds --cluster to a command, which demands it.
func clusterFlag(cmd *cobra.Command, cluster *string, of string) {
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return checkCluster(cmd, *cluster, of) }
	cmd.Flags().StringVar(cluster, "cluster", "", "managed cluster that "+of+" (required)")
}

// checkCluster refuses a command line that does not name the cluster by --cluster alone.
func checkCluster(cmd *cobra.Command, cluster, of string) error {
	if cluster == "" {
		return usagef(cmd, "--cluster is required: the managed cluster that %s", of)
	}
	if cmd.Flags().Changed("namespace") {
		return usagef(cmd, "--namespace has no meaning here: --cluster names the managed cluster, and with it the namespace on the hub")
	}
	return nil
}

// word is a name as one word on a terminal: as it is, or quoted.
func word(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` || strings.ContainsRune(name, ' ') {
		return quoted
	}
	return name
}
