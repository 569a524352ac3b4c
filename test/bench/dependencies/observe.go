package main

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tandem-addons/tandem/test/audit"
)

// observation is what the audit log tells of addon-manager since some moment.
type observation struct {
	// due are the verdicts that have to be written, with what made each necessary, on every cluster.
	due map[types.NamespacedName]types.NamespacedName
	// answered is when the write of an object, whoever sent it, was answered; missing are verdicts that were not yet.
	answered map[types.NamespacedName]time.Time
	missing  map[types.NamespacedName]bool
	// first is when the first change was answered, or the first write arrived where that was earlier; last is when the last of
	// them all was answered.
	first, last time.Time
	// sent are the writes of addon-manager in their order, events apart; surplus are those that were not due.
	sent, surplus []audit.Entry
	// conflicts and events count requests; failed are those that failed for another reason.
	conflicts, events int
	failed            []audit.Entry
}

// expect begins an observation in which verdicts are due on those clusters.
func expect(verdicts []verdict, namespaces []string) *observation {
	o := &observation{
		due:      make(map[types.NamespacedName]types.NamespacedName, len(verdicts)*len(namespaces)),
		missing:  make(map[types.NamespacedName]bool, len(verdicts)*len(namespaces)),
		answered: map[types.NamespacedName]time.Time{},
	}
	for _, namespace := range namespaces {
		for _, v := range verdicts {
			object, cause := types.NamespacedName{Namespace: namespace, Name: v.addOn}, types.NamespacedName{Name: v.addOn}
			if v.cause != "" {
				cause = types.NamespacedName{Namespace: namespace, Name: v.cause}
			}
			o.due[object], o.missing[object] = cause, true
		}
	}
	return o
}

// add takes in what was logged. It reports whether some of it was addon-manager's.
func (o *observation) add(entries []audit.Entry) bool {
	active := false
	for i := range entries {
		e := &entries[i]
		if e.User.Username != judge {
			o.addOther(e)
			continue
		}
		active = true
		switch {
		case e.Is("events", ""):
			o.events++
		case e.Conflicts():
			o.conflicts++
		case !e.Succeeded():
			o.failed = append(o.failed, *e)
		default:
			o.addWrite(e)
		}
	}
	return active
}

func (o *observation) addOther(e *audit.Entry) {
	if !e.Succeeded() {
		o.failed = append(o.failed, *e)
		return
	}
	o.span(e.Answered(), e.Answered())
	o.answered[e.Object()] = e.Answered()
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
	o.answered[e.Object()] = e.Answered()
	o.span(e.Received(), e.Answered())
}

// isVerdict says that the request is about the status of an add-on on a cluster.
func isVerdict(e *audit.Entry) bool { return e.Is("managedclusteraddons", "status") }

// complete says that all verdicts that are due are written, and everything that made them necessary is logged too.
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

// seconds is how long everything took, until the last verdict was answered.
func (o *observation) seconds() float64 { return o.last.Sub(o.first).Seconds() }

// latencies are, for every verdict that was due, from the response to the write that made it necessary to its own response.
func (o *observation) latencies() []time.Duration {
	found := make([]time.Duration, 0, len(o.due))
	for object, cause := range o.due {
		verdict, written := o.answered[object]
		change, made := o.answered[cause]
		if written && made {
			found = append(found, verdict.Sub(change))
		}
	}
	return found
}
