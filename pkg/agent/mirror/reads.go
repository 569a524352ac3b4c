package mirror

import (
	"sync"
	"time"

	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// sightings hold when the cache of the hub last reported each Instance: what was read on the hub after that is not older than the Instance.
type sightings struct {
	clock  func() time.Time
	mutex  sync.Mutex
	byName map[string]sighting
}

// sighting is a version of an Instance, and when it was reported.
type sighting struct {
	version string
	at      time.Time
}

func newSightings(clock func() time.Time) *sightings {
	return &sightings{clock: clock, byName: map[string]sighting{}}
}

// record admits every event, and notes it.
func (s *sightings) record() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.byName[o.GetName()] = sighting{version: o.GetResourceVersion(), at: s.clock()}
		return true
	})
}

// of returns when that version of an Instance was reported; now if it was not reported yet.
func (s *sightings) of(i *kudo.Instance) time.Time {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if last := s.byName[i.Name]; last.version == i.ResourceVersion {
		return last.at
	}
	return s.clock()
}

// forget drops an Instance that the hub no longer has.
func (s *sightings) forget(name string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.byName, name)
}

// maxReads is the maximum number of remembered reads.
const maxReads = 100

// reads hold the last result of live reads, by key, so that Instances that change at the same time share them. They are safe for concurrent
// use.
type reads[K comparable, V any] struct{ known *lru.Cache }

// read is the result of a read, and when the read began.
type read[V any] struct {
	began time.Time
	value V
}

func newReads[K comparable, V any]() reads[K, V] { return reads[K, V]{known: lru.New(maxReads)} }

// after returns the result of a read that began after a time.
func (r reads[K, V]) after(key K, seen time.Time) (value V, known bool) {
	last, found := r.known.Get(key)
	if !found || !last.(read[V]).began.After(seen) {
		return value, false
	}
	return last.(read[V]).value, true
}

// note records the result of a read.
func (r reads[K, V]) note(key K, began time.Time, value V) {
	r.known.Add(key, read[V]{began: began, value: value})
}
