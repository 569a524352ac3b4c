package ocm

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tandem-addons/tandem/pkg/controller"
)

// Metrics are what is measured beside OCM. The process that leads shows them.
type Metrics struct {
	unfinished   *controller.Gauge[rolloutKey]
	certificates *prometheus.CounterVec
}

// NewMetrics has measured nothing yet.
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

// Collectors are to be registered.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.unfinished, m.certificates}
}

// rolloutKey are the labels of addon_rollout_unfinished.
type rolloutKey struct{ addOn, state string }
