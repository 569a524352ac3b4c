package dependency

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/selector"
)

// oneOf returns a Required dependency on the first of the add-ons, with the others as alternatives.
func oneOf(names ...string) addonv1alpha1.AddonDependency {
	return addonv1alpha1.AddonDependency{Name: names[0], Type: required, Alternatives: names[1:]}
}

// where returns the dependency on clusters with a label.
func where(label string, need addonv1alpha1.AddonDependency) addonv1alpha1.AddonDependency {
	need.Clusters = &addonv1alpha1.ClusterSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "true"}}}
	return need
}

func TestAlternatives(t *testing.T) {
	withVersion := func(constraint string, need addonv1alpha1.AddonDependency) addonv1alpha1.AddonDependency {
		need.Version = constraint
		return need
	}
	runningVersion := func(version string) Seen {
		seen := available
		seen.Versions = Versions{Installed: version}
		return seen
	}
	unreadVersion := available
	unreadVersion.Versions = Versions{Unread: true}
	const (
		noA    = "Required addon 'a' is not installed or not available"
		noneOf = noA + "; alternative 'b' is not installed or not available."
	)
	for name, tc := range map[string]struct {
		need     addonv1alpha1.AddonDependency
		seen     map[string]Seen
		previous *metav1.Condition
		by       string
		message  string
		cause    Cause
		notReady bool
	}{
		"the named one satisfies":          {need: oneOf("a", "b"), seen: map[string]Seen{"a": available}, by: "a"},
		"an alternative satisfies":         {need: oneOf("a", "b"), seen: map[string]Seen{"b": available}, by: "b"},
		"the named one precedes":           {need: oneOf("a", "b"), seen: map[string]Seen{"a": available, "b": available}, by: "a"},
		"one that fails is replaced":       {need: oneOf("a", "b", "c"), seen: map[string]Seen{"a": unavailable, "b": deleting, "c": available}, by: "c"},
		"one that is ready precedes":       {need: oneOf("a", "b"), seen: map[string]Seen{"a": updating, "b": available}, by: "b"},
		"one that is updated is not ready": {need: oneOf("a", "b"), seen: map[string]Seen{"a": updating}, by: "a", notReady: true},
		"one that is reachable precedes":   {need: oneOf("a", "b"), seen: map[string]Seen{"a": cutOff, "b": available}, by: "b"},
		"a cycle over one leaves the other": {
			need: oneOf("a", "b"), seen: map[string]Seen{"a": onCycle(available, "x", "a", "x"), "b": available}, by: "b",
		},
		"none exists": {need: oneOf("a", "b"), by: "a", message: noneOf, cause: NoSuchAddOn, notReady: true},
		"one that can be installed comes closer than one that does not exist": {
			need: oneOf("a", "b"), seen: map[string]Seen{"b": notOnIt}, by: "b", message: noneOf, cause: NotInstalled, notReady: true,
		},
		"one that fails comes closer than one that is not installed": {
			need: oneOf("a", "b"), seen: map[string]Seen{"a": notOnIt, "b": unavailable}, by: "b", message: noneOf, cause: NotAvailable, notReady: true,
		},
		"the constraint holds for the alternative, too": {
			need: withVersion(">=2", oneOf("a", "b")), seen: map[string]Seen{"b": runningVersion("1.0")}, by: "b",
			message: noA + "; alternative 'b' runs version 1.0, which does not satisfy >=2.", cause: VersionMismatch, notReady: true,
		},
		"another version of the named one, and an alternative that fits": {
			need: withVersion(">=2", oneOf("a", "b")), seen: map[string]Seen{"a": runningVersion("1.0"), "b": runningVersion("2.1")}, by: "b",
		},
		"one on a cycle comes closer than one that does not exist": {
			need: oneOf("a", "b"), seen: map[string]Seen{"b": onCycle(available, "x", "b", "x")}, by: "b",
			message: noA + "; alternative 'b' is part of circular dependency x -> b -> x.", cause: Circular, notReady: true,
		},
		"all on cycles": {
			need: oneOf("a", "b"), seen: map[string]Seen{"a": onCycle(available, "x", "a", "x"), "b": onCycle(available, "x", "b", "x")}, by: "a",
			message: "Required addon 'a' is part of circular dependency x -> a -> x; alternative 'b' is part of circular dependency x -> b -> x.",
			cause:   Circular, notReady: true,
		},
		"hold: cut off and satisfied before": {need: oneOf("a", "b"), seen: map[string]Seen{"b": cutOff}, by: "b", notReady: true},
		"hold: cut off and unmet before": {
			need: oneOf("a", "b"), seen: map[string]Seen{"b": cutOff}, previous: degradedCondition("RequiredDependencyNotSatisfied", noneOf), by: "b",
			message: noneOf, cause: Unknown, notReady: true,
		},
		"versions that were not read: the last verdict counts": {
			need: withVersion(">=2", oneOf("a", "b")), seen: map[string]Seen{"b": unreadVersion}, by: "b",
			previous: degradedCondition("RequiredDependencyNotSatisfied", noA+"; alternative 'b' runs version 1.0, which does not satisfy >=2."),
			message:  noA + "; alternative 'b' runs version 1.0, which does not satisfy >=2.", cause: VersionMismatch, notReady: true,
		},
		"versions that were not read: the mismatch of another candidate does not count": {
			need: withVersion(">=2", oneOf("a", "b")), seen: map[string]Seen{"b": unreadVersion}, by: "b",
			previous: degradedCondition("RequiredDependencyNotSatisfied", "Required addon 'a' runs version 1.0, which does not satisfy >=2; "+
				"alternative 'b' is not installed or not available."),
		},
	} {
		t.Run(name, func(t *testing.T) {
			verdict := Evaluate([]addonv1alpha1.AddonDependency{tc.need}, tc.seen, tc.previous)
			got := verdict[0]
			if got.By != tc.by || got.Name != tc.need.Name || got.Cause != tc.cause || got.Satisfied != (tc.cause == "") {
				t.Errorf("got %s by %s: %q; want by %s: %q", got.Name, got.By, got.Cause, tc.by, tc.cause)
			}
			if message := verdict.Message(); message != tc.message {
				t.Errorf("message:\ngot  %s\nwant %s", message, tc.message)
			}
			if notReady := len(verdict.NotReady()) > 0; notReady != tc.notReady {
				t.Errorf("not ready: got %v, want %v", notReady, tc.notReady)
			}
			if tc.cause != "" {
				if known := UnmetFrom(verdict.Condition()); len(known) != 1 || known[0].Name != tc.need.Name {
					t.Errorf("the condition names %v", known)
				}
			}
		})
	}
}

