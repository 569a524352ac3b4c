package hub

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/controller"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/install"
)

// instances admits Instances in the namespaces of managed clusters, an add-on's or a user's alike: condition Resolved reports whether
// the agent may run the generation. Instances elsewhere on the hub are left alone, and so are mirrors: they are an agent's.
type instances struct {
	client            client.Client
	live              client.Reader // not from the cache, which has no inventories
	recorder          events.EventRecorder
	packagesNamespace string
	verifications     read.Verifications
	written           *controller.Writes
}

func (i *instances) SetUp(mgr manager.Manager) error {
	return controller.New(mgr, "instance", controller.Options{}).
		For(&kudo.Instance{}, builder.WithPredicates(controller.Changed(read.ViewInstance))).
		Watches(&kudo.Instance{}, controller.Mapped(i.rivals), builder.WithPredicates(controller.Existence())).
		Watches(&kudo.Instance{}, controller.Mapped(read.Parent), builder.WithPredicates(controller.Deletion())).
		Watches(&kudo.OperatorVersion{}, controller.Mapped(i.runningVersion), builder.WithPredicates(controller.Existence())).
		Watches(&kudo.OperatorVersion{}, handler.Funcs{DeleteFunc: i.forget}).
		WatchesMetadata(read.ManagedCluster(), controller.Mapped(i.onCluster), builder.WithPredicates(controller.DeletionBegun())).
		WatchesMetadata(read.Namespace(), controller.Mapped(i.onCluster), builder.WithPredicates(controller.DeletionBegun(), controller.AfterStart())).
		Complete(i)
}

// Reconcile judges one Instance, or lets it go.
func (i *instances) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var instance kudo.Instance
	err := i.client.Get(ctx, request.NamespacedName, &instance)
	if apierrors.IsNotFound(err) || kudo.IsMirror(&instance) {
		i.written.Forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading Instance %s: %w", request.NamespacedName, err)
	}
	// Where the cache does not have the last write yet, it would be repeated. As a rule its own event leads here again.
	if wait := i.written.Awaits(&instance); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	defer i.written.NoteSince(&instance, instance.ResourceVersion)
	detached, err := read.IsDetached(ctx, i.client, instance.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	if detached || !instance.DeletionTimestamp.IsZero() {
		return controller.RetryConflict(i.letGo(ctx, &instance, detached))
	}
	state, err := i.gather(ctx, &instance)
	if err != nil {
		return ctrl.Result{}, err
	}
	resolved := install.Judge(state)
	if err := i.act(ctx, &instance, resolved); err != nil {
		return controller.RetryConflict(err)
	}
	wrote, err := apply.Condition(ctx, i.client, &instance, instance.Status.Conditions, ManagerInstance, resolved, time.Now())
	if wrote {
		i.tell(&instance, resolved)
	}
	return controller.RetryConflict(err)
}

// gather reads everything that matters about the Instance.
func (i *instances) gather(ctx context.Context, instance *kudo.Instance) (install.Instance, error) {
	state, err := read.Instance(ctx, i.client, instance, i.packagesNamespace)
	if err != nil {
		return state, err
	}
	state.VersionFaults = i.verifications.Of(state.Version)
	return state, read.Tree(ctx, i.client, &state)
}

// act brings the request for a plan by hand forward, and puts the finalizer on before the Instance first becomes Resolved. The agent runs
// nothing before that, so that an Instance without the finalizer has left no trace on its cluster and may go immediately.
func (i *instances) act(ctx context.Context, instance *kudo.Instance, resolved metav1.Condition) error {
	if resolved.Status == metav1.ConditionTrue {
		if err := controller.Hold(ctx, i.client, instance, kudo.Finalizer, ManagerInstance); err != nil {
			return err
		}
	}
	var operation apply.Operation
	switch change := install.Request(instance); {
	case change.UID != "":
		operation = apply.Operation{Op: "add", Path: "/spec/planExecution/uid", Value: change.UID}
	case change.Clear:
		operation = apply.Operation{Op: "remove", Path: "/spec/planExecution"}
	default:
		return nil
	}
	return apply.Patch(ctx, i.client, instance, []apply.Operation{
		{Op: "test", Path: "/metadata/generation", Value: instance.Generation}, operation,
	}, client.FieldOwner(ManagerInstance))
}

