package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/controller"
	"github.com/tandem-addons/tandem/pkg/health"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// errUnwatchable reports that a kind supports neither list nor watch, so that changes of its objects cannot be observed.
var errUnwatchable = errors.New("objects of this kind are not supported because they cannot be listed or watched")

// readPatience is the timeout for reading an object, including the first list of its kind. An aggregated API server may never respond, and
// must not block unrelated objects.
const readPatience = 15 * time.Second

// objects reads the objects of tasks on the managed cluster, and watches every kind that it has read.
type objects struct {
	client    client.Client
	live      client.Reader
	cache     cache.Cache
	discovery discovery.DiscoveryInterface
	watch     func(schema.GroupVersionKind) error

	// expectations hold the newest version of the Instances' objects that the engine has read or received as a response to an apply. They
	// detect a stale cache and redundant events. A forgotten entry only costs a read.
	expectations *controller.Expectations[place]

	// deletions holds a deletion of each object that the engine has deleted and that the cache had then, until it is applied again. Once the
	// cache lacks one, it is gone. A forgotten entry only costs a read.
	deletions *lru.Cache

	// refusals hold why objects that are being deleted cannot be updated, by their uids.
	refusals *lru.Cache

	mutex   sync.Mutex
	watched map[schema.GroupVersionKind]bool
}

// newObjects returns objects that are not watched yet.
func newObjects(local ctrl.Manager, kinds discovery.DiscoveryInterface) *objects {
	return &objects{
		client: local.GetClient(), live: local.GetAPIReader(), cache: local.GetCache(), discovery: kinds,
		expectations: controller.NewExpectations(placeOf, mostKnown), deletions: lru.New(mostKnown),
		refusals: lru.New(mostKnown), watched: map[schema.GroupVersionKind]bool{},
	}
}

// deletion is the deletion of the object with that uid: when the object was last confirmed to exist, and whether it is gone although the
// cache still has it.
type deletion struct {
	uid  types.UID
	at   time.Time
	gone bool
}

// missedAfter is how long the cache may show an object that is being deleted, before the API server is asked. The cache may have missed the
// deletion: it cannot list a kind again whose definition was deleted too.
const missedAfter = 5 * time.Second

// goneFor is how long an object that is gone is not looked for although the cache has it. It exists again if the API server was restored from a
// backup.
const goneFor = 30 * time.Second

// mostKnown is the maximum number of remembered object versions; other objects are read from the API server.
const mostKnown = 10000

// place identifies an object in any version of its kind.
type place struct {
	schema.GroupKind
	types.NamespacedName
}

func placeOf(o client.Object) place {
	return place{o.GetObjectKind().GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(o)}
}

// findLive is find with a live read.
func (o *objects) findLive(ctx context.Context, owner *kudo.Instance, want *unstructured.Unstructured) (plan.Object, error) {
	return o.find(ctx, owner, want, o.observe)
}

// find completes a wanted object and pairs it with the live object that read returns. A kind that the cluster does not have is an error
// that meta.IsNoMatchError recognizes.
func (o *objects) find(ctx context.Context, owner *kudo.Instance, want *unstructured.Unstructured, read reader) (plan.Object, error) {
	if err := o.place(owner, want); err != nil {
		return plan.Object{}, fmt.Errorf("%s: %w", plan.Describe(want), err)
	}
	live, err := read(ctx, want)
	return plan.Object{Want: want, Live: live}, err
}

// placeAll completes wanted objects. It returns objects of kinds that the cluster does not have as undefined.
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

// listed pairs an inventory entry with the live object, in the version of its kind that the API server prefers. A kind that the cluster
// does not have has no live objects.
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

// place sets the Instance's namespace on a namespaced object without one, and makes the Instance the owner of objects in its own namespace.
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

// cached reads an object, which must carry KUDO's label, from the cache; nil if it does not exist there. filled reports whether the cache
// has listed the kind. The kind is watched from then on.
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

// get is a reader of the cache, and of the API server if the cache lacks the object or is older than what the engine has seen.
func (o *objects) get(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return o.newest(nil)(ctx, want)
}

