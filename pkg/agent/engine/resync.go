package engine

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tandem-addons/tandem/pkg/agent/definition"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// enqueueOnceListed returns a source that enqueues every Instance with listed objects of a kind, once its informer has listed that kind. An object
// that was judged by a live read and deleted before that list is not in the cache, so its deletion causes no event.
func (e *engine) enqueueOnceListed(informer cache.Informer, kind schema.GroupKind) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go func() {
			_ = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
				return informer.IsStopped() || informer.HasSynced() && e.enqueueListed(ctx, kind, queue), nil
			})
		}()
		return nil
	})
}

// enqueueListed enqueues every Instance with listed objects of a kind, and reports whether it succeeded. It reads the API server: all
// inventory entries from before the cache's list must be known, and objects that are listed later are also created later.
func (e *engine) enqueueListed(ctx context.Context, kind schema.GroupKind, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) bool {
	instances := &kudo.InstanceList{}
	if err := e.live.List(ctx, instances); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "failed to list Instances", "kind", kind)
		return false
	}
	listed := func(entry kudo.InventoryEntry) bool { return entry.Group == kind.Group && entry.Kind == kind.Kind }
	for i := range instances.Items {
		if slices.ContainsFunc(instances.Items[i].Status.Inventory, listed) {
			queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&instances.Items[i])})
		}
	}
	return true
}

// redefinitions follow changes of CustomResourceDefinitions: they drop what the agent knows about a kind, and enqueue the Instances with objects
// of its group.
type redefinitions struct {
	objects   *objects
	instances func(ctx context.Context, group string) []reconcile.Request // with listed objects of an API group
	enqueued  chan event.TypedGenericEvent[client.Object]
	backoff   *flowcontrol.Backoff
	clock     func() time.Time

	// followed are the definitions as they were followed last, of groups with listed objects only. There is a single worker.
	followed map[string]definition.Definition
	// unconfirmed are those whose Instances are enqueued a second time: nothing shows when the API server converts objects as a definition says.
	unconfirmed map[string]bool
}

func newRedefinitions(of *objects, instances func(context.Context, string) []reconcile.Request, clock func() time.Time) *redefinitions {
	return &redefinitions{
		objects: of, instances: instances, clock: clock, enqueued: make(chan event.TypedGenericEvent[client.Object]),
		backoff: flowcontrol.NewBackOff(minBackoff, maxBackoff), followed: map[string]definition.Definition{},
		unconfirmed: map[string]bool{},
	}
}

// add adds the controller to the manager of the managed cluster. unserved are kinds that the API server no longer serves.
func (r *redefinitions) add(unserved controller.Unserved, local ctrl.Manager) error {
	_, err := controller.New(local, "definitions", controller.Options{MaxConcurrentReconciles: 1}).
		WatchesRawSource(r.objects.definitions.Source()).
		WatchesRawSource(r.unserved(unserved)).
		Build(r)
	return err
}

// unserved enqueues the resources of kinds whose informers fail, because the API server does not serve them.
func (r *redefinitions) unserved(kinds controller.Unserved) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go func() {
			for {
				select {
				case kind := <-kinds:
					if resource, watched := r.objects.resourceOf(kind); watched {
						queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: resource.String()}})
					}
				case <-ctx.Done():
					return
				}
			}
		}()
		return nil
	})
}

// Reconcile follows a change of a definition, or of a resource with such a name that another API server serves. The API server applies a change
// after a moment, so Reconcile discovers its kinds until they agree with the definition, or up to about a minute.
func (r *redefinitions) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	resource := definition.ResourceOf(request.Name)
	instances := r.instances(ctx, resource.Group)
	if len(instances) == 0 && !r.objects.watchesAny(resource) {
		delete(r.followed, request.Name)
		delete(r.unconfirmed, request.Name)
		return reconcile.Result{}, nil
	}
	defined, err := r.objects.definitions.Read(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if wait := r.agreement(request.Name, defined); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	ended, err := r.objects.unwatch(ctx, defined)
	if err != nil {
		return reconcile.Result{}, err
	}
	changed := r.follow(defined) || ended
	if changed || r.unconfirmed[request.Name] {
		r.enqueue(ctx, instances)
	}
	delete(r.unconfirmed, request.Name)
	if !changed {
		return reconcile.Result{}, nil
	}
	r.unconfirmed[request.Name] = true
	return reconcile.Result{RequeueAfter: confirmInterval}, nil
}

// agreement returns how long to wait until the API server may show what a definition defines; zero if it does, or if it has not for so long
// that it probably never will.
func (r *redefinitions) agreement(name string, defined definition.Definition) time.Duration {
	r.backoff.GC()
	for {
		shown, err := r.objects.shown(definition.ResourceOf(name))
		if err == nil && defined.Agrees(shown) || r.backoff.Get(name) >= maxBackoff {
			r.backoff.DeleteEntry(name)
			return 0
		}
		if !r.objects.kinds.Renew() {
			r.backoff.Next(name, r.clock())
			return r.backoff.Get(name)
		}
	}
}

// follow reports whether a definition differs from the one that was followed last. Changes of its labels and annotations do not count.
func (r *redefinitions) follow(defined definition.Definition) bool {
	last, followed := r.followed[defined.Name]
	r.followed[defined.Name] = defined
	if defined.UID == "" {
		delete(r.followed, defined.Name)
	}
	return !followed || last != defined
}

func (r *redefinitions) enqueue(ctx context.Context, instances []reconcile.Request) {
	for _, instance := range instances {
		select {
		case r.enqueued <- event.TypedGenericEvent[client.Object]{
			Object: &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: instance.Namespace, Name: instance.Name}},
		}:
		case <-ctx.Done():
			return
		}
	}
}
