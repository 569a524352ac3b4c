package agent

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// metrics of the engine.
type metrics struct {
	// ended counts executions that came to an end, by operator, plan and result (COMPLETE or FATAL_ERROR).
	ended *prometheus.CounterVec
}

// newMetrics registers the metrics; a second engine in one process shares those of the first.
func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "addon_plan_executions_total",
		Help: "Executions of plans that came to an end, by operator, plan and result.",
	}, []string{"operator", "plan", "result"})
	err := registry.Register(ended)
	var shared prometheus.AlreadyRegisteredError
	if errors.As(err, &shared) {
		return &metrics{ended: shared.ExistingCollector.(*prometheus.CounterVec)}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return &metrics{ended: ended}, nil
}

// end counts an execution that has ended.
func (m *metrics) end(operator string, status kudo.PlanStatus) {
	m.ended.WithLabelValues(operator, status.Name, string(status.Status)).Inc()
}
