package read

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/selector"
)

func makeNeeds(names ...string) []addonv1alpha1.AddonDependency {
	var needs []addonv1alpha1.AddonDependency
	for _, name := range names {
		needs = append(needs, addonv1alpha1.AddonDependency{Name: name})
	}
	return needs
}

func TestCyclesLearn(t *testing.T) {
	type step struct {
		addOn string
		needs []string
		want  []string // add-ons with changed cycles
	}
	for name, steps := range map[string][]step{
		"a chain affects no other add-on": {{"a", []string{"b"}, nil}, {"b", []string{"c"}, nil}, {"c", nil, nil}},
		"closing a cycle affects all its members, and so does breaking it": {
			{"a", []string{"b"}, nil}, {"b", []string{"c"}, nil},
			{"c", []string{"a"}, []string{"a", "b", "c"}},
			{"b", nil, []string{"a", "b", "c"}},
		},
		"a dependency on itself is a cycle of one":         {{"a", []string{"a"}, []string{"a"}}, {"a", nil, []string{"a"}}},
		"a dependent of a member is not part of the cycle": {{"d", []string{"a"}, nil}, {"a", []string{"a"}, []string{"a"}}},
		"an unchanged definition affects no add-on":        {{"a", []string{"a"}, []string{"a"}}, {"a", []string{"a"}, nil}},
		"a shorter path is another cycle": {
			{"a", []string{"b"}, nil}, {"b", []string{"c"}, nil}, {"c", []string{"a"}, []string{"a", "b", "c"}},
			{"b", []string{"c", "a"}, []string{"a", "b"}},
		},
		"a separate cycle is unchanged": {
			{"x", []string{"x"}, []string{"x"}}, {"a", []string{"b"}, nil}, {"b", []string{"a"}, []string{"a", "b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewCycles()
			for i, s := range steps {
				changed := c.learn(s.addOn, makeNeeds(s.needs...))
				slices.Sort(changed)
				if diff := cmp.Diff(s.want, changed, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("step %d, %s: changed (-want +got):\n%s", i, s.addOn, diff)
				}
			}
		})
	}
}

// After any order of changes, the cycles on each cluster equal those of its whole graph, and every add-on with changed cycles is enqueued.
func TestCyclesFollowAnyHistory(t *testing.T) {
	clusters := []selector.Cluster{{Name: "plain"}, {Name: "gpu", Labels: map[string]string{"gpu": "true"}}}
	for seed := range uint64(200) {
		h := history{dice: rand.New(rand.NewPCG(seed, seed)), names: []string{"a", "b", "c", "d", "e", "f"}, selective: seed%2 == 1}
		c, graph := NewCycles(), map[string][]addonv1alpha1.AddonDependency{}
		seen := map[string]map[string][]string{} // the cycles at each add-on's last reconciliation, by cluster and add-on
		for range 40 {
			name := h.names[h.dice.IntN(len(h.names))]
			graph[name] = h.needs()
			for _, changed := range c.learn(name, graph[name]) {
				for _, cluster := range clusters {
					seen[cluster.Name+changed] = maps.Clone(cyclesOn(c, changed, cluster))
				}
			}
			// A definition's own add-ons are always enqueued.
			for _, cluster := range clusters {
				seen[cluster.Name+name] = maps.Clone(cyclesOn(c, name, cluster))
				for _, name := range h.names {
					want := cyclesOf(name, graph, cluster)
					if diff := cmp.Diff(want, cyclesOn(c, name, cluster), cmpopts.EquateEmpty()); diff != "" {
						t.Fatalf("seed %d: cycles of %s on %s (-want +got):\n%s", seed, name, cluster.Name, diff)
					}
					if diff := cmp.Diff(want, seen[cluster.Name+name], cmpopts.EquateEmpty()); diff != "" {
						t.Fatalf("seed %d: %s on %s was not told (-want +told):\n%s", seed, name, cluster.Name, diff)
					}
				}
			}
		}
	}
}

// history draws dependencies.
type history struct {
	dice  *rand.Rand
	names []string
	// selective is set if some of them exist on some clusters only.
	selective bool
}

func (h history) needs() []addonv1alpha1.AddonDependency {
	h.dice.Shuffle(len(h.names), func(i, j int) { h.names[i], h.names[j] = h.names[j], h.names[i] })
	needs := makeNeeds(h.names[:h.dice.IntN(3)]...)
	for i := range needs {
		if h.dice.IntN(4) == 0 {
			needs[i].Alternatives = h.names[3 : 4+i]
		}
		if h.selective && h.dice.IntN(3) == 0 {
			needs[i].Clusters = &addonv1alpha1.ClusterSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "true"}}}
		}
		needs[i].Alternatives = slices.Clone(needs[i].Alternatives)
	}
	return needs
}

func cyclesOf(addOn string, graph map[string][]addonv1alpha1.AddonDependency, cluster selector.Cluster) map[string][]string {
	found := map[string][]string{}
	needsOf := func(name string) []addonv1alpha1.AddonDependency { return dependency.On(graph[name], cluster) }
	for _, name := range dependency.CandidatesOf(needsOf(addOn)) {
		if cycle := dependency.Cycle(addOn, name, needsOf); cycle != nil {
			found[name] = cycle
		}
	}
	return found
}

// cyclesOn returns the cycles of an add-on on a cluster.
func cyclesOn(c *Cycles, addOn string, cluster selector.Cluster) map[string][]string {
	found, _ := c.On(addOn, func() (selector.Cluster, error) { return cluster, nil })
	return found
}
