package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/outcome"
	"github.com/tandem-addons/tandem/pkg/core/pace"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// maxParallelTasks is the maximum number of tasks of one execution that run in parallel.
const maxParallelTasks = 8

// maxDraftRounds is the maximum number of rounds of tasks that are recorded together.
const maxDraftRounds = 10

// step runs the next tasks in parallel, and then the tasks after them that may run before the progress is recorded.
func (p *pass) step(ctx context.Context, o plan.Observation, x *execution, tasks []plan.Task) (result, error) {
	x.renders = true
	x.round, x.inventory.rounds = p.draft.Round, maps.Clone(p.draft.Claims)
	untilEvent := p.emitStart(x, o.Now)
	spec, before := x.version.Plans[x.Plan], o.Instance.Status.PlanStatus[x.Plan]
	status, after := o.Instance.Status, time.Duration(0)
	var outcomes map[plan.Task]plan.Outcome
	for ; len(tasks) > 0 && x.round < maxDraftRounds; x.round++ {
		x.since = time.Now()
		outcomes, after = p.runTasks(ctx, x, tasks)
		if ctx.Err() != nil {
			return result{}, ctx.Err()
		}
		status = o.Advance(status, outcomes)
		tasks = plan.EarlyTasks(x.version, status, outcomes)
	}
	after = cmp.Or(after, untilEvent) // a pass before the retry of a failed task would postpone that
	progress := status.PlanStatus[x.Plan]
	continues := p.continues(x, before, progress, outcomes) || plan.Adds(o.Instance.Status.Inventory, x.inventory.entries) ||
		!equality.Semantic.DeepEqual(x.inventory.records, o.Instance.Status.Tasks)
	status.Inventory, status.Tasks = x.inventory.entries, x.inventory.records
	if progress.Status.IsTerminal() {
		return p.end(ctx, o, status, x.inventory.live), nil
	}
	judged, err := p.judgeDuringPlan(ctx, o, x, status)
	if err != nil {
		return result{}, err
	}
	ended := result{
		status: status, judgement: judged, again: continues, paced: true,
		after: soonest(after, p.until(plan.Deadline(spec, progress)), recheckDelay(outcomes), p.until(judged.until)),
	}
	if !continues && x.mayWait(outcomes) {
		wait := p.keepDraft(x.instance, p.draft.With(status, x.round, x.inventory.rounds), o.Now)
		ended.postponed, ended.after = wait > 0, soonest(ended.after, wait)
	}
	return ended, nil
}

// mayWait reports whether the progress of a pass need not be recorded yet: nothing depends on it, and the tasks since the last record, all of
// them in progress or complete, can run again without an effect. Jobs are recorded at once, because they may be deleted when they are complete,
// and so are deletions, because other writers may create such objects again. Executions that do not influence condition Ready are recorded at
// once, too.
func (x *execution) mayWait(outcomes map[plan.Task]plan.Outcome) bool {
	return x.round < maxDraftRounds && !x.inventory.once && !x.isAside() && len(x.inventory.entries) == len(x.instance.Status.Inventory) &&
		plan.MayWait(x.version, *x.Execution, outcomes)
}

// keepDraft stores the draft of an Instance, and returns the time until it is recorded; zero if it is due, or if it has no progress.
func (e *engine) keepDraft(instance *kudo.Instance, draft pace.Draft, now time.Time) time.Duration {
	key := client.ObjectKeyFromObject(instance)
	if !draft.Started {
		e.drafts.Remove(key)
		return 0
	}
	if draft.Due.IsZero() {
		draft.Due = now.Add(pace.Delay{Min: e.progressDelay, Max: recheckInterval}.Within(e.budget.TryAccept))
	}
	e.drafts.Add(key, draft)
	return max(draft.Due.Sub(now), 0)
}

