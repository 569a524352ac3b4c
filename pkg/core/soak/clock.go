package soak

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// minReadDelay is the minimum time between two reads of the pods of an Instance, whatever happens.
const minReadDelay = time.Second

// maxClockError is the difference between two clocks that is no jump of one of them.
const maxClockError = 2 * time.Second

// Memory is what a process remembers of the last look at an Instance. The zero value is that of a process that has just started, or that has forgotten it: the
// recorded times are then compared with the clock as it is.
type Memory struct {
	// start is the recorded start of what is measured, and elapsed what had elapsed of it when the process had run for uptime.
	start   time.Time
	elapsed time.Duration
	uptime  time.Duration

	// wasRead means that the pods were read at readAt, or that this failed because of a problem. restarts are the restarts of each container that has any.
	wasRead  bool
	readAt   time.Duration
	problem  string
	restarts map[string]int64
}

// withPods returns the memory with what was read of the pods; nil if they were not.
func (m Memory) withPods(uptime time.Duration, pods *Pods) Memory {
	if pods == nil {
		return m
	}
	m.wasRead, m.readAt, m.problem = true, uptime, pods.Problem
	if pods.isKnown() {
		m.restarts = pods.Restarts
	}
	return m
}

// age returns how long ago the pods were read; a long time if they were not.
func (m Memory) age(uptime time.Duration) time.Duration {
	if !m.wasRead {
		return Interval
	}
	return uptime - m.readAt
}

// start starts to measure at a time, at most now.
func (l *look) start(recorded **metav1.Time, at time.Time) {
	*recorded = &metav1.Time{Time: ceil(at)}
	l.next.start, l.next.elapsed, l.next.uptime = (*recorded).Time, l.Now.Sub((*recorded).Time), l.Uptime
}

// elapsedSince returns the time since a recorded start. If the clock was set since the last look, the recorded start is moved by as much: this neither shortens
// nor extends what is measured. A process that has just started only knows the clock as it is; a start in the future is then one of now.
func (l *look) elapsedSince(recorded **metav1.Time) time.Duration {
	start := (*recorded).Time
	byClock := l.Now.Sub(start)
	if !l.next.start.Equal(start) {
		if byClock < -maxClockError {
			l.start(recorded, l.Now)
			return l.next.elapsed
		}
		l.next.start, l.next.elapsed, l.next.uptime = start, byClock, l.Uptime
		return byClock
	}
	measured := l.next.elapsed + l.Uptime - l.next.uptime
	if (byClock - measured).Abs() > maxClockError {
		moved := ceil(l.Now.Add(-measured))
		*recorded, l.next.start = &metav1.Time{Time: moved}, moved
	}
	return min(measured, l.Now.Sub((*recorded).Time))
}

// stop ends what is measured.
func (l *look) stop() {
	if l.record.UnhealthySince != nil {
		l.record.UnhealthySeconds += int64(max(l.elapsedSince(&l.record.UnhealthySince), 0) / time.Second)
	}
	l.record.Since, l.record.UnhealthySince = nil, nil
}

// ceil returns the next full second: recorded times have no fractions.
func ceil(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); !whole.Equal(t) {
		return whole.Add(time.Second)
	}
	return t
}

// latestOf returns the later one of a recorded time, which may be nil, and another.
func latestOf(recorded *metav1.Time, t time.Time) *metav1.Time {
	if t.IsZero() || recorded != nil && !t.After(recorded.Time) {
		return recorded
	}
	return &metav1.Time{Time: t}
}

func format(t time.Time) string { return t.UTC().Format(time.RFC3339) }
