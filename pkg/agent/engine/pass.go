package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	"github.com/tandem-addons/tandem/pkg/agent/secret"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/compatibility"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/pace"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/release"
	"github.com/tandem-addons/tandem/pkg/core/removal"
	"github.com/tandem-addons/tandem/pkg/text"
)

// pass advances an Instance once: it observes, calls plan.Decide, executes the action, and commits the result. It holds what belongs to
// that Instance alone, such as its permissions and sensitive values. Nothing of it outlives the pass.
type pass struct {
	*engine

	// own acts with the agent's own identity, to remove objects. acting acts for the Instance, to execute its tasks; hindrance is the reason
	// if it cannot.
	own, acting clients
	hindrance   error

	// view has the values of the Instance's sensitive parameters.
	view secret.View

	// overridden describes the closed maintenance windows that the Instance ignores; empty if there are none.
	overridden string

	// draft is the progress of the Instance that is not recorded yet.
	draft pace.Draft

	// renderings holds what the executions of the Instance render to, and rendersTo returns what the chart of a Helm task does.
	renderings renderings
	rendersTo  func(context.Context, *execution, plan.Placed) (release.Rendering, error)
}

// newPass returns a pass with the permissions of an Instance, and a view of its sensitive parameters. The view causes no request if the
// Instance has none.
func (e *engine) newPass(ctx context.Context, instance *kudo.Instance) (*pass, error) {
	p := &pass{engine: e}
	p.rendersTo = p.chartOf
	if err := p.impersonate(ctx, instance); err != nil {
		return nil, err
	}
	if !e.secrets.Concerns(instance) {
		e.secrets.Release(client.ObjectKeyFromObject(instance))
		return p, nil
	}
	var err error
	p.view, err = e.secrets.View(ctx, instance, e.secretReader(ctx, instance))
	return p, err
}

// advance executes a pass for an Instance. written is the updated Instance if there is more to do immediately; otherwise it is nil, and the
// result states when to reconcile again.
func (e *engine) advance(ctx context.Context, instance *kudo.Instance) (written *kudo.Instance, result reconcile.Result, err error) {
	p, err := e.newPass(ctx, instance)
	if err != nil {
		return nil, reconcile.Result{}, err
	}
	written, result, err = p.run(ctx, instance)
	return written, result, p.view.Masker().Error(err)
}

func (p *pass) run(ctx context.Context, instance *kudo.Instance) (written *kudo.Instance, result reconcile.Result, err error) {
	p.draft = p.draftOf(instance)
	observed, done, err := p.act(ctx, p.draft.Onto(instance))
	if err == nil {
		err = p.forgetKept(ctx, instance, done)
	}
	if err != nil {
		return nil, reconcile.Result{}, err
	}
	done = done.withRemark(p.view.Refused).mask(p.view.Masker())
	budget := p.restBudget
	if done.paced {
		budget = p.budget
	}
	status, after := done.statusOf(observed, instance.Status, p.lastWorded(instance), budget.TryAccept)
	status, again := p.withDiagnosis(ctx, observed, status)
	status, look := p.withSoak(ctx, observed, status)
	after = soonest(after, p.view.After, again, look, p.untilWindow(observed, status))
	p.metrics.await(client.ObjectKeyFromObject(instance), waitOf(observed, status))
	p.metrics.drift(client.ObjectKeyFromObject(instance), driftedOperator(observed, status))
	written, err = p.commit(ctx, observed, instance.Status, status)
	if written != nil {
		p.remark(instance, done)
		p.noteDropped(written, status)
	}
	if err != nil { // what it remembers is not recorded
		p.soaks.Remove(instance.UID)
	}
	switch {
	case apierrors.IsConflict(err):
		return nil, reconcile.Result{RequeueAfter: mirror.StaleCacheDelay}, nil
	case err != nil:
		return nil, reconcile.Result{}, err
	case written != nil && done.again: // terminates: every such pass makes progress
		return written, reconcile.Result{}, nil
	}
	return nil, reconcile.Result{RequeueAfter: soonest(after, p.untilRegrant())}, nil
}

