package hub

import (
	"cmp"
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// availabilities collects the number of clusters of each add-on by condition Available, which agents write. It counts the cached add-ons whenever it
// is asked, and keeps nothing.
type availabilities struct {
	reader client.Reader // of a cache
	desc   *prometheus.Desc
}

func newAvailabilities(reader client.Reader) *availabilities {
	return &availabilities{reader: reader, desc: prometheus.NewDesc("addon_availability",
		"Number of clusters on which an add-on is enabled, by add-on and status of condition Available: True, False or Unknown.",
		[]string{"addon", "status"}, nil)}
}

// Describe implements prometheus.Collector.
func (a *availabilities) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- a.desc }

// Collect implements prometheus.Collector.
func (a *availabilities) Collect(collected chan<- prometheus.Metric) {
	var addOns addonv1alpha1.ManagedClusterAddOnList
	if err := a.reader.List(context.Background(), &addOns, client.UnsafeDisableDeepCopy); err != nil {
		collected <- prometheus.NewInvalidMetric(a.desc, err)
		return
	}
	type key struct {
		addOn  string
		status metav1.ConditionStatus
	}
	clusters := map[key]int{}
	for i := range addOns.Items {
		addOn := &addOns.Items[i]
		clusters[key{addOn.Name, availabilityOf(addOn)}]++
	}
	for k, n := range clusters {
		collected <- prometheus.MustNewConstMetric(a.desc, prometheus.GaugeValue, float64(n), k.addOn, string(k.status))
	}
}

// availabilityOf returns the status of condition Available: Unknown before an agent has written it.
func availabilityOf(addOn *addonv1alpha1.ManagedClusterAddOn) metav1.ConditionStatus {
	if available := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable); available != nil {
		return cmp.Or(available.Status, metav1.ConditionUnknown)
	}
	return metav1.ConditionUnknown
}