// letGo drops the finalizer once the agent has reported that nothing of the Instance is left, or where nobody shall wait for that:
// on a cluster that is detached, before anything is deleted there, and by force. An Instance goes after its children.
func (i *instances) letGo(ctx context.Context, instance *kudo.Instance, detached bool) error {
	if !controllerutil.ContainsFinalizer(instance, kudo.Finalizer) {
		return nil
	}
	if detached {
		return releaseTree(ctx, i.client, instance)
	}
	below, err := read.Children(ctx, i.client, instance)
	switch {
	case err != nil || len(below) > 0:
		return err
	case instance.Removed():
		return controller.Release(ctx, i.client, instance, kudo.Finalizer)
	case instance.ForceReleased():
		return i.forceRelease(ctx, instance)
	}
	return nil
}

// forceRelease drops the finalizer, and tells what its agent had not removed yet.
func (i *instances) forceRelease(ctx context.Context, instance *kudo.Instance) error {
	current := &kudo.Instance{}
	if err := i.live.Get(ctx, client.ObjectKeyFromObject(instance), current); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("reading what Instance %s has applied: %w", client.ObjectKeyFromObject(instance), err))
	}
	if err := controller.Release(ctx, i.client, instance, kudo.Finalizer); err != nil {
		return err
	}
	i.recorder.Eventf(instance, nil, corev1.EventTypeWarning, eventForceReleased, actionRelease, "%s", controller.Note(leftBehind(current)))
	return nil
}

// leftBehind says what stays on the managed cluster, as far as its agent has reported.
func leftBehind(instance *kudo.Instance) string {
	if len(instance.Status.Inventory) == 0 {
		return "let go of by force; its agent has reported nothing that it applied"
	}
	names := make([]string, len(instance.Status.Inventory))
	for at, entry := range instance.Status.Inventory {
		names[at] = entry.String()
	}
	return "let go of by force; what stays on the managed cluster unless it was removed since: " + strings.Join(names, ", ")
}

// tell makes an event of a condition Resolved that was written, where it says something else than the one before.
func (i *instances) tell(instance *kudo.Instance, now metav1.Condition) {
	before := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionResolved)
	if before != nil && before.Reason == now.Reason && before.Message == now.Message {
		return
	}
	eventType := corev1.EventTypeNormal
	if now.Status != metav1.ConditionTrue {
		eventType = corev1.EventTypeWarning
	}
	i.recorder.Eventf(instance, nil, eventType, now.Reason, actionResolve, "%s", controller.Note(now.Message))
}

// rivals are the Instances that want the changed Instance's place on the managed cluster.
func (i *instances) rivals(ctx context.Context, object client.Object) ([]reconcile.Request, error) {
	return read.InstanceRequests(ctx, i.client, client.MatchingFields{read.BySlot: read.SlotKey(object.(*kudo.Instance))})
}

// runningVersion are the Instances that a changed OperatorVersion concerns.
func (i *instances) runningVersion(ctx context.Context, version client.Object) ([]reconcile.Request, error) {
	return read.InstancesRunning(ctx, i.client, version)
}

// forget drops what is remembered of an OperatorVersion that was deleted; nothing is to be done about it.
func (i *instances) forget(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	i.verifications.Forget(e.Object.GetUID())
}

// onCluster are the Instances of a changed ManagedCluster.
func (i *instances) onCluster(ctx context.Context, cluster client.Object) ([]reconcile.Request, error) {
	return read.InstanceRequests(ctx, i.client, client.InNamespace(cluster.GetName()))
}
