package dependency

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Stage is a part of a rollout: clusters that OCM includes at most a number of at a time.
type Stage struct {
	// Placement identifies the rollout, among those of the add-on.
	Placement string
	// Number is the position of the stage: its clusters are included after all changes on those of earlier stages have ended.
	Number int
	// Slots is the number of clusters that are included at a time; all of them if it is not positive.
	Slots int
}

// Unfinished is the change of an add-on on a cluster on which its rollout has not ended. OCM's rollout strategies (progressive, by groups of clusters) include a limited
// number of clusters at a time, its slots; a cluster on which a version waits for others keeps its slot.
type Unfinished struct {
	AddOn, Cluster string
	// Stage is the part of the rollout to which the cluster belongs.
	Stage Stage
	// Queued is true if the rollout has not reached the cluster. Otherwise the cluster occupies a slot.
	Queued bool
	// Installed is true if the add-on runs on the cluster: it can satisfy dependents before its change has ended.
	Installed bool
	// WaitsFor are the add-ons that have to change first on the cluster, all of them, and Requires those that have to be installed first.
	WaitsFor, Requires []string
}

// SlotDeadlock is a set of rollouts of which none continues: every slot is occupied by a cluster on which the add-on waits for the change of another one, and that
// has not been rolled out to the cluster, because the slots of its rollout are occupied in the same way. A rollout with a free slot continues by itself.
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
// if it is not wanted at all: then a user has to change that add-on. A queued change is no reason either while its rollout has a free slot. The time grows with the number of
// changes and of what they wait for.
func SlotDeadlocks(unfinished []Unfinished) []SlotDeadlock {
	g := newRolloutGraph(unfinished)
	g.settle()
	return g.deadlocks()
}

// place is an add-on on a cluster.
type place struct{ addOn, cluster string }

// rollout identifies the rollout of an add-on to the clusters of a Placement.
type rollout struct{ addOn, placement string }

func (u *Unfinished) place() place     { return place{u.AddOn, u.Cluster} }
func (u *Unfinished) rollout() rollout { return rollout{u.AddOn, u.Stage.Placement} }

// rolloutGraph holds the unfinished changes, and those of them that do not end.
type rolloutGraph struct {
	at       map[place]*Unfinished
	rollouts map[rollout]*rolloutStages
	// stuck are the changes that do not end, whatever else does.
	stuck map[place]bool
	// blocks are the changes that have reached a cluster, by what they wait for there, and causes the numbers of what they wait for.
	blocks map[place][]*Unfinished
	causes map[place]int
	// ended are the changes that end, and of which the effects on others are not known yet.
	ended []*Unfinished
}

// rolloutStages are the stages of a rollout, with the number of the first one in which changes are stuck.
type rolloutStages struct {
	stages []*stage
	first  int
}

// stage holds the changes of a stage that are stuck.
type stage struct {
	number, slots   int
	stuck, occupied int
	queue           []*Unfinished
}

// isFree reports whether the stage includes more clusters by itself.
func (s *stage) isFree() bool { return s.slots <= 0 || s.occupied < s.slots }

func newRolloutGraph(unfinished []Unfinished) *rolloutGraph {
	g := &rolloutGraph{
		at: make(map[place]*Unfinished, len(unfinished)), rollouts: map[rollout]*rolloutStages{}, stuck: make(map[place]bool, len(unfinished)),
		blocks: map[place][]*Unfinished{}, causes: map[place]int{},
	}
	for i := range unfinished {
		u := &unfinished[i]
		g.at[u.place()], g.stuck[u.place()] = u, true
	}
	for at, u := range g.at {
		if u.Queued {
			continue
		}
		causes := g.causesOf(u)
		g.causes[at] = len(causes)
		for _, cause := range causes {
			g.blocks[cause] = append(g.blocks[cause], u)
		}
		if len(causes) == 0 {
			g.ended = append(g.ended, u)
		}
	}
	stages := map[rollout]map[int]*stage{}
	for _, u := range g.at {
		of := u.rollout()
		if stages[of] == nil {
			stages[of] = map[int]*stage{}
		}
		s := stages[of][u.Stage.Number]
		if s == nil {
			s = &stage{number: u.Stage.Number, slots: u.Stage.Slots}
			stages[of][u.Stage.Number] = s
		}
		s.add(u)
	}
	for of, byNumber := range stages {
		r := &rolloutStages{}
		for _, number := range slices.Sorted(maps.Keys(byNumber)) {
			r.stages = append(r.stages, byNumber[number])
		}
		g.rollouts[of] = r
	}
	return g
}

