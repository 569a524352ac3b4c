package dependency

import (
	"slices"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// Root is the end of a chain of unmet dependencies: the problem to fix before the add-ons above it can recover.
type Root struct {
	// Way is the path from the given add-on to the failing one: ["shop", "kafka", "zookeeper"].
	Way []string
	// Judgement is the verdict on the last add-on of Way as a dependency of the one before it.
	Judgement
}

// Same reports whether both name the same failing add-on or the same cycle, regardless of the path.
func (r Root) Same(other Root) bool {
	if r.Cause == Circular || other.Cause == Circular {
		return sameCycle(r.Cycle, other.Cycle)
	}
	return r.By == other.By
}

// Roots follows the unmet dependencies of addOn, and the Required dependencies of those that are not available, to their ends. It returns
// the nearest first. It lists a failing add-on once, by the shortest path, and a cycle once, from the add-on that leads to it first. It
// also follows add-ons that are not installed: they would lack the same dependencies once installed. Of a dependency with alternatives, it
// follows the candidate that comes closest.
func Roots(addOn string, unmet []Judgement, verdictOf func(name string) Verdict) []Root {
	var roots []Root
	met := map[string]bool{addOn: true}
	for queue := []Root{{Way: []string{addOn}}}; len(queue) > 0; queue = queue[1:] {
		way := queue[0].Way
		if len(way) > 1 {
			unmet = requiredOf(verdictOf(way[len(way)-1]))
		}
		for _, j := range unmet {
			root := Root{Way: append(slices.Clip(way), j.By), Judgement: j}
			if j.Cause == Circular {
				if !slices.ContainsFunc(roots, root.Same) {
					roots = append(roots, root)
				}
			} else if !met[j.By] && !passesOn(j, verdictOf) {
				roots = append(roots, root)
			}
			if !met[j.By] {
				met[j.By] = true
				queue = append(queue, root)
			}
		}
	}
	return roots
}

// passesOn reports whether the dependency is installed and fails only because of its own dependencies.
func passesOn(j Judgement, verdictOf func(name string) Verdict) bool {
	return (j.Cause == NotAvailable || j.Cause == Unknown) && len(requiredOf(verdictOf(j.By))) > 0
}

// requiredOf returns the Required dependencies that are not satisfied.
func requiredOf(verdict Verdict) []Judgement {
	return slices.DeleteFunc(verdict.Unmet(), func(j Judgement) bool {
		return j.Type != addonv1alpha1.DependencyTypeRequired
	})
}

// sameCycle reports whether both paths visit the same add-ons in the same order, regardless of the start.
func sameCycle(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	a, b = a[1:], b[1:]
	at := slices.Index(b, a[0])
	return at >= 0 && slices.Equal(a, slices.Concat(b[at:], b[:at]))
}
