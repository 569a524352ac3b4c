package dependency_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/selector"
)

// drawStack draws up to eight add-ons with up to four versions. Each may depend on earlier ones: in a version, with alternatives, on some clusters, optionally,
// with install Auto and with removal Protect.
func drawStack(t *rapid.T) (needs map[string][]addonv1alpha1.AddonDependency, releases map[string][]dependency.Release) {
	constraints := []string{"", "<2", ">=1 <3", ">=2", "<3", ">=3"}
	needs, releases = map[string][]addonv1alpha1.AddonDependency{}, map[string][]dependency.Release{}
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}[:rapid.IntRange(2, 8).Draw(t, "add-ons")]
	for i, name := range names {
		for j := range i {
			if rapid.IntRange(0, 3).Draw(t, "depends") > 1 {
				continue
			}
			need := addonv1alpha1.AddonDependency{Name: names[j], Type: addonv1alpha1.DependencyTypeRequired}
			for _, other := range names[j+1 : i] {
				if rapid.IntRange(0, 3).Draw(t, "alternative") == 0 {
					need.Alternatives = append(need.Alternatives, other)
				}
			}
			drawFields(t, &need)
			needs[name] = append(needs[name], need)
		}
		for version := 1; version <= 4; version++ {
			r := dependency.Release{Name: fmt.Sprintf("%s-%d", name, version), Version: fmt.Sprintf("%d.0.0", version)}
			for _, on := range dependency.CandidatesOf(needs[name]) {
				if c := rapid.SampledFrom(constraints).Draw(t, "constraint"); c != "" {
					r.Constraints = append(r.Constraints, kudo.DependencyConstraint{Name: on, Version: c})
				}
			}
			releases[name] = append(releases[name], r)
		}
	}
	return needs, releases
}

// drawFields draws the optional fields of a dependency.
func drawFields(t *rapid.T, need *addonv1alpha1.AddonDependency) {
	need.Version = rapid.SampledFrom([]string{"", "", "", ">=1 <5"}).Draw(t, "version")
	if rapid.IntRange(0, 4).Draw(t, "optional") == 0 {
		need.Type = addonv1alpha1.DependencyTypeOptional
	} else if rapid.Bool().Draw(t, "protects") {
		need.Removal = addonv1alpha1.RemovalProtect
	}
	if rapid.Bool().Draw(t, "automatic") {
		need.Install = addonv1alpha1.InstallAuto
	}
	if rapid.IntRange(0, 3).Draw(t, "selects") == 0 {
		need.Clusters = &addonv1alpha1.ClusterSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "true"}}}
	}
}

// lawful reports whether an add-on may change, written without the code under test: no constraint of a required dependency with a candidate that is
// installed is violated while both versions run and after that, except one that was violated before. It interprets constraints by majors only.
func lawful(name string, on map[string]dependency.Member) bool {
	during, after := maps.Clone(on), maps.Clone(on)
	m := on[name]
	during[name] = dependency.Member{Needs: m.Needs, Runs: append(slices.Clone(m.Runs), *m.Wants)}
	after[name] = dependency.Member{Needs: m.Needs, Runs: []dependency.Release{*m.Wants}}
	for other, member := range during {
		for _, need := range member.Needs {
			for _, r := range member.Runs {
				isNew := other == name && r.Name == m.Wants.Name
				if violates(need, r, on) && !isNew {
					continue
				}
				if violates(need, r, on) || violates(need, r, during) || (isNew || other != name) && violates(need, r, after) {
					return false
				}
			}
		}
	}
	return true
}

