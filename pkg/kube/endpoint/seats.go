package endpoint

import "sync"

// Limit is the maximum number of seats that a holder, such as a user, has at a time; 0 for any number.
type Limit struct {
	Name, Holder string
	Max          int
}

// Seats counts what is in use at a time, such as connections.
type Seats struct {
	lock  sync.Mutex
	taken map[holder]int
}

// holder holds seats of a limit.
type holder struct{ limit, name string }

// NewSeats returns seats of which none is taken.
func NewSeats() *Seats { return &Seats{taken: map[holder]int{}} }

// Take takes a seat of each limit until release is called. If a limit is reached, it takes none and returns the name of that limit.
func (s *Seats) Take(limits ...Limit) (release func(), reached string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, l := range limits {
		if l.Max > 0 && s.taken[holder{l.Name, l.Holder}] >= l.Max {
			return nil, l.Name
		}
	}
	s.add(limits, 1)
	return sync.OnceFunc(func() {
		s.lock.Lock()
		defer s.lock.Unlock()
		s.add(limits, -1)
	}), ""
}

func (s *Seats) add(limits []Limit, number int) {
	for _, l := range limits {
		key := holder{l.Name, l.Holder}
		if s.taken[key] += number; s.taken[key] == 0 {
			delete(s.taken, key)
		}
	}
}
