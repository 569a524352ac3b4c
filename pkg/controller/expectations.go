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

// Expectations remember, by a key, the version of each object that the last write led to or that was last seen, so that a cache that is
// behind is told from one that is not. It cannot be read anywhere: a controller that decides by the cache alone takes its own write for
// undone, and writes again. They may be used by several goroutines.
type Expectations[K comparable] struct {
	key func(client.Object) K

	mutex    sync.Mutex
	versions *lru.Cache
}

// version is a resource version, and when it was noted.
type version struct {
	resource string
	at       time.Time
}

// NewExpectations remembers at most limit objects, those noted last; 0 is no limit.
func NewExpectations[K comparable](key func(client.Object) K, limit int) *Expectations[K] {
	return &Expectations[K]{key: key, versions: lru.New(limit)}
}

// Writes are Expectations of what a controller has written, by namespace and name.
type Writes = Expectations[types.NamespacedName]

// NewWrites expects nothing yet. It is not bounded: what the cache has is not remembered.
func NewWrites() *Writes { return NewExpectations(client.ObjectKeyFromObject, 0) }

// Note remembers the version of an object that was just written.
func (e *Expectations[K]) Note(object client.Object) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.add(object)
}

// NoteSince is Note where the object has another version by now than the one that was read.
func (e *Expectations[K]) NoteSince(object client.Object, read string) {
	if object.GetResourceVersion() != read {
		e.Note(object)
	}
}

// NoteNewest is Note unless a newer version is remembered: for what was read, or was written by several at a time.
func (e *Expectations[K]) NoteNewest(object client.Object) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if last, known := e.last(object); known {
		if order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), last.resource); err == nil && order < 0 {
			return
		}
	}
	e.add(object)
}

// Forget drops what is remembered of an object that is gone.
func (e *Expectations[K]) Forget(key K) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.versions.Remove(key)
}

// patience is how long a write is waited for: one into an API server that was restored from a backup since will never come.
const patience = 10 * time.Second

// Awaits is how long to wait, at most, for the cache to have the version that was noted last; zero where object, as the cache has it, is
// not older. What is not awaited any more is forgotten.
func (e *Expectations[K]) Awaits(object client.Object) time.Duration {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	last, known := e.last(object)
	if !known {
		return 0
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), last.resource)
	if left := patience - time.Since(last.at); err == nil && order < 0 && left > 0 {
		return left
	}
	e.versions.Remove(e.key(object))
	return 0
}

// UpToDate reports whether an object in the cache is as new as what was noted; known reports whether anything was. Versions that have no order,
// as some aggregated API server's may, are new only where they are the same.
func (e *Expectations[K]) UpToDate(cached client.Object) (upToDate, known bool) {
	last, known := e.last(cached)
	if !known || cached.GetResourceVersion() == last.resource {
		return true, known
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), last.resource)
	return err == nil && order > 0, true
}

// News lets through events that tell more than was noted, and not that something was just applied. An older version is news: where an
// API server was restored from a backup, versions come again.
func (e *Expectations[K]) News() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(created event.CreateEvent) bool { return !e.has(created.Object) },
		UpdateFunc: func(updated event.UpdateEvent) bool { return !e.has(updated.ObjectNew) },
	}
}

// has reports whether an object is just what was noted.
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
