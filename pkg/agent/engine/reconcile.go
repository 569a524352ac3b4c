package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// maxRounds is the maximum number of rounds for one Instance before others are reconciled.
const maxRounds = 10

// Reconcile advances an Instance in rounds while there is more to do immediately. Later rounds use the response of the last commit.
func (e *engine) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	instance, pause, err := e.readFresh(ctx, request.NamespacedName)
	if apierrors.IsNotFound(err) {
		e.metrics.await(request.NamespacedName, "", false)
		e.secrets.Release(request.NamespacedName)
		e.drafts.drop(request.NamespacedName)
		return reconcile.Result{}, e.disown(ctx, request.NamespacedName)
	}
	if err != nil || pause > 0 {
		return reconcile.Result{RequeueAfter: pause}, err
	}
	if proceed, result, err := e.authenticate(ctx, instance); !proceed {
		e.metrics.await(request.NamespacedName, "", false)
		return result, err
	}
	if !mirror.HandedOver(instance) {
		e.metrics.await(request.NamespacedName, "", false)
		return reconcile.Result{}, e.disownOrphan(ctx, instance)
	}
	for range maxRounds {
		written, result, err := e.advance(ctx, instance)
		if written == nil {
			return result, err
		}
		instance = written
	}
	return reconcile.Result{RequeueAfter: time.Nanosecond}, nil
}

// signatureManager is the field manager of condition Signed.
const signatureManager = "addon-agent-signature"

// notSigned is the message of condition Signed and of the event.
const notSigned = "addon-agent ignores this Instance because it lacks the agent's signature: only Instances on the hub run plans; " +
	"create it there, in the namespace of this cluster, and delete this one"

