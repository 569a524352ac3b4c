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
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
)

// DeclaredBy returns the dependencies that the add-on of that name declares. An add-on without a definition has none. problem reports that
// the declaration is malformed.
func DeclaredBy(ctx context.Context, c client.Reader, name string) (needs []addonv1alpha1.AddonDependency, problem, err error) {
	definition, err := Definition(ctx, c, name)
	if err != nil || definition == nil {
		return nil, nil, err
	}
	needs, problem = dependency.DeclaredBy(definition)
	return needs, problem, nil
}

// Definition returns the ClusterManagementAddOn of that name, read-only; nil if it does not exist.
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

// versionsView holds what the dependents of an add-on rely on of its Instance.
type versionsView struct {
	versions dependency.Versions
	deleting bool
}

// ViewVersions returns the view for a predicate.
func ViewVersions(instance *kudo.Instance) versionsView {
	return versionsView{dependency.InstalledVersions(instance), !instance.DeletionTimestamp.IsZero()}
}

// DependentsOf returns requests for the dependents of addOn on its cluster.
func DependentsOf(ctx context.Context, c client.Reader, addOn client.Object) ([]reconcile.Request, error) {
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

// dependedOnView holds the fields of an add-on that its dependents rely on.
type dependedOnView struct {
	deleting  bool
	available metav1.ConditionStatus
	reason    string
}

// ViewDependedOn returns the view for a predicate.
func ViewDependedOn(a *addonv1alpha1.ManagedClusterAddOn) dependedOnView {
	seen := dependency.See(nil, a)
	return dependedOnView{deleting: seen.Deleting, available: seen.Available, reason: seen.Reason}
}

// DeclarationView holds the fields of a ClusterManagementAddOn for readers of its spec or its dependencies.
type DeclarationView struct {
	uid        types.UID
	generation int64
	annotation string
}

// ViewDeclaration returns the view for a predicate.
func ViewDeclaration(d *addonv1alpha1.ClusterManagementAddOn) DeclarationView {
	return DeclarationView{
		uid: d.UID, generation: d.Generation, annotation: d.Annotations[addonv1alpha1.AnnotationDependencies],
	}
}

// DefinedView holds the fields of a ClusterManagementAddOn that the verdicts on it, and on what it requires, depend on.
type DefinedView struct {
	declaration DeclarationView
	// labelled is the version of an add-on that is not plan-based.
	labelled    dependency.Versions
	planManaged bool
	placed      bool
}

// ViewDefined returns the view for a predicate.
func ViewDefined(d *addonv1alpha1.ClusterManagementAddOn) DefinedView {
	return DefinedView{
		declaration: ViewDeclaration(d), labelled: dependency.LabelledVersion(d), planManaged: install.IsPlanManaged(d), placed: dependency.IsPlaced(d),
	}
}

// changesVersion reports whether the version may differ that dependents compare with their constraints, or who enables the add-on.
func (v DefinedView) changesVersion(other DefinedView) bool {
	return v.labelled != other.labelled || v.planManaged != other.planManaged || v.placed != other.placed
}

// DefinitionView holds the fields of a ClusterManagementAddOn that the add-on controller depends on.
type DefinitionView struct {
	defined    DefinedView
	managed    bool
	healthyFor string
	onFailure  string
}

// ViewDefinition returns the view for a predicate.
func ViewDefinition(d *addonv1alpha1.ClusterManagementAddOn) DefinitionView {
	return DefinitionView{
		defined:    ViewDefined(d),
		managed:    len(d.Status.DefaultConfigReferences)+len(d.Status.InstallProgressions) > 0,
		healthyFor: d.Annotations[kudo.AnnotationHealthyFor],
		onFailure:  d.Annotations[kudo.AnnotationOnFailure],
	}
}
