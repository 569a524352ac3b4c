package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

	"github.com/tandem-addons/tandem/pkg/agent/definition"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/health"
	"github.com/tandem-addons/tandem/pkg/core/outcome"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// fieldManager is the field manager of the engine.
const fieldManager = "addon-agent-engine"

// maxNoteBytes is the maximum number of bytes of a message in an event's note, which the API limits.
const maxNoteBytes = 900

// errUnwatchable reports that a kind supports neither list nor watch, so that changes of its objects cannot be observed.
var errUnwatchable = errors.New("objects of this kind are not supported because they cannot be listed or watched")

// objects reads the objects of tasks on the managed cluster, and watches every kind that it has read.
type objects struct {
	client    client.Client
	live      client.Reader
	cache     cache.Cache
	discovery discovery.DiscoveryInterface
	watch     func(context.Context, schema.GroupVersionKind) error

	// kinds are those that the API server serves, and definitions what defines them.
	kinds       *controller.Mapper
	definitions *definition.Watch

	// expectations hold the latest version of the Instances' objects that the engine has read or received as a response to an apply. They
	// detect a stale cache and redundant events. A forgotten entry only costs a read.
	expectations *controller.Expectations[place]

	// deletions holds a deletion of each object that the engine has deleted and that the cache had then, until it is applied again. Once the
	// cache lacks one, it is gone. A forgotten entry only costs a read.
	deletions *lru.Cache

	// refusals hold why objects that are being deleted cannot be updated, by their uids.
	refusals *lru.Cache
	// explained hold the messages about Instances that are not ready, by their uids.
	explained *lru.Cache

	// watched are the kinds with an informer in the cache. It is locked for reading while one is used.
	mutex   sync.RWMutex
	watched map[schema.GroupVersionKind]watched
}

// watched is a resource with an informer, and the definition that it had when the informer was started.
type watched struct {
	resource   schema.GroupResource
	definition types.UID
}

// newObjects returns objects that are not watched yet, and the identities that act on them.
func newObjects(local ctrl.Manager) (*objects, *identities, error) {
	live, err := newLatest(local)
	if err != nil {
		return nil, nil, err
	}
	acting, err := newIdentities(live)
	if err != nil {
		return nil, nil, err
	}
	discovered, err := discovery.NewDiscoveryClientForConfigAndClient(local.GetConfig(), local.GetHTTPClient())
	if err != nil {
		return nil, nil, err
	}
	definitions, err := definition.New(local)
	return &objects{
		client: local.GetClient(), live: live, cache: local.GetCache(), discovery: discovered, kinds: live.kinds, definitions: definitions,
		expectations: controller.NewExpectations(placeOf, maxRemembered), deletions: lru.New(maxRemembered),
		refusals: lru.New(maxRemembered), explained: lru.New(maxRemembered), watched: map[schema.GroupVersionKind]watched{},
	}, acting, err
}

// unservedError reports that the API server does not serve a kind in the version of a request, or in any. It does not mean that its objects are
// gone.
type unservedError struct {
	why string
	err error

	// definition is the name of the kind's definition if that serves no version.
	definition string
}

func (u *unservedError) Error() string { return u.why }
func (u *unservedError) Unwrap() error { return u.err }

// wrapUnserved returns an error about an object of a kind. If it is that the API server does not serve the kind in that version, the kinds are
// discovered again.
func (o *objects) wrapUnserved(gvk schema.GroupVersionKind, err error) error {
	if !controller.IsUnserved(err) {
		return err
	}
	o.kinds.Renew()
	return &unservedError{why: fmt.Sprintf("the API server does not serve kind %s in version %s", gvk.Kind, gvk.GroupVersion()), err: err}
}

// retryUnserved calls act, and calls it again if the kinds were stale.
func retryUnserved(act func() error) error {
	err := act()
	if unserved := (*unservedError)(nil); errors.As(err, &unserved) {
		err = act()
	}
	return err
}

