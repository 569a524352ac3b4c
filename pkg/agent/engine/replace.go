package engine

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// makeWay deletes the Jobs of earlier executions that stand in the way of a task that has not begun: those that it wants changed,
// which no Job can be, and those that have failed. It is complete when all of them are gone. The task applies nothing before, so
// that whatever it has applied once counts as applied for good.
func (e *engine) makeWay(ctx context.Context, x *execution, wants []*unstructured.Unstructured) plan.Outcome {
	var going []plan.Object
	for _, want := range wants {
		if !plan.Unchangeable(want) {
			continue
		}
		object, err := e.objects.findLive(ctx, x.instance, want)
		if err != nil {
			return outcomeOf(err)
		}
		if !object.Replaceable(x.UID) || x.owner().Claim(object) != nil || !object.Spent() && !e.wouldChange(ctx, object) {
			continue
		}
		if !object.Deleted() {
			ctrl.LoggerFrom(ctx).Info("replacing a Job of an earlier execution", "object", plan.Describe(object.Live), "execution", x.UID)
		}
		if object, err = e.delete(ctx, object); err != nil {
			return outcomeOf(err)
		}
		going = append(going, object)
	}
	return plan.ReplaceOutcome(going)
}

// wouldChange says whether applying the object would change what cannot be changed. Whatever else the API server has against it
// is left to the apply.
func (e *engine) wouldChange(ctx context.Context, object plan.Object) bool {
	var immutable *apply.ImmutableError
	err := apply.Rehearse(ctx, e.hands.client, object.Want, fieldManager)
	return errors.As(apply.Refused(err, object.Live, object.Want), &immutable)
}
