package read

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/dependency"
)

// DeclaredBy is what the add-on of that name depends on. An add-on without definition depends on nothing. fault says that the
// declaration is malformed.
func DeclaredBy(ctx context.Context, c client.Reader, name string) (needs []addonv1alpha1.AddonDependency, fault, err error) {
	definition, err := Definition(ctx, c, name)
	if err != nil || definition == nil {
		return nil, nil, err
	}
	needs, fault = dependency.Declared(definition)
	return needs, fault, nil
}

// Definition is the ClusterManagementAddOn of that name, to be read only; nil if there is none.
func Definition(ctx context.Context, c client.Reader, name string) (*addonv1alpha1.ClusterManagementAddOn, error) {
	var definition addonv1alpha1.ClusterManagementAddOn
	err := c.Get(ctx, types.NamespacedName{Name: name}, &definition, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ClusterManagementAddOn %q: %w", name, err)
	}
	return &definition, nil
}

// Dependencies gathers what is known on a cluster of the add-ons that are needed; cycles are those that the needs lead into.
func Dependencies(
	ctx context.Context, c client.Reader, cluster string, needs []addonv1alpha1.AddonDependency, cycles map[string][]string,
) (map[string]dependency.Seen, error) {
	seen := make(map[string]dependency.Seen, len(needs))
	for _, need := range needs {
		definition, err := Definition(ctx, c, need.Name)
		if err != nil {
			return nil, err
		}
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		err = c.Get(ctx, types.NamespacedName{Namespace: cluster, Name: need.Name}, addOn,
			client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			addOn, err = nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading ManagedClusterAddOn %s/%s: %w", cluster, need.Name, err)
		}
		known := dependency.See(definition, addOn)
		known.Cycle = cycles[need.Name]
		seen[need.Name] = known
	}
	return seen, nil
}

// DependantsOf are requests for the add-ons that depend on addOn, on its cluster.
func DependantsOf(ctx context.Context, c client.Reader, addOn client.Object) ([]reconcile.Request, error) {
	names, err := DefinedOn(ctx, c, addOn.GetName())
	if err != nil {
		return nil, err
	}
	requests := make([]reconcile.Request, 0, len(names))
	for _, name := range names {
		requests = append(requests, reconcile.Request{
			NamespacedName: types.NamespacedName{Namespace: addOn.GetNamespace(), Name: name},
		})
	}
	return requests, nil
}

// dependedOnView is what matters of an add-on to those that depend on it.
type dependedOnView struct {
	deleting  bool
	available metav1.ConditionStatus
	reason    string
}

// ViewDependedOn is for a predicate.
func ViewDependedOn(a *addonv1alpha1.ManagedClusterAddOn) dependedOnView {
	seen := dependency.See(nil, a)
	return dependedOnView{deleting: seen.Deleting, available: seen.Available, reason: seen.Reason}
}

// DeclarationView is what matters of a ClusterManagementAddOn to who reads its spec or its dependencies.
type DeclarationView struct {
	uid        types.UID
	generation int64
	annotation string
}

// ViewDeclaration is for a predicate.
func ViewDeclaration(d *addonv1alpha1.ClusterManagementAddOn) DeclarationView {
	return DeclarationView{
		uid: d.UID, generation: d.Generation, annotation: d.Annotations[addonv1alpha1.AnnotationDependencies],
	}
}

// DefinitionView is what matters of a ClusterManagementAddOn to the add-on controller.
type DefinitionView struct {
	declaration DeclarationView
	managed     bool
}

// ViewDefinition is for a predicate.
func ViewDefinition(d *addonv1alpha1.ClusterManagementAddOn) DefinitionView {
	return DefinitionView{
		declaration: ViewDeclaration(d),
		managed:     len(d.Status.DefaultConfigReferences)+len(d.Status.InstallProgressions) > 0,
	}
}
