package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// seen is everything that a pass decides on, beside the objects of tasks.
type seen struct {
	now time.Time
	// instance is as it was read, but that the status of its last execution fits the plan; stored is the status as it was read.
	instance   *kudo.Instance
	stored     kudo.InstanceStatus
	generation int64
	wanted     *kudo.OperatorVersion
	running    *kudo.OperatorVersionSpec
}

// gather reads the OperatorVersions that the Instance asks for and that was last started, each nil where it is not there.
func (e *engine) gather(ctx context.Context, instance *kudo.Instance) (seen, error) {
	s := seen{now: e.clock(), instance: instance, stored: instance.Status, generation: instance.HubGeneration()}
	var err error
	if s.wanted, err = e.version(ctx, instance.Namespace, instance.Spec.OperatorVersion.Name); err != nil {
		return s, err
	}
	last := instance.Status.Execution
	switch {
	case last == nil:
		return s, nil
	case s.wanted != nil && s.wanted.Name == mirror.VersionName(last.OperatorVersion):
		s.running = &s.wanted.Spec
	default:
		started, err := e.version(ctx, instance.Namespace, mirror.VersionName(last.OperatorVersion))
		if err != nil || started == nil {
			return s, err
		}
		s.running = &started.Spec
	}
	s.instance = s.fitted()
	return s, nil
}

// fitted is the Instance with a status of its last execution that fits the plan, whatever somebody has made of it.
func (s seen) fitted() *kudo.Instance {
	last := s.instance.Status.Execution
	recorded := s.instance.Status.PlanStatus[last.Plan]
	status := plan.Normalize(last.Plan, s.running.Plans[last.Plan], recorded, last.UID, s.now)
	if equality.Semantic.DeepEqual(status, recorded) {
		return s.instance
	}
	fitted := s.instance.DeepCopy()
	if fitted.Status.PlanStatus == nil {
		fitted.Status.PlanStatus = map[string]kudo.PlanStatus{}
	}
	fitted.Status.PlanStatus[last.Plan] = status
	return fitted
}

func (e *engine) version(ctx context.Context, namespace, name string) (*kudo.OperatorVersion, error) {
	version := &kudo.OperatorVersion{}
	err := e.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, version)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading OperatorVersion %q: %w", name, err)
	}
	return version, nil
}

func (s seen) wish() plan.Wish {
	w := plan.Wish{
		Generation:  s.generation,
		Parameters:  s.instance.Spec.Parameters,
		Request:     s.instance.Spec.PlanExecution,
		Removing:    s.instance.Removing(),
		Last:        s.instance.Status.Execution,
		LastVersion: s.running,
	}
	if s.wanted != nil {
		w.Version, w.Reference = &s.wanted.Spec, mirror.HubReference(s.wanted)
	}
	if w.Last != nil {
		w.LastStatus = s.instance.Status.PlanStatus[w.Last.Plan].Status
	}
	return w
}

func (s seen) execution() *execution {
	return &execution{
		Execution: s.instance.Status.Execution, instance: s.instance, version: s.running,
		inventory: &ledger{entries: s.instance.Status.Inventory},
	}
}

// pass is what a pass came to.
type pass struct {
	// status to commit; condition Ready is in it.
	status kudo.InstanceStatus
	// again says that there is more to do at once, if anything changed; after, when to come back in any case.
	again bool
	after time.Duration
	err   error
}

// decide chooses, and does what the choice says.
func (e *engine) decide(ctx context.Context, s seen) pass {
	choice, err := plan.Choose(s.wish())
	if err := e.dropPods(ctx, s, choice); err != nil {
		return pass{err: err}
	}
	switch {
	case choice.Cancel:
		return s.cancel()
	case choice.Start != nil:
		return e.start(ctx, s, choice)
	case choice.Remove:
		return e.remove(ctx, s)
	default:
		return e.goOn(ctx, s, err)
	}
}

// goOn does what the state of the last execution asks for; err says why nothing else could be chosen.
func (e *engine) goOn(ctx context.Context, s seen, err error) pass {
	last := s.instance.Status.Execution
	switch {
	case s.running != nil && s.instance.Status.PlanStatus[last.Plan].Status.Running():
		return e.step(ctx, s)
	case s.wanted == nil:
		return s.stopped(plan.Condition(metav1.ConditionFalse, kudo.ReasonNotMirrored,
			fmt.Sprintf("OperatorVersion %q is missing here and will be mirrored again", s.instance.Spec.OperatorVersion.Name)))
	case s.running == nil && last != nil && err == nil:
		return s.stopped(plan.Condition(metav1.ConditionFalse, kudo.ReasonNotMirrored,
			fmt.Sprintf("OperatorVersion %q, which was last started, is lost", last.OperatorVersion.Name)))
	case err != nil:
		return s.stopped(plan.Condition(metav1.ConditionFalse, kudo.ReasonPlanFailed, err.Error()))
	default:
		return e.rest(ctx, s)
	}
}