// mapping returns the resource of a kind in the version that the API server prefers now; nil if the cluster does not define the kind, so that it
// has no objects.
func (o *objects) mapping(ctx context.Context, kind schema.GroupKind) (*meta.RESTMapping, error) {
	preferred, err := o.kinds.RESTMapping(kind)
	if !meta.IsNoMatchError(err) {
		return preferred, err
	}
	defined, unknown := o.definitions.Of(ctx, kind)
	switch {
	case unknown != nil:
		return nil, unknown
	case !defined.Established: // no object was created since
		return nil, nil
	case defined.Served == "":
		return nil, &unservedError{
			why: fmt.Sprintf("CustomResourceDefinition %q serves no version of the kind: set served: true on one", defined.Name), err: err,
			definition: defined.Name,
		}
	}
	for version := range strings.FieldsSeq(defined.Served) { // it was defined in the last second
		if served, err := o.kinds.RESTMapping(kind, version); !meta.IsNoMatchError(err) {
			return served, err
		}
	}
	return nil, &unservedError{why: fmt.Sprintf("the API server does not serve CustomResourceDefinition %q yet", defined.Name), err: err}
}

// deletion is the deletion of the object with that uid: when the object was last confirmed to exist, and whether it is gone although the
// cache still has it.
type deletion struct {
	uid  types.UID
	at   time.Time
	gone bool
}

// maxRemembered is the maximum number of remembered object versions; other objects are read from the API server.
const maxRemembered = 10000

// place identifies an object in any version of its kind.
type place struct {
	schema.GroupKind
	types.NamespacedName
}

func placeOf(o client.Object) place {
	return place{o.GetObjectKind().GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(o)}
}

// find completes a wanted object and pairs it with the live object. A kind that the cluster does not have is an error
// that meta.IsNoMatchError recognizes.
func (o *objects) find(ctx context.Context, owner *kudo.Instance, want *unstructured.Unstructured, fresh freshness) (plan.Object, error) {
	found := plan.Object{Want: want}
	err := retryUnserved(func() (err error) {
		if err := o.place(owner, want); err != nil {
			return fmt.Errorf("%s: %w", plan.Describe(want), err)
		}
		found.Live, err = o.read(ctx, want, fresh)
		return err
	})
	return found, err
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

// readEntry pairs an inventory entry with the live object, in the version of its kind that the API server prefers now. A kind that the
// cluster does not define has no live objects.
func (o *objects) readEntry(ctx context.Context, entry kudo.InventoryEntry, fresh freshness) (plan.Object, error) {
	kind := schema.GroupKind{Group: entry.Group, Kind: entry.Kind}
	want := &unstructured.Unstructured{}
	want.SetGroupVersionKind(kind.WithVersion(""))
	want.SetNamespace(entry.Namespace)
	want.SetName(entry.Name)
	found := plan.Object{Want: want}
	err := retryUnserved(func() error {
		mapping, err := o.mapping(ctx, kind)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", plan.Describe(want), err)
		case mapping == nil:
			found.Live = nil
			return nil
		}
		want.SetGroupVersionKind(mapping.GroupVersionKind)
		found.Live, err = o.read(ctx, want, fresh)
		return err
	})
	return found, err
}

