// Package read reads, from the hub's cache and its indexes, the state on which the hub's controllers and webhooks decide. It reads a
// cluster and writes nothing.
package read

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

// The indexes of the cache. They map a changed object to the objects that it affects, so that nothing polls.
const (
	// byDependency finds ClusterManagementAddOns by the name of a dependency or an alternative of one.
	byDependency = "dependency"
	// byAddOn finds ManagedClusterAddOns of all clusters by their name.
	byAddOn = "addon"
	// byConfig finds ClusterManagementAddOns and ManagedClusterAddOns by RESOURCE/NAMESPACE/NAME of a configuration object, and by the
	// namespaces of all their configuration objects, other than a ManagedClusterAddOn's own.
	byConfig = "config"
	// ByVersion finds Instances by NAMESPACE/NAME of their OperatorVersion.
	ByVersion = "version"
	// byOperator finds OperatorVersions by the name of their operator, byChild by the name of a child operator.
	byOperator = "operator"
	byChild    = "child"
	// BySlot finds Instances by cluster, target namespace and name there.
	BySlot = "slot"
	// byParent finds Instances by the uid of their parent, byRoot by the name of the root of their tree.
	byParent = "parent"
	byRoot   = "root"
)

// Indexes sets up the indexes of the cache.
type Indexes struct{}

func (*Indexes) SetUp(mgr manager.Manager) error {
	for _, index := range []struct {
		object client.Object
		field  string
		keys   client.IndexerFunc
	}{
		{&addonv1alpha1.ClusterManagementAddOn{}, byDependency, dependencyKeys},
		{&addonv1alpha1.ClusterManagementAddOn{}, byConfig, configKeys},
		{&kudo.Instance{}, ByVersion, func(o client.Object) []string {
			return []string{install.VersionOf(o.(*kudo.Instance)).String()}
		}},
		{&kudo.OperatorVersion{}, byOperator, operatorKeys},
		{&kudo.OperatorVersion{}, byChild, childKeys},
		{&kudo.Instance{}, byParent, parentKeys},
		{&kudo.Instance{}, byRoot, func(o client.Object) []string { return []string{cmp.Or(o.GetLabels()[kudo.LabelRoot], o.GetName())} }},
		{&kudo.Instance{}, BySlot, func(o client.Object) []string { return []string{SlotKey(o.(*kudo.Instance))} }},
	} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), index.object, index.field, index.keys); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", index.object, index.field, err)
		}
	}
	return indexFleet(mgr.GetCache(), map[string]client.IndexerFunc{
		byAddOn:  func(o client.Object) []string { return []string{o.GetName()} },
		byConfig: configKeys,
	})
}

