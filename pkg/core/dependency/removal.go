package dependency

import (
	"maps"
	"slices"
	"time"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Installed is an add-on on a cluster: its observed state, and the dependencies that it has there.
type Installed struct {
	Seen
	Needs []addonv1alpha1.AddonDependency
}

// Removal is the place of an add-on in the order of removal on a cluster: dependents go first.
type Removal struct {
	// First are the dependents that are being deleted, too, sorted: the add-on is removed once they are gone.
	First []string
	// Staying are the dependents that are not being deleted, sorted. The add-on does not wait for them.
	Staying []string
}

// RemovalOf returns the place of an add-on that is being deleted in the order of removal; on holds the add-ons of the cluster by name.
//
// The add-on waits for each direct dependent that is being deleted, unless another candidate serves it. Members of a cycle do not wait for each other.
// So the add-ons that are being deleted always include one that waits for none of the others.
func RemovalOf(addOn string, on map[string]Installed) Removal {
	var removal Removal
	below := deletedBelow(addOn, on)
	for _, name := range slices.Sorted(maps.Keys(on)) {
		switch {
		case name == addOn || !on[name].uses(addOn, on):
		case !on[name].Deleting:
			removal.Staying = append(removal.Staying, name)
		case !below[name]:
			removal.First = append(removal.First, name)
		}
	}
	return removal
}

// deletedBelow returns the add-ons that are being deleted to which the dependencies of addOn lead over others that are being deleted.
func deletedBelow(addOn string, on map[string]Installed) map[string]bool {
	below := map[string]bool{}
	for queue := []string{addOn}; len(queue) > 0; queue = queue[1:] {
		for _, next := range CandidatesOf(on[queue[0]].Needs) {
			if !below[next] && on[next].Deleting && on[queue[0]].uses(next, on) {
				below[next] = true
				queue = append(queue, next)
			}
		}
	}
	return below
}

// uses reports whether a dependency of the add-on names another one as a candidate, and no candidate that stays satisfies it instead.
func (i Installed) uses(other string, on map[string]Installed) bool {
	return slices.ContainsFunc(i.Needs, func(need addonv1alpha1.AddonDependency) bool {
		candidates := Candidates(need)
		return slices.Contains(candidates, other) && !slices.ContainsFunc(candidates, func(name string) bool {
			return name != other && on[name].Replaces(need, name)
		})
	})
}

// Replaces reports whether the add-on satisfies a dependency as that candidate of it, also by its version, and is not being deleted.
func (s Seen) Replaces(need addonv1alpha1.AddonDependency, name string) bool {
	j := judgeCandidate(need, name, s, memory{})
	return j.Satisfied && !j.Held && !s.Deleting
}

// togetherPeriod is how long after the deletion of an add-on its dependents may be deleted, too, and are still removed before it. Timestamps are whole
// seconds, so it is two seconds at least.
const togetherPeriod = 3 * time.Second

// Delay returns how long the removal of an add-on that was deleted at the given time waits for the deletion of its dependents. It is zero without
// dependents that stay, and if the clocks of API server and hub differ too much.
func (r Removal) Delay(deleted, now time.Time) time.Duration {
	since := now.Sub(deleted)
	if len(r.Staying) == 0 || since >= togetherPeriod || since < -togetherPeriod {
		return 0
	}
	return togetherPeriod - since
}

// maxFirst is the maximum number of add-ons that Message names.
const maxFirst = 10

// Message states what the removal of the add-on waits for; empty if it waits for no other add-on.
func (r Removal) Message() string {
	switch names := text.List(r.First, maxFirst); len(r.First) {
	case 0:
		return ""
	case 1:
		return "it is removed once " + names + " is gone, which depends on it"
	default:
		return "it is removed once " + names + " are gone, which depend on it"
	}
}
