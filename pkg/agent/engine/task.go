package engine

import (
	"context"
	"fmt"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// runTask observes one task of the running execution, completes it as far as possible, and returns its outcome, whose message has no sensitive
// values. It is idempotent.
func (e *engine) runTask(ctx context.Context, x *execution, at plan.Task) plan.Outcome {
	outcome := e.attempt(ctx, x, at)
	outcome.Message = oneLine(e.view.Masker().Text(outcome.Message))
	return outcome
}

func (e *engine) attempt(ctx context.Context, x *execution, at plan.Task) plan.Outcome {
	placed, found := plan.Find(x.version, x.Plan, at)
	if e.hindrance != nil {
		return outcomeOf(e.hindrance)
	}
	if !found {
		return fatal(fmt.Errorf("the OperatorVersion has no task %q", placed.Task.Name))
	}
	action, wants, err := x.asks(placed)
	if err != nil {
		return fatal(err)
	}
	started := x.status(at) == kudo.InProgress
	switch action {
	case plan.Nothing:
		return plan.DummyOutcome(placed.Task.Spec.DummyTaskSpec)
	case plan.Pipe:
		return e.pipe(ctx, x, placed, wants)
	case plan.ApplyChild, plan.DeleteChild:
		return e.child(ctx, x, placed, action)
	case plan.Delete:
		return e.deleteAll(ctx, x, placed, started, wants)
	default:
		return e.applyAll(ctx, x, placed, started, wants)
	}
}
