package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/controller"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// errUnwatchable reports that a kind can be neither listed nor watched, so that nobody could tell what became of an object.
var errUnwatchable = errors.New("objects of this kind can be neither listed nor watched, and so not be a part of an operator")

// readPatience is how long the read of an object may take, and a list of a kind that was never read before. An API server behind the
// API server may never answer, and must not hold up what has nothing to do with it.
const readPatience = 15 * time.Second

// objects finds on the managed cluster what tasks want, and keeps watching every kind that it was asked for.
type objects struct {
	client    client.Client
	live      client.Reader
	cache     cache.Cache
	discovery discovery.DiscoveryInterface
	watch     func(schema.GroupVersionKind) error

	// expectations hold the newest version that the engine has seen of objects of Instances, in what it has read or in the answer to what
	// it has applied. They tell a cache that is behind, and an event that tells nothing new. What is forgotten costs a read.
	expectations *controller.Expectations[place]

	mutex   sync.Mutex
	watched map[schema.GroupVersionKind]bool
}

// mostKnown is of how many objects the engine remembers the version that it has seen; others are read from the API server.
const mostKnown = 10000

// place identifies an object in whatever version of its kind.
type place struct {
	schema.GroupKind
	types.NamespacedName
}

func placeOf(o client.Object) place {
	return place{o.GetObjectKind().GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(o)}
}

// findLive is find past the cache.
func (o *objects) findLive(ctx context.Context, owner *kudo.Instance, want *unstructured.Unstructured) (plan.Object, error) {
	return o.find(ctx, owner, want, o.observe)
}

// find puts a wanted object in its place and pairs it with what stands on the cluster, as read finds it. A kind that the cluster
// does not have is an error that meta.IsNoMatchError knows.
func (o *objects) find(ctx context.Context, owner *kudo.Instance, want *unstructured.Unstructured, read reader) (plan.Object, error) {
	if err := o.place(owner, want); err != nil {
		return plan.Object{}, fmt.Errorf("%s: %w", plan.Describe(want), err)
	}
	live, err := read(ctx, want)
	return plan.Object{Want: want, Live: live}, err
}

// placeAll puts wanted objects in their place. Those of kinds that the cluster does not have have none, and are undefined.
func (o *objects) placeAll(
	owner *kudo.Instance, wants []*unstructured.Unstructured,
) (placed, undefined []*unstructured.Unstructured, err error) {
	for _, want := range wants {
		switch err := o.place(owner, want); {
		case meta.IsNoMatchError(err):
			undefined = append(undefined, want)
		case err != nil:
			return nil, nil, fmt.Errorf("%s: %w", plan.Describe(want), err)
		default:
			placed = append(placed, want)
		}
	}
	return placed, undefined, nil
}

// reader reads an object; nil if it does not exist.
type reader func(context.Context, *unstructured.Unstructured) (*unstructured.Unstructured, error)

// listed pairs an entry of an inventory with what stands on the cluster, in the version of its kind that the API server prefers. Of a
// kind that the cluster does not have nothing stands.
func (o *objects) listed(ctx context.Context, entry kudo.InventoryEntry, read reader) (plan.Object, error) {
	kind := schema.GroupKind{Group: entry.Group, Kind: entry.Kind}
	want := &unstructured.Unstructured{}
	want.SetGroupVersionKind(kind.WithVersion(""))
	want.SetNamespace(entry.Namespace)
	want.SetName(entry.Name)
	mapping, err := o.client.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return plan.Object{Want: want}, nil
	}
	if err != nil {
		return plan.Object{}, fmt.Errorf("%s: %w", plan.Describe(want), err)
	}
	want.SetGroupVersionKind(mapping.GroupVersionKind)
	live, err := read(ctx, want)
	return plan.Object{Want: want, Live: live}, err
}

// place gives a namespaced object the Instance's namespace unless it names one, and makes the Instance the owner of those
// that share its namespace.
func (o *objects) place(owner *kudo.Instance, want *unstructured.Unstructured) error {
	gvk := want.GroupVersionKind()
	mapping, err := o.client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		want.SetNamespace("")
		return nil
	}
	if want.GetNamespace() == "" {
		want.SetNamespace(owner.Namespace)
	}
	if want.GetNamespace() == owner.Namespace {
		want.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion:         kudo.GroupVersion.String(),
			Kind:               "Instance",
			Name:               owner.Name,
			UID:                owner.UID,
			Controller:         ptr.To(true),
			BlockOwnerDeletion: ptr.To(true),
		}})
	}
	return nil
}

