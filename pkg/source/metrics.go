package source

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/sourcing"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// metrics are the metrics of package-controller in addition to controller-runtime's. Only the leader exposes them.
type metrics struct {
	attempts      *prometheus.CounterVec
	seconds       prometheus.Histogram
	succeeded     *prometheus.GaugeVec
	failing       *prometheus.GaugeVec
	eventsDropped prometheus.Counter
}

func newMetrics() *metrics {
	return &metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "addon_package_source_attempts_total",
			Help: "Number of attempts of PackageSources, by result: Stored, or the reason of condition Ready.",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "addon_package_source_attempt_seconds",
			Help:    "Duration of an attempt of a PackageSource, with everything that it downloads and stores, in seconds.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300},
		}),
		succeeded: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "addon_package_source_success_timestamp_seconds",
			Help: "Time of the last successful attempt of a PackageSource, in seconds since 1970. It does not exist before the first one since the program started.",
		}, []string{"source"}),
		failing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "addon_package_source_failing",
			Help: "1 if the last attempt of a PackageSource failed, by the reason of condition Ready.",
		}, []string{"source", "reason"}),
		eventsDropped: controller.EventsDropped(),
	}
}

func (m *metrics) SetUp(mgr manager.Manager) error { return mgr.Add(m) }

// Start exposes the metrics until ctx ends.
func (m *metrics) Start(ctx context.Context) error {
	if _, err := controller.Register(registry.Registry, m.eventsDropped); err != nil {
		return err
	}
	for _, collector := range []prometheus.Collector{m.attempts, m.seconds, m.succeeded, m.failing} {
		if err := registry.Registry.Register(collector); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
		defer registry.Registry.Unregister(collector)
	}
	<-ctx.Done()
	return nil
}

// noteAttempt counts an attempt.
func (m *metrics) noteAttempt(source *kudo.PackageSource, outcome sourcing.Outcome, took time.Duration, now time.Time) {
	result := kudo.ReasonStored
	if outcome.Failure != nil {
		result = outcome.Failure.Reason
	}
	m.attempts.WithLabelValues(result).Inc()
	m.seconds.Observe(took.Seconds())
	if outcome.Failure == nil {
		m.succeeded.WithLabelValues(client.ObjectKeyFromObject(source).String()).Set(float64(now.Unix()))
	}
}

// noteState sets whether a source fails.
func (m *metrics) noteState(source *kudo.PackageSource, failure *sourcing.Failure) {
	m.failing.DeletePartialMatch(labelsOf(client.ObjectKeyFromObject(source)))
	if failure != nil {
		m.failing.WithLabelValues(client.ObjectKeyFromObject(source).String(), failure.Reason).Set(1)
	}
}

// forget drops the metrics of a source.
func (m *metrics) forget(name types.NamespacedName) {
	m.failing.DeletePartialMatch(labelsOf(name))
	m.succeeded.DeletePartialMatch(labelsOf(name))
}

func labelsOf(name types.NamespacedName) prometheus.Labels {
	return prometheus.Labels{"source": name.String()}
}
