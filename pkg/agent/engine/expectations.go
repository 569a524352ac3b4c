package engine

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// mostKnown is of how many objects the engine remembers the version that it has seen; others are read from the API server.
const mostKnown = 10000

// known holds the newest resource version that the engine has seen of objects of Instances, in what it has read or in the answer to
// what it has applied. It tells a cache that is behind, and an event that tells nothing new. What is forgotten costs a read.
type known struct {
	mutex    sync.Mutex
	versions *lru.Cache
}

func newKnown() *known { return &known{versions: lru.New(mostKnown)} }

// place identifies an object in whatever version of its kind.
type place struct {
	schema.GroupKind
	types.NamespacedName
}

func placeOf(o client.Object) place {
	return place{o.GetObjectKind().GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(o)}
}

// see remembers an object as it is now.
func (k *known) see(o *unstructured.Unstructured) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if last, seen := k.version(o); seen {
		if order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), last); err == nil && order < 0 {
			return
		}
	}
	k.versions.Add(placeOf(o), o.GetResourceVersion())
}

// upToDate says whether an object in the cache is as new as what was seen; seen says whether anything was. Versions that have no
// order, as some aggregated API server's may, are new only where they are the same.
func (k *known) upToDate(cached *unstructured.Unstructured) (upToDate, seen bool) {
	last, seen := k.version(cached)
	if !seen || cached.GetResourceVersion() == last {
		return true, seen
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), last)
	return err == nil && order > 0, true
}

// news lets through events that tell more than was seen, and not that something was just applied. An older version is news: where an
// API server was restored from a backup, versions come again.
func (k *known) news() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !k.has(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return !k.has(e.ObjectNew) },
	}
}

// has says whether an object is just what was seen.
func (k *known) has(o client.Object) bool {
	last, seen := k.version(o)
	return seen && last == o.GetResourceVersion()
}

func (k *known) version(o client.Object) (version string, seen bool) {
	last, seen := k.versions.Get(placeOf(o))
	version, _ = last.(string)
	return version, seen
}