// start records the execution before anything of it is done, with what it is about to apply: whoever comes after knows what runs.
func (e *engine) start(ctx context.Context, s seen, choice plan.Choice) pass {
	if wait := e.cleanupBackoff(s, choice); wait > 0 {
		p := s.stopped(plan.Condition(metav1.ConditionFalse, kudo.ReasonRemoving,
			fmt.Sprintf("plan %q failed and will be tried again: %s", kudo.CleanupPlan, s.instance.Status.PlanStatus[kudo.CleanupPlan].Message)))
		p.after = wait
		return p
	}
	status := plan.Start(s.instance.Status, choice, uuid.NewUUID(), s.now)
	x := s.execution()
	x.Execution, x.version = status.Execution, choice.Version
	if err := e.forgetUnapplied(ctx, x, s); err != nil {
		return pass{err: err}
	}
	e.listAhead(x, status.PlanStatus[x.Plan])
	status.Inventory = x.inventory.entries
	return s.pass(status, plan.Running(status.PlanStatus[status.Execution.Plan]), true)
}

// cleanupBackoff is how long a cleanup plan that failed must wait before it is tried again.
func (e *engine) cleanupBackoff(s seen, choice plan.Choice) time.Duration {
	key := cleanupKey(s.instance)
	if choice.Start.Plan != kudo.CleanupPlan || !e.backoff.IsInBackOffSinceUpdate(key, s.now) {
		return 0
	}
	return e.backoff.Get(key)
}

func cleanupKey(instance *kudo.Instance) string { return string(instance.UID) + "/" + kudo.CleanupPlan }

// step carries out, side by side, the tasks whose turn it is.
func (e *engine) step(ctx context.Context, s seen) pass {
	x := s.execution()
	spec, before := x.version.Plans[x.Plan], s.instance.Status.PlanStatus[x.Plan]
	outcomes, after := e.carryOutAll(ctx, x, plan.Next(spec, before))
	if ctx.Err() != nil {
		return pass{err: ctx.Err()}
	}
	status := plan.Advance(x.version, s.instance.Status, outcomes, s.now)
	recorded := status.PlanStatus[x.Plan]
	listed := e.listAhead(x, recorded)
	status.Inventory = x.inventory.entries
	if recorded.Status == kudo.FatalError && x.Plan == kudo.CleanupPlan {
		e.backoff.Next(cleanupKey(s.instance), s.now)
	}
	if recorded.Status.Terminal() {
		s.instance = s.instance.DeepCopy()
		s.instance.Status = status
		p := e.rest(ctx, s)
		if p.err != nil { // that the plan has ended is worth recording all the same
			p = s.stopped(plan.Running(recorded))
		}
		p.again = true
		return p
	}
	p := s.pass(status, plan.Running(recorded), listed || plan.Progressed(before, recorded))
	p.after = soonest(soonest(after, e.until(plan.Deadline(spec, recorded))), lookAgain(outcomes))
	return s.unhurried(p)
}

// unhurried puts off what would only change the words of a status that was written just now: of a Deployment with many pods there is
// more to say every moment. What tasks have come to is written at once.
func (s seen) unhurried(p pass) pass {
	before := s.stored.PlanStatus[s.stored.Execution.Plan]
	said := before.LastUpdatedTimestamp
	if said == nil || s.now.Sub(said.Time) >= leastTalk || !plan.OnlyMessagesDiffer(s.stored, p.status) {
		return p
	}
	p.status, p.after = s.stored, soonest(p.after, leastTalk)
	return p
}

