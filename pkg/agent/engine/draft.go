package engine

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// Progress that nothing depends on is recorded after shortPace, or after longPace if too many Instances progress at the same time: most
// plans and removals continue or end earlier, and then the progress needs no write. If too many Instances progress, changed messages and
// the progress of removals wait for maxMessageInterval.
const (
	shortPace          = 500 * time.Millisecond
	longPace           = 10 * time.Second
	maxMessageInterval = time.Minute
	progressQPS        = 2
	progressBurst      = 5
)

// maxDraftRounds is the maximum number of rounds of tasks that are recorded together.
const maxDraftRounds = 10

// drafts hold the progress of executions that is not recorded yet. If the agent is killed, the tasks since the last record run again in the
// same execution, which changes nothing (plan.EarlyTasks).
type drafts struct {
	// pace is how long progress waits if few Instances progress.
	pace   time.Duration
	budget flowcontrol.RateLimiter
	mutex  sync.Mutex
	byName map[types.NamespacedName]draft
}

// draft is the progress of the execution of an Instance.
type draft struct {
	// uid and base are the Instance and its status as read; started is false if there is no progress beyond that.
	uid     types.UID
	base    kudo.InstanceStatus
	started bool

	progress  kudo.PlanStatus
	inventory []kudo.InventoryEntry

	// claims and round are those of the execution.
	claims map[kudo.InventoryEntry]int
	round  int

	// due is when it is recorded.
	due time.Time
}

func newDrafts(pace time.Duration) *drafts {
	return &drafts{pace: pace, budget: flowcontrol.NewTokenBucketRateLimiter(progressQPS, progressBurst), byName: map[types.NamespacedName]draft{}}
}

// of returns the draft of an Instance as read. A draft that continues another status is dropped.
func (d *drafts) of(i *kudo.Instance) draft {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	key := client.ObjectKeyFromObject(i)
	kept, known := d.byName[key]
	if known && kept.uid == i.UID && sameProgress(kept.base, i.Status) {
		return kept
	}
	delete(d.byName, key)
	return draft{uid: i.UID, base: i.Status}
}

// sameProgress reports whether two statuses have the same execution, in the same state: other controllers write the rest.
func sameProgress(a, b kudo.InstanceStatus) bool {
	return equality.Semantic.DeepEqual(a.Execution, b.Execution) && equality.Semantic.DeepEqual(a.PlanStatus, b.PlanStatus) &&
		equality.Semantic.DeepEqual(a.Inventory, b.Inventory)
}

// keep stores the progress of a pass that has continued a draft, and returns the time until it is recorded; zero if it is due, or if there is
// none.
func (d *drafts) keep(x *execution, last draft, status kudo.InstanceStatus, now time.Time) time.Duration {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	key := client.ObjectKeyFromObject(x.instance)
	if sameProgress(last.base, status) {
		delete(d.byName, key)
		return 0
	}
	next := draft{
		uid: last.uid, base: last.base, started: true, due: last.due,
		progress: status.PlanStatus[status.Execution.Plan], inventory: status.Inventory, claims: x.inventory.rounds, round: x.round,
	}
	switch {
	case last.started:
	case d.budget.TryAccept():
		next.due = now.Add(d.pace)
	default:
		next.due = now.Add(longPace)
	}
	if !next.due.After(now) {
		return 0
	}
	d.byName[key] = next
	return next.due.Sub(now)
}

// drop forgets the draft of an Instance.
func (d *drafts) drop(key types.NamespacedName) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	delete(d.byName, key)
}

// onto returns the Instance with the progress of the draft.
func (d draft) onto(i *kudo.Instance) *kudo.Instance {
	if !d.started {
		return i
	}
	seen := *i
	seen.Status.PlanStatus = map[string]kudo.PlanStatus{}
	maps.Copy(seen.Status.PlanStatus, i.Status.PlanStatus)
	seen.Status.PlanStatus[i.Status.Execution.Plan] = d.progress
	seen.Status.Inventory = d.inventory
	return &seen
}

// resume continues an execution where the draft ends.
func (d draft) resume(x *execution) { x.round, x.inventory.rounds = d.round, maps.Clone(d.claims) }

// mayWait reports whether the progress of a pass need not be recorded yet: nothing depends on it, and the tasks since the last record, all of
// them in progress or complete, can run again without an effect. Jobs are recorded at once, because they may be deleted when they are complete,
// and so are deletions, because other writers may create such objects again. Executions that do not influence condition Ready are recorded at
// once, too.
func (x *execution) mayWait(outcomes map[plan.Task]plan.Outcome) bool {
	return x.round < maxDraftRounds && !x.inventory.once && !x.isAside() && len(x.inventory.entries) == len(x.instance.Status.Inventory) &&
		plan.MayWait(x.version, *x.Execution, outcomes)
}

// startEvents delay the events of plans that have started: most plans end within longPace, and then the event of their end is enough. If
// the agent stops before, the event of the start is lost.
type startEvents struct {
	mutex  sync.Mutex
	timers map[types.UID]startEvent // by Instance, of which one plan runs at a time
}

// startEvent is the event of an execution.
type startEvent struct {
	execution types.UID
	timer     *time.Timer
}

func newStartEvents() *startEvents { return &startEvents{timers: map[types.UID]startEvent{}} }

// schedule emits the event of an Instance's execution once, after a wait, and drops the event of its previous execution.
func (b *startEvents) schedule(instance, execution types.UID, wait time.Duration, emit func()) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if last := b.timers[instance]; last.execution == execution || wait <= 0 {
		return
	}
	b.drop(instance)
	b.timers[instance] = startEvent{execution: execution, timer: time.AfterFunc(wait, func() {
		if b.cancel(instance, execution) {
			emit()
		}
	})}
}

// cancel drops the event of an execution, and reports whether it was pending.
func (b *startEvents) cancel(instance, execution types.UID) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	pending := b.timers[instance].execution == execution
	if pending {
		b.drop(instance)
	}
	return pending
}

func (b *startEvents) drop(instance types.UID) {
	if last, pending := b.timers[instance]; pending {
		last.timer.Stop()
		delete(b.timers, instance)
	}
}
