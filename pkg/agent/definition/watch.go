package definition

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

var (
	kind     = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	resource = kind.GroupVersion().WithResource("customresourcedefinitions")
)

// maxRead is the maximum number of definitions that are kept after they were read.
const maxRead = 1000

// delay is the time after which a change is followed: the API server needs a moment to apply it, and other changes may come in the meantime.
const delay = 500 * time.Millisecond

// Watch watches the names and versions of all definitions: their schemas may be large, and are not kept.
type Watch struct {
	live     client.Reader
	informer toolscache.SharedIndexInformer
	read     *lru.Cache // of Definition by state
	// forbidden is true if the agent lacks the permission to list definitions.
	forbidden atomic.Bool
}

// state identifies the content of a definition.
type state struct {
	uid     types.UID
	version string
}

// New returns a watch that its source starts.
func New(local ctrl.Manager) (*Watch, error) {
	connection, err := metadata.NewForConfigAndClient(local.GetConfig(), local.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("watching CustomResourceDefinitions: %w", err)
	}
	definitions := connection.Resource(resource)
	w := &Watch{live: local.GetAPIReader(), read: lru.New(maxRead)}
	w.informer = controller.NewInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := definitions.List(ctx, o)
			w.forbidden.Store(apierrors.IsForbidden(err))
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return definitions.Watch(ctx, o)
		},
	}, &metav1.PartialObjectMetadata{}, 0, toolscache.Indexers{})
	err = w.informer.SetTransform(toolscache.TransformFunc(func(o any) (any, error) {
		if object, ok := o.(*metav1.PartialObjectMetadata); ok {
			object.Annotations, object.Labels, object.ManagedFields = nil, nil, nil
		}
		return o, nil
	}))
	return w, err
}

// Source enqueues the names of definitions that change. Those that exist at the start are not enqueued.
func (w *Watch) Source() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		enqueue := func(object any) {
			if key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
				queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: key}}, delay)
			}
		}
		_, err := w.informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(object any, initial bool) {
				if !initial {
					enqueue(object)
				}
			},
			UpdateFunc: func(before, now any) {
				if before.(metav1.Object).GetResourceVersion() != now.(metav1.Object).GetResourceVersion() {
					enqueue(now)
				}
			},
			DeleteFunc: enqueue,
		})
		go w.informer.RunWithContext(ctx)
		return err
	})
}

// UID returns the uid of the definition of a resource; empty if there is none, as for the kinds of Kubernetes itself.
func (w *Watch) UID(resource schema.GroupResource) types.UID {
	cached, exists, err := w.informer.GetStore().GetByKey(resource.String())
	if err != nil || !exists {
		return ""
	}
	return cached.(metav1.Object).GetUID()
}

// Of returns the definition of a kind; empty if the cluster has none, or if the agent may not list definitions.
func (w *Watch) Of(ctx context.Context, of schema.GroupKind) (Definition, error) {
	if !w.informer.HasSynced() {
		if w.forbidden.Load() {
			return Definition{}, nil
		}
		return Definition{}, fmt.Errorf("the CustomResourceDefinitions of the cluster are not listed yet")
	}
	for _, name := range w.informer.GetStore().ListKeys() {
		if !strings.HasSuffix(name, "."+of.Group) || ResourceOf(name).Group != of.Group {
			continue
		}
		found, err := w.cached(ctx, name)
		if err != nil {
			return Definition{}, err
		}
		if found.Kind == of {
			return found, nil
		}
	}
	return Definition{}, nil
}

// cached returns the definition of that name as it was read, unless it has changed since.
func (w *Watch) cached(ctx context.Context, name string) (Definition, error) {
	cached, exists, err := w.informer.GetStore().GetByKey(name)
	if err != nil || !exists {
		return Definition{}, err
	}
	current := cached.(metav1.Object)
	if found, known := w.read.Get(state{current.GetUID(), current.GetResourceVersion()}); known {
		return found.(Definition), nil
	}
	return w.Read(ctx, name)
}

// Read reads a definition from the API server; it is empty but for its name if it does not exist.
func (w *Watch) Read(ctx context.Context, name string) (Definition, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err := w.live.Get(ctx, client.ObjectKey{Name: name}, object)
	if apierrors.IsNotFound(err) {
		return Definition{Name: name}, nil
	}
	if err != nil {
		return Definition{}, fmt.Errorf("reading CustomResourceDefinition %q: %w", name, err)
	}
	found := of(object)
	w.read.Add(state{object.GetUID(), object.GetResourceVersion()}, found)
	return found, nil
}
