package ocm

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	workv1 "open-cluster-management.io/api/work/v1"
)

// deliveries counts the clusters that addon-agent is delivered to, by the status of their ManifestWorks.
type deliveries struct {
	works toolscache.Store
}

// The states of a delivery, each worse than the one before.
var deliveryStates = [...]string{"Delivered", "Pending", "Failed"}

// deliveryState returns the index in deliveryStates for one ManifestWork. It ignores the status of an earlier generation.
func deliveryState(w *workv1.ManifestWork) int {
	current := func(condition string) (said, so bool) {
		found := meta.FindStatusCondition(w.Status.Conditions, condition)
		said = found != nil && found.ObservedGeneration == w.Generation
		return said, said && meta.IsStatusConditionTrue(w.Status.Conditions, condition)
	}
	said, applied := current(workv1.WorkApplied)
	_, available := current(workv1.WorkAvailable)
	switch {
	case applied && available:
		return 0
	case said && !applied:
		return 2
	default:
		return 1
	}
}

// Describe and Collect implement prometheus.Collector.
func (d *deliveries) Describe(descriptions chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(d, descriptions)
}

func (d *deliveries) Collect(found chan<- prometheus.Metric) {
	clusters := prometheus.NewDesc("addon_agent_deliveries",
		"Number of clusters that addon-agent is delivered to, by state: Delivered, Pending (OCM's work agent is still applying it), or Failed.",
		[]string{"state"}, nil)
	worst := map[string]int{}
	for _, object := range d.works.List() {
		if w, ok := object.(*workv1.ManifestWork); ok {
			worst[w.Namespace] = max(worst[w.Namespace], deliveryState(w))
		}
	}
	var count [len(deliveryStates)]int
	for _, state := range worst {
		count[state]++
	}
	for state, name := range deliveryStates {
		found <- prometheus.MustNewConstMetric(clusters, prometheus.GaugeValue, float64(count[state]), name)
	}
}
