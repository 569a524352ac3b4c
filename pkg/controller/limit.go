package controller

import (
	"flag"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Limit is how many requests a process sends to one API server, whatever they are for.
type Limit struct {
	// QPS is the average number of requests per second, Burst the maximum number in a burst.
	QPS   float64
	Burst int

	flags string // what the names of its flags begin with
}

// Bind adds the flags --PREFIX-qps and --PREFIX-burst, whose defaults are what the limit is.
func (l *Limit) Bind(fs *flag.FlagSet, prefix, server string) {
	l.flags = prefix
	fs.Float64Var(&l.QPS, prefix+"-qps", l.QPS, "requests a second to "+server+" on average, of whatever kind")
	fs.IntVar(&l.Burst, prefix+"-burst", l.Burst, "requests at once to "+server)
}

// Check refuses what clients would replace, without a word, by defaults of their own, and what would let no request pass.
func (l *Limit) Check() error {
	if !(l.QPS > 0) || l.Burst <= 0 {
		return fmt.Errorf("--%s-qps and --%[1]s-burst must be above 0, not %v and %d", l.flags, l.QPS, l.Burst)
	}
	return nil
}

// Together is the limit of all clients that are made of the config. Of its QPS and Burst alone, each client would make a limit for itself,
// and controller-runtime has a client for each kind of object.
func (l *Limit) Together(config *rest.Config) {
	config.QPS, config.Burst = float32(l.QPS), l.Burst
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
}

// Apart is the config for a client that must not wait for the others, such as the one that keeps a leader's Lease: it has the limit for
// itself.
func Apart(config *rest.Config) *rest.Config {
	own := rest.CopyConfig(config)
	own.RateLimiter = nil
	return own
}
