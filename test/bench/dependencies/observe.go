package main

import (
	"iter"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tandem-addons/tandem/test/audit"
)

// observation holds addon-manager's writes in the audit log since a point in time.
type observation struct {
	// due maps the verdicts to write, on every cluster, to the objects whose change made each necessary.
	due map[types.NamespacedName]types.NamespacedName
	// answered is the time of the response to the write of an object, by any user; missing lists verdicts without one.
	answered map[types.NamespacedName]time.Time
	missing  map[types.NamespacedName]bool
	// received is the arrival of each due verdict's write.
	received map[types.NamespacedName]time.Time
	// first is the response to the first change, or the arrival of the first write if that was earlier; last is the last response of all.
	first, last time.Time
	// sent lists the writes of addon-manager in order, except events; surplus lists the writes that were not due.
	sent, surplus []audit.Entry
	// conflicts and events count requests; failed lists requests that failed for another reason.
	conflicts, events int
	failed            []audit.Entry
}

// expect starts an observation in which verdicts are due on the clusters.
func expect(verdicts []verdict, namespaces []string) *observation {
	o := &observation{
		due:      make(map[types.NamespacedName]types.NamespacedName, len(verdicts)*len(namespaces)),
		missing:  make(map[types.NamespacedName]bool, len(verdicts)*len(namespaces)),
		answered: map[types.NamespacedName]time.Time{}, received: map[types.NamespacedName]time.Time{},
	}
	for _, namespace := range namespaces {
		o.expect(verdicts, namespace)
	}
	return o
}

// expect makes verdicts due on one more cluster, and returns their objects.
func (o *observation) expect(verdicts []verdict, namespace string) []types.NamespacedName {
	objects := make([]types.NamespacedName, 0, len(verdicts))
	for _, v := range verdicts {
		object, cause := types.NamespacedName{Namespace: namespace, Name: v.addOn}, types.NamespacedName{Name: v.addOn}
		if v.cause != "" {
			cause = types.NamespacedName{Namespace: namespace, Name: v.cause}
		}
		o.due[object], o.missing[object] = cause, true
		objects = append(objects, object)
	}
	return objects
}

// activity is what addon-manager has done.
type activity struct{ writes, events bool }

// add processes new entries, and returns what addon-manager has done in them.
func (o *observation) add(entries []audit.Entry) (done activity) {
	for i := range entries {
		e := &entries[i]
		if e.User.Username != judge {
			o.addOther(e)
			continue
		}
		if e.Is("events", "") {
			o.events++
			done.events = true
			continue
		}
		done.writes = true
		switch {
		case e.Conflicts():
			o.conflicts++
		case !e.IsSuccess():
			o.failed = append(o.failed, *e)
		default:
			o.addWrite(e)
		}
	}
	return done
}

func (o *observation) addOther(e *audit.Entry) {
	if !e.IsSuccess() {
		o.failed = append(o.failed, *e)
		return
	}
	o.span(e.ResponseTime(), e.ResponseTime())
	o.answered[e.Object()] = e.ResponseTime()
}

func (o *observation) span(from, to time.Time) {
	if o.first.IsZero() || from.Before(o.first) {
		o.first = from
	}
	if to.After(o.last) {
		o.last = to
	}
}

func (o *observation) addWrite(e *audit.Entry) {
	o.sent = append(o.sent, *e)
	if !isVerdict(e) || !o.missing[e.Object()] {
		o.surplus = append(o.surplus, *e)
		return
	}
	delete(o.missing, e.Object())
	o.received[e.Object()], o.answered[e.Object()] = e.RequestTime(), e.ResponseTime()
	o.span(e.RequestTime(), e.ResponseTime())
}

// isVerdict reports whether the request writes the status of an add-on on a cluster.
func isVerdict(e *audit.Entry) bool { return e.Is("managedclusteraddons", "status") }

// complete reports whether all due verdicts and their causes are logged.
func (o *observation) complete() bool {
	if len(o.missing) > 0 {
		return false
	}
	for _, cause := range o.due {
		if _, answered := o.answered[cause]; !answered {
			return false
		}
	}
	return true
}

// join adds the requests of another observation.
func (o *observation) join(other *observation) {
	o.sent, o.surplus = append(o.sent, other.sent...), append(o.surplus, other.surplus...)
	o.failed = append(o.failed, other.failed...)
	o.conflicts, o.events = o.conflicts+other.conflicts, o.events+other.events
}

// seconds returns the total duration, until the response to the last verdict.
func (o *observation) seconds() float64 { return o.last.Sub(o.first).Seconds() }

// latencies are the durations of verdicts: from the answer to the write that caused each to the answer to its own write, and the two parts of
// that: to the arrival of its own write, and from there.
type latencies struct{ whole, reaction, write []time.Duration }

func (l *latencies) join(other latencies) {
	l.whole = append(l.whole, other.whole...)
	l.reaction, l.write = append(l.reaction, other.reaction...), append(l.write, other.write...)
}

// latencies returns those of all due verdicts.
func (o *observation) latencies() latencies {
	return o.latenciesOf(maps.Keys(o.due))
}

// latenciesOf returns the latencies of the verdicts on some objects.
func (o *observation) latenciesOf(objects iter.Seq[types.NamespacedName]) latencies {
	var found latencies
	for object := range objects {
		verdict, written := o.answered[object]
		change, made := o.answered[o.due[object]]
		if written && made {
			arrived := o.received[object]
			found.join(latencies{[]time.Duration{verdict.Sub(change)}, []time.Duration{arrived.Sub(change)}, []time.Duration{verdict.Sub(arrived)}})
		}
	}
	return found
}

// except returns all objects with due verdicts but some.
func (o *observation) except(some []types.NamespacedName) iter.Seq[types.NamespacedName] {
	others := maps.Clone(o.due)
	for _, object := range some {
		delete(others, object)
	}
	return maps.Keys(others)
}
