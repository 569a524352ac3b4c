package engine

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// inARow bounds the rounds of one Instance before others have their turn.
const inARow = 10

// Reconcile takes an Instance further, round by round, as long as there is more to do immediately. The Instance is read from the API
// server, so that no task is carried out again for want of a fresh cache; after that, it is what the last commit was answered with.
func (e *engine) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	instance := &kudo.Instance{}
	if err := e.live.Get(ctx, request.NamespacedName, instance); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !mirror.HandedOver(instance) {
		return reconcile.Result{}, nil
	}
	for range inARow {
		written, result, err := e.advance(ctx, instance)
		if written == nil {
			return result, err
		}
		instance = written
	}
	return reconcile.Result{RequeueAfter: time.Nanosecond}, nil
}

// advance takes an Instance one round further: it observes, lets plan.Decide say what is to be done, does that, and commits what came of it.
// written is the Instance as it is then if there is more to do immediately; otherwise it is nil, and the result says when to look again.
func (e *engine) advance(ctx context.Context, instance *kudo.Instance) (written *kudo.Instance, result reconcile.Result, err error) {
	if e, err = e.as(instance); err != nil {
		return nil, reconcile.Result{}, err
	}
	observed, err := e.observe(ctx, instance)
	if err != nil {
		return nil, reconcile.Result{}, err
	}
	done, err := e.execute(ctx, observed, plan.Decide(observed))
	if err != nil {
		return nil, reconcile.Result{}, err
	}
	status, after := done.statusOf(observed, instance.Status)
	written, err = e.commit(ctx, observed, instance.Status, status)
	switch {
	case apierrors.IsConflict(err):
		return nil, reconcile.Result{RequeueAfter: mirror.StaleCachePause}, nil
	case written != nil && done.again: // which ends: every such round starts an execution that is due, completes a task, lists what was not, or ends a plan
		return written, reconcile.Result{}, nil
	}
	return nil, reconcile.Result{RequeueAfter: after}, err
}

// as is the engine that does what the plans of an Instance want as the service account that it names.
func (e *engine) as(instance *kudo.Instance) (*engine, error) {
	name := instance.Spec.ServiceAccountName
	if name == "" {
		return e, nil
	}
	clients, err := e.identities.of(types.NamespacedName{Namespace: instance.Namespace, Name: name})
	if err != nil {
		return nil, err
	}
	acting := *e
	acting.clients = clients
	return &acting, nil
}

// execute does what was decided, and returns what came of it.
func (e *engine) execute(ctx context.Context, o plan.Observation, action plan.Action) (result, error) {
	for _, pod := range action.Pods {
		if err := apply.Delete(ctx, e.clients.client, pod.Live); err != nil {
			return result{}, fmt.Errorf("deleting %s: %w", plan.Describe(pod.Live), err)
		}
	}
	switch action.Kind {
	case plan.ActionStart:
		return e.start(ctx, o, action.Start)
	case plan.ActionStep:
		return e.step(ctx, o, action.Tasks)
	case plan.ActionSettle:
		return e.settle(ctx, o, action.Prune)
	case plan.ActionRemove:
		return e.remove(ctx, o), nil
	default:
		return recorded(action), nil
	}
}
