package engine

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/release"
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
	// returns counts returns to a former version, by operator.
	returns *prometheus.CounterVec
	// hooks counts hooks of charts that have ended, by operator, event and result (Succeeded or Failed).
	hooks *prometheus.CounterVec
	// rendering is the duration of renderings of charts, in seconds, by result (Rendered or Failed).
	rendering *prometheus.HistogramVec
	// waiting is the number of Instances whose plan waits, by operator and reason.
	waiting *prometheus.GaugeVec
	// comparisons counts dry runs that compare an applied object.
	comparisons prometheus.Counter
	// repairs counts objects that were put back.
	repairs prometheus.Counter
	// drifted is the number of Instances with drift, by operator.
	drifted *prometheus.GaugeVec
	// eventsDropped counts events that were not sent.
	eventsDropped prometheus.Counter

	// counted holds the hooks that were counted last.
	counted *lru.Cache

	mutex sync.Mutex
	// waits holds the waits that are counted in waiting, by Instance.
	waits map[types.NamespacedName]pending
	// drifts holds the operators of Instances that are counted in drifted.
	drifts map[types.NamespacedName]string
}

// pending is why a plan of an operator waits. It is empty if none does.
type pending struct{ operator, reason string }

// endedHook identifies a hook in an execution.
type endedHook struct {
	of                           types.UID
	event, kind, namespace, name string
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
		returns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "addon_returns_total",
			Help: "Number of Instances that started to apply their former version again because another one failed, by operator.",
		}, []string{"operator"}),
		hooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "addon_chart_hooks_total",
			Help: "Number of hooks of charts that have succeeded or failed, by operator, event and result.",
		}, []string{"operator", "event", "result"}),
		rendering: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "addon_chart_rendering_seconds",
			Help:    "Duration of a rendering of a chart in seconds, by result.",
			Buckets: prometheus.ExponentialBuckets(0.05, 2, 11),
		}, []string{"result"}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "addon_plans_waiting",
			Help: "Number of Instances that are suspended, or whose plan waits for a Secret, a Kubernetes version, a release name or lost content, by operator and reason.",
		}, []string{"operator", "reason"}),
		comparisons: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "addon_drift_comparisons_total", Help: "Number of dry runs that compare an applied object with what exists.",
		}),
		repairs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "addon_drift_repairs_total", Help: "Number of applied objects that other writers had changed or deleted and that were put back.",
		}),
		drifted: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "addon_drifted", Help: "Number of Instances with applied objects that other writers have changed or deleted, by operator.",
		}, []string{"operator"}),
		eventsDropped: controller.EventsDropped(),
		counted:       lru.New(maxRemembered),
		waits:         map[types.NamespacedName]pending{},
		drifts:        map[types.NamespacedName]string{},
	}
	var errs [11]error
	m.ended, errs[0] = controller.Register(registry, m.ended)
	m.took, errs[1] = controller.Register(registry, m.took)
	m.waiting, errs[2] = controller.Register(registry, m.waiting)
	m.eventsDropped, errs[3] = controller.Register(registry, m.eventsDropped)
	m.retries, errs[4] = controller.Register(registry, m.retries)
	m.hooks, errs[5] = controller.Register(registry, m.hooks)
	m.rendering, errs[6] = controller.Register(registry, m.rendering)
	m.comparisons, errs[7] = controller.Register(registry, m.comparisons)
	m.drifted, errs[8] = controller.Register(registry, m.drifted)
	m.repairs, errs[9] = controller.Register(registry, m.repairs)
	m.returns, errs[10] = controller.Register(registry, m.returns)
	return m, errors.Join(errs[:]...)
}

// endHooks counts the hooks of a Helm task that have ended since its record was stored. Several passes may find the same hook, because the write of a
// status may be delayed: it is counted once.
func (m *metrics) endHooks(operator string, stored, record kudo.TaskRecord) {
	for _, hook := range release.EndedHooks(stored, record) {
		key := endedHook{of: record.HooksOf, event: hook.Event, kind: hook.Kind, namespace: hook.Namespace, name: hook.Name}
		if _, counted := m.counted.Get(key); counted {
			continue
		}
		m.counted.Add(key, nil)
		m.hooks.WithLabelValues(operator, hook.Event, string(hook.State)).Inc()
	}
}

// render counts a rendering of a chart, and its duration.
func (m *metrics) render(took time.Duration, err error) {
	result := "Rendered"
	if err != nil {
		result = "Failed"
	}
	m.rendering.WithLabelValues(result).Observe(took.Seconds())
}

// end counts an execution that has ended, and its duration.
func (m *metrics) end(operator string, status kudo.PlanStatus, now time.Time) {
	m.ended.WithLabelValues(operator, status.Name, string(status.Status)).Inc()
	if status.StartedTimestamp != nil {
		m.took.WithLabelValues(operator, status.Name, string(status.Status)).Observe(now.Sub(status.StartedTimestamp.Time).Seconds())
	}
}

// drift records the operator of an Instance that has drifted; empty if it has not.
func (m *metrics) drift(instance types.NamespacedName, operator string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	before := m.drifts[instance]
	if before == operator {
		return
	}
	delete(m.drifts, instance)
	if before != "" {
		m.drifted.WithLabelValues(before).Dec()
	}
	if operator != "" {
		m.drifted.WithLabelValues(operator).Inc()
		m.drifts[instance] = operator
	}
}

// forget removes an Instance from the gauges.
func (m *metrics) forget(instance types.NamespacedName) {
	m.await(instance, pending{})
	m.drift(instance, "")
}

// await records why the plan of an Instance waits.
func (m *metrics) await(instance types.NamespacedName, now pending) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	before, known := m.waits[instance]
	if before == now {
		return
	}
	if known {
		m.waiting.WithLabelValues(before.operator, before.reason).Dec()
		delete(m.waits, instance)
	}
	if now != (pending{}) {
		m.waiting.WithLabelValues(now.operator, now.reason).Inc()
		m.waits[instance] = now
	}
}
