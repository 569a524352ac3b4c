package plans

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// chain is the life of three add-ons, each of which requires the next: two are run by plans, and the last one renews a lease.
func chain() scenario {
	return scenario{
		name: "chain",
		prepare: func(ctx context.Context, w *world) error {
			return w.push(ctx, branch("link", "1.0.0"))
		},
		actions: []action{
			{"enable", enable, addOnsAre(metav1.ConditionUnknown, metav1.ConditionFalse, metav1.ConditionFalse)},
			{"start", renew, addOnsAre(metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionTrue)},
			{"stop", unrenew, addOnsAre(metav1.ConditionUnknown, metav1.ConditionFalse, metav1.ConditionFalse)},
			{"resume", renew, addOnsAre(metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionTrue)},
			{"disable", disable, expectAllDisabled},
		},
		onHub: []kind{
			kudo.GroupVersion.WithKind("Instance"), addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"),
		},
		onCluster: onCluster[:3],
	}
}

// links returns the names of the add-ons: the last one is required by all others.
func (r *run) links() []string {
	return []string{r.name + "-top", r.name + "-middle", r.name + "-last"}
}

// enable defines and enables all add-ons at the same time.
func enable(ctx context.Context, r *run) error {
	var objects []client.Object
	for i, name := range r.links() {
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
		definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
		if i+1 < len(r.links()) {
			definition.Spec.Dependencies = []addonv1alpha1.AddonDependency{{Name: r.links()[i+1]}}
			definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{
				ConfigGroupResource: upstream.ConfigGroupResource{
					Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions,
				},
				DefaultConfig: &upstream.ConfigReferent{Namespace: packages, Name: "link-1.0.0"},
			}}
		}
		objects = append(objects, definition)
	}
	for _, name := range r.links() {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
		addOn.Spec.InstallNamespace = r.name
		objects = append(objects, addOn)
	}
	for _, o := range objects {
		if err := r.hub.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// lease returns the lease of the last add-on.
func (r *run) lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: r.links()[2]}}
}

// renew acts as the last add-on, whose lease is valid for a long time.
func renew(ctx context.Context, r *run) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.name}}
	if err := r.managed.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	lease := r.lease()
	lease.Spec.LeaseDurationSeconds = ptr.To[int32](60)
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(time.Hour)))
	return r.managed.Create(ctx, lease)
}

// unrenew deletes the lease of the last add-on.
func unrenew(ctx context.Context, r *run) error { return r.managed.Delete(ctx, r.lease()) }

// addOnsAre returns a check of condition Available of the add-ons, from the last one up.
func addOnsAre(want ...metav1.ConditionStatus) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		for i, name := range slices.Backward(r.links()) {
			addOn := &addonv1alpha1.ManagedClusterAddOn{}
			if err := r.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, addOn); err != nil {
				return err
			}
			available := ptr.Deref(meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable), metav1.Condition{})
			wanted := want[len(want)-1-i]
			if available.Status != wanted {
				return fmt.Errorf("add-on %s is %+v, want Available=%s", name, available, wanted)
			}
			if i+1 == len(r.links()) || wanted != metav1.ConditionTrue {
				continue
			}
			if err := r.readyAs(ctx, name); err != nil {
				return err
			}
		}
		return nil
	}
}

// disable deletes all add-ons at the same time.
func disable(ctx context.Context, r *run) error {
	for _, name := range r.links() {
		for _, o := range []client.Object{
			&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}},
			&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}},
		} {
			if err := r.hub.Delete(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// expectAllDisabled returns an error unless no add-on and no Instance remains.
func expectAllDisabled(ctx context.Context, r *run) error {
	for _, name := range r.links() {
		if err := r.expectDisabled(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