// withSoak returns a status with condition Soaked and its record, and when to look again; zero means never.
func (p *pass) withSoak(ctx context.Context, o plan.Observation, status kudo.InstanceStatus) (kudo.InstanceStatus, time.Duration) {
	decision := p.soakOf(ctx, o, status)
	status.Soak = decision.Record
	status.Conditions = slices.Clone(status.Conditions) // they may be the stored ones
	setAt(&status, o.ReadyGeneration(), func() { setOrRemove(&status, kudo.ConditionSoaked, decision.Condition, o.Now) })
	return status, decision.After
}

// act observes an Instance, and executes the next action. While content of its OperatorVersion is lost, it waits: the mirror restores that.
func (p *pass) act(ctx context.Context, instance *kudo.Instance) (plan.Observation, result, error) {
	observed, err := p.observe(ctx, instance)
	if lost := (*content.Error)(nil); errors.As(err, &lost) {
		key := "content of " + string(instance.UID)
		held, holdErr := p.hold(ctx, observed, kudo.ReasonContentIncomplete, err.Error()+": the agent fetches it from the hub, as soon as that can be reached")
		held.after = p.failAgain(key, p.clock())
		return observed, held, holdErr
	}
	if err != nil {
		return observed, result{}, err
	}
	p.retrace(ctx, observed)
	done, err := p.execute(ctx, observed, plan.Decide(observed))
	return observed, done, err
}

// draftOf returns the draft of an Instance as read. A draft that continues another status is dropped.
func (e *engine) draftOf(instance *kudo.Instance) pace.Draft {
	key := client.ObjectKeyFromObject(instance)
	kept, _ := e.drafts.Get(key)
	if draft, known := kept.(pace.Draft); known && draft.IsOf(instance) {
		return draft
	}
	e.drafts.Remove(key)
	return pace.NewDraft(instance)
}

// remark emits events for remarks on a recorded result.
func (p *pass) remark(instance *kudo.Instance, done result) {
	if done.unsearched != "" {
		p.emitUnsearched(instance, done.unsearched)
	}
	if done.omitted != "" {
		p.emitOmitted(instance, done.omitted)
	}
	if done.warnings != "" {
		p.emitWarnings(instance, done.warnings)
	}
	if done.overridden != "" {
		p.events.Eventf(instance, nil, corev1.EventTypeWarning, "WindowOverridden", "Start", "%s",
			text.Prefix("spec.ignoreWindowsUntil: a plan starts outside of the maintenance windows, "+done.overridden, maxNoteBytes))
	}
}

// maxWindowDelay limits the delay until a maintenance window opens: the clock may be set, and timers do not run while a machine is suspended.
const maxWindowDelay = time.Hour

// untilWindow returns the time until a maintenance window opens for which a plan, or the repair of drift, waits; zero if none does.
func (p *pass) untilWindow(o plan.Observation, status kudo.InstanceStatus) time.Duration {
	repairs := o.Instance.Spec.DriftModeOrDefault() == kudo.DriftRepair && meta.IsStatusConditionTrue(status.Conditions, kudo.ConditionDrifted)
	if o.Window == nil || waitReason(status) != kudo.ReasonWindow && !repairs {
		return 0
	}
	return min(p.until(o.Window.Again), maxWindowDelay)
}

// waitOf returns why a plan waits, according to a status.
func waitOf(o plan.Observation, status kudo.InstanceStatus) pending {
	if wait := meta.FindStatusCondition(status.Conditions, kudo.ConditionWaiting); wait != nil {
		return pending{operator: operatorOf(o), reason: wait.Reason}
	}
	ready := meta.FindStatusCondition(status.Conditions, kudo.ConditionReady)
	if ready == nil || !plan.IsWait(ready.Reason) {
		return pending{}
	}
	return pending{operator: operatorOf(o), reason: ready.Reason}
}

// driftedOperator returns the operator of an Instance that has drifted, according to a status; empty otherwise.
func driftedOperator(o plan.Observation, status kudo.InstanceStatus) string {
	if !meta.IsStatusConditionTrue(status.Conditions, kudo.ConditionDrifted) {
		return ""
	}
	return operatorOf(o)
}

// forgetKept forgets what was compared, and deletes the copies of the Instance's sensitive values, and what its charts have rendered, once it is removed.
func (p *pass) forgetKept(ctx context.Context, instance *kudo.Instance, done result) error {
	if done.ready.Reason != kudo.ReasonRemoved {
		return nil
	}
	p.drifts.Forget(instance.UID)
	if len(instance.Status.Tasks) > 0 || p.rendered.Has(instance.HubUID()) {
		if err := p.rendered.Forget(ctx, instance.HubUID()); err != nil {
			return err
		}
	}
	if !p.secrets.Concerns(instance) {
		return nil
	}
	return p.secrets.Forget(ctx, instance)
}

