package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/pipe"
	"github.com/tandem-addons/tandem/pkg/plan"
	"github.com/tandem-addons/tandem/pkg/render"
)

// execution is what status.execution says, with the OperatorVersion that it runs.
type execution struct {
	*kudo.Execution
	instance  *kudo.Instance
	version   *kudo.OperatorVersionSpec
	inventory *ledger
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
		Pipes:           pipe.Keys(x.version, render.InstanceName(x.instance.Name)),
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

// asks is what a task does, and the objects that it does it to. An error is final, as TaskActionOf's and that of rendering are.
func (x *execution) asks(placed plan.Placed) (plan.TaskAction, []*unstructured.Unstructured, error) {
	action, err := plan.TaskActionOf(placed.Task, x.version, x.Parameters)
	switch {
	case err != nil || !action.HasObjects():
		return action, nil, err
	case action == plan.Pipe:
		artifacts, err := x.artifacts(placed)
		return action, artifacts, err
	}
	wants, err := render.Objects(x.context(placed), placed.Task.Spec.Resources...)
	return action, wants, err
}

// carryOut looks at one task of the running execution, does what is still to be done of it, and says what came of it. It may
// be called any number of times: what was done already is not done again.
func (e *engine) carryOut(ctx context.Context, x *execution, at plan.Task) plan.Outcome {
	placed, found := plan.Find(x.version, x.Plan, at)
	if !found {
		return fatal(fmt.Errorf("the OperatorVersion has no task %q", placed.Task.Name))
	}
	action, wants, err := x.asks(placed)
	if err != nil {
		return fatal(err)
	}
	switch action {
	case plan.Nothing:
		return plan.DummyOutcome(placed.Task.Spec.DummyTaskSpec)
	case plan.Pipe:
		return e.pipe(ctx, x, placed, wants)
	case plan.ApplyChild, plan.DeleteChild:
		return e.child(ctx, x, placed, action)
	case plan.Delete:
		return e.deleteAll(ctx, x, placed, wants)
	default:
		return e.applyAll(ctx, x, placed, x.status(at) == kudo.InProgress, wants)
	}
}

// applyAll applies, in the listed order and once in an execution, what the task renders, prunes what it renders no more, and
// judges the health of all. A task that has begun has applied: only what has been deleted or overwritten since is applied again.
// No object of old, which a cache may still show, completes the task.
func (e *engine) applyAll(
	ctx context.Context, x *execution, placed plan.Placed, begun bool, wants []*unstructured.Unstructured,
) plan.Outcome {
	wants, undefined, err := e.objects.placeAll(x.instance, wants)
	if err == nil {
		err = x.promised(undefined)
	}
	if err != nil {
		return outcomeOf(err)
	}
	if len(plan.Unlisted(x.instance.Status.Inventory, wants)) > 0 {
		return x.postpone(placed, wants)
	}
	if !begun {
		if outcome := e.makeWay(ctx, x, wants); outcome.Status != kudo.Complete {
			return outcome
		}
	}
	objects, err := e.applyEach(ctx, x, wants, begun)
	if err != nil {
		return outcomeOf(err)
	}
	if len(undefined) > 0 {
		return plan.Outcome{Status: kudo.Error, Message: plan.Describe(undefined[0]) + ": waits for its CustomResourceDefinition"}
	}
	pruned, err := e.prune(ctx, x, plan.Surplus(x.instance.Status.Inventory, placed.Task.Name, wants))
	if err != nil {
		return outcomeOf(err)
	}
	if outcome := plan.ApplyOutcome(objects); outcome.Status != kudo.Complete {
		return e.explain(ctx, x, placed, objects, outcome)
	}
	return plan.DeleteOutcome(pruned)
}

// promised is an error if the package does not bring the kinds either that the cluster does not have.
func (x *execution) promised(undefined []*unstructured.Unstructured) error {
	for _, want := range undefined {
		if kind := want.GroupVersionKind(); !x.defines(kind.GroupKind()) {
			return fmt.Errorf("%s: %w", plan.Describe(want),
				&meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}})
		}
	}
	return nil
}

