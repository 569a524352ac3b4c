package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// sideBySide bounds how many tasks of one execution run in parallel.
const sideBySide = 8

// step carries out, side by side, the tasks that are next.
func (e *engine) step(ctx context.Context, o plan.Observation, tasks []plan.Task) (result, error) {
	x := executionOf(o)
	spec, before := x.version.Plans[x.Plan], o.Instance.Status.PlanStatus[x.Plan]
	outcomes, after := e.carryOutAll(ctx, x, tasks)
	if ctx.Err() != nil {
		return result{}, ctx.Err()
	}
	status := plan.Advance(x.version, o.Instance.Status, outcomes, o.Now)
	progress := status.PlanStatus[x.Plan]
	listed := e.listAhead(x, progress)
	status.Inventory = x.inventory.entries
	if progress.Status == kudo.FatalError && x.Plan == kudo.CleanupPlan {
		e.backoff.Next(cleanupKey(o.Instance), o.Now)
	}
	if progress.Status.Terminal() {
		return e.end(ctx, o, status), nil
	}
	return result{
		status: status, ready: plan.Running(progress), again: listed || plan.Progressed(before, progress), unhurried: true,
		after: soonest(soonest(after, e.until(plan.Deadline(spec, progress))), lookAgain(outcomes)),
	}, nil
}

// carryOutAll carries tasks out side by side; those that failed lately are left alone until after. When one has failed for good,
// those that run are brought to the end of their pass, and no other is begun.
func (e *engine) carryOutAll(ctx context.Context, x *execution, tasks []plan.Task) (map[plan.Task]plan.Outcome, time.Duration) {
	var (
		mutex    sync.Mutex
		after    time.Duration
		ended    atomic.Bool
		outcomes = map[plan.Task]plan.Outcome{}
		group    errgroup.Group
	)
	e.backoff.GC()
	group.SetLimit(sideBySide)
	for _, task := range tasks {
		key := fmt.Sprintf("%s/%d/%d/%d", x.UID, task.Phase, task.Step, task.Task)
		if e.backoff.IsInBackOffSinceUpdate(key, e.clock()) {
			after = soonest(after, e.backoff.Get(key))
			continue
		}
		group.Go(func() error {
			if ended.Load() {
				return nil
			}
			outcome := e.carryOut(ctx, x, task)
			if outcome.Status == kudo.FatalError {
				ended.Store(true)
			}
			mutex.Lock()
			defer mutex.Unlock()
			outcomes[task] = outcome
			if outcome.Status == kudo.Error {
				e.backoff.Next(key, e.clock())
				after = soonest(after, e.backoff.Get(key))
			} else {
				e.backoff.DeleteEntry(key)
			}
			return nil
		})
	}
	_ = group.Wait() // the tasks' errors are in their outcomes
	return outcomes, after
}

// end settles an Instance whose plan has ended. That it has is worth recording even where the rest fails.
func (e *engine) end(ctx context.Context, o plan.Observation, status kudo.InstanceStatus) result {
	o.Instance = o.Instance.DeepCopy()
	o.Instance.Status = status
	rest := o.Rest()
	ended, err := recorded(rest), error(nil)
	if rest.Kind == plan.ActionSettle {
		ended, err = e.settle(ctx, o, rest.Prune)
	}
	if err != nil {
		ended = result{status: status, ready: plan.Running(status.PlanStatus[status.Execution.Plan])}
	}
	ended.again = true
	return ended
}

// until is how long it is to a deadline; zero if there is none, and never less than a moment otherwise.
func (e *engine) until(deadline time.Time) time.Duration {
	if deadline.IsZero() {
		return 0
	}
	return max(deadline.Sub(e.clock()), time.Millisecond)
}

// lookAgain is when to look again at tasks that wait for something, or for their beginning; zero if none does.
func lookAgain(outcomes map[plan.Task]plan.Outcome) time.Duration {
	for _, outcome := range outcomes {
		if outcome.Status == kudo.InProgress || outcome.Status == kudo.Pending {
			return slow
		}
	}
	return 0
}

// cleanupKey is that of a cleanup plan among what has failed lately.
func cleanupKey(instance *kudo.Instance) string { return string(instance.UID) + "/" + kudo.CleanupPlan }