// authenticate reports whether the agent has mirrored an Instance. It reports to the writers of any other that claims to be a mirror that
// nothing runs. A mirror of an earlier release has no signature until the hub confirms it.
func (e *engine) authenticate(ctx context.Context, instance *kudo.Instance) (proceed bool, result reconcile.Result, err error) {
	signed := e.signer.IsSigned(instance)
	switch {
	case signed:
		wrote, err := apply.ReleaseCondition(ctx, e.client, instance, instance.Status.Conditions, kudo.ConditionSigned, kudo.ReasonNotSigned)
		if err == nil && !wrote {
			return true, reconcile.Result{}, nil
		}
		return false, reconcile.Result{RequeueAfter: mirror.StaleCacheDelay}, ignoreConflict(err)
	case !kudo.IsMirror(instance), e.signer.Predates(instance):
		return false, reconcile.Result{}, nil
	case e.signer.IsCreating(client.ObjectKeyFromObject(instance)):
		return false, reconcile.Result{RequeueAfter: mirror.StaleCacheDelay}, nil
	}
	want := plan.Condition(metav1.ConditionFalse, kudo.ReasonNotSigned, notSigned)
	want.Type = kudo.ConditionSigned
	wrote, err := apply.ConditionAsRead(ctx, e.client, instance, instance.Status.Conditions, signatureManager, want, e.clock())
	if wrote {
		e.events.Eventf(instance, nil, corev1.EventTypeWarning, kudo.ReasonNotSigned, "Verify", notSigned)
	}
	if apierrors.IsConflict(err) { // the change is another event
		return false, reconcile.Result{}, nil
	}
	if err != nil {
		err = fmt.Errorf("writing condition %s of Instance %s: %w", kudo.ConditionSigned, client.ObjectKeyFromObject(instance), err)
	}
	return false, reconcile.Result{}, client.IgnoreNotFound(err)
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// readFresh reads an Instance from the cache, or returns how long to wait because the cache lacks the last write of this process. No task
// is repeated because of a stale cache. An Instance without an execution needs no confirmation: the next action only records the start of
// one, which is a conflict if another was recorded.
func (e *engine) readFresh(ctx context.Context, name types.NamespacedName) (*kudo.Instance, time.Duration, error) {
	instance := &kudo.Instance{}
	if err := e.client.Get(ctx, name, instance); err == nil {
		switch {
		case e.writes.StaleFor(instance) > 0:
			return nil, mirror.StaleCacheDelay, nil
		case isUntouched(instance) && !instance.IsRemoving():
			return instance, 0, nil
		}
	}
	instance, err := e.readInstance(ctx, name)
	return instance, 0, err
}

// advance runs one round for an Instance: it observes, calls plan.Decide, executes the action, and commits the result. written is the
// updated Instance if there is more to do immediately; otherwise it is nil, and the result states when to reconcile again.
func (e *engine) advance(ctx context.Context, instance *kudo.Instance) (written *kudo.Instance, result reconcile.Result, err error) {
	if e, err = e.actingFor(ctx, instance); err != nil {
		return nil, reconcile.Result{}, err
	}
	defer func() { err = e.view.Masker().Error(err) }()
	e.draft = e.drafts.of(instance)
	observed, err := e.observe(ctx, e.draft.onto(instance))
	if err != nil {
		return nil, reconcile.Result{}, err
	}
	e.retrace(observed)
	done, err := e.execute(ctx, observed, plan.Decide(observed))
	if err == nil {
		err = e.forgetValues(ctx, instance, done)
	}
	if err != nil {
		return nil, reconcile.Result{}, err
	}
	done = done.withRemark(e.view.Refused).mask(e.view.Masker())
	status, after := done.statusOf(observed, instance.Status, e.drafts.budget)
	after = soonest(after, e.view.After)
	e.metrics.await(client.ObjectKeyFromObject(instance), operatorOf(observed), awaitsSecret(status))
	written, err = e.commit(ctx, observed, instance.Status, status)
	if written != nil {
		e.remark(instance, done)
	}
	switch {
	case apierrors.IsConflict(err):
		return nil, reconcile.Result{RequeueAfter: mirror.StaleCacheDelay}, nil
	case err != nil:
		return nil, reconcile.Result{}, err
	case written != nil && done.again: // terminates: every such round makes progress
		return written, reconcile.Result{}, nil
	}
	return nil, reconcile.Result{RequeueAfter: soonest(after, e.untilRegrant())}, nil
}

// remark emits events for remarks on a recorded result.
func (e *engine) remark(instance *kudo.Instance, done result) {
	if done.unsearched != "" {
		e.emitUnsearched(instance, done.unsearched)
	}
	if done.omitted != "" {
		e.emitOmitted(instance, done.omitted)
	}
}

// awaitsSecret reports whether a plan waits for the value of a sensitive parameter.
func awaitsSecret(status kudo.InstanceStatus) bool {
	ready := meta.FindStatusCondition(status.Conditions, kudo.ConditionReady)
	return ready != nil && ready.Reason == kudo.ReasonSecretNotFound
}

// actingFor returns the engine that acts with the permissions of the Instance, and has a view of its sensitive parameters.
func (e *engine) actingFor(ctx context.Context, instance *kudo.Instance) (*engine, error) {
	acting, err := e.as(ctx, instance)
	if err != nil {
		return nil, err
	}
	return acting.withView(ctx, instance)
}

// withView returns the engine with a view of the Instance's sensitive parameters. Instances without any cost no request.
func (e *engine) withView(ctx context.Context, instance *kudo.Instance) (*engine, error) {
	if !e.secrets.Concerns(instance) {
		e.secrets.Release(client.ObjectKeyFromObject(instance))
		return e, nil
	}
	view, err := e.secrets.View(ctx, instance, e.secretReader(ctx, instance))
	if err != nil {
		return nil, err
	}
	acting := *e
	acting.view = view
	return &acting, nil
}

// forgetValues deletes the copy of the Instance's sensitive values once it is removed, and nothing is left to render.
func (e *engine) forgetValues(ctx context.Context, instance *kudo.Instance, done result) error {
	if done.ready.Reason != kudo.ReasonRemoved || !e.secrets.Concerns(instance) {
		return nil
	}
	return e.secrets.Forget(ctx, instance)
}

// execute executes an action and returns its result.
func (e *engine) execute(ctx context.Context, o plan.Observation, action plan.Action) (result, error) {
	for _, pod := range action.Pods { // a conflict is not repeated: another execution may have created a Pod of the same name
		if o.Owner.Has(pod) && !pod.IsDeleted() {
			if _, err := e.objects.delete(ctx, e.own.client, pod.Live); err != nil {
				return result{}, fmt.Errorf("deleting %s: %w", plan.Describe(pod.Live), err)
			}
		}
	}
	switch action.Kind {
	case plan.ActionAdopt:
		return resultOf(action), e.keepValues(ctx, o, action.Status.Execution)
	case plan.ActionStart:
		return e.start(ctx, o, action.Start)
	case plan.ActionStep:
		return e.step(ctx, o, action.Tasks)
	case plan.ActionSettle:
		return e.settle(ctx, o, action.Prune, nil)
	case plan.ActionHold, plan.ActionWithdraw:
		return e.depart(ctx, o, action), nil
	case plan.ActionRemove:
		return e.remove(ctx, o), nil
	default:
		return resultOf(action), nil
	}
}

// observe reads everything that plan.Decide depends on, except for the objects of tasks.
func (e *engine) observe(ctx context.Context, instance *kudo.Instance) (plan.Observation, error) {
	o, err := e.withVersions(ctx, instance)
	if err != nil {
		return o, err
	}
	o.Sensitive = e.view.Sensitive
	if o.Departure, err = e.departure(ctx, instance); err != nil {
		return o, err
	}
	o.CleanupWait = e.cleanupWait(instance, o.Now)
	o.Unblocked = e.isUnblocked(ctx, o)
	if !isUntouched(instance) && (hasPipes(o.Running) || hasPipes(o.Desired)) {
		o.Pods, err = e.objects.pods(ctx, o.Owner)
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

// hasPipes reports whether a version has Pipe tasks.
func hasPipes(version *kudo.OperatorVersionSpec) bool {
	return version != nil && slices.ContainsFunc(version.Tasks, func(t kudo.Task) bool { return t.Kind == kudo.TaskPipe })
}