// until is how long it is to a deadline; zero if there is none, and never less than a moment otherwise.
func (e *engine) until(deadline time.Time) time.Duration {
	if deadline.IsZero() {
		return 0
	}
	return max(deadline.Sub(e.clock()), time.Millisecond)
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

// soonest is the shorter of two waits, of which zero is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// rest judges what is listed once no plan runs. With a version that is in place goes what tasks of the one before have left.
func (e *engine) rest(ctx context.Context, s seen) pass {
	x := s.execution()
	last := s.instance.Status.PlanStatus[x.Plan]
	if last.Status == kudo.FatalError {
		return s.stopped(plan.Ready(last, x.owner(), nil, nil))
	}
	if _, err := e.prune(ctx, x, plan.Vanished(x.inventory.entries, x.version, s.instance.Status.PlanStatus)); err != nil {
		return pass{err: err}
	}
	objects := make([]plan.Object, 0, len(x.inventory.entries))
	for _, entry := range x.inventory.entries {
		object, err := e.objects.listed(ctx, entry, e.objects.get)
		if err != nil {
			return pass{err: err}
		}
		objects = append(objects, object)
	}
	children, err := e.children(ctx, s)
	if err != nil {
		return pass{err: err}
	}
	ready := plan.Ready(last, x.owner(), objects, children)
	if next, err := plan.Choose(s.wish()); err == nil && next.Due() {
		ready = plan.Pending(last, next)
	}
	p := s.stopped(ready)
	p.status.Inventory = x.inventory.entries
	return p
}

// stopped is a pass that leaves the plans alone.
func (s seen) stopped(ready metav1.Condition) pass {
	return s.pass(*s.instance.Status.DeepCopy(), ready, false)
}

func (s seen) cancel() pass {
	status := *s.instance.Status.DeepCopy()
	name := status.Execution.Plan
	status.PlanStatus[name] = plan.Cancel(status.PlanStatus[name], s.now)
	return s.pass(status, plan.Running(status.PlanStatus[name]), true)
}

// pass completes a status with condition Ready and the generation that it speaks of.
func (s seen) pass(status kudo.InstanceStatus, ready metav1.Condition, again bool) pass {
	ready.ObservedGeneration = s.generation
	settled, _ := apply.Settle(status.Conditions, ready, s.now)
	meta.SetStatusCondition(&status.Conditions, settled)
	status.ObservedGeneration = s.generation
	return pass{status: status, again: again}
}

// commit writes the status if it changed, and returns the Instance as it is then. A conflict means that somebody was faster: the pass
// is thrown away.
func (e *engine) commit(ctx context.Context, s seen, p pass) (*kudo.Instance, error) {
	if equality.Semantic.DeepEqual(s.stored, p.status) {
		return nil, nil
	}
	committed := s.instance.DeepCopy()
	committed.Status = p.status
	err := e.client.Status().Update(ctx, committed, client.FieldOwner(fieldManager))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("writing status of Instance %q: %w", s.instance.Name, err)
	}
	if len(committed.Status.Inventory) < len(p.status.Inventory) { // or it would be written again and again
		return nil, fmt.Errorf("nothing is applied for Instance %q, because the API server drops its inventory: "+
			"CustomResourceDefinition instances.kudo.dev is older than this agent, apply its own", s.instance.Name)
	}
	e.announce(s, p.status)
	return committed, nil
}

// announce tells of plans that started or ended.
func (e *engine) announce(s seen, after kudo.InstanceStatus) {
	const most = 900 // of what the API takes of an Event's note
	for _, name := range slices.Sorted(maps.Keys(after.PlanStatus)) {
		then, now := s.instance.Status.PlanStatus[name], after.PlanStatus[name]
		if now.Status == kudo.NeverRun || now.UID == then.UID && now.Status == then.Status {
			continue
		}
		if now.UID != then.UID {
			e.events.Eventf(s.instance, nil, corev1.EventTypeNormal, "PlanStarted", "Start", "plan %q started", name)
		}
		switch now.Status {
		case kudo.Complete:
			e.metrics.end(s.operator(), now, s.now)
			e.events.Eventf(s.instance, nil, corev1.EventTypeNormal, "PlanComplete", "Execute", "plan %q is complete", name)
		case kudo.FatalError:
			e.metrics.end(s.operator(), now, s.now)
			e.events.Eventf(s.instance, nil, corev1.EventTypeWarning, "PlanFailed", "Execute", "plan %q failed: %s", name, bounded(now.Message, most))
		}
	}
}

// operator is the name of the operator that runs, or is to run; empty where both OperatorVersions are lost.
func (s seen) operator() string {
	switch {
	case s.running != nil:
		return s.running.Operator.Name
	case s.wanted != nil:
		return s.wanted.Spec.Operator.Name
	default:
		return ""
	}
}

// bounded is the beginning of a message, in bytes.
func bounded(message string, most int) string {
	if len(message) > most {
		return strings.ToValidUTF8(message[:most], "")
	}
	return message
}
