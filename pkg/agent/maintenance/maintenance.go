// Package maintenance reads the maintenance windows of Instances on the managed cluster: those of the hub, which are in the spec of an Instance, and those of
// the administrator of the cluster, which are in a ConfigMap in the agent's namespace. It touches only that cluster; the pure package window judges them.
package maintenance

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/window"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// Windows reads and judges the maintenance windows. It is safe for concurrent use.
type Windows struct {
	// Changed receives an event when the ConfigMap changes.
	Changed chan event.TypedGenericEvent[client.Object]

	name     types.NamespacedName // of the ConfigMap
	client   client.Reader
	live     client.Reader
	signer   signer
	informer toolscache.SharedInformer
	parsed   *lru.Cache
}

// signer recognizes the mirrors that the agent has signed.
type signer interface{ IsSigned(o client.Object) bool }

// maxParsed is the number of texts whose windows are remembered: most Instances of a cluster have the same.
const maxParsed = 256

// Add returns the windows, with a watch of the ConfigMap in the agent's namespace that ends with ctx.
func Add(ctx context.Context, namespace string, signed signer, local ctrl.Manager) (*Windows, error) {
	maps, err := corev1client.NewForConfigAndClient(local.GetConfig(), local.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("preparing to read ConfigMaps: %w", err)
	}
	w := &Windows{
		Changed: make(chan event.TypedGenericEvent[client.Object], 1),
		name:    types.NamespacedName{Namespace: namespace, Name: kudo.WindowsConfigMap},
		client:  local.GetClient(), live: local.GetAPIReader(), signer: signed, parsed: lru.New(maxParsed),
	}
	w.informer = w.newInformer(ctx, maps.ConfigMaps(namespace))
	go w.informer.RunWithContext(ctx)
	return w, nil
}

// newInformer returns the watch of the ConfigMap, not started.
func (w *Windows) newInformer(ctx context.Context, maps corev1client.ConfigMapInterface) toolscache.SharedInformer {
	only := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, w.name.Name).String()
	}
	informer := controller.NewInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			only(&o)
			return maps.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			only(&o)
			return maps.Watch(ctx, o)
		},
	}, &corev1.ConfigMap{}, 0, toolscache.Indexers{})
	enqueue := func(any) {
		select {
		case w.Changed <- event.TypedGenericEvent[client.Object]{Object: &corev1.ConfigMap{}}:
		case <-ctx.Done():
		}
	}
	// It does not fail before the informer runs.
	_, _ = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, now any) { enqueue(now) }, DeleteFunc: enqueue,
	})
	return informer
}

// The sides that set windows, as messages name them.
const (
	ofCluster  = "the hub (ManagedCluster)"
	ofInstance = "the hub (spec.windows)"
)

// Judge returns what executions of an Instance wait for; nil if they may start now. overridden describes the closed windows of the hub that the Instance
// ignores. A child of an Instance that runs a plan does not wait: its execution belongs to that one. Others have the windows of their root.
func (w *Windows) Judge(ctx context.Context, instance *kudo.Instance, now time.Time) (wait *window.Wait, overridden string, err error) {
	root, runs, err := w.rootOf(ctx, instance)
	if err != nil || runs {
		return nil, "", err
	}
	ofHub := w.sidesOf(root.Spec)
	own, err := w.ownSides(ctx)
	if err != nil {
		return nil, "", err
	}
	ignored, remark := isIgnored(root.Spec.IgnoreWindowsUntil, now)
	if !ignored {
		wait = window.Judge(append(ofHub, own...), now)
		if wait != nil {
			wait.Message += remark
		}
		return wait, "", nil
	}
	if closed := window.Judge(ofHub, now); closed != nil {
		overridden = closed.Message
	}
	if wait = window.Judge(own, now); wait != nil {
		if until := root.Spec.IgnoreWindowsUntil.Time; wait.Again.IsZero() || until.Before(wait.Again) {
			wait.Again = until
		}
	}
	return wait, overridden, nil
}

