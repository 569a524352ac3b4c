package controller

import (
	"flag"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Limit is the rate limit of all requests of a process to one API server.
type Limit struct {
	// QPS is the average number of requests per second, Burst the maximum number in a burst.
	QPS   float64
	Burst int

	flags string // prefix of the flag names
}

// Bind adds the flags --PREFIX-qps and --PREFIX-burst. Their defaults are the current values.
func (l *Limit) Bind(fs *flag.FlagSet, prefix, server string) {
	l.flags = prefix
	fs.Float64Var(&l.QPS, prefix+"-qps", l.QPS, "Maximum number of requests per second to "+server+", on average over all kinds.")
	fs.IntVar(&l.Burst, prefix+"-burst", l.Burst, "Maximum number of requests in a burst to "+server+".")
}

// Check rejects values that clients would silently replace by their defaults, and values that would admit no request.
func (l *Limit) Check() error {
	if !(l.QPS > 0) || l.Burst <= 0 {
		return fmt.Errorf("--%s-qps and --%[1]s-burst must be greater than 0, got %v and %d", l.flags, l.QPS, l.Burst)
	}
	return nil
}

// Together sets one rate limiter for all clients of the config. With only QPS and Burst, each client would have its own limit, and
// controller-runtime has one client per kind.
func (l *Limit) Together(config *rest.Config) {
	config.QPS, config.Burst = float32(l.QPS), l.Burst
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
}

// Apart returns a config with its own rate limit, for a client that must not wait for others, such as the one that renews a leader's Lease.
func Apart(config *rest.Config) *rest.Config {
	own := rest.CopyConfig(config)
	own.RateLimiter = nil
	return own
}
