package ocm

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tandem-addons/tandem/pkg/controller"
)

// Metrics are the metrics of the integration with OCM. Only the leader exposes them.
type Metrics struct {
	unfinished   *controller.Gauge[rolloutKey]
	certificates *prometheus.CounterVec
}

// NewMetrics returns empty metrics.
func NewMetrics() *Metrics {
	return &Metrics{
		unfinished: controller.NewGauge(prometheus.NewDesc("addon_rollout_unfinished",
			"Clusters that a rollout of OCM's has not brought an add-on's configuration to yet, by add-on and state: Waiting for its turn, "+
				"Progressing, or Failed, which a plan has.",
			[]string{"addon", "state"}, nil),
			func(k rolloutKey) []string { return []string{k.addOn, k.state} }),
		certificates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "addon_agent_certificate_requests_total",
			Help: "Requests for the certificate of an addon-agent that is delivered, by answer: approved or refused.",
		}, []string{"answer"}),
	}
}

// Collectors returns the collectors to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.unfinished, m.certificates}
}

// rolloutKey holds the labels of addon_rollout_unfinished.
type rolloutKey struct{ addOn, state string }
