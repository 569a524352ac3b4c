package dependency

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// clusterOf reads add-ons of a cluster: "shop- kafka" is shop, which is being deleted and depends on kafka, "a! b|c" is a, which is not available and
// depends on b or c, and a trailing "?" makes a dependency Optional.
func clusterOf(lines ...string) map[string]Installed {
	on := map[string]Installed{}
	for _, line := range lines {
		words := strings.Fields(line)
		name, going := strings.CutSuffix(words[0], "-")
		name, broken := strings.CutSuffix(name, "!")
		installed := Installed{Seen: Seen{Defined: true, Installed: true, Deleting: going, Available: metav1.ConditionTrue}}
		if broken {
			installed.Available = metav1.ConditionFalse
		}
		for _, word := range words[1:] {
			word, optional := strings.CutSuffix(word, "?")
			candidates := strings.Split(word, "|")
			need := addonv1alpha1.AddonDependency{Name: candidates[0], Type: addonv1alpha1.DependencyTypeRequired}
			if optional {
				need.Type = addonv1alpha1.DependencyTypeOptional
			}
			need.Alternatives = candidates[1:]
			installed.Needs = append(installed.Needs, need)
		}
		on[name] = installed
	}
	return on
}

func TestRemovalOf(t *testing.T) {
	for name, test := range map[string]struct {
		on   []string
		want Removal
	}{
		"an add-on without dependents waits for none":            {[]string{"d-", "x-"}, Removal{}},
		"one that is deleted goes first":                         {[]string{"d-", "x- d"}, Removal{First: []string{"x"}}},
		"so does one that depends optionally":                    {[]string{"d-", "x- d?"}, Removal{First: []string{"x"}}},
		"one that is not deleted does not":                       {[]string{"d-", "x d"}, Removal{Staying: []string{"x"}}},
		"all that are deleted go first":                          {[]string{"d-", "y- d", "x- d", "z d"}, Removal{First: []string{"x", "y"}, Staying: []string{"z"}}},
		"an indirect one does not hold it up itself":             {[]string{"d-", "x- d", "y- x"}, Removal{First: []string{"x"}}},
		"the end of a chain waits for none":                      {[]string{"x- d", "d- e", "e"}, Removal{First: []string{"x"}}},
		"members of a cycle go together":                         {[]string{"d- x", "x- d"}, Removal{}},
		"a longer cycle, too":                                    {[]string{"d- y", "x- d", "y- x"}, Removal{}},
		"a dependent of a cycle goes before it":                  {[]string{"d- x", "x- d", "y- d"}, Removal{First: []string{"y"}}},
		"a cycle through an add-on that stays is none":           {[]string{"d- y", "x- d", "y x"}, Removal{First: []string{"x"}}},
		"an alternative that works and stays serves instead":     {[]string{"d-", "a", "x- d|a"}, Removal{}},
		"also if it is the add-on that is named":                 {[]string{"d-", "a", "x- a|d"}, Removal{}},
		"an alternative that does not work serves nothing":       {[]string{"d-", "a!", "x- d|a"}, Removal{First: []string{"x"}}},
		"one that is deleted serves nothing either":              {[]string{"d-", "a-", "x- d|a"}, Removal{First: []string{"x"}}},
		"one that is not installed serves nothing either":        {[]string{"d-", "x- d|a"}, Removal{First: []string{"x"}}},
		"a dependency on itself holds nothing up":                {[]string{"d- d"}, Removal{}},
		"another dependency on the add-on is not served instead": {[]string{"d-", "a", "x- a|d d"}, Removal{First: []string{"x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, RemovalOf("d", clusterOf(test.on...))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRemovalOfChecksVersions(t *testing.T) {
	on := clusterOf("d-", "a", "x- d|a")
	x, a := on["x"], on["a"]
	x.Needs[0].Version = ">=2"
	a.Versions = Versions{Installed: "1.0.0"}
	on["a"] = a
	if diff := cmp.Diff(Removal{First: []string{"x"}}, RemovalOf("d", on)); diff != "" {
		t.Errorf("an alternative of another version: %s", diff)
	}
	a.Versions = Versions{Installed: "2.0.0"}
	on["a"] = a
	if diff := cmp.Diff(Removal{}, RemovalOf("d", on)); diff != "" {
		t.Errorf("an alternative of that version: %s", diff)
	}
}

// Any add-ons that are deleted together are removed completely, each after all that depend on it, except for members of a cycle.
func TestRemovalIsOrdered(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0))
		var names, lines []string
		for i := range 2 + random.IntN(6) {
			names = append(names, fmt.Sprint("a", i))
		}
		for _, name := range names {
			line := name + "-"
			if random.IntN(5) == 0 {
				line = name
			}
			for _, other := range names {
				if random.IntN(4) == 0 {
					line += " " + other
				}
			}
			lines = append(lines, line)
		}
		on := clusterOf(lines...)
		for {
			going := slices.DeleteFunc(slices.Sorted(maps.Keys(on)), func(name string) bool { return !on[name].Deleting })
			if len(going) == 0 {
				break
			}
			ready := slices.DeleteFunc(slices.Clone(going), func(name string) bool { return len(RemovalOf(name, on).First) > 0 })
			if len(ready) == 0 {
				t.Fatalf("seed %d: %v wait for each other: %v", seed, going, lines)
			}
			next := ready[random.IntN(len(ready))]
			for _, dependent := range going {
				if dependent != next && on[dependent].uses(next, on) && !deletedBelow(next, on)[dependent] {
					t.Fatalf("seed %d: %s goes before %s, which depends on it: %v", seed, next, dependent, lines)
				}
			}
			delete(on, next)
		}
	}
}

func TestRemovalDelay(t *testing.T) {
	deleted := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	staying := Removal{Staying: []string{"x"}}
	for name, test := range map[string]struct {
		removal Removal
		after   time.Duration
		want    time.Duration
	}{
		"without dependents there is none":                 {Removal{}, 0, 0},
		"dependents may be deleted right after the add-on": {staying, time.Second, 2 * time.Second},
		"but not later": {staying, 3 * time.Second, 0},
		"a clock that is a little late extends it":             {staying, -time.Second, 4 * time.Second},
		"a clock that is wrong does not hold up the removal":   {staying, -time.Hour, 0},
		"nor does one that is wrong in the other direction":    {staying, time.Hour, 0},
		"without dependents that stay, none has to be awaited": {Removal{First: []string{"x"}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.removal.Delay(deleted, deleted.Add(test.after)); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestRemovalMessage(t *testing.T) {
	for want, removal := range map[string]Removal{
		"": {Staying: []string{"x"}},
		"it is removed once kafka is gone, which depends on it":       {First: []string{"kafka"}},
		"it is removed once kafka, shop are gone, which depend on it": {First: []string{"kafka", "shop"}},
	} {
		if got := removal.Message(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEvaluateDeferred(t *testing.T) {
	need := []addonv1alpha1.AddonDependency{{Name: "d", Type: addonv1alpha1.DependencyTypeRequired, Alternatives: []string{"a"}}}
	seen := func(available metav1.ConditionStatus, deferred bool) Seen {
		return Seen{Defined: true, Installed: true, Deleting: true, Deferred: deferred, Available: available}
	}
	for name, test := range map[string]struct {
		d, a      Seen
		cause     Cause
		by        string
		installed bool // whether a dependent can be installed
	}{
		"a removal that has started counts":                       {seen("True", false), Seen{Defined: true}, Deleting, "d", false},
		"a removal that is deferred does not":                     {seen("True", true), Seen{Defined: true}, "", "d", false},
		"an add-on that does not work is not available even then": {seen("False", true), Seen{Defined: true}, NotAvailable, "d", false},
		"an alternative that stays is preferred": {seen("True", true),
			Seen{Defined: true, Installed: true, Available: "True"}, "", "a", true},
	} {
		t.Run(name, func(t *testing.T) {
			verdict := Evaluate(need, map[string]Seen{"d": test.d, "a": test.a}, nil)
			if j := verdict[0]; j.Cause != test.cause || j.By != test.by {
				t.Errorf("got cause %q of %s, want %q of %s", j.Cause, j.By, test.cause, test.by)
			}
			if got := len(verdict.NotReady()) == 0; got != test.installed {
				t.Errorf("a dependent can be installed: got %v, want %v", got, test.installed)
			}
		})
	}
}
