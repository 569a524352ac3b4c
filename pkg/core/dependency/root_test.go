package dependency

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// evaluateAll returns the verdicts of all add-ons in g for the states in seen. An add-on that is not in seen is available.
func evaluateAll(g map[string][]addonv1alpha1.AddonDependency, seen map[string]Seen) func(name string) Verdict {
	return func(name string) Verdict {
		around := map[string]Seen{}
		for _, candidate := range CandidatesOf(g[name]) {
			s, given := seen[candidate]
			if !given {
				s = available
			}
			s.Cycle = Cycle(name, candidate, in(g))
			around[candidate] = s
		}
		return Evaluate(g[name], around, nil)
	}
}

func TestRoots(t *testing.T) {
	for name, tc := range map[string]struct {
		graph []string
		seen  map[string]Seen
		want  []string // path: cause
	}{
		"nothing is unmet": {graph: []string{"a: b", "b:"}},
		"a dependency that is not installed": {
			graph: []string{"a: b"}, seen: map[string]Seen{"b": notOnIt}, want: []string{"a -> b: NotInstalled"},
		},
		"of alternatives, the one that comes closest is followed": {
			graph: []string{"a: b|c", "c: d"}, seen: map[string]Seen{"b": notOnIt, "c": unavailable, "d": unavailable},
			want: []string{"a -> c -> d: NotAvailable"},
		},
		"an alternative that satisfies ends a chain": {graph: []string{"a: b|c"}, seen: map[string]Seen{"b": unavailable}},
		"a chain is followed to its end": {
			graph: []string{"a: b", "b: c", "c: d", "d:"}, seen: map[string]Seen{"b": unavailable, "c": unavailable, "d": unavailable},
			want: []string{"a -> b -> c -> d: NotAvailable"},
		},
		"a chain of which nothing is known is followed too": {
			graph: []string{"a: b", "b: c"}, seen: map[string]Seen{"b": unknown, "c": {}}, want: []string{"a -> b -> c: NoSuchAddOn"},
		},
		"an available one between ends a chain": {
			graph: []string{"a: b", "b: c"}, seen: map[string]Seen{"c": unavailable},
		},
		"an add-on that is not installed has the same root causes": {
			graph: []string{"a: b", "b: c"}, seen: map[string]Seen{"b": notOnIt, "c": notOnIt},
			want: []string{"a -> b: NotInstalled", "a -> b -> c: NotInstalled"},
		},
		"Optional ones further down are no cause": {
			graph: []string{"a: b", "b: c?"}, seen: map[string]Seen{"b": unavailable, "c": notOnIt}, want: []string{"a -> b: NotAvailable"},
		},
		"an add-on with a problem is named once, by the shortest path": {
			graph: []string{"a: b d", "b: c", "c: d"}, seen: map[string]Seen{"b": unavailable, "c": unavailable, "d": deleting},
			want: []string{"a -> d: Deleting"},
		},
		"several, the nearest first": {
			graph: []string{"a: b c", "b: d", "c:"}, seen: map[string]Seen{"b": unavailable, "c": unavailable, "d": notOnIt},
			want: []string{"a -> c: NotAvailable", "a -> b -> d: NotInstalled"},
		},
		"each of several at the end of a chain has its own way": {
			graph: []string{"a: b", "b: c", "c: d e"}, seen: map[string]Seen{"b": unavailable, "c": unavailable, "d": notOnIt, "e": notOnIt},
			want: []string{"a -> b -> c -> d: NotInstalled", "a -> b -> c -> e: NotInstalled"},
		},
		"a cycle is named once": {
			graph: []string{"a: b", "b: c", "c: a"}, want: []string{"a -> b: Circular a -> b -> c -> a"},
		},
		"an indirect cycle": {
			graph: []string{"a: b", "b: c", "c: b"}, seen: map[string]Seen{"b": unavailable, "c": unavailable},
			want: []string{"a -> b -> c: Circular b -> c -> b"},
		},
		"in addition to a cycle, missing dependencies of a member": {
			graph: []string{"a: b", "b: a x"}, seen: map[string]Seen{"b": unavailable, "x": notOnIt},
			want: []string{"a -> b: Circular a -> b -> a", "a -> b -> x: NotInstalled"},
		},
		"two cycles": {
			graph: []string{"a: b c", "b: a", "c: a"}, want: []string{"a -> b: Circular a -> b -> a", "a -> c: Circular a -> c -> a"},
		},
		"on itself": {graph: []string{"a: a"}, want: []string{"a -> a: Circular a -> a"}},
	} {
		t.Run(name, func(t *testing.T) {
			verdictOf := evaluateAll(graph(tc.graph...), tc.seen)
			var got []string
			for _, root := range Roots("a", verdictOf("a").Unmet(), verdictOf) {
				got = append(got, strings.TrimSpace(Way(root.Way)+": "+string(root.Cause)+" "+Way(root.Cycle)))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("roots (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDependents(t *testing.T) {
	for name, tc := range map[string]struct {
		graph  []string
		absent string
		want   []string // type, name and the add-ons in between
	}{
		"no dependents": {graph: []string{"a: b", "b:"}},
		"those that require it stop, those to which it is Optional are degraded": {
			graph: []string{"z: a?", "y: a", "x: a"}, want: []string{"Required x", "Required y", "Optional z"},
		},
		"what requires one that stops, stops too": {
			graph: []string{"x: a", "y: x", "z: y"}, want: []string{"Required x", "Required y over x", "Required z over x -> y"},
		},
		"another add-on that satisfies a dependency keeps the dependent": {graph: []string{"x: a|b", "b:"}},
		"one that is an alternative":                                     {graph: []string{"x: b|a", "b:"}, absent: "b", want: []string{"Required x"}},
		"all that satisfy a dependency stop": {
			graph: []string{"x: a|y", "y: a"}, want: []string{"Required y", "Required x over y"},
		},
		"an alternative that is only degraded keeps the dependent": {graph: []string{"x: y|a", "y: a?"}, want: []string{"Optional y"}},
		"to be degraded is not handed on":                          {graph: []string{"x: a?", "y: x"}, want: []string{"Optional x"}},
		"one that stops degrades others": {
			graph: []string{"x: a", "y: x?"}, want: []string{"Required x", "Optional y over x"},
		},
		"who suffers both ways stops": {
			graph: []string{"x: a? y", "y: a"}, want: []string{"Required y", "Required x over y"},
		},
		"by the shortest way": {
			graph: []string{"x: a", "y: x", "z: y a"}, want: []string{"Required x", "Required z", "Required y over x"},
		},
		"each at the end of a chain that forks has its own way": {
			graph: []string{"u: a", "v: u", "w: v", "x1: w", "x2: w", "y1: x1", "y2: x2"},
			want: []string{"Required u", "Required v over u", "Required w over u -> v", "Required x1 over u -> v -> w",
				"Required x2 over u -> v -> w", "Required y1 over u -> v -> w -> x1", "Required y2 over u -> v -> w -> x2"},
		},
		"a cycle terminates": {
			graph: []string{"a: y", "x: a", "y: x"}, want: []string{"Required x", "Required y over x"},
		},
		"what is not there hands nothing on": {graph: []string{"x: a", "y: x"}, absent: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			there := func(name string) bool { return name != tc.absent }
			for _, d := range Dependents("a", Direct(graph(tc.graph...)), there, func(_, _, other string) bool { return there(other) }) {
				line := string(d.Type) + " " + d.Name
				if len(d.Through) > 0 {
					line += " over " + Way(d.Through)
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("dependents (-want +got):\n%s", diff)
			}
		})
	}
}
