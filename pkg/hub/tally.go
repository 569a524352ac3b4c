package hub

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// tally counts something over all clusters, by labels that a key stands for. It remembers what it counts of each add-on, so that
// another judgement of the same add-on takes its place; what is in order takes no room. After a start it fills while every add-on is
// judged once.
type tally[K comparable] struct {
	clusters *prometheus.Desc
	labels   func(K) []string

	mutex   sync.Mutex
	counted map[types.NamespacedName][]K
	count   map[K]int
}

// newTally is the collector of a gauge with these labels.
func newTally[K comparable](clusters *prometheus.Desc, labels func(K) []string) *tally[K] {
	return &tally[K]{clusters: clusters, labels: labels, counted: map[types.NamespacedName][]K{}, count: map[K]int{}}
}

// recall counts what was last known of an add-on that cannot be judged, where this process knows nothing better.
func (t *tally[K]) recall(addOn types.NamespacedName, keys []K) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.counted[addOn] == nil {
		t.replace(addOn, keys)
	}
}

// set takes the place of what was counted of that add-on on that cluster.
func (t *tally[K]) set(addOn types.NamespacedName, keys []K) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.replace(addOn, keys)
}

// replace is set for a caller that holds the lock.
func (t *tally[K]) replace(addOn types.NamespacedName, keys []K) {
	for _, key := range t.counted[addOn] {
		if t.count[key]--; t.count[key] == 0 {
			delete(t.count, key)
		}
	}
	if len(keys) == 0 {
		delete(t.counted, addOn)
		return
	}
	for _, key := range keys {
		t.count[key]++
	}
	t.counted[addOn] = keys
}

// Describe and Collect make it a prometheus.Collector.
func (t *tally[K]) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- t.clusters }

func (t *tally[K]) Collect(found chan<- prometheus.Metric) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for key, count := range t.count {
		found <- prometheus.MustNewConstMetric(t.clusters, prometheus.GaugeValue, float64(count), t.labels(key)...)
	}
}
