package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/author"
	corecontent "github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/content"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// instances resolves Instances in the namespaces of managed clusters, whether they belong to an add-on or a user: condition Resolved
// reports whether the agent may run the generation. Of other Instances on the hub it only reports that they cannot run, and it ignores
// mirrors, which belong to an agent.
type instances struct {
	client            client.Client
	live              client.Reader // bypasses the cache, which has no inventories
	recorder          events.EventRecorder
	packagesNamespace string
	reserved          []string // namespaces of managed clusters in which nothing is installed
	verifications     read.Verifications
	contents          *content.Verifier
	packageKeys       types.NamespacedName // a ConfigMap; empty if no signatures are required
	signatures        *read.Signatures     // nil if no signatures are required
	suspendConfig     types.NamespacedName // a ConfigMap
	suspendConfigs    client.Reader        // has only that one
	written           *controller.Writes
}

func (i *instances) SetUp(mgr manager.Manager) error {
	b := controller.New(mgr, "instance", controller.Options{})
	if err := errors.Join(i.watchKeys(mgr, b), i.watchSuspensions(mgr, b)); err != nil {
		return err
	}
	return b.
		For(&kudo.Instance{}, builder.WithPredicates(controller.ChangeIn(read.ViewInstance))).
		Watches(&kudo.Instance{}, controller.EnqueueFrom(i.rivals), builder.WithPredicates(predicate.Or(controller.Existence(), controller.ChangeIn(install.HasExecuted)))).
		Watches(&kudo.Instance{}, controller.EnqueueFrom(read.Parent), builder.WithPredicates(controller.Deletion())).
		Watches(&kudo.OperatorVersion{}, controller.EnqueueFrom(i.runningVersion), builder.WithPredicates(controller.ChangeIn(read.ViewSignatures))).
		Watches(&kudo.OperatorVersion{}, handler.Funcs{DeleteFunc: i.forget}).
		WatchesMetadata(content.Metadata(), controller.EnqueueFrom(i.withContent), builder.WithPredicates(controller.AfterStart())).
		Watches(&clusterv1.ManagedCluster{}, controller.EnqueueFrom(i.onCluster), builder.WithPredicates(controller.DeletionStart())).
		Watches(&clusterv1.ManagedCluster{}, controller.EnqueueFrom(i.onCluster), builder.WithPredicates(controller.ChangeIn(read.ViewPassedOn), controller.AfterStart())).
		WatchesMetadata(read.Namespace(), controller.EnqueueFrom(i.onCluster), builder.WithPredicates(controller.DeletionStart(), controller.AfterStart())).
		Complete(&controller.Reconciler[*kudo.Instance]{
			Client: i.client, Written: i.written, IsIgnored: kudo.IsMirror, ReconcileObject: i.Reconcile,
		})
}

// Reconcile resolves or releases one Instance.
func (i *instances) Reconcile(ctx context.Context, instance *kudo.Instance) (ctrl.Result, error) {
	held := controllerutil.ContainsFinalizer(instance, kudo.Finalizer)
	detached, err := i.isDetached(ctx, instance, held)
	if err != nil {
		return controller.RetryConflict(err)
	}
	if detached && held || !instance.DeletionTimestamp.IsZero() {
		return controller.RetryConflict(i.release(ctx, instance, detached))
	}
	return controller.RetryConflict(i.resolve(ctx, instance, detached))
}

// isDetached reports whether the cluster of an Instance is detached. A live read confirms it before an Instance with a finalizer is released: the
// cache may predate the attachment of the cluster.
func (i *instances) isDetached(ctx context.Context, instance *kudo.Instance, held bool) (bool, error) {
	detached, err := read.IsDetached(ctx, i.client, instance.Namespace)
	if err != nil || !detached || !held {
		return detached, err
	}
	detached, err = read.IsDetached(ctx, i.live, instance.Namespace)
	if err == nil && !detached {
		return false, staleCacheConflict(instance, "its cluster is attached")
	}
	return detached, err
}

