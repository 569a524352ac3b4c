package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// metrics of executions.
type metrics struct {
	// ended counts executions that came to an end, by operator, plan and result (COMPLETE or FATAL_ERROR).
	ended *prometheus.CounterVec
	// took is how long executions took from their start to their end, in seconds, by operator, plan and result.
	took *prometheus.HistogramVec
}

// newMetrics registers the metrics; a second agent in one process shares those of the first.
func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "addon_plan_executions_total",
			Help: "Executions of plans that came to an end, by operator, plan and result.",
		}, []string{"operator", "plan", "result"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "addon_plan_execution_seconds",
			Help:    "Time from the start of an execution to its end, by operator, plan and result.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 14),
		}, []string{"operator", "plan", "result"}),
	}
	err := errors.Join(register(registry, &m.ended), register(registry, &m.took))
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

// end counts an execution that has ended by now, and how long it took.
func (m *metrics) end(operator string, status kudo.PlanStatus, now time.Time) {
	m.ended.WithLabelValues(operator, status.Name, string(status.Status)).Inc()
	if status.StartedTimestamp != nil {
		m.took.WithLabelValues(operator, status.Name, string(status.Status)).Observe(now.Sub(status.StartedTimestamp.Time).Seconds())
	}
}
