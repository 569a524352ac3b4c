package soak

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxClockError is the difference between two clocks that is no jump of one of them.
const maxClockError = 2 * time.Second

// start starts to measure at a time, at most now.
func (l *look) start(recorded **metav1.Time, at time.Time) {
	*recorded = &metav1.Time{Time: ceil(at)}
	l.next.start, l.next.elapsed, l.next.uptime = (*recorded).Time, l.Now.Sub((*recorded).Time), l.Uptime
}

// timeSince returns the time since a recorded start. If the clock was set since the last look, the recorded start is moved by as much: this neither shortens
// nor extends what is measured. A process that has just started only knows the clock as it is; a start in the future is then one of now.
func (l *look) timeSince(recorded **metav1.Time) time.Duration {
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
		l.record.UnhealthySeconds += int64(max(l.timeSince(&l.record.UnhealthySince), 0) / time.Second)
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
