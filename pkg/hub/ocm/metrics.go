package ocm

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// Metrics are the metrics of the integration with OCM. Only the leader exposes them.
type Metrics struct {
	unfinished *controller.Gauge[rolloutKey]
	// Certificates counts the answers to certificate requests of agents, also of agents without OCM.
	Certificates *prometheus.CounterVec
}

// NewMetrics returns empty metrics.
func NewMetrics() *Metrics {
	return &Metrics{
		unfinished: controller.NewGauge(prometheus.NewDesc("addon_rollout_unfinished",
			"Number of clusters on which OCM's rollout of an add-on's configuration is not complete, by add-on and state: Waiting (queued), "+
				"Progressing, or Failed (its plan failed).",
			[]string{"addon", "state"}, nil),
			func(k rolloutKey) []string { return []string{k.addOn, k.state} }),
		Certificates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "addon_agent_certificate_requests_total",
			Help: "Number of certificate requests of addon-agents, by answer: approved or refused.",
		}, []string{"answer"}),
	}
}

// Collectors returns the collectors to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.unfinished, m.Certificates}
}

// rolloutKey holds the labels of addon_rollout_unfinished.
type rolloutKey struct{ addOn, state string }
