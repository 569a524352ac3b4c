package dependency

import (
	"maps"
	"slices"
)

// Unfinished is the change of an add-on on a cluster on which its rollout has not ended. OCM's rollout strategies (progressive, by groups of clusters) include a limited
// number of clusters at a time, its slots; a cluster on which a version waits for others keeps its slot.
type Unfinished struct {
	AddOn, Cluster string
	// Queued is true if the rollout has not reached the cluster. Otherwise the cluster occupies a slot.
	Queued bool
	// Installed is true if the add-on runs on the cluster: it can satisfy dependents before its change has ended.
	Installed bool
	// WaitsFor are the add-ons that have to change first on the cluster, all of them, and Requires those that have to be installed first.
	WaitsFor, Requires []string
}

// SlotDeadlock is a set of rollouts of which none continues: every slot is occupied by a cluster on which the add-on waits for the change of another one, and that
// has not been rolled out to the cluster, because the slots of its rollout are occupied in the same way.
type SlotDeadlock struct {
	// Rollouts are those that wait for each other, by the names of their add-ons.
	Rollouts []StuckRollout `json:"rollouts"`
	// Blocked are the add-ons whose rollouts do not continue either until these do, sorted.
	Blocked []string `json:"blocked,omitempty"`
}

// StuckRollout is the rollout of an add-on with occupied slots that none is released of.
type StuckRollout struct {
	AddOn string `json:"addOn"`
	// Slots are the clusters that occupy the slots, by name.
	Slots []Slot `json:"slots"`
	// Awaited are the clusters on which others of the deadlock wait for this add-on, and that its rollout has not reached, sorted.
	Awaited []string `json:"awaited"`
	// Needed is the number of slots with which the rollout reaches the first of Awaited, if it takes clusters by name, as OCM's progressive rollouts do.
	Needed int `json:"-"`
}

// Slot is a cluster that occupies a slot of a rollout.
type Slot struct {
	Cluster string `json:"cluster"`
	// WaitsFor are the add-ons whose changes the cluster waits for, and that have not been rolled out to it. If there are none, add-ons wait for each other on
	// the cluster itself, whatever is rolled out.
	WaitsFor []string `json:"waitsFor"`
}

// Holds reports whether the deadlock keeps the rollout of an add-on from continuing.
func (d SlotDeadlock) Holds(addOn string) bool {
	return slices.Contains(d.Blocked, addOn) || slices.ContainsFunc(d.Rollouts, func(r StuckRollout) bool { return r.AddOn == addOn })
}

// SlotDeadlocks returns the rollouts that wait for each other, by the name of their first add-on. The order of the unfinished changes makes no difference.
//
// A change on which another one waits is no reason if it has reached the cluster and can end there, or has ended: then the other one continues by itself. The same is true
// if it is not wanted at all: then a user has to change that add-on. Rollouts of one add-on by several Placements count as one, which continues as long as any of
// them does.
func SlotDeadlocks(unfinished []Unfinished) []SlotDeadlock {
	return newRolloutGraph(unfinished).deadlocks()
}

// place is an add-on on a cluster.
type place struct{ addOn, cluster string }

// rolloutGraph holds the unfinished changes, and those of them that do not end.
type rolloutGraph struct {
	at map[place]Unfinished
	// slots are the clusters that occupy slots, by add-on.
	slots map[string][]string
	// stuck are the changes that do not end, whatever else does.
	stuck map[place]bool
}

func newRolloutGraph(unfinished []Unfinished) rolloutGraph {
	g := rolloutGraph{at: map[place]Unfinished{}, slots: map[string][]string{}, stuck: map[place]bool{}}
	for _, u := range unfinished {
		at := place{u.AddOn, u.Cluster}
		g.at[at], g.stuck[at] = u, true
		if !u.Queued {
			g.slots[u.AddOn] = append(g.slots[u.AddOn], u.Cluster)
		}
	}
	for _, clusters := range g.slots {
		slices.Sort(clusters)
	}
	for again := true; again; {
		again = false
		for at := range g.stuck {
			if g.ends(at) {
				delete(g.stuck, at)
				again = true
			}
		}
	}
	return g
}

// ends reports whether an unfinished change ends, given those that are stuck.
func (g rolloutGraph) ends(at place) bool {
	u := g.at[at]
	if u.Queued {
		slots := g.slots[u.AddOn]
		return len(slots) == 0 || slices.ContainsFunc(slots, func(cluster string) bool { return !g.stuck[place{u.AddOn, cluster}] })
	}
	return len(g.causes(u)) == 0
}

