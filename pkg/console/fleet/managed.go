package fleet

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Managed is what a ManagedCluster reports about itself.
type Managed struct {
	Labels map[string]string
	// Kubernetes is the version that the cluster reports; empty if it reports none.
	Kubernetes string
	// Available is the status of condition ManagedClusterConditionAvailable, which OCM's agent and hub maintain; empty if there is none.
	Available metav1.ConditionStatus
}

// maxVersion limits the version that a cluster reports, in bytes.
const maxVersion = 64

// ManagedOf returns what a ManagedCluster reports about itself.
func ManagedOf(cluster *clusterv1.ManagedCluster) Managed {
	managed := Managed{Labels: cluster.Labels, Kubernetes: text.Truncate(cluster.Status.Version.Kubernetes, maxVersion)}
	if available := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable); available != nil {
		managed.Available = available.Status
	}
	return managed
}

// LabelGroup has the clusters with a value of a label.
type LabelGroup struct {
	// Selector selects the clusters of the group, and only those.
	Selector string
	// Value is the value, Labeled is set if the clusters have the label.
	Value   string
	Labeled bool
	StateSum
}

// GroupByLabel groups clusters by their values of a label, in the order of the values; those without the label are last. Clusters whose labels
// are unknown are not in a group.
func (g Glance) GroupByLabel(label string, clusters map[string]Managed) []LabelGroup {
	found := map[string]*LabelGroup{}
	for name, seen := range g {
		managed, known := clusters[name]
		if !known {
			continue
		}
		value, labeled := managed.Labels[label]
		selector := "!" + label
		if labeled {
			selector = label + "=" + value
		}
		if found[selector] == nil {
			found[selector] = &LabelGroup{Selector: selector, Value: value, Labeled: labeled, StateSum: StateSum{States: map[State]int{}}}
		}
		found[selector].add(seen)
	}
	groups := make([]LabelGroup, 0, len(found))
	for _, group := range slices.SortedFunc(maps.Values(found), (*LabelGroup).compare) {
		groups = append(groups, *group)
	}
	return groups
}

func (g *LabelGroup) compare(other *LabelGroup) int {
	if g.Labeled != other.Labeled {
		return map[bool]int{true: -1, false: 1}[g.Labeled]
	}
	return cmp.Compare(g.Value, other.Value)
}

// add counts a cluster with the states of its add-ons and independent Instances.
func (s *StateSum) add(seen map[Subject]Glimpse) {
	s.Clusters++
	for _, glimpse := range seen {
		s.States[glimpse.State]++
	}
}

// StatesOf counts the add-ons and independent Instances of a cluster by state.
func (g Glance) StatesOf(cluster string) map[State]int {
	sum := StateSum{States: map[State]int{}}
	sum.add(g[cluster])
	return sum.States
}
