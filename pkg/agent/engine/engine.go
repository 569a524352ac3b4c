// Package engine carries out the plans of mirrored Instances on the managed cluster: it observes, lets pkg/plan decide, acts, and writes
// the status. It touches that cluster only, so that plans go on while the hub is away.
package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/health"
	"github.com/tandem-addons/tandem/pkg/pipe"
	"github.com/tandem-addons/tandem/pkg/render"
)

const (
	// sideBySide bounds how many tasks of one execution run at once.
	sideBySide = 8

	// inARow bounds the passes over one Instance before others have their turn.
	inARow = 10

	// leastTalk is how long a status stands before its words alone change. Times in a status count whole seconds: it is one at least.
	leastTalk = 2 * time.Second

	// A task that failed is tried again after a second at first, and after a minute at most.
	leastBackoff = time.Second
	mostBackoff  = time.Minute
)

// fieldManager is the field manager of the engine.
const fieldManager = "addon-agent-engine"

// engine carries out the plans of mirrored Instances. It keeps nothing between two passes but the times at which failed tasks
// may be tried again; everything else is in the Instance's status.
type engine struct {
	client  client.Client
	live    client.Reader
	objects *objects
	sweeper *sweeper
	backoff *flowcontrol.Backoff
	events  events.EventRecorder
	metrics *metrics
	clock   func() time.Time

	// hands do what plans want, and others are those of service accounts.
	hands  hands
	others *identities

	// pipeImage is the image of the container that waits beside the files of a Pipe task.
	pipeImage string
}

// Options of the engine.
type Options struct {
	// PipeImage is the image of the container that waits beside the files of a Pipe task; pipe.DefaultImage if empty.
	PipeImage string
}

// Add adds the engine to the manager of the managed cluster.
func Add(o Options, local ctrl.Manager) error {
	measured, err := newMetrics(registry.Registry)
	if err != nil {
		return err
	}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(local.GetConfig(), local.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("adding the engine: %w", err)
	}
	remote, err := newRemote(local.GetConfig(), local.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("adding the engine: %w", err)
	}
	e := &engine{
		client: local.GetClient(),
		live:   local.GetAPIReader(),
		objects: &objects{
			client: local.GetClient(), live: local.GetAPIReader(), cache: local.GetCache(), discovery: kinds,
			known: newKnown(), watched: map[schema.GroupVersionKind]bool{},
		},
		sweeper: &sweeper{live: local.GetAPIReader(), discovery: kinds},
		backoff: flowcontrol.NewBackOff(leastBackoff, mostBackoff),
		events:  local.GetEventRecorder(fieldManager),
		metrics: measured,
		clock:   time.Now,

		hands:  hands{client: local.GetClient(), remote: remote},
		others: newIdentities(local),

		pipeImage: cmp.Or(o.PipeImage, pipe.DefaultImage),
	}
	built, err := ctrl.NewControllerManagedBy(local).
		Named("engine").
		For(&kudo.Instance{}, builder.WithPredicates(specChanged())).
		Watches(&kudo.Instance{}, handler.EnqueueRequestsFromMapFunc(e.parentsOf), builder.WithPredicates(mirror.Changed(viewChild))).
		Watches(&kudo.OperatorVersion{}, handler.EnqueueRequestsFromMapFunc(e.usersOf)).
		WithOptions(controller.Options{MaxConcurrentReconciles: mirror.SideBySide, RateLimiter: mirror.Retries()}).
		Build(e)
	if err != nil {
		return fmt.Errorf("adding the engine: %w", err)
	}
	e.objects.watch = func(gvk schema.GroupVersionKind) error {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		owners := handler.EnqueueRequestsFromMapFunc(e.ownersOf)
		err := built.Watch(source.Kind(local.GetCache(), client.Object(object), owners, judgedChanged(), e.objects.known.news()))
		if err != nil {
			return err
		}
		return built.Watch(e.onceListed(local.GetCache(), object))
	}
	return nil
}

