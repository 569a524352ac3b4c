package plans

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/audit"
)

// order is a change of the versions of three add-ons at once, and back. In both directions, exactly one order violates no constraint.
func order() scenario {
	return scenario{
		name:    "order",
		prepare: func(context.Context, *world) error { return nil }, // each run pushes packages of its own
		actions: []action{
			{"enable", enableRungs, rungsRun("1.0.0")},
			{"raise", wantRungs("2.0.0"), rungsRun("2.0.0")},
			{"lower", wantRungs("1.0.0"), rungsRun("1.0.0")},
			{"disable", disableRungs, expectRungsRemoved},
		},
		onHub:     chain().onHub,
		onCluster: onCluster[:3],
	}
}

// rung returns a version of the package of an add-on, which requires certain versions of the next one, if there is one.
func (r *run) rung(i int, version, constraint string) *kudo.OperatorVersion {
	names := r.links()
	v := branch(names[i], version)
	v.Spec.Operator = corev1.ObjectReference{Name: names[i]}
	if i+1 < len(names) {
		v.Spec.Dependencies = []kudo.DependencyConstraint{{Name: names[i+1], Version: constraint}}
	}
	return v
}

// enableRungs pushes both versions of each add-on, and enables all at the same time. The first versions exclude the second ones of what they require.
func enableRungs(ctx context.Context, r *run) error {
	names := r.links()
	for i, name := range names {
		if err := r.push(ctx, r.rung(i, "1.0.0", "<2"), r.rung(i, "2.0.0", ">=1 <3")); err != nil {
			return err
		}
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
		definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
		if i+1 < len(names) {
			definition.Spec.Dependencies = []addonv1alpha1.AddonDependency{{Name: names[i+1]}}
		}
		setVersion(definition, name+"-1.0.0")
		if err := r.hub.Create(ctx, definition); err != nil {
			return err
		}
	}
	for _, name := range names {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
		addOn.Spec.InstallNamespace = r.name
		if err := r.hub.Create(ctx, addOn); err != nil {
			return err
		}
	}
	return nil
}

// setVersion makes an OperatorVersion the default of a definition.
func setVersion(definition *addonv1alpha1.ClusterManagementAddOn, version string) {
	definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{
		ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
		DefaultConfig:       &upstream.ConfigReferent{Namespace: packages, Name: version},
	}}
}

// wantRungs returns an action that configures a version of all add-ons, first of the one that has to be the last to get it.
func wantRungs(version string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		names := r.links()
		for i := range names {
			name := names[i]
			if version == "2.0.0" {
				name = names[len(names)-1-i]
			}
			definition := &addonv1alpha1.ClusterManagementAddOn{}
			if err := r.hub.Get(ctx, client.ObjectKey{Name: name}, definition); err != nil {
				return err
			}
			before := definition.DeepCopy()
			setVersion(definition, name+"-"+version)
			if err := r.hub.Patch(ctx, definition, client.MergeFrom(before)); err != nil {
				return err
			}
		}
		return nil
	}
}

// rungsRun returns a check that all add-ons run a version, and that nothing waits.
func rungsRun(version string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		for _, name := range r.links() {
			addOn := &addonv1alpha1.ManagedClusterAddOn{}
			if err := r.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, addOn); err != nil {
				return err
			}
			for _, condition := range []string{addonv1alpha1.ConditionAvailable, addonv1alpha1.ConditionResolved} {
				if !meta.IsStatusConditionTrue(addOn.Status.Conditions, condition) {
					return fmt.Errorf("add-on %s is %+v", name, addOn.Status.Conditions)
				}
			}
			if err := r.readyAs(ctx, name); err != nil {
				return err
			}
			instance := &kudo.Instance{}
			if err := r.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, instance); err != nil {
				return err
			}
			if whole := instance.Status.Whole; whole == nil || whole.Version != version {
				return fmt.Errorf("add-on %s runs %+v, want %s", name, whole, version)
			}
		}
		return nil
	}
}

// disableRungs deletes all add-ons at the same time, those that depend on others first. Their definitions remain, because the order of removal follows them.
func disableRungs(ctx context.Context, r *run) error {
	r.deleted = map[string]time.Time{}
	for _, name := range r.links() {
		r.deleted[name] = time.Now()
		if err := r.hub.Delete(ctx, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}); err != nil {
			return err
		}
	}
	return nil
}

// expectRungsRemoved returns an error unless no add-on and no Instance remains; then it deletes the definitions.
func expectRungsRemoved(ctx context.Context, r *run) error {
	if err := expectAllDisabled(ctx, r); err != nil {
		return err
	}
	for _, name := range r.links() {
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreNotFound(r.hub.Delete(ctx, definition)); err != nil {
			return err
		}
	}
	return nil
}

// earlyRemovals returns the removals of rungs that began while a dependent that was deleted, too, still had objects.
func (r *run) earlyRemovals(entries []audit.Entry) []string {
	names := r.links()
	return audit.EarlyRemovals(entries, r.deleted, func(dependent, other string, _ time.Time) bool {
		i := slices.Index(names, dependent)
		return i >= 0 && i+1 < len(names) && names[i+1] == other
	})
}

// exclusions returns the versions that have run together although one excludes the other, by what the agent has applied.
func (r *run) exclusions(ctx context.Context, entries []audit.Entry) ([]string, error) {
	versions := &kudo.OperatorVersionList{}
	if err := r.hub.List(ctx, versions, client.InNamespace(packages)); err != nil {
		return nil, err
	}
	specs := make([]kudo.OperatorVersionSpec, len(versions.Items))
	for i := range versions.Items {
		specs[i] = versions.Items[i].Spec
	}
	return audit.Exclusions(entries, audit.ExcludedBy(specs)), nil
}
