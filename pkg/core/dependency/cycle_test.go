package dependency

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// graph parses lines of the form "a: b c" into the dependencies of each add-on. A ? after a name makes that dependency Optional.
func graph(lines ...string) map[string][]addonv1alpha1.AddonDependency {
	g := map[string][]addonv1alpha1.AddonDependency{}
	for _, line := range lines {
		name, needs, _ := strings.Cut(line, ":")
		g[name] = []addonv1alpha1.AddonDependency{}
		for need := range strings.FieldsSeq(needs) {
			need, isOptional := strings.CutSuffix(need, "?")
			t := required
			if isOptional {
				t = optional
			}
			need, alternatives, isOneOf := strings.Cut(need, "|")
			one := addonv1alpha1.AddonDependency{Name: need, Type: t}
			if isOneOf {
				one.Alternatives = strings.Split(alternatives, "|")
			}
			g[name] = append(g[name], one)
		}
	}
	return g
}

// in returns a function that looks names up in g.
func in(g map[string][]addonv1alpha1.AddonDependency) func(string) []addonv1alpha1.AddonDependency {
	return func(name string) []addonv1alpha1.AddonDependency { return g[name] }
}

func TestCycle(t *testing.T) {
	for name, tc := range map[string]struct {
		graph       []string
		addOn, need string
		want        []string
	}{
		"nothing leads back":                          {graph: []string{"a: b", "b: c", "c:"}, addOn: "a", need: "b"},
		"a dependency that no add-on declares":        {graph: []string{"a: b"}, addOn: "a", need: "b"},
		"on itself":                                   {graph: []string{"a: a"}, addOn: "a", need: "a", want: []string{"a", "a"}},
		"two members":                                 {graph: []string{"a: b", "b: a"}, addOn: "a", need: "b", want: []string{"a", "b", "a"}},
		"three members":                               {graph: []string{"a: b", "b: c", "c: a"}, addOn: "b", need: "c", want: []string{"b", "c", "a", "b"}},
		"an Optional dependency closes a cycle too":   {graph: []string{"a: b?", "b: a"}, addOn: "b", need: "a", want: []string{"b", "a", "b"}},
		"another dependency of a member is on none":   {graph: []string{"a: b x", "b: a", "x:"}, addOn: "a", need: "x"},
		"who depends on a member is on none":          {graph: []string{"x: a", "a: b", "b: a"}, addOn: "x", need: "a"},
		"a cycle of a dependency only":                {graph: []string{"x: a", "a: a"}, addOn: "x", need: "a"},
		"a need that is not declared yet, on a write": {graph: []string{"b: a"}, addOn: "a", need: "b", want: []string{"a", "b", "a"}},
		"over an alternative":                         {graph: []string{"a: b", "b: c|d", "d: a"}, addOn: "a", need: "b", want: []string{"a", "b", "d", "a"}},
		"from an alternative":                         {graph: []string{"a: b|c", "c: a"}, addOn: "a", need: "c", want: []string{"a", "c", "a"}},
		"the shortest way": {
			graph: []string{"a: b", "b: c d", "c: e", "e: a", "d: a"}, addOn: "a", need: "b", want: []string{"a", "b", "d", "a"},
		},
		"of ways as short the one declared first": {
			graph: []string{"a: b", "b: d c", "c: a", "d: a"}, addOn: "a", need: "b", want: []string{"a", "b", "d", "a"},
		},
		"two circular dependencies have a cycle each": {
			graph: []string{"a: b c", "b: a", "c: d", "d: a"}, addOn: "a", need: "c", want: []string{"a", "c", "d", "a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Cycle(tc.addOn, tc.need, in(graph(tc.graph...)))); diff != "" {
				t.Errorf("cycle (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWay(t *testing.T) {
	way := func(n int) []string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprint(i)
		}
		return names
	}
	for name, tc := range map[string]struct {
		names []string
		want  string
	}{
		"a short one":                        {way(3), "0 -> 1 -> 2"},
		"one that is as long as is shown":    {way(16), "0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 8 -> 9 -> 10 -> 11 -> 12 -> 13 -> 14 -> 15"},
		"the middle of a longer one is left": {way(100), "0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 8 -> 9 -> 10 -> 11 -> 12 -> (85 more) -> 98 -> 99"},
		"a name is one word of one line":     {[]string{"a\nb", "c\xff"}, "a b -> c\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Way(tc.names)); diff != "" {
				t.Errorf("way (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheMessageOfALongCycleIsBounded(t *testing.T) {
	way := []string{"a", "b"}
	for range 10000 {
		way = append(way, strings.Repeat("é", 126))
	}
	way = append(way, "a")
	var needs []addonv1alpha1.AddonDependency
	seen := map[string]Seen{}
	for i := range 20 {
		needs = append(needs, addonv1alpha1.AddonDependency{Name: fmt.Sprint("b", i)})
		seen[needs[i].Name] = onCycle(available, way...)
	}
	one := Evaluate(needs[:1], seen, nil).Message()
	if !strings.HasPrefix(one, "circular dependency: a -> b -> ") || !strings.HasSuffix(one, " -> a") || len(one) > 16*260 {
		t.Errorf("%d bytes: %.80q", len(one), one)
	}
	all := Evaluate(needs, seen, nil).Message()
	if len(all) > MessageLimit || !utf8.ValidString(all) || !strings.HasSuffix(all, " more dependencies are not satisfied.") {
		t.Errorf("%d bytes, valid UTF-8: %v, ends with %q", len(all), utf8.ValidString(all), all[len(all)-80:])
	}
}

// TestCycleProperties compares Cycle with the transitive closure of random graphs.
func TestCycleProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		g := randomGraph(random)
		reach := closure(g)
		for addOn := range g {
			for need := range g {
				cycle := Cycle(addOn, need, in(g))
				if want := need == addOn || reach[need][addOn]; (cycle != nil) != want {
					t.Fatalf("Cycle(%s, %s) is %v, want one: %v\n%v", addOn, need, cycle, want, g)
				}
				if cycle != nil {
					checkCycle(t, g, cycle, addOn, need)
				}
			}
		}
	}
}

// checkCycle checks that cycle leads from addOn over need back along dependencies, and contains no other add-on twice.
func checkCycle(t *testing.T, g map[string][]addonv1alpha1.AddonDependency, cycle []string, addOn, need string) {
	t.Helper()
	met := map[string]bool{}
	for i, name := range cycle[1:] {
		if met[name] {
			t.Fatalf("%v meets %s twice", cycle, name)
		}
		met[name] = true
		if i > 0 && !slices.Contains(CandidatesOf(g[cycle[i]]), name) {
			t.Fatalf("%v: %s does not depend on %s", cycle, cycle[i], name)
		}
	}
	if last := cycle[len(cycle)-1]; cycle[0] != addOn || cycle[1] != need || last != addOn {
		t.Fatalf("%v is no cycle from %s over %s", cycle, addOn, need)
	}
	if again := Cycle(addOn, need, in(g)); cmp.Diff(cycle, again) != "" {
		t.Fatalf("once %v, then %v", cycle, again)
	}
}

func randomGraph(random *rand.Rand) map[string][]addonv1alpha1.AddonDependency {
	g := map[string][]addonv1alpha1.AddonDependency{}
	n := 1 + random.IntN(9)
	density := random.Float64() / 2
	for a := range n {
		name := fmt.Sprint("n", a)
		g[name] = []addonv1alpha1.AddonDependency{}
		for _, b := range random.Perm(n) {
			if random.Float64() < density {
				kind := []addonv1alpha1.DependencyType{required, optional}[random.IntN(2)]
				g[name] = append(g[name], addonv1alpha1.AddonDependency{Name: fmt.Sprint("n", b), Type: kind})
			}
		}
	}
	return g
}

// closure returns the transitive dependencies of each add-on (Warshall).
func closure(g map[string][]addonv1alpha1.AddonDependency) map[string]map[string]bool {
	reach := map[string]map[string]bool{}
	for name, needs := range g {
		reach[name] = map[string]bool{}
		for _, need := range needs {
			reach[name][need.Name] = true
		}
	}
	for over := range g {
		for from := range g {
			for to := range g {
				reach[from][to] = reach[from][to] || reach[from][over] && reach[over][to]
			}
		}
	}
	return reach
}
