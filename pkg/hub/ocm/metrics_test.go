package ocm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

func TestGaugeCountsClustersOnce(t *testing.T) {
	on := func(cluster string) types.NamespacedName {
		return types.NamespacedName{Namespace: cluster, Name: "kafka"}
	}
	unfinished := NewMetrics().unfinished
	waits, fails := []rolloutKey{{"kafka", "Waiting"}}, []rolloutKey{{"kafka", "Failed"}}
	unfinished.Set(on("c1"), waits)
	unfinished.Set(on("c2"), waits)
	unfinished.Set(on("c3"), waits)
	unfinished.Set(on("c2"), fails)
	unfinished.Set(on("c3"), nil)
	unfinished.Recall(on("c2"), waits) // a newer state is known
	unfinished.Recall(on("c4"), fails)
	registry := prometheus.NewRegistry()
	registry.MustRegister(unfinished)
	if diff := cmp.Diff(map[string]float64{"Waiting": 1, "Failed": 2}, gauges(t, registry, "addon_rollout_unfinished")); diff != "" {
		t.Errorf("clusters by state (-want +got):\n%s", diff)
	}
}