func (s *stage) add(u *Unfinished) {
	s.stuck++
	if u.Queued {
		s.queue = append(s.queue, u)
	} else {
		s.occupied++
	}
}

// causesOf returns the stuck changes on the same cluster that a change which has reached it waits for, each once.
func (g *rolloutGraph) causesOf(u *Unfinished) []place {
	var causes []place
	met := map[string]bool{u.AddOn: true}
	add := func(other string, isRequired bool) {
		at := place{other, u.Cluster}
		if met[other] || !g.stuck[at] || isRequired && g.at[at].Installed {
			return
		}
		met[other] = true
		causes = append(causes, at)
	}
	for _, other := range u.WaitsFor {
		add(other, false)
	}
	for _, other := range u.Requires {
		add(other, true)
	}
	return causes
}

// settle finds the changes that are stuck: it follows what ends because others do.
func (g *rolloutGraph) settle() {
	for _, r := range g.rollouts {
		g.include(r)
	}
	for len(g.ended) > 0 {
		u := g.ended[len(g.ended)-1]
		g.ended = g.ended[:len(g.ended)-1]
		g.end(u)
	}
}

// end removes a change from those that are stuck, and finds those that end because of that.
func (g *rolloutGraph) end(u *Unfinished) {
	delete(g.stuck, u.place())
	for _, other := range g.blocks[u.place()] {
		if g.causes[other.place()]--; g.causes[other.place()] == 0 {
			g.ended = append(g.ended, other)
		}
	}
	r := g.rollouts[u.rollout()]
	i, _ := slices.BinarySearchFunc(r.stages, u.Stage.Number, func(s *stage, number int) int { return s.number - number })
	r.stages[i].stuck--
	if !u.Queued {
		r.stages[i].occupied--
	}
	g.include(r)
}

// include ends the queue of the stage that a rollout has reached, if it has a free slot.
func (g *rolloutGraph) include(r *rolloutStages) {
	for r.first < len(r.stages) && r.stages[r.first].stuck == 0 {
		r.first++
	}
	if r.first < len(r.stages) && r.stages[r.first].isFree() {
		g.ended = append(g.ended, r.stages[r.first].queue...)
		r.stages[r.first].queue = nil
	}
}