// execute executes an action and returns its result.
func (p *pass) execute(ctx context.Context, o plan.Observation, action plan.Action) (result, error) {
	for _, pod := range action.Pods { // a conflict is not repeated: another execution may have created a Pod of the same name
		if o.Owner.Has(pod) && !pod.IsDeleted() {
			if _, err := p.objects.delete(ctx, p.own.client, pod.Live); err != nil {
				return result{}, fmt.Errorf("deleting %s: %w", plan.Describe(pod.Live), err)
			}
		}
	}
	switch x := p.executionOf(ctx, o); action.Kind {
	case plan.ActionAdopt:
		return resultOf(action), p.keepValues(ctx, o, action.Status)
	case plan.ActionStart:
		started, err := p.start(ctx, o, x, action.Start)
		return started.withOverride(o.Instance.Status, p.overridden), err
	case plan.ActionStep:
		return p.step(ctx, o, x, action.Tasks)
	case plan.ActionSettle:
		return p.settle(ctx, o, action.Prune, nil)
	case plan.ActionHold, plan.ActionWithdraw, plan.ActionRemove:
		return p.remove(ctx, o, x), nil
	case plan.ActionWait:
		return p.wait(ctx, o, action)
	default:
		return resultOf(action), nil
	}
}

// observe reads everything that plan.Decide depends on, except for the objects of tasks.
func (p *pass) observe(ctx context.Context, instance *kudo.Instance) (plan.Observation, error) {
	o, err := p.withVersions(ctx, instance)
	if err != nil {
		return o, err
	}
	o.Sensitive = p.view.Sensitive
	if o.Departure, err = p.departure(ctx, instance); err != nil {
		return o, err
	}
	o = o.MarkSuspension()
	if o, err = p.withWindow(ctx, o); err != nil {
		return o, err
	}
	if o, err = p.withKubernetesVersion(o); err != nil {
		return o, err
	}
	o.CleanupWait = p.cleanupWait(instance, o.Now)
	o.Unblocked = p.isUnblocked(ctx, o)
	versions := []*kudo.OperatorVersionSpec{o.Running, o.Desired, o.Former}
	if !removal.IsUntouched(instance) && slices.ContainsFunc(versions, hasPipes) {
		o.Pods, err = p.objects.pods(ctx, o.Owner)
	}
	return o, err
}

// withKubernetesVersion adds the version of the cluster if a plan is due that may depend on it.
func (p *pass) withKubernetesVersion(o plan.Observation) (_ plan.Observation, err error) {
	if (dependsOnKubernetes(o.Desired) || dependsOnKubernetes(o.Former)) && plan.Due(o.State()) != "" {
		o.KubernetesVersion, err = p.kubernetes.read(o.Now)
	}
	return o, err
}

// withWindow adds what executions wait for because a maintenance window is closed. Nothing delays a removal.
func (p *pass) withWindow(ctx context.Context, o plan.Observation) (_ plan.Observation, err error) {
	if !o.IsLeaving() {
		o.Window, p.overridden, err = p.windows.Judge(ctx, o.Instance, o.Now)
	}
	return o, err
}

// cleanupWait returns the remaining time before a failed cleanup plan is retried.
func (e *engine) cleanupWait(instance *kudo.Instance, now time.Time) time.Duration {
	key := cleanupKey(instance)
	if !e.backoff.IsInBackOffSinceUpdate(key, now) {
		return 0
	}
	return e.backoff.Get(key)
}

// dependsOnKubernetes reports whether a version, or what it renders, depends on the version of the cluster.
func dependsOnKubernetes(version *kudo.OperatorVersionSpec) bool {
	return compatibility.IsConstrained(version) || facts.UseCapabilities(version)
}

// hasPipes reports whether a version has Pipe tasks.
func hasPipes(version *kudo.OperatorVersionSpec) bool {
	return version != nil && slices.ContainsFunc(version.Tasks, func(t kudo.Task) bool { return t.Kind == kudo.TaskPipe })
}
