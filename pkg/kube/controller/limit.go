package controller

import (
	"flag"
	"fmt"
	"math"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Limit limits the rate of all requests of a process to one API server. By default, there is no limit: the API server's priority and fairness
// decides which requests wait.
type Limit struct {
	// QPS is the average number of requests per second, 0 for any number. Burst is the maximum number in a burst, 0 for twice QPS.
	QPS   float64
	Burst int

	flags string // the prefix of the flag names
}

// Bind adds the flags --PREFIX-qps and --PREFIX-burst. Their defaults are the current values.
func (l *Limit) Bind(fs *flag.FlagSet, prefix, server string) {
	l.flags = prefix
	fs.Float64Var(&l.QPS, prefix+"-qps", l.QPS, "Maximum number of requests per second to the "+server+", on average over all kinds. "+
		"With 0, only the server's priority and fairness limits the rate.")
	fs.IntVar(&l.Burst, prefix+"-burst", l.Burst, "Maximum number of requests in a burst to the "+server+"; twice --"+prefix+"-qps if 0.")
}

// Check rejects values that are no limits.
func (l *Limit) Check() error {
	switch {
	case !(l.QPS >= 0) || math.IsInf(l.QPS, 1):
		return fmt.Errorf("--%s-qps must be greater than 0, or 0 for no limit, got %v", l.flags, l.QPS)
	case l.Burst < 0:
		return fmt.Errorf("--%s-burst must be greater than 0, or 0 for twice --%[1]s-qps, got %d", l.flags, l.Burst)
	case l.QPS == 0 && l.Burst > 0:
		return fmt.Errorf("--%s-burst is %d, but without --%[1]s-qps the rate is not limited: set both or none", l.flags, l.Burst)
	}
	return nil
}

// ApplyTo limits all clients of the config together. With only QPS and Burst in the config, each client would have its own limit, and
// controller-runtime has one client per kind.
func (l *Limit) ApplyTo(config *rest.Config) {
	config.QPS, config.Burst, config.RateLimiter = -1, 0, nil
	if l.QPS > 0 {
		config.QPS, config.Burst = float32(l.QPS), l.Burst
		if config.Burst == 0 {
			config.Burst = int(math.Ceil(2 * l.QPS))
		}
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
	}
}

// WithoutLimits returns a config for a client that does not wait for the requests of others, such as the one that renews a leader's Lease: it has
// a limit of its own.
func WithoutLimits(config *rest.Config) *rest.Config {
	own := rest.CopyConfig(config)
	own.RateLimiter = nil
	return own
}