// violates reports whether candidates of a required dependency are installed, and all in versions that a release excludes.
func violates(need addonv1alpha1.AddonDependency, r dependency.Release, on map[string]dependency.Member) bool {
	if need.Type == addonv1alpha1.DependencyTypeOptional {
		return false
	}
	installed := slices.DeleteFunc(dependency.Candidates(need), func(c string) bool { return len(on[c].Runs) == 0 })
	return len(installed) > 0 && !slices.ContainsFunc(installed, func(c string) bool {
		return !slices.ContainsFunc(on[c].Runs, func(run dependency.Release) bool {
			return slices.ContainsFunc(r.Constraints, func(own kudo.DependencyConstraint) bool {
				return own.Name == c && !inRange(int(run.Version[0]-'0'), own.Version)
			})
		})
	})
}

func inRange(major int, constraint string) bool {
	for _, part := range strings.Fields(constraint) {
		limit := int(part[len(part)-1] - '0')
		if strings.HasPrefix(part, ">=") && major < limit || strings.HasPrefix(part, "<") && major >= limit {
			return false
		}
	}
	return true
}

// afterChange returns the fleet after the change of an add-on.
func afterChange(name string, on map[string]dependency.Member) map[string]dependency.Member {
	next := maps.Clone(on)
	next[name] = dependency.Member{Needs: on[name].Needs, Runs: []dependency.Release{*on[name].Wants}}
	return next
}

// waitingIn returns the add-ons that want another version, sorted.
func waitingIn(on map[string]dependency.Member) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(on)), func(name string) bool { return on[name].Wants == nil })
}

// existsOrder searches all orders for one in which all add-ons change.
func existsOrder(on map[string]dependency.Member, dead map[string]bool) bool {
	waiting := waitingIn(on)
	key := strings.Join(waiting, " ")
	if len(waiting) == 0 || dead[key] {
		return len(waiting) == 0
	}
	for _, name := range waiting {
		if lawful(name, on) && existsOrder(afterChange(name, on), dead) {
			return true
		}
	}
	dead[key] = true
	return false
}

// TestUpgradesFindAnOrder plays the requests for versions of drawn add-ons in a drawn order: no start violates a constraint, all versions run in the end if an
// order exists, and a deadlock is named only if there is none.
func TestUpgradesFindAnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		needs, releases := drawStack(t)
		cluster := selector.Cluster{Labels: map[string]string{"gpu": rapid.SampledFrom([]string{"true", "false"}).Draw(t, "gpu")}}
		on := map[string]dependency.Member{}
		for _, name := range slices.Sorted(maps.Keys(releases)) {
			m := dependency.Member{Needs: dependency.On(needs[name], cluster)}
			if rapid.IntRange(0, 7).Draw(t, "installed") > 0 {
				m.Runs = []dependency.Release{rapid.SampledFrom(releases[name][:2]).Draw(t, "runs")}
			}
			if wants := rapid.SampledFrom(releases[name]).Draw(t, "wants"); len(m.Runs) > 0 && wants.Name != m.Runs[0].Name {
				m.Wants = &wants
			}
			on[name] = m
		}
		play := maps.Clone(on)
		for range 2 * len(on) {
			solvable := existsOrder(play, map[string]bool{})
			var starts []string
			for _, name := range waitingIn(play) {
				reason := dependency.WaitReason(name, play, func(addOn string) []dependency.Release { return releases[addOn] })
				if reason == "" {
					starts = append(starts, name)
				}
				if solvable && strings.Contains(reason, "deadlock") {
					t.Fatalf("an order exists, and a deadlock is named: %s", reason)
				}
			}
			if len(starts) == 0 {
				if solvable && len(waitingIn(play)) > 0 {
					t.Fatalf("an order exists, and nothing starts: %v wait", waitingIn(play))
				}
				return
			}
			name := rapid.SampledFrom(starts).Draw(t, "starts")
			if !lawful(name, play) {
				t.Fatalf("the change of %s to %s violates a constraint", name, play[name].Wants.Name)
			}
			if play = afterChange(name, play); solvable && !existsOrder(play, map[string]bool{}) {
				t.Fatalf("no order exists after the change of %s, and one did before", name)
			}
		}
	})
}