// indexFleet sets up indexes of ManagedClusterAddOns that find them on all clusters, and not on one: the latter would take a set in memory
// for each add-on. They have the names and keys by which controller-runtime lists objects with MatchingFields.
func indexFleet(c cache.Cache, indexes map[string]client.IndexerFunc) error {
	informer, err := c.GetInformer(context.Background(), &addonv1alpha1.ManagedClusterAddOn{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("indexing ManagedClusterAddOns: %w", err)
	}
	indexers := toolscache.Indexers{}
	for field, keys := range indexes {
		indexers["field:"+field] = func(object any) ([]string, error) {
			found := keys(object.(client.Object))
			for i := range found {
				found[i] = "__all_namespaces/" + found[i]
			}
			return found, nil
		}
	}
	if err := informer.AddIndexers(indexers); err != nil {
		return fmt.Errorf("indexing ManagedClusterAddOns: %w", err)
	}
	return nil
}

// malformedKey is the key of malformed declarations in index byDependency. It is not the name of an add-on.
const malformedKey = "?"

// dependencyKeys returns the names of a ClusterManagementAddOn's dependencies; malformedKey if they are malformed, because the last verdict is then
// kept regardless of other add-ons.
func dependencyKeys(o client.Object) []string {
	needs, err := dependency.DeclaredBy(o.(*addonv1alpha1.ClusterManagementAddOn))
	if err != nil {
		return []string{malformedKey}
	}
	return dependency.CandidatesOf(needs)
}

func configKeys(o client.Object) []string {
	definition, _ := o.(*addonv1alpha1.ClusterManagementAddOn)
	addOn, _ := o.(*addonv1alpha1.ManagedClusterAddOn)
	named, namespaces := install.References(definition, addOn), install.ConfigNamespaces(definition, addOn)
	keys := make([]string, 0, len(named)+len(namespaces))
	for _, reference := range named {
		keys = append(keys, configKey(reference.Resource, reference.NamespacedName))
	}
	for _, namespace := range namespaces {
		keys = append(keys, configNamespaceKey(namespace))
	}
	return keys
}

// configNamespaceKey returns the key for all configuration objects in a namespace.
func configNamespaceKey(namespace string) string { return "namespaces/" + namespace }

func configKey(resource string, name types.NamespacedName) string {
	return resource + "/" + name.String()
}

// SlotKey returns the key of an Instance in index BySlot.
func SlotKey(i *kudo.Instance) string {
	slot := install.SlotOf(i)
	return slot.Cluster + "/" + slot.Namespace + "/" + slot.Name
}

// parentKeys returns the uid of the Instance's parent.
func parentKeys(o client.Object) []string {
	if owner := o.(*kudo.Instance).Parent(); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// operatorKeys and childKeys return the operator of an OperatorVersion, and its child operators.
func operatorKeys(o client.Object) []string {
	return []string{o.(*kudo.OperatorVersion).OperatorName()}
}

func childKeys(o client.Object) []string {
	var operators []string
	for _, task := range tree.Tasks(&o.(*kudo.OperatorVersion).Spec) {
		operators = append(operators, task.Spec.Package)
	}
	return operators
}

// DefinedOn returns the names of the add-ons that declare a dependency on that one.
func DefinedOn(ctx context.Context, c client.Reader, name string) ([]string, error) {
	found, err := definitionsOn(ctx, c, name)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(found))
	for i := range found {
		names = append(names, found[i].Name)
	}
	return names, nil
}

// definitionsOn returns the definitions with that key in index byDependency, read-only.
func definitionsOn(ctx context.Context, c client.Reader, key string) ([]addonv1alpha1.ClusterManagementAddOn, error) {
	var found addonv1alpha1.ClusterManagementAddOnList
	if err := c.List(ctx, &found, client.MatchingFields{byDependency: key}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the dependents of add-on %q: %w", key, err)
	}
	return found.Items, nil
}

// AddOnsNamed returns requests for the ManagedClusterAddOns of that name on all clusters.
func AddOnsNamed(ctx context.Context, c client.Reader, name string) ([]reconcile.Request, error) {
	var found addonv1alpha1.ManagedClusterAddOnList
	if err := c.List(ctx, &found, client.MatchingFields{byAddOn: name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ManagedClusterAddOns named %q: %w", name, err)
	}
	requests := make([]reconcile.Request, 0, len(found.Items))
	for i := range found.Items {
		requests = append(requests, RequestFor(&found.Items[i]))
	}
	return requests, nil
}

// addOnsOn returns requests for the ManagedClusterAddOns of a managed cluster.
func addOnsOn(ctx context.Context, c client.Reader, cluster client.Object) ([]reconcile.Request, error) {
	var found addonv1alpha1.ManagedClusterAddOnList
	if err := c.List(ctx, &found, client.InNamespace(cluster.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ManagedClusterAddOns in %q: %w", cluster.GetName(), err)
	}
	requests := make([]reconcile.Request, 0, len(found.Items))
	for i := range found.Items {
		requests = append(requests, RequestFor(&found.Items[i]))
	}
	return requests, nil
}

// RequestFor returns the request for an object.
func RequestFor(o client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}
}
