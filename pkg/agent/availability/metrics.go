package availability

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Metrics of condition Available.
type Metrics struct {
	// available is 1 for an add-on that is available and 0 for one that is not, by add-on; one of which that is not known, or not
	// the agent's to say, has no series.
	available *prometheus.GaugeVec
	// changes counts how often condition Available came to another status or reason, by add-on, status and reason.
	changes *prometheus.CounterVec
	// delay is how long it took from a change that was seen to condition Available that was written, in seconds.
	delay prometheus.Histogram
}

// NewMetrics registers the metrics; a second agent in one process shares those of the first.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		available: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "addon_available",
			Help: "Whether an add-on is available (1) or not (0); absent while that is unknown or not the agent's to say.",
		}, []string{"addon"}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "addon_availability_changes_total",
			Help: "Changes of an add-on's condition Available, by the status and reason that it came to.",
		}, []string{"addon", "status", "reason"}),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "addon_availability_seconds",
			Help:    "Time from a change of an add-on's verdict or health that was seen to its condition Available that was written.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}),
	}
	err := errors.Join(register(registry, &m.available), register(registry, &m.changes), register(registry, &m.delay))
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return m, nil
}

// register registers a collector, or takes the one that is registered already.
func register[C prometheus.Collector](registry prometheus.Registerer, collector *C) error {
	err := registry.Register(*collector)
	var shared prometheus.AlreadyRegisteredError
	if errors.As(err, &shared) {
		*collector = shared.ExistingCollector.(C)
		return nil
	}
	return err
}

// judge keeps what an add-on's condition Available says; nil where it is not the agent's to say.
func (m *Metrics) judge(addOn string, condition *metav1.Condition) {
	switch {
	case condition != nil && condition.Status == metav1.ConditionTrue:
		m.available.WithLabelValues(addOn).Set(1)
	case condition != nil && condition.Status == metav1.ConditionFalse:
		m.available.WithLabelValues(addOn).Set(0)
	default:
		m.available.DeleteLabelValues(addOn)
	}
}

// wrote counts what was written to an add-on's condition Available, in the place of before, and how long it took.
func (m *Metrics) wrote(addOn string, before *metav1.Condition, now metav1.Condition, took time.Duration) {
	m.delay.Observe(took.Seconds())
	if before == nil || before.Status != now.Status || before.Reason != now.Reason {
		m.changes.WithLabelValues(addOn, string(now.Status), now.Reason).Inc()
	}
}

// forget drops the series of an add-on that is gone.
func (m *Metrics) forget(addOn string) {
	m.available.DeleteLabelValues(addOn)
	m.changes.DeletePartialMatch(prometheus.Labels{"addon": addOn})
}
