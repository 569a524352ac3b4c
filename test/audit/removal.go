package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Requires reports whether an add-on depends on another one, at a time, and nothing that stays replaces it.
type Requires func(dependent, other string, at time.Time) bool

// together is how long after an add-on its dependents may be deleted, too, and are still removed before it. The hub waits for two seconds at least.
const together = 2 * time.Second

// Deletions returns since when each add-on of a cluster is deleted, from the log of the hub. One that was created again is left out.
func Deletions(hub []Entry, cluster string) map[string]time.Time {
	deleted := map[string]time.Time{}
	for i := range hub {
		e := &hub[i]
		if !e.Is("managedclusteraddons", "") || !e.IsSuccess() || e.ObjectRef.Namespace != cluster {
			continue
		}
		name := e.ObjectRef.Name
		switch _, before := deleted[name]; {
		case e.ResponseStatus.Code == http.StatusCreated:
			delete(deleted, name)
		case e.Verb == "delete" && !before:
			deleted[name] = e.RequestTime()
		}
	}
	return deleted
}

// EarlyRemovals returns the removals that began although a dependent that was deleted together with the add-on still had objects. Like Exclusions, it only
// uses what was applied and deleted on a managed cluster. A removal begins when plan cleanup applies an object, or with the first of the deletions after which
// the Instance applies nothing more; deleted holds when the add-ons were deleted.
func EarlyRemovals(entries []Entry, deleted map[string]time.Time, requires Requires) []string {
	lives := livesOf(entries)
	var found []string
	for _, name := range slices.Sorted(maps.Keys(deleted)) {
		begin := lives[name].begin(deleted[name])
		if begin == nil {
			continue
		}
		at := begin.RequestTime()
		for _, other := range slices.Sorted(maps.Keys(deleted)) {
			if other == name || deleted[other].After(deleted[name].Add(together)) || deleted[other].After(at) {
				continue
			}
			// What is declared may change in between: the hub decides by what holds then.
			needed := requires(other, name, deleted[name]) && requires(other, name, at)
			if lives[other].runs(at) && needed && !leads(name, other, deleted, requires) {
				found = append(found, fmt.Sprintf("%s: the removal of %s begins while %s, which depends on it and was deleted too, has objects", begin, name, other))
			}
		}
	}
	return found
}

// leads reports whether dependencies lead from an add-on to another one over those that were deleted, so that both are on a cycle, which has no order.
func leads(from, to string, deleted map[string]time.Time, requires Requires) bool {
	reached := map[string]bool{from: true}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for next := range deleted {
			if !reached[next] && requires(queue[0], next, deleted[from]) {
				reached[next] = true
				queue = append(queue, next)
			}
		}
	}
	return reached[to]
}

// life is what was written of an Instance on its cluster.
type life struct {
	// cleanup are the writes of plan cleanup, and deletes those of deleted objects.
	cleanup, deletes []*Entry
	// first and last are the times of the first and the last applied object; gone is when its last object was deleted, or its mirror; zero before.
	first, last, gone time.Time
}

// begin returns the write with which the removal began of an add-on that was deleted at that time; nil if it has not started.
func (l *life) begin(deleted time.Time) *Entry {
	if l == nil {
		return nil
	}
	for _, e := range l.cleanup {
		if e.RequestTime().After(deleted) {
			return e
		}
	}
	for _, e := range l.deletes {
		if e.RequestTime().After(deleted) && e.RequestTime().After(l.last) {
			return e
		}
	}
	return nil
}

// runs reports whether the Instance had objects at that time.
func (l *life) runs(at time.Time) bool {
	return l != nil && !l.first.After(at) && (l.gone.IsZero() || l.gone.After(at))
}

// writings are the lives of Instances, with the owner of each object that is there and the number of them.
type writings struct {
	lives  map[string]*life
	owners map[string]string
	counts map[string]int
}

// livesOf returns the writes of each Instance since it last had no objects.
func livesOf(entries []Entry) map[string]*life {
	w := writings{lives: map[string]*life{}, owners: map[string]string{}, counts: map[string]int{}}
	for i := range entries {
		e := &entries[i]
		if !e.IsSuccess() || e.ObjectRef.Subresource != "" {
			continue
		}
		if running := runningOf(e); running != (Running{}) {
			w.apply(e, running.Instance)
		} else if e.Verb == "delete" {
			w.remove(e)
		}
	}
	return w.lives
}

// apply notes an applied object of an Instance.
func (w *writings) apply(e *Entry, name string) {
	if l := w.lives[name]; l == nil || !l.gone.IsZero() {
		w.lives[name] = &life{first: e.RequestTime()}
	}
	if w.owners[e.key()] != name {
		w.owners[e.key()] = name
		w.counts[name]++
	}
	w.lives[name].apply(e)
}

// remove notes the deletion of an object, or of a mirror: what was to be kept has no owner then.
func (w *writings) remove(e *Entry) {
	if name := e.ObjectRef.Name; e.Is("instances", "") && w.lives[name] != nil {
		maps.DeleteFunc(w.owners, func(_, owner string) bool { return owner == name })
		w.counts[name] = 0
		w.lives[name].end(e)
		return
	}
	name := w.owners[e.key()]
	if name == "" {
		return
	}
	w.lives[name].deletes = append(w.lives[name].deletes, e)
	if w.counts[name]--; w.counts[name] == 0 {
		w.lives[name].end(e)
	}
	delete(w.owners, e.key())
}

// apply notes an applied object.
func (l *life) apply(e *Entry) {
	var sent metav1.PartialObjectMetadata
	if json.Unmarshal(e.RequestObject, &sent) == nil && sent.Annotations[kudo.AnnotationPlan] == kudo.CleanupPlan {
		l.cleanup = append(l.cleanup, e)
	}
	l.last = e.RequestTime()
}

// end notes the deletion of the last object, or of the mirror.
func (l *life) end(e *Entry) {
	if l.gone.IsZero() {
		l.gone = e.RequestTime()
	}
}

// key identifies the object of a request.
func (e *Entry) key() string {
	return fmt.Sprintf("%s/%s/%s", e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.Object())
}
