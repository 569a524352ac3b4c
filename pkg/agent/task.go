package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/plan"
	"github.com/tandem-addons/tandem/pkg/render"
)

// execution is what status.execution says, with the OperatorVersion that it runs.
type execution struct {
	*kudo.Execution
	instance *kudo.Instance
	version  *kudo.OperatorVersionSpec
}

func (x *execution) owner() plan.Owner {
	return plan.Owner{Namespace: x.instance.Namespace, Name: render.InstanceName(x.instance.Name)}
}

// context is what the templates of a task see: the execution, never the Instance's spec.
func (x *execution) context(placed plan.Placed) render.Context {
	return render.Context{
		Version:         x.version,
		OperatorVersion: x.version.Version,
		Instance:        x.instance.Name,
		Namespace:       x.instance.Namespace,
		Parameters:      x.Parameters,
		Plan:            placed.Plan,
		Phase:           placed.Phase,
		Step:            placed.Step,
		Execution:       x.UID,
	}
}

// status is what is recorded of a task of the execution.
func (x *execution) status(at plan.Task) kudo.ExecutionStatus {
	return x.instance.Status.PlanStatus[x.Plan].Phases[at.Phase].Steps[at.Step].Tasks[at.Task].Status
}

// defines says whether the package itself has the CustomResourceDefinition of that kind.
func (x *execution) defines(kind schema.GroupKind) bool {
	objects, _ := everything(x)
	return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		name, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		return o.GetKind() == "CustomResourceDefinition" && group == kind.Group && name == kind.Kind
	})
}

// carryOut looks at one task of the running execution, does what is still to be done of it, and says what came of it. It may
// be called any number of times: what was done already is not done again.
func (e *engine) carryOut(ctx context.Context, x *execution, at plan.Task) plan.Outcome {
	placed, found := plan.Find(x.version, x.Plan, at)
	if !found {
		return fatal(fmt.Errorf("the OperatorVersion has no task %q", placed.Task.Name))
	}
	action, err := plan.ActionOf(placed.Task, x.version, x.Parameters)
	if err != nil {
		return fatal(err)
	}
	if action == plan.Nothing {
		return plan.DummyOutcome(placed.Task.Spec.DummyTaskSpec)
	}
	wants, err := render.Objects(x.context(placed), placed.Task.Spec.Resources...)
	if err != nil {
		return fatal(err)
	}
	if action == plan.Delete {
		return e.deleteAll(ctx, x, wants)
	}
	return e.applyAll(ctx, x, at, wants)
}

// applyAll applies, in the listed order and once in an execution, what the task renders, and judges the health of all. A task
// that is recorded as in progress has done so: only what has been deleted or overwritten since is applied again. Everything is
// read from the API server, so that no object of old, which a cache may still show, completes the task.
func (e *engine) applyAll(ctx context.Context, x *execution, at plan.Task, wants []*unstructured.Unstructured) plan.Outcome {
	begun := x.status(at) == kudo.InProgress
	objects := make([]plan.Object, 0, len(wants))
	var undefined *plan.Outcome
	for _, want := range wants {
		object, err := e.objects.findLive(ctx, x.instance, want)
		switch {
		case meta.IsNoMatchError(err) && x.defines(want.GroupVersionKind().GroupKind()):
			undefined = &plan.Outcome{Status: kudo.Error, Message: plan.Describe(want) + ": waits for its CustomResourceDefinition"}
			continue
		case err != nil:
			return outcomeOf(err)
		case begun && object.Expired():
			continue
		}
		if err := x.owner().Claim(object); err != nil {
			return fatal(err)
		}
		if object, err = e.apply(ctx, x, object, begun); err != nil {
			return outcomeOf(err)
		}
		objects = append(objects, object)
	}
	if undefined != nil {
		return *undefined
	}
	return plan.ApplyOutcome(objects)
}

// apply applies an object, unless its task has begun and it stands; its pods restart if the execution owes that.
func (e *engine) apply(ctx context.Context, x *execution, object plan.Object, begun bool) (plan.Object, error) {
	if begun && object.AppliedBy(x.UID) {
		return object, nil
	}
	desired := render.RestartPods(object.Want, object.Live, x.UID, x.RestartPending)
	live, err := apply.Object(ctx, e.client, desired, managerEngine)
	if err != nil {
		return object, fmt.Errorf("applying %s: %w", plan.Describe(object.Want), err)
	}
	return plan.Object{Want: object.Want, Live: live}, nil
}

// deleteAll deletes what exists, in the listed order, and waits until all are gone. A kind that is unknown is gone.
func (e *engine) deleteAll(ctx context.Context, x *execution, wants []*unstructured.Unstructured) plan.Outcome {
	objects := make([]plan.Object, 0, len(wants))
	for _, want := range wants {
		object, err := e.objects.findLive(ctx, x.instance, want)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return outcomeOf(err)
		}
		if err := x.owner().Claim(object); err != nil {
			return fatal(err)
		}
		if object, err = e.delete(ctx, object); err != nil {
			return outcomeOf(err)
		}
		objects = append(objects, object)
	}
	return plan.DeleteOutcome(objects)
}

// delete removes an object unless it is on its way out already, and looks again: many are gone at once.
func (e *engine) delete(ctx context.Context, object plan.Object) (plan.Object, error) {
	if object.Deleted() {
		return object, nil
	}
	if err := apply.Delete(ctx, e.client, object.Live); err != nil {
		return object, fmt.Errorf("deleting %s: %w", plan.Describe(object.Live), err)
	}
	live, err := e.objects.read(ctx, object.Want)
	return plan.Object{Want: object.Want, Live: live}, err
}

func fatal(err error) plan.Outcome {
	return plan.Outcome{Status: kudo.FatalError, Message: oneLine(err)}
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// outcomeOf maps an error of the API server to an outcome: what it will never accept is fatal, everything else may pass.
func outcomeOf(err error) plan.Outcome {
	var status apierrors.APIStatus
	known := errors.As(err, &status)
	switch {
	case meta.IsNoMatchError(err), errors.Is(err, errUnwatchable):
		return fatal(err)
	// What the schema does not know or types otherwise; server-side apply answers so before any validation.
	case known && strings.Contains(err.Error(), "failed to create typed patch object"):
		return fatal(err)
	case known && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsRequestEntityTooLargeError(err)):
		return fatal(err)
	default:
		return plan.Outcome{Status: kudo.Error, Message: oneLine(err)}
	}
}

// standing renders what the plans that were executed to their end have left there: what the last of them did to an object is
// what counts.
func standing(x *execution) ([]*unstructured.Unstructured, error) {
	type key struct {
		kind            schema.GroupKind
		namespace, name string
	}
	var order []key
	wanted := map[key]*unstructured.Unstructured{}
	for _, placed := range plan.Standing(x.version, x.instance.Status.PlanStatus, x.Plan) {
		action, err := plan.ActionOf(placed.Task, x.version, x.Parameters)
		if err != nil || action == plan.Nothing {
			continue // it could not have been carried out
		}
		objects, err := render.Objects(x.context(placed), placed.Task.Spec.Resources...)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			k := key{o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
			if action == plan.Delete {
				delete(wanted, k)
				continue
			}
			if _, known := wanted[k]; !known {
				order = append(order, k)
			}
			wanted[k] = o
		}
	}
	var objects []*unstructured.Unstructured
	for _, k := range order {
		if o, still := wanted[k]; still {
			objects = append(objects, o)
			delete(wanted, k)
		}
	}
	return objects, nil
}
