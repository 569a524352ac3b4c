package read

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
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

// After any order of changes, the cycles equal those of the whole graph, and every add-on with changed cycles is enqueued.
func TestCyclesFollowAnyHistory(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	for seed := range uint64(200) {
		dice := rand.New(rand.NewPCG(seed, seed))
		c, graph := NewCycles(), map[string][]addonv1alpha1.AddonDependency{}
		seen := map[string]map[string][]string{} // the cycles at each add-on's last reconciliation
		for range 40 {
			name := names[dice.IntN(len(names))]
			dice.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			graph[name] = makeNeeds(names[:dice.IntN(3)]...)
			for _, changed := range c.learn(name, graph[name]) {
				seen[changed] = maps.Clone(c.Of(changed))
			}
			for _, name := range names {
				want := cyclesOf(name, graph)
				if diff := cmp.Diff(want, c.Of(name), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("seed %d: cycles of %s (-want +got):\n%s", seed, name, diff)
				}
				if diff := cmp.Diff(want, seen[name], cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("seed %d: %s was not told (-want +told):\n%s", seed, name, diff)
				}
			}
		}
	}
}

func cyclesOf(addOn string, graph map[string][]addonv1alpha1.AddonDependency) map[string][]string {
	found := map[string][]string{}
	for _, need := range graph[addOn] {
		cycle := dependency.Cycle(addOn, need.Name, func(name string) []addonv1alpha1.AddonDependency { return graph[name] })
		if cycle != nil {
			found[need.Name] = cycle
		}
	}
	return found
}
