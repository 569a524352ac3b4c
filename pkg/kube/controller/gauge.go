package controller

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Gauge counts over all clusters, by the labels of a key. It remembers the keys of each add-on, so that a new result for the same add-on
// replaces the old one; add-ons without keys use no memory. After a start it fills while every add-on is reconciled once.
type Gauge[K comparable] struct {
	desc   *prometheus.Desc
	labels func(K) []string

	mutex   sync.Mutex
	counted map[types.NamespacedName][]K
	count   map[K]int
}

// NewGauge returns the collector of a gauge with these labels.
func NewGauge[K comparable](clusters *prometheus.Desc, labels func(K) []string) *Gauge[K] {
	return &Gauge[K]{desc: clusters, labels: labels, counted: map[types.NamespacedName][]K{}, count: map[K]int{}}
}

// Recall counts the last known keys of an add-on that cannot be judged, unless this process has newer ones.
func (g *Gauge[K]) Recall(addOn types.NamespacedName, keys []K) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.counted[addOn] == nil {
		g.replace(addOn, keys)
	}
}

// Set replaces the keys of that add-on on that cluster.
func (g *Gauge[K]) Set(addOn types.NamespacedName, keys []K) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.replace(addOn, keys)
}

// replace is Set for a caller that holds the lock.
func (g *Gauge[K]) replace(addOn types.NamespacedName, keys []K) {
	for _, key := range g.counted[addOn] {
		if g.count[key]--; g.count[key] == 0 {
			delete(g.count, key)
		}
	}
	if len(keys) == 0 {
		delete(g.counted, addOn)
		return
	}
	for _, key := range keys {
		g.count[key]++
	}
	g.counted[addOn] = keys
}

// Describe and Collect implement prometheus.Collector.
func (g *Gauge[K]) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- g.desc }

func (g *Gauge[K]) Collect(found chan<- prometheus.Metric) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	for key, count := range g.count {
		found <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(count), g.labels(key)...)
	}
}