// place sets the Instance's namespace on a namespaced object without one, and makes the Instance the owner of objects in its own namespace, except
// for those that Helm keeps: with the owner, the garbage collector would delete them.
func (o *objects) place(owner *kudo.Instance, want *unstructured.Unstructured) error {
	gvk := want.GroupVersionKind()
	mapping, err := o.kinds.RESTMapping(gvk.GroupKind(), gvk.Version)
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
	if want.GetNamespace() == owner.Namespace && !plan.KeepsAsHelm(want) {
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

// readCached reads an object, which must carry KUDO's label, from the cache; nil if it does not exist there. filled reports whether the
// cache has listed the kind. The kind is watched from then on.
func (o *objects) readCached(ctx context.Context, want *unstructured.Unstructured) (object *unstructured.Unstructured, filled bool, err error) {
	if err := o.ensureWatch(ctx, want.GroupVersionKind()); err != nil {
		return nil, false, fmt.Errorf("%s: %w", plan.Describe(want), err)
	}
	o.mutex.RLock()
	defer o.mutex.RUnlock()
	if _, is := o.watched[want.GroupVersionKind()]; !is { // its definition has changed in the meantime
		return nil, false, nil
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

// freshness is how current the result of a read has to be.
type freshness struct {
	// suffices decides whether the cache answers the read, with the object that it has, or nil; filled reports whether it has listed the kind.
	// Otherwise, and always if suffices is nil, the API server answers.
	suffices func(o *objects, want, cached *unstructured.Unstructured, filled bool) (found *unstructured.Unstructured, answers bool)

	// unwatched is true if the read starts no watch. All others watch the kind from then on.
	unwatched bool
}

var (
	// fromServer is the state of the API server; fromServerAndWatch is the same, and the kind is watched.
	fromServer, fromServerAndWatch = freshness{unwatched: true}, freshness{}

	// asSeen is no older than what the engine has seen.
	asSeen = freshness{suffices: liveObjects(nil).suffice}

	// beforeApply is the state of the API server, but an object that the cache lacks counts as missing, because the apply then only creates an
	// object and changes none.
	beforeApply = freshness{suffices: lacks}

	// beforeDelete is sufficient for a deletion of exactly the version that is read.
	beforeDelete = freshness{suffices: deletable, unwatched: true}
)

// asSeenOr returns asSeen, but a read may also be answered with one of these objects.
func asSeenOr(objects liveObjects) freshness { return freshness{suffices: objects.suffice} }

// asAppliedBy requires the version that an execution has applied, or a later one: the cache may show the previous version.
func asAppliedBy(execution types.UID) freshness {
	return freshness{suffices: func(o *objects, _, cached *unstructured.Unstructured, _ bool) (*unstructured.Unstructured, bool) {
		if !(plan.Object{Live: cached}).AppliedBy(execution) {
			return nil, false
		}
		upToDate, seen := o.expectations.UpToDate(cached)
		return cached, upToDate && seen
	}}
}

// read reads an object; nil if it does not exist.
func (o *objects) read(ctx context.Context, want *unstructured.Unstructured, fresh freshness) (*unstructured.Unstructured, error) {
	if found, answers, err := o.askCache(ctx, want, fresh); answers || err != nil {
		return found, err
	}
	found, err := o.readLive(ctx, want)
	if noted, deleted := o.deletions.Get(placeOf(want)); deleted && found == nil && err == nil {
		o.deletions.Add(placeOf(want), deletion{uid: noted.(deletion).uid, at: time.Now(), gone: true})
	}
	return found, err
}

// askCache returns the answer of the cache to a read, if that suffices, and watches the kind unless the read starts no watch.
func (o *objects) askCache(
	ctx context.Context, want *unstructured.Unstructured, fresh freshness,
) (found *unstructured.Unstructured, answers bool, err error) {
	if fresh.unwatched && (fresh.suffices == nil || !o.watches(want.GroupVersionKind())) {
		return nil, false, nil
	}
	cached, filled, err := o.readCached(ctx, want)
	switch {
	case err != nil && fresh.unwatched:
		return nil, false, nil
	case err != nil || fresh.suffices == nil:
		return nil, false, err
	}
	found, answers = fresh.suffices(o, want, cached, filled)
	return found, answers, nil
}

// liveObjects are objects as the API server has returned them.
type liveObjects map[place]*unstructured.Unstructured

// suffice answers a read with the cached object or one of these if nothing newer was seen.
func (l liveObjects) suffice(o *objects, want, cached *unstructured.Unstructured, _ bool) (*unstructured.Unstructured, bool) {
	for _, found := range []*unstructured.Unstructured{cached, l[placeOf(want)]} {
		if found == nil {
			continue
		}
		if upToDate, _ := o.expectations.UpToDate(found); upToDate && !isOverdue(found) {
			return found, true
		}
	}
	return nil, false
}

// lacks answers a read if the cache lacks the object.
func lacks(_ *objects, _, cached *unstructured.Unstructured, filled bool) (*unstructured.Unstructured, bool) {
	return nil, filled && cached == nil
}

// deletable answers a read if the cache has the object, or lacks it after the engine has deleted it. An object that the engine has deleted
// is returned as being deleted. If the cache may have missed the end of the deletion, the API server is asked, but not in every pass, and
// even less often once the object is gone.
func deletable(o *objects, want, cached *unstructured.Unstructured, filled bool) (*unstructured.Unstructured, bool) {
	noted, deleting := o.deletions.Get(placeOf(want))
	if cached == nil {
		return nil, filled && deleting
	}
	last, _ := noted.(deletion)
	deleted := last.uid == cached.GetUID()
	switch {
	case deleted && last.gone && time.Since(last.at) < answerLifetime:
		return nil, true
	case deleted && time.Since(last.at) > missedDeletionDelay || !deleted && isOverdue(cached):
		o.deletions.Add(placeOf(cached), deletion{uid: cached.GetUID(), at: time.Now()})
		return nil, false
	case deleted:
		return asDeleting(cached), true
	default:
		return cached, true
	}
}

// isOverdue reports whether an object has been in deletion for so long that the cache may have missed its end.
func isOverdue(cached *unstructured.Unstructured) bool {
	began := cached.GetDeletionTimestamp()
	return began != nil && time.Since(began.Time) > missedDeletionDelay
}

// delete deletes exactly this version of an object, and returns its new state, nil if it is deleted. A conflict means that it was changed or
// replaced.
func (o *objects) delete(ctx context.Context, c client.Client, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	known := o.hasCached(ctx, live)
	gone, err := apply.Delete(ctx, c, live)
	if err != nil {
		return nil, o.wrapUnserved(live.GroupVersionKind(), err)
	}
	if live.GroupVersionKind().GroupKind() == definitionKind && !gone { // the API server adds a finalizer, for which others wait
		return o.readLive(ctx, live)
	}
	if known {
		o.deletions.Add(placeOf(live), deletion{uid: live.GetUID(), at: time.Now(), gone: gone})
	}
	if gone {
		return nil, nil
	}
	return asDeleting(live), nil
}

// definitionKind is the kind of definitions of custom resources.
var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// hasCached reports whether the cache has an object, in any version. It starts no watch.
func (o *objects) hasCached(ctx context.Context, live *unstructured.Unstructured) bool {
	if !o.watches(live.GroupVersionKind()) {
		return false
	}
	cached, _, err := o.readCached(ctx, live)
	return err == nil && cached != nil && cached.GetUID() == live.GetUID()
}

// asDeleting returns a copy of an object that is being deleted, also if the cache does not show that yet.
func asDeleting(live *unstructured.Unstructured) *unstructured.Unstructured {
	if live.GetDeletionTimestamp() != nil {
		return live
	}
	live = live.DeepCopy()
	live.SetDeletionTimestamp(ptr.To(metav1.Now()))
	return live
}

// readLive reads an object from the API server; nil if it does not exist.
func (o *objects) readLive(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	err := o.wrapUnserved(want.GroupVersionKind(), o.live.Get(ctx, client.ObjectKeyFromObject(want), live))
	if isGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", plan.Describe(want), err)
	}
	return live, nil
}

// setServedVersions sets the version of objects whose kind is served in another one than their templates name.
func (o *objects) setServedVersions(ctx context.Context, wants []*unstructured.Unstructured) error {
	for _, want := range wants {
		gvk := want.GroupVersionKind()
		if _, err := o.kinds.RESTMapping(gvk.GroupKind(), gvk.Version); !meta.IsNoMatchError(err) {
			continue
		}
		served, err := o.mapping(ctx, gvk.GroupKind())
		if err != nil {
			return fmt.Errorf("%s: %w", plan.Describe(want), err)
		}
		if served != nil {
			want.SetGroupVersionKind(served.GroupVersionKind)
		}
	}
	return nil
}

// isGone reports whether the API server has answered that an object does not exist.
func isGone(err error) bool { return apierrors.IsNotFound(err) && !controller.IsUnserved(err) }

// ensureWatch watches a kind from now on.
func (o *objects) ensureWatch(ctx context.Context, gvk schema.GroupVersionKind) error {
	if o.watches(gvk) {
		return nil
	}
	if err := o.wrapUnserved(gvk, o.checkWatchable(gvk)); err != nil { // calls the API server, and blocks no other caller
		return err
	}
	mapping, err := o.kinds.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if _, is := o.watched[gvk]; is {
		return nil
	}
	if err := o.watch(ctx, gvk); err != nil {
		return fmt.Errorf("watching %s: %w", gvk.Kind, err)
	}
	resource := mapping.Resource.GroupResource()
	o.watched[gvk] = watched{resource: resource, definition: o.definitions.UID(resource)}
	return nil
}

func (o *objects) watches(gvk schema.GroupVersionKind) bool {
	o.mutex.RLock()
	defer o.mutex.RUnlock()
	_, is := o.watched[gvk]
	return is
}

// watchesAny reports whether a version of a resource is watched.
func (o *objects) watchesAny(resource schema.GroupResource) bool {
	o.mutex.RLock()
	defer o.mutex.RUnlock()
	for _, w := range o.watched {
		if w.resource == resource {
			return true
		}
	}
	return false
}

// shown returns the kinds of a resource that the API server serves, as they were discovered.
func (o *objects) shown(resource schema.GroupResource) ([]*meta.RESTMapping, error) {
	kinds, err := o.kinds.KindsFor(resource.WithVersion(""))
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, err
	}
	var shown []*meta.RESTMapping
	for _, kind := range kinds {
		mapping, err := o.kinds.RESTMapping(kind.GroupKind(), kind.Version)
		if err == nil {
			shown = append(shown, mapping)
		} else if !meta.IsNoMatchError(err) {
			return nil, err
		}
	}
	return shown, nil
}

// servedInstead returns the versions in which the API server serves the kind of an object, as a part of a sentence; empty if there are none.
func (o *objects) servedInstead(want *unstructured.Unstructured) string {
	mappings, err := o.kinds.RESTMappings(want.GroupVersionKind().GroupKind())
	if err != nil {
		return ""
	}
	var versions []string
	for _, mapping := range mappings {
		versions = append(versions, mapping.GroupVersionKind.Version)
	}
	return "; the cluster serves it in version " + strings.Join(versions, ", ")
}

// resourceOf returns the resource of a kind that is watched.
func (o *objects) resourceOf(gvk schema.GroupVersionKind) (resource schema.GroupResource, is bool) {
	o.mutex.RLock()
	defer o.mutex.RUnlock()
	w, is := o.watched[gvk]
	return w.resource, is
}

// unwatch ends the watches of a definition's versions that are no longer served, and of all if it was re-created: the API server has ended
// them, too, and the cache keeps stale objects. It reports whether it has ended any.
func (o *objects) unwatch(ctx context.Context, defined definition.Definition) (ended bool, err error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for gvk, w := range o.watched {
		if w.resource != definition.ResourceOf(defined.Name) {
			continue
		}
		if defined.Serves(gvk.Version) && (w.definition == defined.UID || w.definition == "") {
			o.watched[gvk] = watched{resource: w.resource, definition: defined.UID}
			continue
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		if err := o.cache.RemoveInformer(ctx, object); err != nil {
			return ended, fmt.Errorf("ending the watch of %s: %w", gvk.Kind, err)
		}
		delete(o.watched, gvk)
		ended = true
	}
	return ended, nil
}

// checkWatchable returns errUnwatchable if a kind lacks the verbs that a watch needs.
func (o *objects) checkWatchable(gvk schema.GroupVersionKind) error {
	resources, err := o.discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if err != nil {
		return fmt.Errorf("discovering the supported verbs of kind %s: %w", gvk.Kind, err)
	}
	isOf := func(r metav1.APIResource) bool { return r.Kind == gvk.Kind && !strings.Contains(r.Name, "/") }
	for _, resource := range resources.APIResources {
		if isOf(resource) && slices.Contains(resource.Verbs, "list") && slices.Contains(resource.Verbs, "watch") {
			return nil
		}
	}
	if !slices.ContainsFunc(resources.APIResources, isOf) {
		o.kinds.Renew()
		return &unservedError{why: fmt.Sprintf("the API server does not serve kind %s in version %s", gvk.Kind, gvk.GroupVersion())}
	}
	return errUnwatchable
}

// pods lists the pods with the owner's labels from the cache.
func (o *objects) pods(ctx context.Context, owner plan.Owner) ([]plan.Object, error) {
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	if err := o.ensureWatch(ctx, kind); err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind("PodList"))
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
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
	if err := o.ensureWatch(ctx, storageClass); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
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
func (p *pass) deleteOwn(ctx context.Context, as clients, isOwn func(plan.Object) bool, object plan.Object) (plan.Object, error) {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if !isOwn(object) || object.IsDeleted() {
			return nil
		}
		live, refused := p.objects.delete(ctx, as.client, object.Live)
		if apierrors.IsConflict(refused) {
			var err error
			if object.Live, err = p.objects.read(ctx, object.Want, fromServer); err != nil {
				return err
			}
			return refused
		}
		if refused != nil {
			return fmt.Errorf("deleting %s: %w", plan.Describe(object.Live), p.conceal(object.Live, refused))
		}
		object.Live = live
		return nil
	})
	return object, err
}

// outcomeOf returns the outcome of a task whose request has failed.
func outcomeOf(err error) plan.Outcome {
	var missing *missingRight
	lacksRight := errors.As(err, &missing) && missing.final
	return outcome.OfError(err, lacksRight || errors.Is(err, errUnwatchable) || apply.IsFinal(err))
}

// unreadable returns why objects of a kind cannot be read until its definition changes, or the webhook that converts them responds; empty if
// the error has another cause.
func unreadable(err error) string {
	var unserved *unservedError
	if errors.As(err, &unserved) && unserved.definition != "" {
		return unserved.why
	}
	return outcome.ConversionFailure(err)
}
