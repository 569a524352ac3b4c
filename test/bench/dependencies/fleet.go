package main

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/dependency"
)

// fleet is how many clusters there are, and how many add-ons on each. Its shape follows from the numbers alone:
//
// The first three add-ons are bases, which the others share. Every third of the others belongs to the same base, and in each
// such group chains of three stand on the base, so that chains are four deep: an add-on requires the one before it in its
// chain, the first one its base. Every second one can do with more, an Optional dependency on the next base. One add-on has an
// Optional dependency that is installed nowhere: the resting fleet carries verdicts too.
//
// However an add-on goes, each of the others hears of it on one way only, so that one write is enough for each.
type fleet struct{ clusters, addOns int }

const (
	bases       = 3
	chainLength = 3
	// smallestFleet has a chain that is four deep.
	smallestFleet = bases + bases*(chainLength-1) + 1
	// absent is a name that no add-on has.
	absent = "addon-absent"
)

func addOnName(i int) string { return fmt.Sprintf("addon-%03d", i) }

// names are those of all add-ons.
func (f fleet) names() []string {
	names := make([]string, f.addOns)
	for i := range names {
		names[i] = addOnName(i)
	}
	return names
}

// namespaces are those of all clusters.
func (f fleet) namespaces() []string {
	namespaces := make([]string, f.clusters)
	for i := range namespaces {
		namespaces[i] = fmt.Sprintf("cluster-%05d", i)
	}
	return namespaces
}

// needs is what the add-on of that number depends on.
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
	return needs
}

// before is the number of the add-on that one beyond the bases requires.
func before(i int) int {
	if (i-bases)/bases%chainLength == 0 {
		return i % bases
	}
	return i - bases
}

func need(name string, t addonv1alpha1.DependencyType) addonv1alpha1.AddonDependency {
	return addonv1alpha1.AddonDependency{Name: name, Type: t, Message: "What " + name + " serves is unavailable."}
}

// leaf is an add-on that no other depends on.
func (f fleet) leaf() string { return addOnName(f.addOns - 1) }

// shared are the add-ons that others depend on.
func (f fleet) shared() []string {
	found := map[string]bool{}
	for i := range f.addOns {
		for _, need := range f.needs(i) {
			found[need.Name] = need.Name != absent
		}
	}
	maps.DeleteFunc(found, func(_ string, installed bool) bool { return !installed })
	return slices.Sorted(maps.Keys(found))
}

// cluster is what is to be seen of the add-ons on one managed cluster, or on all of them alike.
type cluster struct {
	names     []string
	needs     map[string][]addonv1alpha1.AddonDependency
	available map[string]bool
	degraded  map[string]*metav1.Condition
}

// cluster is one of the fleet's before anybody judged it: everything is available.
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

// verdict is one that has to be written.
type verdict struct {
	addOn string
	// cause is the add-on whose availability changed before; empty where it was the definition of this one that did.
	cause string
}

// settle judges, after the availability of those changed, until nothing differs any more. It returns what has to be written for that,
// in an order in which it can be. An add-on under a Required verdict is not available: the policy inside the API server sees to
// that in the same write.
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
			if c.available[name] && c.gated(name) {
				c.available[name], fallen = false, append(fallen, name)
			}
		}
		changed = fallen
	}
}

// judge finds the add-ons whose verdict is not what is written, each with the condition that it should be.
func (c *cluster) judge() map[string]*metav1.Condition {
	seen := map[string]dependency.Seen{}
	for _, name := range c.names {
		available := metav1.ConditionFalse
		if c.available[name] {
			available = metav1.ConditionTrue
		}
		seen[name] = dependency.Seen{Defined: true, Installed: true, Available: available}
	}
	differ := map[string]*metav1.Condition{}
	for _, name := range c.names {
		stands := c.degraded[name]
		if want := dependency.Evaluate(c.needs[name], seen, stands).Condition(); !same(stands, want) {
			differ[name] = want
		}
	}
	return differ
}

// same says whether two conditions, nil where there is none, say the same.
func same(a, b *metav1.Condition) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// causeOf is that of the add-on's dependencies which changed just before; empty if none did.
func (c *cluster) causeOf(name string, changed []string) string {
	for _, need := range c.needs[name] {
		if slices.Contains(changed, need.Name) {
			return need.Name
		}
	}
	return ""
}

// gated says that the verdict keeps the add-on from being available.
func (c *cluster) gated(name string) bool {
	d := c.degraded[name]
	return d != nil && d.Reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied
}

// restorable are the add-ons that are not available although nothing keeps them from it.
func (c *cluster) restorable() []string {
	return slices.DeleteFunc(slices.Clone(c.names), func(name string) bool { return c.available[name] || c.gated(name) })
}
