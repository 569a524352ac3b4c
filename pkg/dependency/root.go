package dependency

import (
	"slices"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// Root is where a chain of unmet dependencies ends: what has to be mended before the add-ons above it can recover.
type Root struct {
	// Way leads from the add-on in question to the one at fault: ["shop", "kafka", "zookeeper"].
	Way []string
	// Judgement is the verdict of the last but one over the last.
	Judgement
}

// Same reports whether both name the same add-on at fault, or the same circle, by whatever way.
func (r Root) Same(other Root) bool {
	if r.Cause == Circular || other.Cause == Circular {
		return sameCycle(r.Cycle, other.Cycle)
	}
	return r.Name == other.Name
}

// Roots follows unmet dependencies of addOn over the Required ones of those that are not available to where they end, the nearest
// first. An add-on that is at fault is named once, by the shortest way, and a circle once, from where it is first met.
// What is not installed is followed too: it would lack the same once it is.
func Roots(addOn string, unmet []Judgement, verdictOf func(name string) Verdict) []Root {
	var roots []Root
	met := map[string]bool{addOn: true}
	for queue := []Root{{Way: []string{addOn}}}; len(queue) > 0; queue = queue[1:] {
		way := queue[0].Way
		if len(way) > 1 {
			unmet = requiredOf(verdictOf(way[len(way)-1]))
		}
		for _, j := range unmet {
			root := Root{Way: append(slices.Clip(way), j.Name), Judgement: j}
			if j.Cause == Circular {
				if !slices.ContainsFunc(roots, root.Same) {
					roots = append(roots, root)
				}
			} else if !met[j.Name] && !passesOn(j, verdictOf) {
				roots = append(roots, root)
			}
			if !met[j.Name] {
				met[j.Name] = true
				queue = append(queue, root)
			}
		}
	}
	return roots
}

// passesOn reports whether the dependency is there and lacks only what others do.
func passesOn(j Judgement, verdictOf func(name string) Verdict) bool {
	return (j.Cause == NotAvailable || j.Cause == Unknown) && len(requiredOf(verdictOf(j.Name))) > 0
}

// requiredOf are the Required dependencies that are not satisfied.
func requiredOf(verdict Verdict) []Judgement {
	return slices.DeleteFunc(verdict.Unmet(), func(j Judgement) bool {
		return j.Type != addonv1alpha1.DependencyTypeRequired
	})
}

// sameCycle reports whether both ways lead over the same add-ons in the same order, wherever they begin.
func sameCycle(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	a, b = a[1:], b[1:]
	at := slices.Index(b, a[0])
	return at >= 0 && slices.Equal(a, slices.Concat(b[at:], b[:at]))
}