// judgedChanged lets through what tasks and condition Ready are judged by of an object that was applied. Many objects change all the
// time in ways that do not matter: leader elections, counters and timestamps in a status.
func judgedChanged() predicate.TypedPredicate[client.Object] {
	type view struct {
		uid      types.UID
		health   health.Result
		metadata string
	}
	return mirror.Changed(func(o client.Object) view {
		live := o.(*unstructured.Unstructured)
		v := view{uid: live.GetUID(), health: health.Of(live)}
		annotations := live.GetAnnotations()
		v.metadata = fmt.Sprint(live.GetDeletionTimestamp() != nil, live.GetFinalizers(), live.GetLabels(),
			annotations[kudo.AnnotationExecution], annotations[kudo.AnnotationInstanceNamespace])
		if _, ofPipe := annotations[kudo.AnnotationPipe]; ofPipe { // its containers say more than its health
			v.metadata += live.GetResourceVersion()
		}
		return v
	})
}

// specChanged lets through what the engine reacts to of an Instance: everything but its own status writes.
func specChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deletionChanged(), acknowledged())
}

func deletionChanged() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetDeletionTimestamp() != nil })
}

// ownersOf maps an object that was applied to its Instance.
func (e *engine) ownersOf(ctx context.Context, o client.Object) []reconcile.Request {
	namespace, marked := o.GetAnnotations()[kudo.AnnotationInstanceNamespace]
	if !marked {
		namespace = o.GetNamespace()
	}
	return e.requestsFor(ctx, namespace, func(i *kudo.Instance) bool {
		return render.InstanceName(i.Name) == o.GetLabels()[kudo.LabelInstance]
	})
}

// usersOf maps an OperatorVersion to the Instances that ask for it.
func (e *engine) usersOf(ctx context.Context, version client.Object) []reconcile.Request {
	return e.requestsFor(ctx, version.GetNamespace(), func(i *kudo.Instance) bool {
		return i.Spec.OperatorVersion.Name == version.GetName()
	})
}

// requestsFor asks for a pass over each Instance of a namespace that is concerned.
func (e *engine) requestsFor(ctx context.Context, namespace string, concerned func(*kudo.Instance) bool) []reconcile.Request {
	list := &kudo.InstanceList{}
	if err := e.client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing Instances", "namespace", namespace)
		return nil
	}
	return requestsOf(list.Items, concerned)
}

// requestsOf asks for a pass over each of the Instances that is concerned.
func requestsOf(instances []kudo.Instance, concerned func(*kudo.Instance) bool) []reconcile.Request {
	var requests []reconcile.Request
	for i := range instances {
		if concerned(&instances[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&instances[i])})
		}
	}
	return requests
}

// Reconcile brings an Instance further, pass by pass, as long as there is more to do at once. The Instance is read from the API
// server, so that no task is carried out again for want of a fresh cache; after that, it is what the last commit was answered with.
func (e *engine) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	instance := &kudo.Instance{}
	if err := e.live.Get(ctx, request.NamespacedName, instance); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !mirror.HandedOver(instance) {
		return reconcile.Result{}, nil
	}
	for range inARow {
		written, result, err := e.advance(ctx, instance)
		if written == nil {
			return result, err
		}
		instance = written
	}
	return reconcile.Result{RequeueAfter: time.Nanosecond}, nil
}

// advance brings an Instance one pass further: it starts a plan, or carries out the tasks whose turn it is, or judges what stands.
// written is the Instance as it is then if there is more to do at once; otherwise it is nil, and the result says when to look again.
func (e *engine) advance(ctx context.Context, instance *kudo.Instance) (written *kudo.Instance, result reconcile.Result, err error) {
	if e, err = e.as(instance); err != nil {
		return nil, reconcile.Result{}, err
	}
	seen, err := e.gather(ctx, instance)
	if err != nil {
		return nil, reconcile.Result{}, err
	}
	pass := e.decide(ctx, seen)
	if pass.err != nil {
		return nil, reconcile.Result{}, pass.err
	}
	written, err = e.commit(ctx, seen, pass)
	switch {
	case apierrors.IsConflict(err):
		return nil, reconcile.Result{RequeueAfter: mirror.StaleCachePause}, nil
	case written != nil && pass.again: // which ends: every such pass starts an execution that is due, completes a task, lists what was not, or ends a plan
		return written, reconcile.Result{}, nil
	}
	return nil, reconcile.Result{RequeueAfter: pass.after}, err
}