// liveObjects are objects as the API server has returned them.
type liveObjects map[place]*unstructured.Unstructured

// newest returns a reader of the cache; of live if the cache lacks the object or is older; and otherwise of the API server. Nothing that it
// returns is older than what the engine has seen.
func (o *objects) newest(live liveObjects) reader {
	return func(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		cached, _, err := o.cached(ctx, want)
		if err != nil {
			return nil, err
		}
		for _, found := range []*unstructured.Unstructured{cached, live[placeOf(want)]} {
			if found == nil {
				continue
			}
			if upToDate, _ := o.expectations.UpToDate(found); upToDate && !overdue(found) {
				return found, nil
			}
		}
		return o.read(ctx, want)
	}
}

// applied returns a reader of objects that an execution has applied: of the cache once it shows them, and of the API server while it may
// show the previous version.
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

// unmade is a reader before an apply: an object that the cache lacks counts as missing, because the apply then only creates an object and
// changes none. Existing objects are read from the API server.
func (o *objects) unmade(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if cached, filled, err := o.cached(ctx, want); err != nil || filled && cached == nil {
		return nil, err
	}
	return o.read(ctx, want)
}

// known is a reader before a deletion of exactly the version that it returns: of the cache if that has the object or has seen its deletion,
// and of the API server otherwise.
func (o *objects) known(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !o.watches(want.GroupVersionKind()) {
		return o.read(ctx, want)
	}
	cached, filled, err := o.cached(ctx, want)
	noted, deleting := o.deletions.Get(placeOf(want))
	last, _ := noted.(deletion)
	switch {
	case err != nil || cached == nil && !(filled && deleting):
		return o.read(ctx, want)
	case cached == nil:
		return nil, nil
	default:
		return o.confirmed(ctx, cached, last)
	}
}

// confirmed returns an object in the cache, as being deleted if the engine has deleted it. If the cache may have missed the end of the
// deletion, the object is read from the API server, but not in every pass, and even less often once it is gone.
func (o *objects) confirmed(ctx context.Context, cached *unstructured.Unstructured, last deletion) (*unstructured.Unstructured, error) {
	deleted := last.uid == cached.GetUID()
	switch {
	case deleted && last.gone && time.Since(last.at) < goneFor:
		return nil, nil
	case deleted && time.Since(last.at) > missedAfter || !deleted && overdue(cached):
		o.deletions.Add(placeOf(cached), deletion{uid: cached.GetUID(), at: time.Now()})
		live, err := o.read(ctx, cached)
		if err == nil && live == nil {
			o.deletions.Add(placeOf(cached), deletion{uid: cached.GetUID(), at: time.Now(), gone: true})
		}
		return live, err
	case deleted:
		return deletedNow(cached), nil
	default:
		return cached, nil
	}
}

// overdue reports whether an object has been in deletion for so long that the cache may have missed its end.
func overdue(cached *unstructured.Unstructured) bool {
	began := cached.GetDeletionTimestamp()
	return began != nil && time.Since(began.Time) > missedAfter
}

// delete deletes exactly this version of an object, and returns its new state, nil if it is deleted. A conflict means that it was changed or
// replaced.
func (o *objects) delete(ctx context.Context, c client.Client, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	known := o.hasCached(ctx, live)
	gone, err := apply.Delete(ctx, c, live)
	if err != nil {
		return nil, err
	}
	if live.GroupVersionKind().GroupKind() == definition && !gone { // the API server adds a finalizer, for which others wait
		return o.read(ctx, live)
	}
	if known {
		o.deletions.Add(placeOf(live), deletion{uid: live.GetUID(), at: time.Now(), gone: gone})
	}
	if gone {
		return nil, nil
	}
	return deletedNow(live), nil
}

// definition is the kind of definitions of custom resources.
var definition = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// hasCached reports whether the cache has an object, in any version. It starts no watch.
func (o *objects) hasCached(ctx context.Context, live *unstructured.Unstructured) bool {
	if !o.watches(live.GroupVersionKind()) {
		return false
	}
	cached, _, err := o.cached(ctx, live)
	return err == nil && cached != nil && cached.GetUID() == live.GetUID()
}