// causes returns the stuck changes on the same cluster that a change which has reached it waits for.
func (g rolloutGraph) causes(u Unfinished) []place {
	var causes []place
	add := func(other string, blocks bool) {
		if at := (place{other, u.Cluster}); blocks && other != u.AddOn && g.stuck[at] && !slices.Contains(causes, at) {
			causes = append(causes, at)
		}
	}
	for _, other := range u.WaitsFor {
		add(other, true)
	}
	for _, other := range u.Requires {
		add(other, !g.at[place{other, u.Cluster}].Installed)
	}
	return causes
}

// awaitedAt returns the add-ons that a change which has reached a cluster waits for in the end, and that have not been rolled out to the cluster, sorted.
func (g rolloutGraph) awaitedAt(at place) []string {
	met, found := map[place]bool{at: true}, map[string]bool{}
	for queue := []place{at}; len(queue) > 0; queue = queue[1:] {
		for _, cause := range g.causes(g.at[queue[0]]) {
			switch {
			case g.at[cause].Queued:
				found[cause.addOn] = true
			case !met[cause]:
				met[cause] = true
				queue = append(queue, cause)
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// rollouts returns, for each rollout without a slot that is released, the add-ons for which it waits, by its slots.
func (g rolloutGraph) rollouts() map[string]map[string][]string {
	waits := map[string]map[string][]string{}
	for addOn, clusters := range g.slots {
		if slices.ContainsFunc(clusters, func(cluster string) bool { return !g.stuck[place{addOn, cluster}] }) {
			continue
		}
		waits[addOn] = make(map[string][]string, len(clusters))
		for _, cluster := range clusters {
			waits[addOn][cluster] = g.awaitedAt(place{addOn, cluster})
		}
	}
	return waits
}

// deadlocks returns the rollouts that wait for each other.
func (g rolloutGraph) deadlocks() []SlotDeadlock {
	waits := g.rollouts()
	reached := make(map[string]map[string]bool, len(waits))
	for addOn := range waits {
		reached[addOn] = reachedFrom(addOn, waits)
	}
	var found []SlotDeadlock
	done := map[string]bool{}
	for _, addOn := range slices.Sorted(maps.Keys(waits)) {
		if done[addOn] || !reached[addOn][addOn] {
			continue
		}
		deadlock := SlotDeadlock{}
		for _, other := range slices.Sorted(maps.Keys(waits)) {
			switch {
			case reached[addOn][other] && reached[other][addOn]:
				done[other] = true
				deadlock.Rollouts = append(deadlock.Rollouts, StuckRollout{AddOn: other, Slots: slotsOf(waits[other])})
			case reached[other][addOn]:
				deadlock.Blocked = append(deadlock.Blocked, other)
			}
		}
		for i := range deadlock.Rollouts {
			rollout := &deadlock.Rollouts[i]
			rollout.Awaited = awaitedClusters(deadlock.Rollouts, rollout.AddOn)
			rollout.Needed = g.countUpTo(rollout.AddOn, rollout.Awaited[0])
		}
		found = append(found, deadlock)
	}
	return found
}

// reachedFrom returns the rollouts that the one of that name waits for, directly or not.
func reachedFrom(addOn string, waits map[string]map[string][]string) map[string]bool {
	reached := map[string]bool{}
	for queue := []string{addOn}; len(queue) > 0; queue = queue[1:] {
		for _, others := range waits[queue[0]] {
			for _, other := range others {
				if !reached[other] {
					reached[other] = true
					queue = append(queue, other)
				}
			}
		}
	}
	return reached
}

// countUpTo returns the number of clusters, by name up to the last one, on which the change of an add-on has not ended.
func (g rolloutGraph) countUpTo(addOn, last string) int {
	count := 0
	for at := range g.at {
		if at.addOn == addOn && at.cluster <= last {
			count++
		}
	}
	return count
}

func slotsOf(waits map[string][]string) []Slot {
	slots := make([]Slot, 0, len(waits))
	for _, cluster := range slices.Sorted(maps.Keys(waits)) {
		slots = append(slots, Slot{Cluster: cluster, WaitsFor: slices.Concat([]string{}, waits[cluster])})
	}
	return slots
}

// awaitedClusters returns the clusters on which rollouts wait for the add-on of that name.
func awaitedClusters(rollouts []StuckRollout, addOn string) []string {
	found := map[string]bool{}
	for _, rollout := range rollouts {
		for _, slot := range rollout.Slots {
			if slices.Contains(slot.WaitsFor, addOn) {
				found[slot.Cluster] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