func TestOn(t *testing.T) {
	needs := []addonv1alpha1.AddonDependency{oneOf("a"), where("gpu", oneOf("b")), where("arm", oneOf("c"))}
	for name, tc := range map[string]struct {
		cluster selector.Cluster
		want    []string
	}{
		"a cluster without labels":   {selector.Cluster{Name: "x"}, []string{"a"}},
		"a cluster that one selects": {selector.Cluster{Labels: map[string]string{"gpu": "true"}}, []string{"a", "b"}},
		"a cluster that both select": {selector.Cluster{Labels: map[string]string{"gpu": "true", "arm": "true"}}, []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, CandidatesOf(On(needs, tc.cluster))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([]string{"a"}, CandidatesOf(Everywhere(needs))); diff != "" {
		t.Errorf("everywhere (-want +got):\n%s", diff)
	}
}

// drawNeeds draws dependencies on a few add-ons.
func drawNeeds(t *rapid.T) []addonv1alpha1.AddonDependency {
	names := []string{"a", "b", "c", "d", "e"}
	var needs []addonv1alpha1.AddonDependency
	for i, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 4, rapid.ID[string]).Draw(t, "names") {
		need := addonv1alpha1.AddonDependency{Name: name, Type: rapid.SampledFrom([]addonv1alpha1.DependencyType{required, optional}).Draw(t, fmt.Sprint("type", i))}
		for _, other := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID[string]).Draw(t, fmt.Sprint("alternatives", i)) {
			if other != name {
				need.Alternatives = append(need.Alternatives, other)
			}
		}
		if rapid.Bool().Draw(t, fmt.Sprint("selects", i)) {
			need = where(rapid.SampledFrom([]string{"gpu", "arm"}).Draw(t, fmt.Sprint("label", i)), need)
		}
		needs = append(needs, need)
	}
	return needs
}