// continues lists the objects of the next tasks, and reports whether another round can do more at once. Otherwise it takes a change of the
// objects that the tasks wait for.
func (p *pass) continues(x *execution, before, progress kudo.PlanStatus, outcomes map[plan.Task]plan.Outcome) bool {
	progressed, next := plan.HasProgressed(before, progress), plan.Next(x.version.Plans[x.Plan], progress)
	waits := plan.AllInProgress(next, outcomes)
	if waits && !progressed {
		return false
	}
	return p.listPending(x, plan.PendingOf(progress, next)) || !waits && progressed
}

// runTasks runs tasks in parallel. Tasks that failed recently are skipped until after. Once one has failed fatally, running tasks
// complete their pass, and no other task begins.
func (p *pass) runTasks(ctx context.Context, x *execution, tasks []plan.Task) (map[plan.Task]plan.Outcome, time.Duration) {
	var (
		mutex    sync.Mutex
		after    time.Duration
		ended    atomic.Bool
		outcomes = map[plan.Task]plan.Outcome{}
		group    errgroup.Group
	)
	p.backoff.GC()
	group.SetLimit(maxParallelTasks)
	for _, task := range tasks {
		key := fmt.Sprintf("%s/%d/%d/%d", x.UID, task.Phase, task.Step, task.Task)
		if p.backoff.IsInBackOffSinceUpdate(key, p.clock()) {
			after = soonest(after, p.backoff.Get(key))
			continue
		}
		group.Go(func() error {
			if ended.Load() {
				return nil
			}
			outcome := p.runTask(ctx, x, task)
			if outcome.Status == kudo.FatalError {
				ended.Store(true)
			}
			mutex.Lock()
			defer mutex.Unlock()
			outcomes[task] = outcome
			if outcome.Status == kudo.Error {
				after = soonest(after, p.failAgain(key, p.clock()))
			} else {
				p.backoff.DeleteEntry(key)
			}
			return nil
		})
	}
	_ = group.Wait() // errors are in the outcomes of the tasks
	return outcomes, after
}

// recheckDelay returns when to check waiting or pending tasks again; zero if there are none.
func recheckDelay(outcomes map[plan.Task]plan.Outcome) time.Duration {
	for _, outcome := range outcomes {
		if outcome.Status == kudo.InProgress || outcome.Status == kudo.Pending {
			return recheckInterval
		}
	}
	return 0
}

// runTask observes one task of the running execution, completes it as far as possible, and returns its outcome, whose message has no sensitive
// values. It is idempotent.
func (p *pass) runTask(ctx context.Context, x *execution, at plan.Task) plan.Outcome {
	outcome := p.attempt(ctx, x, at)
	outcome.Message = plan.OneLine(p.view.Masker().Text(outcome.Message))
	return outcome
}

func (p *pass) attempt(ctx context.Context, x *execution, at plan.Task) plan.Outcome {
	placed, found := plan.Find(x.version, x.Plan, at)
	if p.hindrance != nil {
		return outcomeOf(p.hindrance)
	}
	if !found {
		return outcome.Fatal(fmt.Errorf("the OperatorVersion has no task %q", placed.Task.Name))
	}
	rendered := x.task(placed)
	switch {
	case rendered.err != nil:
		return outcome.Fatal(rendered.err)
	case rendered.transient != nil:
		return outcomeOf(rendered.transient)
	}
	started := x.status(at) == kudo.InProgress
	switch rendered.action {
	case plan.Nothing:
		return plan.DummyOutcome(placed.Task.Spec.DummyTaskSpec)
	case plan.Pipe:
		return p.pipe(ctx, x, placed, rendered)
	case plan.ApplyChart:
		return p.chart(ctx, x, placed, started, rendered.release)
	case plan.DeleteChart:
		return p.deleteChart(ctx, x, placed)
	case plan.ApplyChild, plan.DeleteChild:
		return p.child(ctx, x, placed, rendered.action)
	case plan.Delete:
		return p.deleteAll(ctx, x, placed, started, rendered.objects)
	default:
		return p.applyTask(ctx, x, placed, started, rendered.objects)
	}
}
