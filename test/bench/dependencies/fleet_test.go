package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// newSettledCluster returns a cluster of a fleet after its first evaluation.
func newSettledCluster(f fleet) *cluster {
	c := f.cluster()
	c.settle()
	return c
}

func TestFleetHasChainsThatAreFourDeep(t *testing.T) {
	for _, addOns := range []int{smallestFleet, 20, 47} {
		c := fleet{clusters: 1, addOns: addOns}.cluster()
		var depth func(name string) int
		depth = func(name string) int {
			deepest := 0
			for _, need := range c.needs[name] {
				if need.Type == addonv1alpha1.DependencyTypeRequired {
					deepest = max(deepest, depth(need.Name))
				}
			}
			return deepest + 1
		}
		deepest := 0
		for _, name := range c.names {
			deepest = max(deepest, depth(name))
		}
		if deepest != 4 {
			t.Errorf("%d add-ons: chains are %d deep, want 4", addOns, deepest)
		}
	}
}

func TestRestingFleetCarriesOneVerdictOnEveryCluster(t *testing.T) {
	f := fleet{clusters: 1, addOns: 20}
	if diff := cmp.Diff([]verdict{{addOn: addOnName(4)}}, f.cluster().settle(), cmp.AllowUnexported(verdict{})); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if again := newSettledCluster(f).settle(); again != nil {
		t.Errorf("judged a second time, %v has to be written", again)
	}
}

// The benchmark expects one write per object, so each change must reach each object once.
func TestRemovalAndReturnAffectEachAddOnOnce(t *testing.T) {
	for _, addOns := range []int{smallestFleet, 20, 47} {
		f := fleet{clusters: 1, addOns: addOns}
		for _, name := range f.dependencyNames() {
			t.Run(fmt.Sprintf("%s of %d", name, addOns), func(t *testing.T) {
				c := newSettledCluster(f)
				c.available[name] = false
				written := c.settle(name)
				if len(written) == 0 {
					t.Error("no verdict changes")
				}
				once(t, written)
				for names := c.restorable(); len(names) > 0; names = c.restorable() {
					for _, name := range names {
						c.available[name] = true
					}
					once(t, c.settle(names...))
				}
				if diff := cmp.Diff(newSettledCluster(f).available, c.available); diff != "" {
					t.Errorf("available at the end (-want +got):\n%s", diff)
				}
				for _, name := range c.names {
					if want := newSettledCluster(f).degraded[name]; !same(want, c.degraded[name]) {
						t.Errorf("%s is degraded at the end: %v, want %v", name, c.degraded[name], want)
					}
				}
			})
		}
	}
}

// once checks that no add-on is written twice, and that the cause of each verdict is one of its dependencies.
func once(t *testing.T, written []verdict) {
	t.Helper()
	var names []string
	for _, v := range written {
		if v.cause == "" {
			t.Errorf("the verdict over %s has no cause", v.addOn)
		}
		names = append(names, v.addOn)
	}
	slices.Sort(names)
	if compact := slices.Compact(slices.Clone(names)); len(compact) != len(names) {
		t.Errorf("written more than once: %v", names)
	}
}

func TestALostBaseCascades(t *testing.T) {
	c := newSettledCluster(fleet{clusters: 1, addOns: smallestFleet})
	c.available[addOnName(0)] = false
	want := []verdict{
		{addOn: addOnName(3), cause: addOnName(0)}, {addOn: addOnName(5), cause: addOnName(0)}, // 5 by its optional dependency
		{addOn: addOnName(6), cause: addOnName(3)}, {addOn: addOnName(9), cause: addOnName(6)},
	}
	if diff := cmp.Diff(want, c.settle(addOnName(0)), cmp.AllowUnexported(verdict{})); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if !c.available[addOnName(5)] || c.available[addOnName(9)] {
		t.Errorf("available is %v, want 5 and not 9", c.available)
	}
}

func TestShares(t *testing.T) {
	for sentence, test := range map[string]struct {
		items, count int
		want         [][]int
	}{
		"the same number for each": {6, 3, [][]int{{0, 1}, {2, 3}, {4, 5}}},
		"the rest is spread":       {7, 3, [][]int{{0, 1}, {2, 3}, {4, 5, 6}}},
		"fewer items than shares":  {2, 5, [][]int{{0}, {1}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			items := make([]int, test.items)
			for i := range items {
				items[i] = i
			}
			if diff := cmp.Diff(test.want, shares(items, test.count)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheLeafDoesNotDependOnTheAddOnApart(t *testing.T) {
	for _, addOns := range []int{smallestFleet, 20, 40} {
		f := fleet{clusters: 1, addOns: addOns}
		c := f.cluster()
		c.settle()
		c.available[f.apart()] = false
		written := c.settle(f.apart())
		if len(written) == 0 {
			t.Errorf("with %d add-ons, %q has no dependents", addOns, f.apart())
		}
		for _, v := range written {
			if v.addOn == f.leaf() {
				t.Errorf("with %d add-ons, %s depends on %s", addOns, f.leaf(), f.apart())
			}
		}
	}
}
