package read

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
)

// Order adds what the order of upgrades depends on to the state of an add-on whose version is about to change: what runs on its cluster, and what other
// add-ons there want if the change has to wait, or may make theirs impossible. The Instances are those of the state.
func (a *AddOns) Order(ctx context.Context, state *install.AddOn) error {
	state.Members, state.Releases = nil, nil
	if !install.ChangesVersion(*state) {
		return nil
	}
	found := &addonv1alpha1.ManagedClusterAddOnList{}
	if err := a.Client.List(ctx, found, client.InNamespace(state.ManagedAddOn.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ManagedClusterAddOns in %q: %w", state.ManagedAddOn.Namespace, err)
	}
	members := map[string]dependency.Member{}
	for i := range found.Items {
		member, err := a.member(ctx, &found.Items[i], state.Instances)
		if err != nil {
			return err
		}
		members[found.Items[i].Name] = member
	}
	name, wants := state.ManagedAddOn.Name, dependency.ReleaseOf(state.Version)
	member := members[name]
	member.Wants = &wants
	members[name] = member
	state.Members = members
	if len(dependency.Exclusions(name, wants, members)) == 0 && !dependency.HasAlternatives(members) {
		return nil
	}
	state.Releases = map[string][]dependency.Release{}
	for i := range found.Items {
		if err := a.wants(ctx, &found.Items[i], state); err != nil {
			return err
		}
	}
	return nil
}

// ConstrainersOf returns the definitions of the add-ons that may have constraints on the version of that one, whatever they run: its dependents, and those with
// a malformed declaration. They are read-only.
func ConstrainersOf(ctx context.Context, c client.Reader, addOn string) ([]addonv1alpha1.ClusterManagementAddOn, error) {
	var definitions []addonv1alpha1.ClusterManagementAddOn
	for _, key := range []string{addOn, malformedKey} {
		found, err := definitionsOn(ctx, c, key)
		if err != nil {
			return nil, err
		}
		definitions = append(definitions, found...)
	}
	return definitions, nil
}

// WithoutPackage returns those of the add-ons that have a definition and run no package.
func WithoutPackage(ctx context.Context, c client.Reader, names []string) ([]string, error) {
	var found []string
	for _, name := range names {
		definition, err := Definition(ctx, c, name)
		if err != nil {
			return nil, err
		}
		if definition != nil && !install.IsPlanManaged(definition) {
			found = append(found, name)
		}
	}
	return found, nil
}

// member returns what an add-on requires and runs on its cluster, whose Instances are given.
func (a *AddOns) member(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, instances []kudo.Instance) (dependency.Member, error) {
	definition, err := Definition(ctx, a.Client, addOn.Name)
	if err != nil {
		return dependency.Member{}, err
	}
	member := dependency.Member{Deleting: !addOn.DeletionTimestamp.IsZero()}
	if member.Runs, err = a.releases(ctx, definition, addOn, instances); err != nil || definition == nil {
		return member, err
	}
	needs, problem := dependency.DeclaredBy(definition)
	if problem != nil {
		needs = dependency.NeedsOf(member.Runs)
	}
	member.Needs, err = NeedsOn(ctx, a.Client, addOn.Namespace, needs)
	return member, err
}

// releases returns what an add-on runs on its cluster, whose Instances are given. An OperatorVersion that the cache lacks may have just been pushed.
func (a *AddOns) releases(
	ctx context.Context, definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn, instances []kudo.Instance,
) ([]dependency.Release, error) {
	if !install.IsPlanManaged(definition) {
		return []dependency.Release{dependency.LabelledRelease(definition)}, nil
	}
	own := install.AddOn{ManagedAddOn: addOn, Instances: instances}.OwnInstance()
	switch {
	case own == nil || !install.OwnedBy(own, addOn):
		return nil, nil
	case dependency.RunsNamed(own):
		return dependency.RunningReleases(own, nil), nil
	}
	named, err := releasedVersion(ctx, a.Client, install.VersionOf(own))
	if err == nil && named == nil {
		named, err = releasedVersion(ctx, a.Live, install.VersionOf(own))
	}
	releases := dependency.RunningReleases(own, named)
	if named == nil {
		releases = append(releases, dependency.MissingRelease(own.Spec.OperatorVersion.Name))
	}
	return releases, err
}

// wants adds to the state the release that another add-on on the cluster is configured to change to, and those that exist.
func (a *AddOns) wants(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, state *install.AddOn) error {
	definition, err := Definition(ctx, a.Client, addOn.Name)
	if err != nil || !install.IsPlanManaged(definition) {
		return err
	}
	namespaces, err := Namespaces(ctx, a.Client, a.Namespaces, install.ConfigNamespaces(definition, addOn))
	if err != nil {
		return err
	}
	configuration := install.Configure(definition, addOn, namespaces)
	version, err := releasedVersion(ctx, a.Client, configuration.OperatorVersion)
	if err != nil || version == nil || len(configuration.Problems) > 0 {
		return err
	}
	versions, err := Versions(ctx, a.Client, version.Namespace, version.OperatorName())
	if err != nil {
		return err
	}
	for i := range versions {
		state.Releases[addOn.Name] = append(state.Releases[addOn.Name], dependency.ReleaseOf(&versions[i]))
	}
	own := install.AddOn{ManagedAddOn: addOn, Instances: state.Instances}.OwnInstance()
	if own == nil || install.VersionOf(own) == configuration.OperatorVersion {
		return nil
	}
	member, wants := state.Members[addOn.Name], dependency.ReleaseOf(version)
	member.Wants = &wants
	state.Members[addOn.Name] = member
	return nil
}

// releasedVersion returns the OperatorVersion of that name, read-only; nil if it does not exist.
func releasedVersion(ctx context.Context, c client.Reader, name types.NamespacedName) (*kudo.OperatorVersion, error) {
	if !install.MayExist(name) {
		return nil, nil
	}
	version := &kudo.OperatorVersion{}
	err := c.Get(ctx, name, version, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading OperatorVersion %s: %w", name, err)
	}
	return version, nil
}

// ConstraintsOf returns what the running releases of an add-on require of the versions of others, by their names. It has none without an Instance.
func ConstraintsOf(ctx context.Context, c client.Reader, addOn *addonv1alpha1.ManagedClusterAddOn) (map[string][]string, error) {
	instance, key := &kudo.Instance{}, client.ObjectKeyFromObject(addOn)
	err := c.Get(ctx, key, instance, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(instance, addOn) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Instance %s: %w", key, err)
	}
	return dependency.RunningConstraints(instance), nil
}

// Namesake returns the request for the add-on with the name of an Instance.
func Namesake(_ context.Context, instance client.Object) ([]reconcile.Request, error) {
	return []reconcile.Request{RequestFor(instance)}, nil
}

// WaitersOn returns requests for the add-ons that wait for others on the cluster of an object.
//
// An add-on that is about to wait may be missing. Its own condition triggers another reconciliation, which sees the change of the object.
func WaitersOn(ctx context.Context, c client.Reader, object client.Object) ([]reconcile.Request, error) {
	return waiters(ctx, c, client.InNamespace(object.GetNamespace()))
}

// Waiters returns requests for the add-ons that wait for others, as WaitersOn does, on all clusters.
func Waiters(ctx context.Context, c client.Reader) ([]reconcile.Request, error) {
	return waiters(ctx, c)
}

func waiters(ctx context.Context, c client.Reader, where ...client.ListOption) ([]reconcile.Request, error) {
	found := &addonv1alpha1.ManagedClusterAddOnList{}
	if err := c.List(ctx, found, append(where, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("listing ManagedClusterAddOns: %w", err)
	}
	var requests []reconcile.Request
	for i := range found.Items {
		resolved := meta.FindStatusCondition(found.Items[i].Status.Conditions, addonv1alpha1.ConditionResolved)
		if resolved != nil && resolved.Reason == addonv1alpha1.ReasonWaitingForDependencies {
			requests = append(requests, RequestFor(&found.Items[i]))
		}
	}
	return requests, nil
}

// orderView holds the fields of an Instance that the order of upgrades depends on.
type orderView struct {
	versions    versionsView
	named       types.NamespacedName
	constraints string
}

// ViewOrder returns the view for a predicate.
func ViewOrder(instance *kudo.Instance) orderView {
	return orderView{ViewVersions(instance), install.VersionOf(instance), ViewConstraints(instance)}
}

// ViewConstraints returns the constraints of the releases of an add-on that run, for a predicate.
func ViewConstraints(instance *kudo.Instance) string {
	constraints := dependency.RunningConstraints(instance)
	if len(constraints) == 0 {
		return ""
	}
	return fmt.Sprint(constraints) // in the order of the keys
}
