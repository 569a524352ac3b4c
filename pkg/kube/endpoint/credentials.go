package endpoint

import (
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"
)

// Outcome is the result of the check of a credential.
type Outcome int

// The outcomes. Unknown means that the check itself has failed.
const (
	Unknown Outcome = iota
	Accepted
	Rejected
)

// The limits of checks of credentials that were not accepted before. A client whose credentials keep being rejected shares one budget with all
// others; the other budget is reserved for clients in good standing, so that a flood of wrong credentials does not lock them out.
const (
	// maxFailures is how many checks without acceptance end a client's good standing, and failureLifetime how long each of them counts.
	maxFailures     = 5
	failureLifetime = 10 * time.Second
	// maxChecks is how many checks a budget has at most, and checkInterval the time in which it gets another one.
	maxChecks     = 50
	checkInterval = 200 * time.Millisecond
)

const (
	// maxAccepted is how many accepted credentials are remembered, and acceptedLifetime for how long after their last check.
	maxAccepted      = 10_000
	acceptedLifetime = 24 * time.Hour
)

// RetryAfter is the time after which a client should send a credential again that was not checked.
const RetryAfter = 5 * time.Second

// Credentials decides whether a credential is checked, so that a flood of random ones is no flood of requests to an API server. A credential
// that was accepted before is always checked.
type Credentials struct {
	now      func() time.Time
	lock     sync.Mutex
	accepted map[digest]time.Time
	// failures are the checks without acceptance by client.
	failures map[netip.Prefix]*bucket
	// reserved is the budget of clients in good standing, and common that of all clients.
	reserved, common bucket
	swept            time.Time
}

// digest identifies a credential.
type digest [sha256.Size]byte

// NewCredentials returns a Credentials that remembers nothing yet.
func NewCredentials() *Credentials {
	budget := bucket{max: maxChecks, interval: checkInterval}
	return &Credentials{now: time.Now, accepted: map[digest]time.Time{}, failures: map[netip.Prefix]*bucket{}, reserved: budget, common: budget}
}

// Begin reports whether a credential that a client sends may be checked. If it may, end must be called with the outcome.
func (c *Credentials) Begin(client netip.Prefix, credential string) (end func(Outcome), may bool) {
	checked := digest(sha256.Sum256([]byte(credential)))
	c.lock.Lock()
	defer c.lock.Unlock()
	now := c.now()
	c.sweep(now)
	giveBack := func() {}
	if _, known := c.accepted[checked]; !known {
		if giveBack, may = c.take(client, now); !may {
			return nil, false
		}
	}
	return func(outcome Outcome) {
		c.lock.Lock()
		defer c.lock.Unlock()
		switch outcome {
		case Accepted:
			c.accept(checked)
			giveBack()
		case Rejected:
			delete(c.accepted, checked)
		}
	}, true
}

// take takes a check from a budget of the client. giveBack restores the good standing of a client whose credential is accepted.
func (c *Credentials) take(client netip.Prefix, now time.Time) (giveBack func(), may bool) {
	counted, found := c.failures[client]
	if !found {
		counted = &bucket{max: maxFailures, interval: failureLifetime}
	}
	inStanding := counted.take(now)
	if inStanding {
		giveBack = counted.give
	} else {
		giveBack = func() {}
	}
	if inStanding && c.reserved.take(now) || c.common.take(now) {
		c.failures[client] = counted // there are no more entries than checks in failureLifetime
		return giveBack, true
	}
	giveBack()
	return nil, false
}

// accept remembers a credential, in place of the one that has not been checked for longest if there are too many.
func (c *Credentials) accept(checked digest) {
	if _, known := c.accepted[checked]; !known && len(c.accepted) >= maxAccepted {
		var oldest digest
		for other, at := range c.accepted {
			if earliest, found := c.accepted[oldest]; !found || at.Before(earliest) {
				oldest = other
			}
		}
		delete(c.accepted, oldest)
	}
	c.accepted[checked] = c.now()
}

// sweep forgets what no longer has an effect.
func (c *Credentials) sweep(now time.Time) {
	if now.Before(c.swept.Add(failureLifetime)) {
		return
	}
	c.swept = now
	for client, counted := range c.failures {
		if !counted.full.After(now) {
			delete(c.failures, client)
		}
	}
	for credential, at := range c.accepted {
		if now.After(at.Add(acceptedLifetime)) {
			delete(c.accepted, credential)
		}
	}
}

// bucket holds a number of tokens, and gets one in each interval until it is full.
type bucket struct {
	max      int
	interval time.Duration
	// full is when the bucket is full, if none is taken until then.
	full time.Time
}

// take takes a token, and reports whether there was one.
func (b *bucket) take(now time.Time) bool {
	full := now
	if b.full.After(now) {
		full = b.full
	}
	full = full.Add(b.interval)
	if full.Sub(now) > time.Duration(b.max)*b.interval {
		return false
	}
	b.full = full
	return true
}

// give gives back a token.
func (b *bucket) give() { b.full = b.full.Add(-b.interval) }