// resolve judges an Instance, and writes condition Resolved if it changed. In a namespace that is being deleted it does nothing.
func (i *instances) resolve(ctx context.Context, instance *kudo.Instance, detached bool) error {
	state, err := i.gather(ctx, instance)
	if err != nil || detached && !state.Unmanaged {
		return err
	}
	var dropped error
	for _, field := range []struct {
		record func(context.Context, install.Instance) (bool, error)
		errIs  error // that the API server does not store it
		is     *bool
	}{
		{i.recordSuspension, errSuspensionDropped, &state.SuspensionDropped},
		{i.recordFacts, errFactsDropped, &state.FactsDropped},
		{i.recordWindows, errWindowsDropped, &state.WindowsDropped},
	} {
		recorded, err := field.record(ctx, state)
		if recorded || err != nil && !errors.Is(err, field.errIs) {
			return err
		}
		*field.is, dropped = err != nil, cmp.Or(dropped, err)
	}
	if recorded, err := i.recordAuthors(ctx, state); recorded || err != nil {
		return err
	}
	return cmp.Or(i.judge(ctx, state), dropped)
}

// judge updates the manual plan request, and writes condition Resolved if it changed.
func (i *instances) judge(ctx context.Context, state install.Instance) error {
	instance, resolved := state.Instance, install.Judge(state)
	if err := i.act(ctx, state, resolved); err != nil {
		return err
	}
	// An Instance of the same name, which may be re-created at any time, must not inherit the condition: its first generation is 1, too.
	current := instance.Status.Conditions
	if state.IsStale(meta.FindStatusCondition(current, kudo.ConditionResolved)) {
		current = nil // a new transition, by which the agent reads the OperatorVersion again
	}
	wrote, err := apply.ConditionAsRead(ctx, i.client, instance, current, ManagerInstance, resolved, state.ResolvedAt(time.Now()))
	if wrote {
		i.emit(instance, resolved)
	}
	return err
}

// gather reads everything that decides about the Instance.
func (i *instances) gather(ctx context.Context, instance *kudo.Instance) (install.Instance, error) {
	if managed, err := read.IsManaged(ctx, i.client, instance.Namespace); err != nil || !managed {
		return install.Instance{Instance: instance, Unmanaged: true}, err
	}
	state, err := read.Instance(ctx, i.client, instance, i.packagesNamespace)
	if err != nil {
		return state, err
	}
	state.Reserved = i.reserved
	if state.Cluster, state.ClusterWindows, err = read.Facts(ctx, i.client, instance.Namespace); err != nil {
		return state, err
	}
	if state.Suspensions, err = read.Suspensions(ctx, i.client, i.suspendConfigs, i.suspendConfig, instance); err != nil {
		return state, err
	}
	state.VersionProblems = i.verifications.Of(state.Version)
	if state.Version != nil && len(state.VersionProblems) == 0 { // else its list of parts means nothing
		if state.Incomplete, err = i.contents.Problems(ctx, state.Version); err != nil {
			return state, err
		}
	}
	if err := read.Tree(ctx, i.client, &state); err != nil || i.signatures == nil {
		return state, err
	}
	state.Unsigned, err = i.signatures.Unsigned(ctx, state)
	return state, err
}

// errFactsDropped makes the hub try again: nothing reports that a CustomResourceDefinition was applied.
var errFactsDropped = errors.New("the API server does not store spec.cluster of Instances: apply crds/ on the hub")

// recordFacts writes the facts of the cluster to the Instance's spec if they have changed, and reports whether it did. An Instance is not resolved
// before, so that its agent never starts a generation without them.
func (i *instances) recordFacts(ctx context.Context, state install.Instance) (bool, error) {
	current, want := state.Instance.Spec.Cluster, install.FactsOf(state)
	if facts.Equal(current, want) {
		return false, nil
	}
	operation := apply.Operation{Op: "add", Path: "/spec/cluster", Value: want}
	if want == nil {
		operation = apply.Operation{Op: "remove", Path: "/spec/cluster"}
	}
	stored, err := apply.PatchSpec(ctx, i.client, state.Instance, []apply.Operation{operation}, client.FieldOwner(ManagerInstance))
	if err == nil && !stored {
		err = fmt.Errorf("recording the facts of the cluster in Instance %s: %w", client.ObjectKeyFromObject(state.Instance), errFactsDropped)
	}
	return stored, err
}

