package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/drift"
	"github.com/tandem-addons/tandem/pkg/core/outcome"
	"github.com/tandem-addons/tandem/pkg/core/pace"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/release"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/resume"
)

// maxParallelTasks is the maximum number of tasks of one execution that run in parallel.
const maxParallelTasks = 8

// maxDraftRounds is the maximum number of rounds of tasks that are recorded together.
const maxDraftRounds = 10

// step runs the next tasks, unless it has to decide first which ones a resumed execution skips.
func (p *pass) step(ctx context.Context, o plan.Observation, x *execution, tasks []plan.Task) (result, error) {
	x.renders = true
	if decided, done, err := p.resume(ctx, o, x, tasks); done || err != nil {
		return decided, err
	}
	return p.runRounds(ctx, o, x, tasks)
}

// runRounds runs the next tasks in parallel, and then the tasks after them that may run before the progress is recorded.
func (p *pass) runRounds(ctx context.Context, o plan.Observation, x *execution, tasks []plan.Task) (result, error) {
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

// isCandidate reports whether a task was complete in the execution that this one resumes, and it is not decided yet whether it runs again.
func isCandidate(status kudo.PlanStatus, at plan.Task) bool {
	return resume.IsCandidate(status.Phases[at.Phase].Steps[at.Step].Tasks[at.Task])
}

// maxResumeRounds is the maximum number of rounds of tasks of a resumed execution that are decided about before that is recorded.
const maxResumeRounds = 20

// resume decides which of the next tasks, which were complete in the execution that this one resumes, are skipped, and which run again. The decision is
// recorded before a task runs, so that it is the same after a restart. done is false if there is nothing to decide.
func (p *pass) resume(ctx context.Context, o plan.Observation, x *execution, tasks []plan.Task) (decided result, done bool, err error) {
	status, after := o.Instance.Status, time.Duration(0)
	if x.Resume == "" {
		return result{}, false, nil
	}
	for range maxResumeRounds {
		next := slices.DeleteFunc(slices.Clone(tasks), func(at plan.Task) bool { return !isCandidate(status.PlanStatus[x.Plan], at) })
		if len(next) == 0 || after > 0 {
			break
		}
		if status, after = p.decideResume(ctx, o, x, status, next); ctx.Err() != nil {
			return result{}, true, ctx.Err()
		}
		done = true
		tasks = plan.Next(x.version.Plans[x.Plan], status.PlanStatus[x.Plan])
	}
	if !done {
		return result{}, false, nil
	}
	if status.PlanStatus[x.Plan].Status.IsTerminal() {
		return p.end(ctx, o, status, x.inventory.live), true, nil
	}
	judged, err := p.judgeDuringPlan(ctx, o, x, status)
	return result{status: status, judgement: judged, again: after == 0, after: after}, true, err
}

// decideResume decides about candidates, and returns the status with that. after is when to try again those about which nothing can be decided now.
func (p *pass) decideResume(
	ctx context.Context, o plan.Observation, x *execution, before kudo.InstanceStatus, next []plan.Task,
) (status kudo.InstanceStatus, after time.Duration) {
	status = *before.DeepCopy()
	outcomes := map[plan.Task]plan.Outcome{}
	for _, at := range next {
		progress := status.PlanStatus[x.Plan]
		recorded := progress.Phases[at.Phase].Steps[at.Step].Tasks[at.Task]
		if !resume.IsCandidate(recorded) { // it runs after one that runs again
			continue
		}
		key := fmt.Sprintf("%s/%d/%d/%d", x.UID, at.Phase, at.Step, at.Task)
		reason, err := p.rerunReason(ctx, x, at, recorded.Rendered)
		switch {
		case err != nil:
			outcomes[at] = plan.Outcome{Status: kudo.Error, Message: plan.OneLine(p.view.Masker().Text(err.Error()))}
			after = soonest(after, p.failAgain(key, p.clock()))
		case reason != "":
			place := resume.Place{Phase: at.Phase, Step: at.Step, Task: at.Task}
			status.PlanStatus[x.Plan] = resume.RunAgain(x.version.Plans[x.Plan], progress, place, plan.OneLine(p.view.Masker().Text(reason)))
		default:
			outcomes[at] = plan.Outcome{Status: kudo.Complete, Rendered: recorded.Rendered, Skipped: true}
			p.backoff.DeleteEntry(key)
		}
	}
	return o.Advance(status, outcomes), after
}

// rerunReason returns why a task that was complete with this digest runs again; empty if it is skipped. An error may pass.
func (p *pass) rerunReason(ctx context.Context, x *execution, at plan.Task, digest string) (string, error) {
	placed, found := plan.Find(x.version, x.Plan, at)
	if !found {
		return "its task does not exist", nil
	}
	rendered := x.task(placed)
	switch {
	case p.hindrance != nil:
		return "", p.hindrance
	case rendered.transient != nil:
		return "", rendered.transient
	case cmp.Or(rendered.err, rendered.hiddenErr) != nil:
		return fmt.Sprintf("task %q cannot be rendered", placed.Task.Name), nil
	case p.digestOf(x, placed) != digest:
		return fmt.Sprintf("task %q renders differently now", placed.Task.Name), nil
	}
	problem, err := p.effectProblem(ctx, x, placed, rendered)
	if err != nil || problem == "" {
		return "", err
	}
	return fmt.Sprintf("task %q: %s", placed.Task.Name, problem), nil
}

// effectProblem returns what is wrong with the objects of a complete task; empty if nothing is.
func (p *pass) effectProblem(ctx context.Context, x *execution, placed plan.Placed, rendered renderedTask) (string, error) {
	deletes, wants := !rendered.action.Makes(), rendered.objects
	switch rendered.action {
	case plan.ApplyChart:
		wants = release.Unwrap(slices.Concat(rendered.release.Definitions, rendered.release.Objects))
	case plan.DeleteChart:
		if _, known := plan.RecordOf(x.instance.Status.Tasks, placed.Task.Name); known {
			return "its chart is installed", nil
		}
	case plan.Delete:
		if err := p.objects.setServedVersions(ctx, wants); err != nil {
			return "", err
		}
	}
	wants, undefined, err := p.objects.placeAll(x.instance, wants)
	if err != nil {
		return "", err
	}
	if len(undefined) > 0 && !deletes {
		return fmt.Sprintf("the cluster no longer has the kind of %s", plan.Describe(undefined[0])), nil
	}
	var objects []plan.Object
	for _, want := range wants {
		object, err := p.objects.find(ctx, x.instance, want, fromServerAndWatch)
		if err != nil {
			return "", err
		}
		objects = append(objects, object)
	}
	return p.objectProblem(ctx, x, placed, objects, deletes)
}

// objectProblem returns what is wrong with the first of the objects that a complete task has applied or deleted.
func (p *pass) objectProblem(ctx context.Context, x *execution, placed plan.Placed, objects []plan.Object, deletes bool) (string, error) {
	objects, err := p.objects.withClasses(ctx, objects)
	if err != nil {
		return "", err
	}
	for i, object := range p.view.MaskObjects(plan.WithRules(x.version, objects)) {
		if plan.IsDefinition(plan.Entry(object.Want, "")) && placed.Task.Kind == kudo.TaskHelm && object.Live != nil {
			continue // charts share it
		}
		problem := x.owner().RerunProblem(x.instance.Status.Inventory, placed.Task.Name, object, deletes, x.isAside())
		if problem == "" && !deletes && object.Live != nil {
			problem, err = p.changeProblem(ctx, x, placed, objects[i])
		}
		if problem != "" || err != nil {
			return problem, err
		}
	}
	return "", nil
}

// changeProblem returns why a healthy object that a complete task has applied has to be applied again, though it would be rendered the same; empty if it
// does not.
func (p *pass) changeProblem(ctx context.Context, x *execution, placed plan.Placed, object plan.Object) (string, error) {
	if render.NeedsRestart(object.Live, x.inventory.restart(object.Want)) {
		return plan.Describe(object.Want) + ": its pods have to restart", nil
	}
	for _, entry := range x.inventory.entries {
		if plan.Identity(entry) == plan.Entry(object.Want, "") {
			return p.writerProblem(ctx, x, placed, entry, object)
		}
	}
	return "", nil
}

// writerProblem returns what another writer has changed of an object, as read from the API server; empty if that is nothing, or if the object is as another
// task has applied it since. It takes no further request unless the agent has lost a field.
func (p *pass) writerProblem(
	ctx context.Context, x *execution, placed plan.Placed, entry kudo.InventoryEntry, object plan.Object,
) (string, error) {
	switch isKnown := entry.Fields != ""; {
	case entry.Task != placed.Task.Name || plan.IsJob(object.Want), isKnown && entry.Fields == drift.Digest(object.Live, fieldManager):
		return "", nil
	case isKnown && placed.Task.Kind == kudo.TaskPipe: // a pod has written the content
		return plan.Describe(object.Want) + ": another writer has changed it", nil
	}
	found, _, err := p.compareObject(ctx, x, entry.Task, object.Live, entry.Fields != "")
	if err != nil || !found.IsDrift() {
		return "", err
	}
	return "another writer has changed " + found.String(), nil
}

// digestOf returns the digest of what a task renders; empty if that is another each time, or if the hub applies it.
func (p *pass) digestOf(x *execution, placed plan.Placed) string {
	rendered := x.task(placed)
	if rendered.action.OfChild() || resume.IsVolatile(x.version, placed.Task) {
		return ""
	}
	objects := rendered.objects
	if rendered.pod != nil {
		objects = append(objects, rendered.pod)
	}
	return resume.Digest(p.view.Key, string(rendered.action), objects...)
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
	if placed, found := plan.Find(x.version, x.Plan, at); found && outcome.Status == kudo.Complete {
		outcome.Rendered = p.digestOf(x, placed)
	}
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
