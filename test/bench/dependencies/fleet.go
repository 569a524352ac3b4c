package main

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
)

// fleet is the number of clusters and of add-ons on each. The numbers alone determine its dependencies:
//
// The first three add-ons are bases, shared by the others. Every third of the others belongs to the same base. Each such group forms chains
// of three above the base, so that chains are four deep: an add-on requires the previous one in its chain, the first one its base. Every
// second add-on has an optional dependency on the next base. One add-on has an optional dependency that is not installed anywhere, so that
// the resting fleet has verdicts too.
//
// A change of any add-on reaches each of the others on one path only, so that one write is enough for each.
type fleet struct {
	clusters, addOns int
	// selective adds a version and a selector of clusters, which all clusters and add-ons satisfy, to each dependency.
	selective bool
}

const (
	bases       = 3
	chainLength = 3
	// smallestFleet has a chain that is four deep.
	smallestFleet = bases + bases*(chainLength-1) + 1
	// absent is a name that no add-on has.
	absent = "addon-absent"
	// addOnVersion is the version of each add-on, clusterLabel a label of each cluster.
	addOnVersion = "1.2.0"
	clusterLabel = "tandem.test/bench"
)

func addOnName(i int) string { return fmt.Sprintf("addon-%03d", i) }

// size returns the number of ManagedClusterAddOns.
func (f fleet) size() int { return f.clusters * f.addOns }

// names returns the names of all add-ons.
func (f fleet) names() []string {
	names := make([]string, f.addOns)
	for i := range names {
		names[i] = addOnName(i)
	}
	return names
}

// namespaces returns the namespaces of all clusters.
func (f fleet) namespaces() []string {
	namespaces := make([]string, f.clusters)
	for i := range namespaces {
		namespaces[i] = fmt.Sprintf("cluster-%05d", i)
	}
	return namespaces
}

// needs returns the dependencies of the add-on of that number.
func (f fleet) needs(i int) []addonv1alpha1.AddonDependency {
	if i < bases {
		return nil
	}
	needs := []addonv1alpha1.AddonDependency{need(addOnName(before(i)), addonv1alpha1.DependencyTypeRequired)}
	if i%2 == 1 {
		needs = append(needs, need(addOnName((i+1)%bases), addonv1alpha1.DependencyTypeOptional))
	}
	if i == bases+1 {
		needs = append(needs, need(absent, addonv1alpha1.DependencyTypeOptional))
	}
	for i := range needs {
		if f.selective {
			needs[i].Version = ">=1 <2"
			needs[i].Clusters = &addonv1alpha1.ClusterSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{clusterLabel: "true"}}}
		}
	}
	return needs
}

// before returns the number of the add-on that a non-base add-on requires.
func before(i int) int {
	if (i-bases)/bases%chainLength == 0 {
		return i % bases
	}
	return i - bases
}

func need(name string, t addonv1alpha1.DependencyType) addonv1alpha1.AddonDependency {
	return addonv1alpha1.AddonDependency{Name: name, Type: t, Message: "What " + name + " serves is unavailable."}
}

// leaf returns an add-on without dependents.
func (f fleet) leaf() string { return addOnName(f.addOns - 1) }

// dependencyNames returns the add-ons with dependents.
func (f fleet) dependencyNames() []string {
	found := map[string]bool{}
	for i := range f.addOns {
		for _, need := range f.needs(i) {
			found[need.Name] = need.Name != absent
		}
	}
	maps.DeleteFunc(found, func(_ string, installed bool) bool { return !installed })
	return slices.Sorted(maps.Keys(found))
}

// apart returns an add-on with dependents, of which the leaf is none: neither affects the verdict on the other.
func (f fleet) apart() string {
	for _, name := range f.dependencyNames() {
		c := f.cluster()
		c.settle()
		c.available[name] = false
		if !slices.ContainsFunc(c.settle(name), func(v verdict) bool { return v.addOn == f.leaf() }) {
			return name
		}
	}
	return ""
}

// cluster is the expected state of the add-ons on one managed cluster, or on all of them.
type cluster struct {
	names     []string
	needs     map[string][]addonv1alpha1.AddonDependency
	available map[string]bool
	degraded  map[string]*metav1.Condition
}

// cluster returns the initial state of a cluster, without verdicts: everything is available.
func (f fleet) cluster() *cluster {
	c := &cluster{
		names: f.names(), needs: map[string][]addonv1alpha1.AddonDependency{},
		available: map[string]bool{}, degraded: map[string]*metav1.Condition{},
	}
	for i, name := range c.names {
		c.needs[name], c.available[name] = f.needs(i), true
	}
	return c
}

func (c *cluster) clone() *cluster {
	return &cluster{
		names: c.names, needs: maps.Clone(c.needs), available: maps.Clone(c.available), degraded: maps.Clone(c.degraded),
	}
}

// verdict is a verdict to write.
type verdict struct {
	addOn string
	// cause is the add-on with the preceding change of availability; empty if this add-on's definition changed.
	cause string
}

// settle evaluates repeatedly after a change of availability, until nothing changes. It returns the verdicts to write, in a possible order
// of writes. An add-on with an unmet required dependency is not available: the policy in the API server sets that in the same write.
func (c *cluster) settle(changed ...string) []verdict {
	var written []verdict
	for {
		wave := c.judge()
		if len(wave) == 0 {
			return written
		}
		var fallen []string
		for _, name := range slices.Sorted(maps.Keys(wave)) {
			written = append(written, verdict{addOn: name, cause: c.causeOf(name, changed)})
			c.degraded[name] = wave[name]
			if c.available[name] && c.isGated(name) {
				c.available[name], fallen = false, append(fallen, name)
			}
		}
		changed = fallen
	}
}

// judge returns the add-ons with a stale verdict, each with the expected condition.
func (c *cluster) judge() map[string]*metav1.Condition {
	seen := map[string]dependency.Seen{}
	for _, name := range c.names {
		available := metav1.ConditionFalse
		if c.available[name] {
			available = metav1.ConditionTrue
		}
		seen[name] = dependency.Seen{Defined: true, Installed: true, Available: available, Versions: dependency.Versions{Installed: addOnVersion}}
	}
	differ := map[string]*metav1.Condition{}
	for _, name := range c.names {
		stored := c.degraded[name]
		if want := dependency.Evaluate(c.needs[name], seen, stored).Condition(); !same(stored, want) {
			differ[name] = want
		}
	}
	return differ
}

// same reports whether two conditions are equal; nil means none.
func same(a, b *metav1.Condition) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// causeOf returns the add-on's dependency that changed just before, or an empty string.
func (c *cluster) causeOf(name string, changed []string) string {
	for _, need := range c.needs[name] {
		if slices.Contains(changed, need.Name) {
			return need.Name
		}
	}
	return ""
}

// isGated reports whether the verdict keeps the add-on from being available.
func (c *cluster) isGated(name string) bool {
	d := c.degraded[name]
	return d != nil && d.Reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied
}

// restorable returns the add-ons that are not available although no verdict prevents it.
func (c *cluster) restorable() []string {
	return slices.DeleteFunc(slices.Clone(c.names), func(name string) bool { return c.available[name] || c.isGated(name) })
}
