package engine

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// metrics of executions.
type metrics struct {
	// ended counts executions that have ended, by operator, plan and result (COMPLETE or FATAL_ERROR).
	ended *prometheus.CounterVec
	// took is the duration of executions, in seconds, by operator, plan and result.
	took *prometheus.HistogramVec
	// retries counts executions of plans that started again by themselves, by operator and plan.
	retries *prometheus.CounterVec
	// unresolved is the number of Instances that wait for the value of a sensitive parameter, by operator.
	unresolved *prometheus.GaugeVec
	// eventsDropped counts events that were not sent.
	eventsDropped prometheus.Counter

	mutex sync.Mutex
	// waiting holds the operators of the Instances that are counted in unresolved.
	waiting map[types.NamespacedName]string
}

// newMetrics registers the metrics; a second agent in one process shares the metrics of the first.
func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "addon_plan_executions_total",
			Help: "Number of completed or failed executions of plans, by operator, plan and result.",
		}, []string{"operator", "plan", "result"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "addon_plan_execution_seconds",
			Help:    "Duration of an execution from start to end in seconds, by operator, plan and result.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 14),
		}, []string{"operator", "plan", "result"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "addon_plan_retries_total",
			Help: "Number of executions of plans that started again by themselves after one that timed out, by operator and plan.",
		}, []string{"operator", "plan"}),
		unresolved: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "addon_secret_unresolved",
			Help: "Number of Instances that wait for the value of a sensitive parameter, by operator.",
		}, []string{"operator"}),
		eventsDropped: controller.EventsDropped(),
		waiting:       map[types.NamespacedName]string{},
	}
	var errs [5]error
	m.ended, errs[0] = controller.Register(registry, m.ended)
	m.took, errs[1] = controller.Register(registry, m.took)
	m.unresolved, errs[2] = controller.Register(registry, m.unresolved)
	m.eventsDropped, errs[3] = controller.Register(registry, m.eventsDropped)
	m.retries, errs[4] = controller.Register(registry, m.retries)
	return m, errors.Join(errs[:]...)
}

// end counts an execution that has ended, and its duration.
func (m *metrics) end(operator string, status kudo.PlanStatus, now time.Time) {
	m.ended.WithLabelValues(operator, status.Name, string(status.Status)).Inc()
	if status.StartedTimestamp != nil {
		m.took.WithLabelValues(operator, status.Name, string(status.Status)).Observe(now.Sub(status.StartedTimestamp.Time).Seconds())
	}
}

// await records whether an Instance waits for the value of a sensitive parameter.
func (m *metrics) await(instance types.NamespacedName, operator string, waits bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	counted, known := m.waiting[instance]
	if known == waits && (!waits || counted == operator) {
		return
	}
	if known {
		m.unresolved.WithLabelValues(counted).Dec()
		delete(m.waiting, instance)
	}
	if waits {
		m.unresolved.WithLabelValues(operator).Inc()
		m.waiting[instance] = operator
	}
}