// errWindowsDropped is like errFactsDropped.
var errWindowsDropped = errors.New("the API server does not store spec.clusterWindows of Instances: apply crds/ on the hub")

// recordWindows writes the maintenance windows of the cluster to the Instance's spec if they have changed, and reports whether it did. An Instance is not
// resolved before, so that its agent never starts a generation without them.
func (i *instances) recordWindows(ctx context.Context, state install.Instance) (bool, error) {
	instance, want := state.Instance, install.WindowsOf(state)
	if instance.Spec.ClusterWindows == want {
		return false, nil
	}
	operation := apply.Operation{Op: "add", Path: "/spec/clusterWindows", Value: want}
	if want == "" {
		operation = apply.Operation{Op: "remove", Path: "/spec/clusterWindows"}
	}
	stored, err := apply.PatchSpec(ctx, i.client, instance, []apply.Operation{operation}, client.FieldOwner(ManagerInstance))
	if err == nil && !stored {
		err = fmt.Errorf("recording the maintenance windows of the cluster in Instance %s: %w", client.ObjectKeyFromObject(instance), errWindowsDropped)
	}
	if problem := install.WindowsProblem(want); stored && problem != "" {
		i.recorder.Eventf(instance, nil, corev1.EventTypeWarning, eventWindowsMalformed, actionResolve, "%s", controller.TruncateNote(fmt.Sprintf(
			"annotation %s of ManagedCluster %s is malformed, and no plan starts: %s", kudo.AnnotationWindows, instance.Namespace, problem)))
	}
	return stored, err
}

// recordAuthors writes to the Instance's spec who has changed it or requested a plan, if that is to be determined, and reports whether it did. An API server
// with an earlier resource definition does not store it, another policy may refuse it, and nothing depends on it.
func (i *instances) recordAuthors(ctx context.Context, state install.Instance) (bool, error) {
	instance := state.Instance
	if state.Unmanaged || !install.LacksAuthor(instance) && !install.LacksRequester(instance) {
		return false, nil
	}
	current := &metav1.PartialObjectMetadata{}
	current.SetGroupVersionKind(kudo.GroupVersion.WithKind("Instance"))
	if err := i.live.Get(ctx, client.ObjectKeyFromObject(instance), current); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("reading the managed fields of Instance %s: %w", client.ObjectKeyFromObject(instance), err))
	}
	if current.UID != instance.UID || current.Generation != instance.Generation {
		return false, staleCacheConflict(instance, "has changed")
	}
	operations := operationsOf(install.AuthorsOf(instance, author.WritersOf("Instance", current), time.Now()))
	if len(operations) == 0 {
		return false, nil
	}
	recorded, err := apply.PatchSpec(ctx, i.client, instance, operations, client.FieldOwner(ManagerInstance))
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		ctrl.LoggerFrom(ctx).Error(err, "the history will not say who has changed the Instance")
		return false, nil
	}
	return recorded, err
}

// operationsOf returns the JSON patch of changes of authors.
func operationsOf(changes []install.AuthorChange) []apply.Operation {
	var operations []apply.Operation
	for _, change := range changes {
		operation := apply.Operation{Op: "add", Path: "/spec/" + change.Field, Value: change.Author}
		if change.Author == nil {
			operation = apply.Operation{Op: "remove", Path: operation.Path}
		}
		operations = append(operations, operation)
	}
	return operations
}