// cached is what the cache has of an object, which must carry KUDO's label; nil if nothing. Filled reports whether the cache has everything
// of that kind. The kind is watched then.
func (o *objects) cached(ctx context.Context, want *unstructured.Unstructured) (object *unstructured.Unstructured, filled bool, err error) {
	if err := o.ensureWatch(want.GroupVersionKind()); err != nil {
		return nil, false, fmt.Errorf("%s: %w", plan.Describe(want), err)
	}
	object = &unstructured.Unstructured{}
	object.SetGroupVersionKind(want.GroupVersionKind())
	informer, err := o.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err == nil && !informer.HasSynced() {
		return nil, false, nil
	}
	if err == nil {
		err = o.cache.Get(ctx, client.ObjectKeyFromObject(want), object)
	}
	if apierrors.IsNotFound(err) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading %s: %w", plan.Describe(want), err)
	}
	return object, true, nil
}

// get is a reader: of the cache, and of the API server where that has nothing or is behind what the engine has seen.
func (o *objects) get(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	cached, _, err := o.cached(ctx, want)
	if err != nil {
		return nil, err
	}
	if cached != nil {
		if upToDate, _ := o.expectations.UpToDate(cached); upToDate {
			return cached, nil
		}
	}
	return o.read(ctx, want)
}

// applied is a reader of what an execution has applied: of the cache once that shows it, and of the API server as long as it may show
// what was there before.
func (o *objects) applied(execution types.UID) reader {
	return func(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		cached, _, err := o.cached(ctx, want)
		if err != nil {
			return nil, err
		}
		if (plan.Object{Live: cached}).AppliedBy(execution) {
			if upToDate, seen := o.expectations.UpToDate(cached); upToDate && seen {
				return cached, nil
			}
		}
		return o.read(ctx, want)
	}
}

// unmade is a reader before an apply: what the cache does not have is taken as not there, for then the apply makes an object and
// changes none. What there is already is read from the API server.
func (o *objects) unmade(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if cached, filled, err := o.cached(ctx, want); err != nil || filled && cached == nil {
		return nil, err
	}
	return o.read(ctx, want)
}

// observe is a reader, of the API server; the kind is watched then.
func (o *objects) observe(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := o.ensureWatch(want.GroupVersionKind()); err != nil {
		return nil, fmt.Errorf("%s: %w", plan.Describe(want), err)
	}
	return o.read(ctx, want)
}

// read is a reader, of the API server.
func (o *objects) read(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	err := o.live.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", plan.Describe(want), err)
	}
	return live, nil
}

func (o *objects) ensureWatch(gvk schema.GroupVersionKind) error {
	if o.watches(gvk) {
		return nil
	}
	if err := o.watchable(gvk); err != nil { // asks the API server, and so holds up nobody else
		return err
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.watched[gvk] {
		return nil
	}
	if err := o.watch(gvk); err != nil {
		return fmt.Errorf("watching %s: %w", gvk.Kind, err)
	}
	o.watched[gvk] = true
	return nil
}

func (o *objects) watches(gvk schema.GroupVersionKind) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.watched[gvk]
}

// watchable is errUnwatchable where a kind lacks the verbs that a watch needs.
func (o *objects) watchable(gvk schema.GroupVersionKind) error {
	resources, err := o.discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if err != nil {
		return fmt.Errorf("finding what can be done with objects of kind %s: %w", gvk.Kind, err)
	}
	for _, resource := range resources.APIResources {
		if resource.Kind == gvk.Kind && slices.Contains(resource.Verbs, "list") && slices.Contains(resource.Verbs, "watch") {
			return nil
		}
	}
	return errUnwatchable
}

// pods lists, from the cache, the pods that carry the owner's labels.
func (o *objects) pods(ctx context.Context, owner plan.Owner) ([]plan.Object, error) {
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	if err := o.ensureWatch(kind); err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind("PodList"))
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	err := o.client.List(ctx, list, client.InNamespace(owner.Namespace), client.MatchingLabels{kudo.LabelInstance: owner.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the Pods of %q: %w", owner.Name, err)
	}
	pods := make([]plan.Object, len(list.Items))
	for i := range list.Items {
		pods[i] = plan.Object{Want: &list.Items[i], Live: &list.Items[i]}
	}
	return pods, nil
}

// delete removes an object unless it is on its way out already, and looks again: many are gone immediately.
func (e *engine) delete(ctx context.Context, object plan.Object) (plan.Object, error) {
	if object.Deleted() {
		return object, nil
	}
	if err := apply.Delete(ctx, e.clients.client, object.Live); err != nil {
		return object, fmt.Errorf("deleting %s: %w", plan.Describe(object.Live), err)
	}
	live, err := e.objects.read(ctx, object.Want)
	return plan.Object{Want: object.Want, Live: live}, err
}
