package ocm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	workv1 "open-cluster-management.io/api/work/v1"
)

func TestDeliveriesAreCountedByCluster(t *testing.T) {
	said := func(condition string, status metav1.ConditionStatus, generation int64) metav1.Condition {
		return metav1.Condition{Type: condition, Status: status, ObservedGeneration: generation}
	}
	applied, available := said(workv1.WorkApplied, metav1.ConditionTrue, 2), said(workv1.WorkAvailable, metav1.ConditionTrue, 2)
	works := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	for cluster, byWork := range map[string][][]metav1.Condition{
		"done":            {{applied, available}, {applied, available}},
		"new":             {{}},
		"half":            {{applied, available}, {applied}},
		"behind":          {{said(workv1.WorkApplied, metav1.ConditionTrue, 1), said(workv1.WorkAvailable, metav1.ConditionTrue, 1)}},
		"failed":          {{said(workv1.WorkApplied, metav1.ConditionFalse, 2), available}, {applied, available}},
		"failed long ago": {{said(workv1.WorkApplied, metav1.ConditionFalse, 1)}},
	} {
		for i, conditions := range byWork {
			w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: string(rune('a' + i)), Generation: 2}}
			w.Status.Conditions = conditions
			if err := works.Add(w); err != nil {
				t.Fatal(err)
			}
		}
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(&deliveries{works: works}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]float64{"Delivered": 1, "Pending": 4, "Failed": 1}, gauges(t, registry, "addon_agent_deliveries")); diff != "" {
		t.Errorf("clusters by state (-want +got):\n%s", diff)
	}
}

// gauges returns the values of a gauge by the value of its last label.
func gauges(t *testing.T, registry *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.Metric {
			values[metric.Label[len(metric.Label)-1].GetValue()] = metric.Gauge.GetValue()
		}
	}
	return values
}
