package addonstatus

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// Metrics of condition Available.
type Metrics struct {
	// available is 1 for an available add-on and 0 for an unavailable one, by add-on. An add-on has no series if its availability is
	// unknown or not written by the agent.
	available *prometheus.GaugeVec
	// changes counts changes of status or reason of condition Available, by add-on, status and reason.
	changes *prometheus.CounterVec
	// delay is the time from an observed change to the written condition Available, in seconds.
	delay prometheus.Histogram
}

// NewMetrics registers the metrics; a second agent in one process shares the metrics of the first.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		available: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "addon_available",
			Help: "Whether an add-on is available (1) or not (0); absent while unknown or written by another controller.",
		}, []string{"addon"}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "addon_availability_changes_total",
			Help: "Number of changes of an add-on's condition Available, by new status and reason.",
		}, []string{"addon", "status", "reason"}),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "addon_availability_seconds",
			Help:    "Duration from an observed change of an add-on's verdict or health to the written condition Available, in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}),
	}
	var errs [3]error
	m.available, errs[0] = controller.Register(registry, m.available)
	m.changes, errs[1] = controller.Register(registry, m.changes)
	m.delay, errs[2] = controller.Register(registry, m.delay)
	return m, errors.Join(errs[:]...)
}

// reset drops the series of all add-ons: those that still exist are recorded again, and nothing would report the others.
func (m *Metrics) reset() {
	m.available.Reset()
	m.changes.Reset()
}

// judge records an add-on's condition Available; nil if the agent does not write it.
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

// wrote counts a written condition Available that replaces before, and how long it took.
func (m *Metrics) wrote(addOn string, before *metav1.Condition, now metav1.Condition, took time.Duration) {
	m.delay.Observe(took.Seconds())
	if before == nil || before.Status != now.Status || before.Reason != now.Reason {
		m.changes.WithLabelValues(addOn, string(now.Status), now.Reason).Inc()
	}
}

// forget drops the series of a deleted add-on.
func (m *Metrics) forget(addOn string) {
	m.available.DeleteLabelValues(addOn)
	m.changes.DeletePartialMatch(prometheus.Labels{"addon": addOn})
}