// awaitedAt returns the changes that one which has reached a cluster waits for in the end, and that have not been rolled out to the cluster, by add-on.
func (g *rolloutGraph) awaitedAt(at place) []string {
	met, found := map[place]bool{at: true}, map[string]bool{}
	for queue := []place{at}; len(queue) > 0; queue = queue[1:] {
		for _, cause := range g.causesOf(g.at[queue[0]]) {
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

// stuckRollouts returns the slots of each rollout that does not continue, by cluster: a part of its queue is stuck, or everything if it has no queue.
func (g *rolloutGraph) stuckRollouts() map[rollout][]Slot {
	hasQueue, continues := map[rollout]bool{}, map[rollout]bool{}
	for at, u := range g.at {
		if u.Queued && g.stuck[at] {
			hasQueue[u.rollout()] = true
		}
		if !g.stuck[at] {
			continues[u.rollout()] = true
		}
	}
	slots := map[rollout][]Slot{}
	for at := range g.stuck {
		u := g.at[at]
		if of := u.rollout(); !u.Queued && (hasQueue[of] || !continues[of]) {
			slots[of] = append(slots[of], Slot{Cluster: u.Cluster, WaitsFor: append([]string{}, g.awaitedAt(at)...)})
		}
	}
	for _, of := range slots {
		slices.SortFunc(of, func(a, b Slot) int { return strings.Compare(a.Cluster, b.Cluster) })
	}
	return slots
}

// waitsOf returns which rollouts each one waits for.
func (g *rolloutGraph) waitsOf(slots map[rollout][]Slot) map[rollout]map[rollout]bool {
	waits := make(map[rollout]map[rollout]bool, len(slots))
	for of, occupied := range slots {
		waits[of] = map[rollout]bool{}
		for _, slot := range occupied {
			for _, other := range slot.WaitsFor {
				waits[of][g.at[place{other, slot.Cluster}].rollout()] = true
			}
		}
	}
	return waits
}

// deadlocks returns the rollouts that wait for each other.
func (g *rolloutGraph) deadlocks() []SlotDeadlock {
	slots := g.stuckRollouts()
	waits := g.waitsOf(slots)
	reached := make(map[rollout]map[rollout]bool, len(waits))
	for of := range waits {
		reached[of] = reachedFrom(of, waits)
	}
	sorted := slices.SortedFunc(maps.Keys(waits), rollout.compare)
	var found []SlotDeadlock
	done := map[rollout]bool{}
	for _, of := range sorted {
		if done[of] || !reached[of][of] {
			continue
		}
		deadlock, members := SlotDeadlock{}, []rollout(nil)
		for _, other := range sorted {
			switch {
			case reached[of][other] && reached[other][of]:
				done[other] = true
				members = append(members, other)
			case reached[other][of]:
				deadlock.Blocked = append(deadlock.Blocked, other.addOn)
			}
		}
		deadlock.Blocked = slices.Compact(deadlock.Blocked)
		deadlock.Rollouts = g.membersOf(members, slots)
		found = append(found, deadlock)
	}
	return found
}

func (r rollout) compare(other rollout) int {
	return cmp.Or(strings.Compare(r.addOn, other.addOn), strings.Compare(r.placement, other.placement))
}

// membersOf describes the rollouts of a deadlock.
func (g *rolloutGraph) membersOf(members []rollout, slots map[rollout][]Slot) []StuckRollout {
	awaited := map[rollout]map[string]bool{}
	for _, of := range members {
		awaited[of] = map[string]bool{}
	}
	for _, of := range members {
		for _, slot := range slots[of] {
			for _, other := range slot.WaitsFor {
				if clusters := awaited[g.at[place{other, slot.Cluster}].rollout()]; clusters != nil {
					clusters[slot.Cluster] = true
				}
			}
		}
	}
	first := make(map[rollout]string, len(members))
	stuck := make([]StuckRollout, len(members))
	for i, of := range members {
		stuck[i] = StuckRollout{AddOn: of.addOn, Slots: slots[of], Awaited: slices.Sorted(maps.Keys(awaited[of]))}
		first[of] = stuck[i].Awaited[0]
	}
	needed := g.countUpTo(first)
	for i, of := range members {
		stuck[i].Needed = needed[of]
	}
	return stuck
}

// reachedFrom returns the rollouts that one waits for, directly or not.
func reachedFrom(of rollout, waits map[rollout]map[rollout]bool) map[rollout]bool {
	reached := map[rollout]bool{}
	for queue := []rollout{of}; len(queue) > 0; queue = queue[1:] {
		for other := range waits[queue[0]] {
			if !reached[other] {
				reached[other] = true
				queue = append(queue, other)
			}
		}
	}
	return reached
}

// countUpTo returns the number of clusters of each rollout, by name up to the last one, on which its change has not ended.
func (g *rolloutGraph) countUpTo(last map[rollout]string) map[rollout]int {
	counts := make(map[rollout]int, len(last))
	for at, u := range g.at {
		if cluster, is := last[u.rollout()]; is && at.cluster <= cluster {
			counts[u.rollout()]++
		}
	}
	return counts
}