// maxIgnored is the time for which windows are ignored at most: a request for longer is a mistake, or a way around them.
const maxIgnored = 24 * time.Hour

// isIgnored reports whether the windows of the hub are ignored until a time, which may be nil. The remark says why not.
func isIgnored(until *metav1.Time, now time.Time) (ignored bool, remark string) {
	switch {
	case until == nil || !now.Before(until.Time):
		return false, ""
	case until.Sub(now) > maxIgnored:
		return false, "; spec.ignoreWindowsUntil has no effect more than 24 hours ahead"
	default:
		return true, ""
	}
}

// rootOf returns the root of the tree of an Instance, and whether an ancestor runs a plan. An Instance whose ancestor was removed is a root. Only signed
// mirrors are ancestors: others may be written by anyone who may write Instances in their namespace.
func (w *Windows) rootOf(ctx context.Context, of *kudo.Instance) (root *kudo.Instance, runs bool, err error) {
	for of.Annotations[kudo.AnnotationParent] != "" { // ends, because the name of a child is longer than that of its parent
		name := types.NamespacedName{Namespace: of.Namespace, Name: of.Annotations[kudo.AnnotationParent]}
		parent := &kudo.Instance{}
		err := w.client.Get(ctx, name, parent, client.UnsafeDisableDeepCopy)
		switch {
		case apierrors.IsNotFound(err), err == nil && !w.signer.IsSigned(parent):
			return of, false, nil
		case err != nil:
			return nil, false, fmt.Errorf("reading parent Instance %q: %w", name.Name, err)
		}
		if plan.IsExecuting(parent.Status) {
			return parent, true, nil
		}
		of = parent
	}
	return of, false, nil
}

// sidesOf returns the windows in the spec of an Instance.
func (w *Windows) sidesOf(spec kudo.InstanceSpec) []window.Side {
	var sides []window.Side
	if spec.ClusterWindows != "" {
		sides = append(sides, w.sideOf(ofCluster, spec.ClusterWindows))
	}
	if spec.Windows != "" {
		sides = append(sides, w.sideOf(ofInstance, spec.Windows))
	}
	return sides
}

// sideOf returns the side of that name with the windows in a text.
func (w *Windows) sideOf(name, source string) window.Side {
	if known, found := w.parsed.Get(source); found {
		side := known.(window.Side)
		side.Name = name
		return side
	}
	side := window.Side{Name: name}
	var err error
	if side.Windows, err = window.Parse(source); err != nil {
		side.Problem = "whose windows are malformed: " + err.Error()
	}
	w.parsed.Add(source, side)
	return side
}

// ownSides returns the windows of the administrator of the managed cluster; none if the ConfigMap does not exist.
func (w *Windows) ownSides(ctx context.Context) ([]window.Side, error) {
	found, err := w.configMap(ctx)
	if found == nil || err != nil {
		return nil, err
	}
	name := fmt.Sprintf("the managed cluster (ConfigMap %s)", w.name)
	source, exists := found.Data[kudo.WindowsKey]
	if !exists {
		return []window.Side{{Name: name, Problem: fmt.Sprintf("which has no key %q", kudo.WindowsKey)}}, nil
	}
	return []window.Side{w.sideOf(name, window.Bound(source))}, nil
}

// configMap returns the ConfigMap, as watched, or from the API server until the watch has started; nil if it does not exist. While it cannot be read,
// nothing starts: that is an error, and is tried again.
func (w *Windows) configMap(ctx context.Context) (*corev1.ConfigMap, error) {
	if w.informer.HasSynced() {
		cached, exists, err := w.informer.GetStore().GetByKey(w.name.String())
		if err != nil || !exists {
			return nil, err
		}
		return cached.(*corev1.ConfigMap), nil
	}
	found := &corev1.ConfigMap{}
	err := w.live.Get(ctx, w.name, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", w.name, err)
	}
	return found, nil
}
