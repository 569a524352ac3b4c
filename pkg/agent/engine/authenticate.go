package engine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// signatureManager is the field manager of condition Signed.
const signatureManager = "addon-agent-signature"

// notSigned is the message of condition Signed and of the event.
const notSigned = "addon-agent ignores this Instance because it lacks the agent's signature: only Instances on the hub run plans; " +
	"create it there, in the namespace of this cluster, and delete this one"

// authenticate reports whether the agent has mirrored an Instance. It tells the writers of any other that claims to be a mirror that nothing
// runs. A mirror of an earlier release has no signature until the hub confirms it.
func (e *engine) authenticate(ctx context.Context, instance *kudo.Instance) (proceed bool, result reconcile.Result, err error) {
	signed := e.signer.IsSigned(instance)
	switch {
	case signed:
		wrote, err := apply.ReleaseCondition(ctx, e.client, instance, instance.Status.Conditions, kudo.ConditionSigned, kudo.ReasonNotSigned)
		if err == nil && !wrote {
			return true, reconcile.Result{}, nil
		}
		return false, reconcile.Result{RequeueAfter: mirror.StaleCachePause}, ignoreConflict(err)
	case !kudo.IsMirror(instance), e.signer.Predates(instance):
		return false, reconcile.Result{}, nil
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
