package why

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
)

// Group is the clusters on which an add-on is in the same state for the same root causes.
type Group struct {
	Clusters []string    `json:"clusters"`
	State    fleet.State `json:"state"`
	// Reasons lists the add-ons that are root causes with the reason of each; without such an add-on, the reason of the state.
	Reasons []GroupReason `json:"reasons"`
	// Example is the explanation for the first of the clusters; nil if the add-on is available.
	Example *Data `json:"example,omitempty"`
	text    string
}

// GroupReason is the reason why an add-on is in its state.
type GroupReason struct {
	// AddOn is the add-on that is the root cause.
	AddOn  string `json:"addOn"`
	Reason string `json:"reason"`
}

// Text returns the explanation for the first of the clusters; empty if the add-on is available.
func (g Group) Text() string { return g.text }

// key identifies the state and the root causes.
func (g Group) key() string {
	key := string(g.State)
	for _, reason := range g.Reasons {
		key += "\n" + reason.AddOn + "\t" + reason.Reason
	}
	return key
}

// Fleet groups the clusters that have an add-on by its state and root causes, the worst states first, then the largest groups.
func Fleet(views map[string]fleet.Cluster, name string, now time.Time) []Group {
	groups := map[string]*Group{}
	for _, cluster := range slices.Sorted(maps.Keys(views)) {
		view := views[cluster].Current()
		if view.AddOns[name] == nil {
			continue
		}
		next := groupOf(view, name, now)
		if known := groups[next.key()]; known != nil {
			known.Clusters = append(known.Clusters, cluster)
		} else {
			groups[next.key()] = &next
		}
	}
	sorted := make([]Group, 0, len(groups))
	for _, group := range groups {
		sorted = append(sorted, *group)
	}
	slices.SortFunc(sorted, func(a, b Group) int {
		return cmp.Or(a.State.Rank()-b.State.Rank(), len(b.Clusters)-len(a.Clusters), strings.Compare(a.Clusters[0], b.Clusters[0]))
	})
	return sorted
}

// groupOf returns the group of a cluster that has the add-on, with no other cluster.
func groupOf(view fleet.Cluster, name string, now time.Time) Group {
	seen := fleet.GlimpseOf(view.AddOns[name])
	group := Group{Clusters: []string{view.Name}, State: seen.State, Reasons: []GroupReason{}}
	if seen.State == fleet.Available {
		return group
	}
	explained := Of(view, name, now)
	data := explained.Data(name)
	group.Example, group.text = &data, explained.Text()
	if dependency.IsReason(seen.Reason) || seen.Reason == addonv1alpha1.ReasonWaitingForDependencies {
		group.Reasons = rootReasons(view, data.Causes, seen.State == fleet.Degraded)
	}
	if len(group.Reasons) == 0 {
		group.Reasons = []GroupReason{{AddOn: name, Reason: seen.ReasonText()}}
	}
	return group
}

// rootReasons returns the reasons of the root causes, each once; those that are optional only if the add-on is degraded by them.
func rootReasons(view fleet.Cluster, causes []Cause, isDegraded bool) []GroupReason {
	reasons := []GroupReason{}
	for _, cause := range causes {
		if cause.Type == addonv1alpha1.DependencyTypeOptional && !isDegraded {
			continue
		}
		reason := GroupReason{AddOn: cause.AddOn, Reason: string(cause.Cause)}
		if addOn := view.AddOns[cause.AddOn]; addOn != nil {
			if of := fleet.GlimpseOf(addOn); !of.State.IsAvailable() {
				reason.Reason = of.ReasonText()
			}
		}
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}
