package hub

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// watchSuspensions makes the controller record suspensions in Instances when the ConfigMap or a ClusterManagementAddOn changes. ManagedClusters are watched
// together with what else is passed on of them.
func (i *instances) watchSuspensions(mgr manager.Manager, b *builder.Builder) (err error) {
	i.suspendConfigs, err = watchConfigMap(mgr, b, i.suspendConfig, i.all, read.ViewSuspendConfig)
	if err != nil {
		return fmt.Errorf("watching ConfigMap %s: %w", i.suspendConfig, err)
	}
	b.Watches(&addonv1alpha1.ClusterManagementAddOn{}, controller.EnqueueFrom(i.ofDefinition),
		builder.WithPredicates(controller.ChangeIn(read.ViewSuspend), controller.AfterStart()))
	return nil
}

// ofDefinition returns the Instances of the add-on of a changed ClusterManagementAddOn.
func (i *instances) ofDefinition(ctx context.Context, definition client.Object) ([]reconcile.Request, error) {
	return read.InstancesOfAddOn(ctx, i.client, definition.GetName())
}

// errSuspensionDropped is like errFactsDropped.
var errSuspensionDropped = errors.New("the API server does not store spec.suspendedBy of Instances: apply crds/ on the hub")

// recordSuspension writes the objects that suspend the Instance to its spec if they have changed, and reports whether it did. An Instance is not resolved
// before, so that its agent never starts a generation without them.
func (i *instances) recordSuspension(ctx context.Context, state install.Instance) (bool, error) {
	instance, want := state.Instance, install.SuspendedByOf(state)
	if instance.Spec.SuspendedBy == want {
		return false, nil
	}
	operation := apply.Operation{Op: "add", Path: "/spec/suspendedBy", Value: want}
	if want == "" {
		operation = apply.Operation{Op: "remove", Path: "/spec/suspendedBy"}
	}
	stored, err := apply.PatchSpec(ctx, i.client, instance, []apply.Operation{operation}, client.FieldOwner(ManagerInstance))
	if err == nil && !stored {
		err = fmt.Errorf("recording what suspends Instance %s: %w", client.ObjectKeyFromObject(instance), errSuspensionDropped)
	}
	if !stored {
		return false, err
	}
	for _, origin := range state.Suspensions {
		if denial := origin.Denial(); denial != "" {
			i.recorder.Eventf(instance, nil, corev1.EventTypeWarning, eventSuspendedAnyway, actionResolve, "%s", controller.TruncateNote(denial))
		}
	}
	return true, nil
}

// suspendConfig returns the name of the ConfigMap that suspends everything.
func (o Options) suspendConfig() types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: kudo.SuspendConfigMap}
}
