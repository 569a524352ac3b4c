package hub

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/hub/ocm"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// metrics are the hub's metrics in addition to controller-runtime's. Only the leader exposes them, so that they can be summed over
// replicas.
type metrics struct {
	availabilities *availabilities
	unsatisfied    *controller.Gauge[unmetKey]
	verdictChanges *prometheus.CounterVec
	verdictLatency *controller.Latency
	ocm            *ocm.Metrics
	eventsDropped  prometheus.Counter
}

func newMetrics(reader client.Reader) *metrics {
	return &metrics{
		availabilities: newAvailabilities(reader),
		ocm:            ocm.NewMetrics(),
		unsatisfied: controller.NewGauge(prometheus.NewDesc("addon_dependency_unsatisfied",
			"Number of clusters on which a dependency of an add-on is not satisfied, by add-on, dependency, type and cause.",
			[]string{"addon", "dependency", "type", "cause"}, nil),
			func(k unmetKey) []string { return []string{k.addOn, k.dependency, k.dependencyType, k.cause} }),
		verdictChanges: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "addon_dependency_verdict_changes_total",
			Help: "Number of written verdicts on the dependencies of an add-on on a cluster, by add-on and verdict: Satisfied, or the " +
				"reason of condition Degraded.",
		}, []string{"addon", "verdict"}),
		verdictLatency: controller.NewLatency(prometheus.HistogramOpts{
			Name: "addon_dependency_verdict_seconds",
			Help: "Duration from the first observed change to the API server's response to the resulting verdict, in seconds.",
			// The goal is 100 ms for one cluster; a whole fleet takes as long as its writes.
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120},
		}),
		eventsDropped: controller.EventsDropped(),
	}
}

func (m *metrics) SetUp(mgr manager.Manager) error { return mgr.Add(m) }

// Start exposes the metrics until ctx ends.
func (m *metrics) Start(ctx context.Context) error {
	if _, err := controller.Register(registry.Registry, m.eventsDropped); err != nil { // an agent in the same process has one, too
		return err
	}
	own := []prometheus.Collector{m.availabilities, m.unsatisfied, m.verdictChanges, m.verdictLatency.Seconds}
	for _, collector := range append(own, m.ocm.Collectors()...) {
		if err := registry.Registry.Register(collector); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
		defer registry.Registry.Unregister(collector)
	}
	<-ctx.Done()
	return nil
}

// verdictSatisfied is the label of a verdict without unmet dependencies; the labels of others are their reasons.
const verdictSatisfied = "Satisfied"

// verdictChanged counts a written verdict.
func (m *metrics) verdictChanged(addOn string, verdict dependency.Verdict) {
	label := verdict.Reason()
	if label == "" {
		label = verdictSatisfied
	}
	m.verdictChanges.WithLabelValues(addOn, label).Inc()
}

// unmetKey holds the labels of addon_dependency_unsatisfied.
type unmetKey struct{ addOn, dependency, dependencyType, cause string }

// unmetKeys returns the labels under which the unmet dependencies of an add-on are counted.
func unmetKeys(addOn string, unmet []dependency.Judgement) []unmetKey {
	keys := make([]unmetKey, 0, len(unmet))
	for _, j := range unmet {
		keys = append(keys, unmetKey{addOn: addOn, dependency: j.Name, dependencyType: string(j.Type), cause: string(j.Cause)})
	}
	return keys
}