// applyEach applies objects in their order, and returns them as they stand then.
func (e *engine) applyEach(ctx context.Context, x *execution, wants []*unstructured.Unstructured, begun bool) ([]plan.Object, error) {
	objects := make([]plan.Object, 0, len(wants))
	for _, want := range wants {
		var object plan.Object
		look := e.objects.unmade
		if begun {
			look = e.objects.applied(x.UID)
		}
		// An object that somebody has made or replaced between look and apply is looked at once more, and not taken over.
		err := retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
			object, err = e.apply(ctx, x, want, begun, look)
			look = e.objects.observe
			return err
		})
		if err != nil {
			return nil, err
		}
		if !begun || !object.Expired() {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// apply applies an object, unless its task has begun and it stands, as look finds it; its pods restart if the execution owes that.
func (e *engine) apply(ctx context.Context, x *execution, want *unstructured.Unstructured, begun bool, look reader) (plan.Object, error) {
	object, err := e.objects.find(ctx, x.instance, want, look)
	if err != nil || begun && object.Expired() {
		return object, err
	}
	if err := x.owner().Claim(object); err != nil {
		x.inventory.forget(plan.Entry(want, ""))
		return object, err
	}
	if begun && object.AppliedBy(x.UID) {
		e.objects.known.see(object.Live)
		return object, nil
	}
	desired := render.RestartPods(want, object.Live, x.UID, x.RestartPending)
	live, err := apply.Onto(ctx, e.hands.client, object.Live, desired, fieldManager)
	if err != nil {
		return object, fmt.Errorf("applying %s: %w", plan.Describe(want), apply.Refused(err, object.Live, desired))
	}
	e.objects.known.see(live)
	return plan.Object{Want: want, Live: live}, nil
}

// deleteAll deletes, in the listed order, what the task renders and then what is listed for it from before, and waits until all are
// gone. A kind that is unknown is gone.
func (e *engine) deleteAll(ctx context.Context, x *execution, placed plan.Placed, wants []*unstructured.Unstructured) plan.Outcome {
	wants, undefined, err := e.objects.placeAll(x.instance, wants)
	if err != nil {
		return outcomeOf(err)
	}
	x.forgetUndefined(undefined)
	objects := make([]plan.Object, 0, len(wants))
	for _, want := range wants {
		object, err := e.objects.findLive(ctx, x.instance, want)
		if err != nil {
			return outcomeOf(err)
		}
		if err := x.owner().Claim(object); err != nil {
			return outcomeOf(err)
		}
		if object, err = e.delete(ctx, object); err != nil {
			return outcomeOf(err)
		}
		if object.Live == nil {
			x.inventory.forget(plan.Entry(want, ""))
		}
		objects = append(objects, object)
	}
	left, err := e.prune(ctx, x, plan.Surplus(x.instance.Status.Inventory, placed.Task.Name, wants))
	if err != nil {
		return outcomeOf(err)
	}
	return plan.DeleteOutcome(append(objects, left...))
}

// forgetUndefined strikes off objects of kinds that the cluster does not have, whether they were in a namespace or not.
func (x *execution) forgetUndefined(undefined []*unstructured.Unstructured) {
	for _, want := range undefined {
		inNamespace := plan.Entry(want, "")
		inNamespace.Namespace = cmp.Or(inNamespace.Namespace, x.instance.Namespace)
		clusterScoped := inNamespace
		clusterScoped.Namespace = ""
		x.inventory.forget(inNamespace, clusterScoped)
	}
}

// delete removes an object unless it is on its way out already, and looks again: many are gone at once.
func (e *engine) delete(ctx context.Context, object plan.Object) (plan.Object, error) {
	if object.Deleted() {
		return object, nil
	}
	if err := apply.Delete(ctx, e.hands.client, object.Live); err != nil {
		return object, fmt.Errorf("deleting %s: %w", plan.Describe(object.Live), err)
	}
	live, err := e.objects.read(ctx, object.Want)
	return plan.Object{Want: object.Want, Live: live}, err
}

func fatal(err error) plan.Outcome {
	return plan.Outcome{Status: kudo.FatalError, Message: oneLine(err)}
}

// oneLine is an error as a status tells it, at each of its levels. What an API server answers may quote whole objects.
func oneLine(err error) string {
	const most = 4096
	return bounded(strings.Join(strings.Fields(err.Error()), " "), most)
}

// outcomeOf maps an error of the API server to an outcome: what it will never accept is fatal, everything else may pass.
func outcomeOf(err error) plan.Outcome {
	var foreign *plan.ForeignError
	switch {
	case meta.IsNoMatchError(err):
		return fatal(withReplacement(err))
	case errors.Is(err, errUnwatchable), errors.As(err, &foreign), apply.Final(err):
		return fatal(err)
	default:
		return plan.Outcome{Status: kudo.Error, Message: oneLine(err)}
	}
}

// withReplacement adds what to write instead of a kind that is missing because Kubernetes has removed its API version.
func withReplacement(err error) error {
	var missing *meta.NoKindMatchError
	if errors.As(err, &missing) {
		for _, version := range missing.SearchedVersions {
			if advice := render.Removed(missing.GroupKind.WithVersion(version)); advice != "" {
				return fmt.Errorf("%w: %s", err, advice)
			}
		}
	}
	return err
}
