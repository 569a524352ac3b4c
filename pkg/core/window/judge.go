package window

import (
	"fmt"
	"strings"
	"time"
)

// Side is one of those who set windows for a cluster.
type Side struct {
	// Name describes it and its windows in messages.
	Name string
	// Windows are those that it sets. Problem is set instead if they are malformed, or cannot be read: then nothing starts.
	Windows Windows
	Problem string
}

// Wait is what executions wait for.
type Wait struct {
	// Message names the sides that are closed, and says when executions may start.
	Message string
	// Again is when the message changes if nothing else does; the zero value if it does not.
	Again time.Time
}

// Judge returns what executions wait for; nil if they may start now.
func Judge(sides []Side, now time.Time) *Wait {
	var closed []string
	var again time.Time
	known := true
	for _, side := range sides {
		if side.Problem != "" {
			closed, known = append(closed, fmt.Sprintf("%s, %s", side.Name, side.Problem)), false
			continue
		}
		opens, found := side.Windows.opening(now)
		if found && opens.Equal(now) {
			continue
		}
		if closed = append(closed, side.describe(now)); found && (again.IsZero() || opens.Before(again)) {
			again = opens
		}
	}
	if len(closed) == 0 {
		return nil
	}
	message := "closed by " + strings.Join(closed, ", and by ")
	if known {
		message += ": " + openingText(sides, now)
	}
	return &Wait{Message: message, Again: again}
}

// openingText says when all sides, whose windows are known, are open.
func openingText(sides []Side, now time.Time) string {
	if opens, found := jointOpening(sides, now); found {
		return "opens at " + opens.Format(time.RFC3339)
	}
	return "no time was found at which all windows are open"
}

// describe names the side, and the reason of the freeze at that time.
func (s Side) describe(now time.Time) string {
	if f := s.Windows.freezeAt(now); f != nil && f.reason != "" {
		return fmt.Sprintf("%s, freeze %q", s.Name, f.reason)
	}
	return s.Name
}

// maxRounds limits the search for a time at which all sides are open. Each round reaches the next opening of one of them.
const maxRounds = 50

// jointOpening returns the first time, not before t, at which all sides are open; false if there is none soon.
func jointOpening(sides []Side, t time.Time) (time.Time, bool) {
	for range maxRounds {
		start := t
		for _, side := range sides {
			opens, found := side.Windows.opening(t)
			if !found {
				return time.Time{}, false
			}
			if opens.After(t) {
				t = opens
			}
		}
		if t.Equal(start) {
			return t, true
		}
	}
	return time.Time{}, false
}

// opening returns the first time, not before t, at which the windows are open; false if there is none soon. Each round leaves a freeze, or reaches a
// window.
func (w Windows) opening(t time.Time) (time.Time, bool) {
	for range 2*len(w.freezes) + 2 {
		if f := w.freezeAt(t); f != nil {
			t = f.to
			continue
		}
		if w.allows(t) {
			return t, true
		}
		next := w.nextStart(t)
		if next.IsZero() {
			break
		}
		t = next
	}
	return time.Time{}, false
}

// freezeAt returns the freeze at a time that ends last; nil if there is none.
func (w Windows) freezeAt(t time.Time) *freeze {
	var last *freeze
	for i := range w.freezes {
		if f := &w.freezes[i]; !t.Before(f.from) && t.Before(f.to) && (last == nil || f.to.After(last.to)) {
			last = f
		}
	}
	return last
}

// allows reports whether executions may start at a time outside of freezes.
func (w Windows) allows(t time.Time) bool {
	for _, r := range w.allowed {
		if r.contains(t) {
			return true
		}
	}
	return len(w.allowed) == 0
}

// nextStart returns the next time after t at which a window opens; the zero value if there is none soon.
func (w Windows) nextStart(t time.Time) (next time.Time) {
	for _, r := range w.allowed {
		if start := r.nextStart(t); !start.IsZero() && (next.IsZero() || start.Before(next)) {
			next = start
		}
	}
	return next
}

// contains reports whether the clocks of the zone show a time in the window.
func (r recurrence) contains(t time.Time) bool {
	shown := t.In(r.zone)
	minute, day := shown.Hour()*60+shown.Minute(), shown.Weekday()
	switch yesterday := (day + 6) % 7; {
	case r.from < r.to:
		return r.days[day] && r.from <= minute && minute < r.to
	case minute >= r.from:
		return r.days[day]
	default:
		return r.days[yesterday] && minute < r.to
	}
}

// horizon is the number of days in which a window opens again: two weeks, because the clocks may leave out its time once.
const horizon = 15

// nextStart returns the next time after t at which the window opens; the zero value if there is none within the horizon.
func (r recurrence) nextStart(t time.Time) (next time.Time) {
	consider := func(at time.Time) {
		if at.After(t) && (next.IsZero() || at.Before(next)) && r.contains(at) {
			next = at
		}
	}
	shown := t.In(r.zone)
	for day := range horizon + 1 {
		reading := time.Date(shown.Year(), shown.Month(), shown.Day()+day, 0, r.from, 0, 0, time.UTC)
		for _, at := range instantsOf(reading, r.zone) {
			consider(at)
		}
		if !next.IsZero() {
			break
		}
	}
	if _, change := shown.ZoneBounds(); !change.IsZero() { // clocks may be set into the window
		consider(change.In(r.zone))
	}
	return next
}
