package webhook

import (
	"context"
	"slices"
	"sync"
)

// limiter divides an amount of something among requests, in the order in which they arrive, except for those whose peer has its maximum.
type limiter struct {
	total, maxPerPeer int64

	mutex   sync.Mutex
	used    int64
	usedBy  map[string]int64
	waiting []*share
}

// share is the part of one request.
type share struct {
	peer    string
	amount  int64
	granted chan struct{}
}

func newLimiter(total, maxPerPeer int64) *limiter {
	return &limiter{total: total, maxPerPeer: maxPerPeer, usedBy: map[string]int64{}}
}

// acquire waits for an amount, which is not more than maxPerPeer, until ctx ends. Without an error, release returns the amount.
func (l *limiter) acquire(ctx context.Context, peer string, amount int64) (release func(), err error) {
	s := &share{peer: peer, amount: amount, granted: make(chan struct{})}
	l.mutex.Lock()
	l.waiting = append(l.waiting, s)
	l.grant()
	l.mutex.Unlock()
	select {
	case <-s.granted:
		return func() { l.release(s) }, nil
	case <-ctx.Done():
		l.withdraw(s)
		return nil, ctx.Err()
	}
}

// grant starts the requests that fit, in their order. Only those of a peer that has its maximum are overtaken, by those of other peers.
func (l *limiter) grant() {
	late := map[string]bool{}
	for i := 0; i < len(l.waiting); {
		s := l.waiting[i]
		switch {
		case late[s.peer], l.usedBy[s.peer]+s.amount > l.maxPerPeer:
			late[s.peer] = true
			i++
			continue
		case l.used+s.amount > l.total:
			return
		}
		l.used += s.amount
		l.usedBy[s.peer] += s.amount
		l.waiting = slices.Delete(l.waiting, i, i+1)
		close(s.granted)
	}
}

func (l *limiter) release(s *share) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.used -= s.amount
	if l.usedBy[s.peer] -= s.amount; l.usedBy[s.peer] == 0 {
		delete(l.usedBy, s.peer)
	}
	l.grant()
}

// withdraw removes a request that no longer waits.
func (l *limiter) withdraw(s *share) {
	l.mutex.Lock()
	at := slices.Index(l.waiting, s)
	if at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
		l.grant()
	}
	l.mutex.Unlock()
	if at < 0 { // granted meanwhile
		l.release(s)
	}
}