// deletedNow returns a copy of an object that is being deleted, also if the cache does not show that yet.
func deletedNow(live *unstructured.Unstructured) *unstructured.Unstructured {
	if live.GetDeletionTimestamp() != nil {
		return live
	}
	live = live.DeepCopy()
	live.SetDeletionTimestamp(ptr.To(metav1.Now()))
	return live
}

// observe is a reader of the API server that also watches the kind.
func (o *objects) observe(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := o.ensureWatch(want.GroupVersionKind()); err != nil {
		return nil, fmt.Errorf("%s: %w", plan.Describe(want), err)
	}
	return o.read(ctx, want)
}

// read is a reader of the API server.
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
	if err := o.watchable(gvk); err != nil { // calls the API server, and blocks no other caller
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

// watchable returns errUnwatchable if a kind lacks the verbs that a watch needs.
func (o *objects) watchable(gvk schema.GroupVersionKind) error {
	resources, err := o.discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if err != nil {
		return fmt.Errorf("discovering the supported verbs of kind %s: %w", gvk.Kind, err)
	}
	for _, resource := range resources.APIResources {
		if resource.Kind == gvk.Kind && slices.Contains(resource.Verbs, "list") && slices.Contains(resource.Verbs, "watch") {
			return nil
		}
	}
	return errUnwatchable
}

// pods lists the pods with the owner's labels from the cache.
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

// storageClass is the kind that the health of volume claims depends on.
var storageClass = storagev1.SchemeGroupVersion.WithKind("StorageClass")

// withClasses adds the StorageClasses of the cluster to the objects whose health depends on them.
func (o *objects) withClasses(ctx context.Context, found []plan.Object) ([]plan.Object, error) {
	var classes []health.StorageClass
	for i := range found {
		if !health.DependsOnStorageClass(found[i].Live) {
			continue
		}
		if classes == nil {
			var err error
			if classes, err = o.classes(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", plan.Describe(found[i].Live), err)
			}
		}
		found[i].Classes = classes
	}
	return found, nil
}

// classes returns the StorageClasses of the cluster, which is not nil. They are few, and watched from then on.
func (o *objects) classes(ctx context.Context) ([]health.StorageClass, error) {
	if err := o.ensureWatch(storageClass); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(storageClass.GroupVersion().WithKind("StorageClassList"))
	if err := o.live.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing StorageClasses: %w", err)
	}
	classes := make([]health.StorageClass, len(list.Items))
	for i, item := range list.Items {
		mode, _, _ := unstructured.NestedString(item.Object, "volumeBindingMode")
		classes[i] = health.StorageClass{
			Name: item.GetName(), Default: isDefaultClass(&item), WaitsForConsumer: mode == string(storagev1.VolumeBindingWaitForFirstConsumer),
		}
	}
	return classes, nil
}

// isDefaultClass reports whether a StorageClass is a default of the cluster.
func isDefaultClass(class client.Object) bool {
	annotations := class.GetAnnotations()
	return annotations["storageclass.kubernetes.io/is-default-class"] == "true" ||
		annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true"
}

// deleteOwn deletes an object if it is the Instance's own, unless it is being deleted already, and returns its new state. An object that was
// changed since it was read is read again.
func (e *engine) deleteOwn(ctx context.Context, as clients, isOwn func(plan.Object) bool, object plan.Object) (plan.Object, error) {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if !isOwn(object) || object.Deleted() {
			return nil
		}
		live, refused := e.objects.delete(ctx, as.client, object.Live)
		if apierrors.IsConflict(refused) {
			var err error
			if object.Live, err = e.objects.read(ctx, object.Want); err != nil {
				return err
			}
			return refused
		}
		if refused != nil {
			return fmt.Errorf("deleting %s: %w", plan.Describe(object.Live), e.conceal(object.Live, refused))
		}
		object.Live = live
		return nil
	})
	return object, err
}
