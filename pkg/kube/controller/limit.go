package controller

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tandem-addons/tandem/pkg/kube/inflight"
)

// Limit limits all requests of a process to one API server: the number in flight, by their latency, and on demand their rate.
type Limit struct {
	// QPS is the average number of requests per second, 0 for any number. Burst is the maximum number in a burst, 0 for twice QPS.
	QPS   float64
	Burst int

	flags, server string // the prefix of the flag names, and the label of the metrics
	requests      *inflight.Limiter
}

// Bind adds the flags --PREFIX-qps and --PREFIX-burst. Their defaults are the current values.
func (l *Limit) Bind(fs *flag.FlagSet, prefix, server string) {
	l.flags, l.server = prefix, server
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
func (l *Limit) ApplyTo(config *rest.Config) error {
	config.QPS, config.Burst, config.RateLimiter = -1, 0, nil
	if l.QPS > 0 {
		config.QPS, config.Burst = float32(l.QPS), l.Burst
		if config.Burst == 0 {
			config.Burst = int(math.Ceil(2 * l.QPS))
		}
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
	}
	if l.requests == nil {
		report, err := l.registerMetrics()
		if err != nil {
			return err
		}
		l.requests = inflight.New(report)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &limited{next: next, limiter: l.requests} })
	return nil
}

// registerMetrics registers the metrics, and returns a function that sets them.
func (l *Limit) registerMetrics() (func(limit, inFlight int), error) {
	limits, limitsErr := Register(registry.Registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "addon_api_requests_limit",
		Help: "Maximum number of requests in flight to an API server, adapted to their latency. Watches, leases, logs and exec do not count.",
	}, []string{"server"}))
	inFlights, inFlightsErr := Register(registry.Registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "addon_api_requests_in_flight",
		Help: "Number of requests in flight to an API server, as limited by addon_api_requests_limit.",
	}, []string{"server"}))
	if err := errors.Join(limitsErr, inFlightsErr); err != nil {
		return nil, err
	}
	ofLimit, ofInFlight := limits.WithLabelValues(l.server), inFlights.WithLabelValues(l.server)
	return func(limit, inFlight int) {
		ofLimit.Set(float64(limit))
		ofInFlight.Set(float64(inFlight))
	}, nil
}

// WithoutLimits returns a config without the common limits, for a client that must not wait for others, such as the one that renews a leader's
// Lease. Its HTTP client must be its own too.
func WithoutLimits(config *rest.Config) *rest.Config {
	own := rest.CopyConfig(config)
	own.RateLimiter = nil
	own.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if limited, ok := next.(*limited); ok {
			return limited.next
		}
		return next
	})
	return own
}