// TestRemovalsAreTopological deletes drawn add-ons at the same time: each is removed after its dependents, and none waits forever.
func TestRemovalsAreTopological(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		needs, releases := drawStack(t)
		on, leaving := map[string]dependency.Installed{}, 0
		for _, name := range slices.Sorted(maps.Keys(releases)) {
			installed := dependency.Installed{Needs: needs[name]}
			installed.Installed, installed.Available = true, metav1.ConditionTrue
			installed.Versions.Installed = "1.0.0"
			if installed.Deleting = rapid.IntRange(0, 3).Draw(t, "deleted") > 0; installed.Deleting {
				leaving++
			}
			on[name] = installed
		}
		for ; leaving > 0; leaving-- {
			var free []string
			for _, name := range slices.Sorted(maps.Keys(on)) {
				if on[name].Deleting && len(dependency.RemovalOf(name, on).First) == 0 {
					free = append(free, name)
				}
			}
			if len(free) == 0 {
				t.Fatalf("all wait for each other: %v", on)
			}
			name := rapid.SampledFrom(free).Draw(t, "removed")
			for other, installed := range on {
				for _, need := range installed.Needs {
					served := slices.ContainsFunc(dependency.Candidates(need), func(c string) bool { _, there := on[c]; return c != name && there && !on[c].Deleting })
					if slices.Contains(dependency.Candidates(need), name) && installed.Deleting && !served {
						t.Fatalf("%s is removed before %s, which depends on it", name, other)
					}
				}
			}
			delete(on, name)
		}
	})
}

// TestAutomaticIsMonotone applies what install Auto decides until nothing changes: nothing that is enabled is disabled before a dependent is deleted, whatever
// selectors select, it ends, and what has been enabled goes once no add-on needs it.
func TestAutomaticIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		needs, releases := drawStack(t)
		names := slices.Sorted(maps.Keys(releases))
		on, uids := map[string]dependency.Enabled{}, 0
		enable := func(name string, askers []dependency.Asker) {
			uids++
			on[name] = dependency.Enabled{UID: types.UID(fmt.Sprint(uids)), Named: dependency.CandidatesOf(needs[name]), For: askers}
		}
		settle := func() {
			for range 4 * len(names) {
				cluster := selector.Cluster{Labels: map[string]string{"gpu": rapid.SampledFrom([]string{"true", "false"}).Draw(t, "gpu")}}
				missing := map[string]dependency.Seen{}
				for _, name := range names {
					if enabled, there := on[name]; there {
						enabled.Needs = dependency.On(needs[name], cluster)
						on[name] = enabled
					} else {
						missing[name] = dependency.Seen{Defined: true}
					}
				}
				next := dependency.AutomaticOf(on, missing)
				for _, name := range next.Disable {
					for other := range on {
						if slices.Contains(on[other].Named, name) {
							t.Fatalf("%s is disabled, and %s names it", name, other)
						}
					}
					delete(on, name)
				}
				for name, with := range next.With {
					enabled := on[name]
					enabled.With = with
					on[name] = enabled
				}
				for name, askers := range next.For {
					enabled := on[name]
					enabled.For = askers
					on[name] = enabled
				}
				for name, askers := range next.Enable {
					if _, there := on[name]; there {
						t.Fatalf("%s is enabled twice", name)
					}
					enable(name, askers)
				}
			}
		}
		var roots []string
		for _, name := range names {
			if rapid.Bool().Draw(t, "enabled") {
				enable(name, nil)
				roots = append(roots, name)
			}
		}
		settle()
		before := slices.Sorted(maps.Keys(on))
		settle()
		for _, name := range before {
			if _, there := on[name]; !there {
				t.Fatalf("%s is disabled, and no dependent was deleted", name)
			}
		}
		for _, name := range slices.Backward(roots) {
			delete(on, name)
			settle()
		}
		for name := range on {
			if !slices.Contains(roots, name) {
				t.Fatalf("%s stays, and no add-on asks for it", name)
			}
		}
	})
}