func drawSeen(t *rapid.T) map[string]Seen {
	seen := map[string]Seen{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		seen[name] = rapid.SampledFrom([]Seen{
			{}, available, unavailable, silent, unknown, updating, cutOff, deleting, notOnIt, onCycle(available, "x", name, "x"),
		}).Draw(t, name)
	}
	return seen
}

// unmetNames returns the names of what is not satisfied.
func unmetNames(v Verdict) map[string]bool {
	names := map[string]bool{}
	for _, j := range v.Unmet() {
		names[j.Name] = true
	}
	return names
}

// A selector never adds a dependency, and an alternative never makes a dependency unmet that was satisfied without it.
func TestSelectorsAndAlternativesOnlyRelax(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		needs, seen := drawNeeds(t), drawSeen(t)
		cluster := selector.Cluster{Labels: map[string]string{"gpu": rapid.SampledFrom([]string{"true", "false"}).Draw(t, "gpu")}}
		all := unmetNames(Evaluate(needs, seen, nil))
		for name := range unmetNames(Evaluate(On(needs, cluster), seen, nil)) {
			if !all[name] {
				t.Fatalf("%s is unmet only with a selector", name)
			}
		}
		strict := make([]addonv1alpha1.AddonDependency, len(needs))
		for i, need := range needs {
			need.Alternatives = nil
			strict[i] = need
		}
		for name := range all {
			if !unmetNames(Evaluate(strict, seen, nil))[name] {
				t.Fatalf("%s is unmet only with alternatives", name)
			}
		}
	})
}

// The verdict on a dependency does not depend on the order of its alternatives, nor on that of the dependencies.
func TestVerdictsDoNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		needs, seen := drawNeeds(t), drawSeen(t)
		shuffled := rapid.Permutation(needs).Draw(t, "order")
		for i := range shuffled {
			shuffled[i].Alternatives = rapid.Permutation(shuffled[i].Alternatives).Draw(t, fmt.Sprint("order", i))
		}
		before, after := Evaluate(needs, seen, nil), Evaluate(shuffled, seen, nil)
		if diff := cmp.Diff(unmetNames(before), unmetNames(after)); diff != "" {
			t.Fatalf("unmet (-before +after):\n%s", diff)
		}
		if before.Reason() != after.Reason() || len(before.NotReady()) != len(after.NotReady()) {
			t.Fatalf("%s with %d not ready, then %s with %d", before.Reason(), len(before.NotReady()), after.Reason(), len(after.NotReady()))
		}
	})
}

// A verdict that was written is held while nothing is known: a second evaluation says the same.
func TestVerdictsWithAlternativesAreHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		needs, seen := drawNeeds(t), drawSeen(t)
		for name, s := range seen {
			if len(s.Cycle) > 0 {
				seen[name] = available
			}
		}
		first := Evaluate(needs, seen, nil)
		for name := range seen {
			seen[name] = cutOff
		}
		held := Evaluate(needs, seen, first.Condition())
		if diff := cmp.Diff(unmetNames(first), unmetNames(held)); diff != "" {
			t.Fatalf("unmet (-first +held):\n%s\nfirst: %s", diff, strings.ReplaceAll(first.Message(), "\n", " | "))
		}
	})
}
