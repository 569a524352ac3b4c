package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Expectations record, by a key, the last written or last seen version of each object, to detect a stale cache. There is no other source
// for it: a controller that relies only on the cache takes its own write for missing, and writes again. They are safe for concurrent use.
type Expectations[K comparable] struct {
	key func(client.Object) K

	mutex    sync.Mutex
	versions *lru.Cache
}

// version is a resource version, and when it was recorded.
type version struct {
	resource string
	at       time.Time
}

// NewExpectations returns Expectations for at most limit objects, the most recently recorded ones; 0 means no limit.
func NewExpectations[K comparable](key func(client.Object) K, limit int) *Expectations[K] {
	return &Expectations[K]{key: key, versions: lru.New(limit)}
}

// Writes are Expectations of a controller's writes, by namespace and name.
type Writes = Expectations[types.NamespacedName]

// NewWrites returns empty Writes. They need no limit: a write is forgotten once the cache has it.
func NewWrites() *Writes { return NewExpectations(client.ObjectKeyFromObject, 0) }

// Note records the version of an object that was just written.
func (e *Expectations[K]) Note(object client.Object) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.add(object)
}

// NoteSince is Note if the object's version differs from the one that was read.
func (e *Expectations[K]) NoteSince(object client.Object, read string) {
	if object.GetResourceVersion() != read {
		e.Note(object)
	}
}

// NoteIfNewer is Note unless a newer version is recorded: for objects that were read, or have several concurrent writers.
func (e *Expectations[K]) NoteIfNewer(object client.Object) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if last, known := e.last(object); known {
		if order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), last.resource); err == nil && order < 0 {
			return
		}
	}
	e.add(object)
}

// Forget drops the recorded version of a deleted object.
func (e *Expectations[K]) Forget(key K) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.versions.Remove(key)
}

// staleTimeout is how long to wait for a write: after the API server is restored from a backup, it never arrives.
const staleTimeout = 10 * time.Second

// WaitTime returns how long to wait, at most, until the cache has the last recorded version; zero if object, as read from the cache, is not
// older. It forgets versions that need no further waiting.
func (e *Expectations[K]) WaitTime(object client.Object) time.Duration {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	left := e.StaleFor(object)
	if left == 0 {
		e.versions.Remove(e.key(object))
	}
	return left
}

// StaleFor is Awaits, but forgets nothing.
func (e *Expectations[K]) StaleFor(object client.Object) time.Duration {
	last, known := e.last(object)
	if !known {
		return 0
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), last.resource)
	if err != nil || order >= 0 {
		return 0
	}
	return max(0, staleTimeout-time.Since(last.at))
}

// UpToDate reports whether a cached object is as new as the recorded version; known reports whether there is one. Versions without an
// order, as of some aggregated API servers, are up to date only if they are equal.
func (e *Expectations[K]) UpToDate(cached client.Object) (upToDate, known bool) {
	last, known := e.last(cached)
	if !known || cached.GetResourceVersion() == last.resource {
		return true, known
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), last.resource)
	return err == nil && order > 0, true
}

// News admits events that differ from the recorded version, and not the event of the object's own apply. An older version is admitted:
// after an API server is restored from a backup, versions repeat.
func (e *Expectations[K]) News() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(created event.CreateEvent) bool { return !e.has(created.Object) },
		UpdateFunc: func(updated event.UpdateEvent) bool { return !e.has(updated.ObjectNew) },
	}
}

// has reports whether an object has exactly the recorded version.
func (e *Expectations[K]) has(object client.Object) bool {
	last, known := e.last(object)
	return known && last.resource == object.GetResourceVersion()
}

func (e *Expectations[K]) last(object client.Object) (version, bool) {
	last, known := e.versions.Get(e.key(object))
	if !known {
		return version{}, false
	}
	return last.(version), true
}

func (e *Expectations[K]) add(object client.Object) {
	e.versions.Add(e.key(object), version{resource: object.GetResourceVersion(), at: time.Now()})
}