// act updates the manual plan request, and sets the finalizer before the Instance first becomes Resolved. The agent runs nothing before
// that, so an Instance without the finalizer has no objects on its cluster and may be deleted immediately. It changes no Instance outside
// of the namespaces of managed clusters: that may be one of KUDO's own.
func (i *instances) act(ctx context.Context, state install.Instance, resolved metav1.Condition) error {
	if state.Unmanaged {
		return nil
	}
	instance := state.Instance
	if resolved.Status == metav1.ConditionTrue {
		if err := controller.AddFinalizer(ctx, i.client, instance, kudo.Finalizer, ManagerInstance); err != nil {
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

// release removes the finalizer once the agent has reported that the removal of the Instance is complete. It does not wait on a detached
// cluster, where nothing is deleted, or if the release is forced. An Instance is released after its children.
func (i *instances) release(ctx context.Context, instance *kudo.Instance, detached bool) error {
	if !controllerutil.ContainsFinalizer(instance, kudo.Finalizer) {
		return nil
	}
	if detached {
		return releaseTree(ctx, i.client, instance, ManagerInstance)
	}
	below, err := read.Children(ctx, i.client, instance)
	switch {
	case err != nil || len(below) > 0:
		return err
	case instance.IsRemoved():
		return controller.RemoveFinalizer(ctx, i.client, instance, kudo.Finalizer)
	case instance.IsForceReleased():
		return i.forceRelease(ctx, instance)
	}
	return nil
}

// forceRelease removes the finalizer, and reports the objects that its agent had not removed yet.
func (i *instances) forceRelease(ctx context.Context, instance *kudo.Instance) error {
	current := &kudo.Instance{}
	if err := i.live.Get(ctx, client.ObjectKeyFromObject(instance), current); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("reading the inventory of Instance %s: %w", client.ObjectKeyFromObject(instance), err))
	}
	if err := controller.RemoveFinalizer(ctx, i.client, instance, kudo.Finalizer); err != nil {
		return err
	}
	i.recorder.Eventf(instance, nil, corev1.EventTypeWarning, eventForceReleased, actionRelease, "%s", controller.TruncateNote(remainingObjects(current)))
	return nil
}

// remainingObjects describes the objects that remain on the managed cluster, according to the agent's reports.
func remainingObjects(instance *kudo.Instance) string {
	if len(instance.Status.Inventory) == 0 {
		return "force-released; its agent has reported no applied objects"
	}
	names := make([]string, len(instance.Status.Inventory))
	for at, entry := range instance.Status.Inventory {
		names[at] = entry.String()
	}
	return "force-released; these objects remain on the managed cluster unless they were removed since: " + strings.Join(names, ", ")
}

// emit emits an event for a written condition Resolved that differs from the previous one.
func (i *instances) emit(instance *kudo.Instance, now metav1.Condition) {
	before := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionResolved)
	if before != nil && before.Reason == now.Reason && before.Message == now.Message {
		return
	}
	eventType := corev1.EventTypeNormal
	if now.Status != metav1.ConditionTrue {
		eventType = corev1.EventTypeWarning
	}
	i.recorder.Eventf(instance, nil, eventType, now.Reason, actionResolve, "%s", controller.TruncateNote(now.Message))
}

// rivals returns the Instances with the same slot on the managed cluster as the changed Instance.
func (i *instances) rivals(ctx context.Context, object client.Object) ([]reconcile.Request, error) {
	return read.InstanceRequests(ctx, i.client, client.MatchingFields{read.BySlot: read.SlotKey(object.(*kudo.Instance))})
}

// runningVersion returns the Instances that a changed OperatorVersion affects.
func (i *instances) runningVersion(ctx context.Context, version client.Object) ([]reconcile.Request, error) {
	return read.InstancesRunning(ctx, i.client, version)
}

// withContent returns the Instances of the OperatorVersion that a changed OperatorContent belongs to.
func (i *instances) withContent(ctx context.Context, part client.Object) ([]reconcile.Request, error) {
	version := types.NamespacedName{Namespace: part.GetNamespace(), Name: corecontent.VersionOf(part)}
	return read.InstanceRequests(ctx, i.client, client.MatchingFields{read.ByVersion: version.String()})
}

// forget drops the cached problems of a deleted OperatorVersion. It requests no reconciliation.
func (i *instances) forget(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	i.verifications.Forget(e.Object.GetUID())
}

// onCluster returns the Instances of a changed ManagedCluster.
func (i *instances) onCluster(ctx context.Context, cluster client.Object) ([]reconcile.Request, error) {
	return read.InstanceRequests(ctx, i.client, client.InNamespace(cluster.GetName()))
}
