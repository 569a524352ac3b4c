package engine

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	coremirror "github.com/tandem-addons/tandem/pkg/core/mirror"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/removal"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// maxRounds is the maximum number of rounds for one Instance before others are reconciled.
const maxRounds = 10

// Reconcile advances an Instance in rounds while there is more to do immediately. Later rounds use the response of the last commit.
func (e *engine) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	instance, pause, err := e.readFresh(ctx, request.NamespacedName)
	if apierrors.IsNotFound(err) {
		e.metrics.forget(request.NamespacedName)
		e.secrets.Release(request.NamespacedName)
		e.drafts.Remove(request.NamespacedName)
		return reconcile.Result{}, e.disown(ctx, request.NamespacedName)
	}
	if err != nil || pause > 0 {
		return reconcile.Result{RequeueAfter: pause}, err
	}
	if proceed, result, err := e.authenticate(ctx, instance); !proceed {
		e.metrics.forget(request.NamespacedName)
		return result, err
	}
	if !coremirror.HandedOver(instance) {
		e.metrics.forget(request.NamespacedName)
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
		case removal.IsUntouched(instance) && !instance.IsRemoving():
			return instance, 0, nil
		}
	}
	instance, err := e.readInstance(ctx, name)
	return instance, 0, err
}
