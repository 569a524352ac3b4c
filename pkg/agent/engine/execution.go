package engine

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tandem-addons/tandem/pkg/agent/secret"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

// execution is status.execution together with its OperatorVersion.
type execution struct {
	*kudo.Execution
	instance  *kudo.Instance
	version   *kudo.OperatorVersionSpec
	inventory *ledger

	// known are values of sensitive parameters, of this and other executions, and record is what rendered objects hold of them.
	known  sensitive.Values
	record *secret.Record

	// omissions collects the fields of the plan's templates that are not applied; nil while its tasks run, which may be in parallel.
	omissions *[]render.Omission

	// round counts the rounds of tasks since the last record.
	round int
}

// executionOf returns the last started execution, if there is one.
func (e *engine) executionOf(o plan.Observation) *execution {
	return &execution{
		known: e.view.Values, record: e.view.Record,
		Execution: o.Instance.Status.Execution, instance: o.Instance, version: o.Running,
		inventory: &ledger{entries: o.Instance.Status.Inventory, live: liveObjects{}},
	}
}

func (x *execution) owner() plan.Owner {
	return plan.Owner{Namespace: x.instance.Namespace, Name: render.InstanceName(x.instance.Name), UID: x.instance.UID}
}

// isAside reports whether the execution does not influence condition Ready.
func (x *execution) isAside() bool {
	return x.Execution != nil && plan.IsAside(kudo.InstanceStatus{Execution: x.Execution})
}

// status returns the recorded status of a task of the execution.
func (x *execution) status(at plan.Task) kudo.ExecutionStatus {
	return x.instance.Status.PlanStatus[x.Plan].Phases[at.Phase].Steps[at.Step].Tasks[at.Task].Status
}

// age returns how long the step of a task has been running.
func (x *execution) age(placed plan.Placed, now time.Time) time.Duration {
	for _, phase := range x.instance.Status.PlanStatus[x.Plan].Phases {
		for _, step := range phase.Steps {
			if phase.Name == placed.Phase && step.Name == placed.Step && step.StartedTimestamp != nil {
				return now.Sub(step.StartedTimestamp.Time)
			}
		}
	}
	return 0
}

// asks returns the action of a task, and its objects. An error is terminal, as those of TaskActionOf and of rendering are.
func (x *execution) asks(placed plan.Placed) (plan.TaskAction, []*unstructured.Unstructured, error) {
	action, err := plan.TaskActionOf(placed.Task, x.version, x.Parameters)
	switch {
	case err != nil || !action.HasObjects():
		return action, nil, err
	case action == plan.Pipe:
		artifacts, err := x.artifacts(placed)
		return action, artifacts, err
	}
	wants, err := x.render(placed, placed.Task.Spec.Resources...)
	return action, wants, err
}

// render renders templates for a task, and records what the objects hold of sensitive values.
func (x *execution) render(placed plan.Placed, templates ...string) ([]*unstructured.Unstructured, error) {
	rendered, err := render.Templates(x.context(placed), templates...)
	x.note(placed, rendered)
	return rendered.Objects, err
}

// note records what rendered objects hold of sensitive values, and the fields that are not applied.
func (x *execution) note(placed plan.Placed, rendered render.Rendering) {
	x.record.Add(rendered.Objects, rendered.Traces)
	if x.omissions != nil && placed.Plan == x.Plan {
		*x.omissions = append(*x.omissions, rendered.Omissions...)
	}
}

// renderPod renders the pod of a Pipe task like render.
func (x *execution) renderPod(placed plan.Placed) (*unstructured.Unstructured, error) {
	rendered, err := render.NamedTemplate(x.context(placed), placed.Task.Spec.Pod, pipe.PodName(x.owner().Name, placed.Task.Name))
	if err != nil {
		return nil, err
	}
	x.note(placed, rendered)
	return rendered.Objects[0], nil
}

// retrace records, once, what the objects of all plans hold of the sensitive values of the last execution: an earlier process may have applied
// them.
func (e *engine) retrace(o plan.Observation) {
	x := e.executionOf(o)
	if x.Execution == nil || x.version == nil || x.record.MarkComplete(string(x.UID)) {
		return
	}
	for _, placed := range plan.Everywhere(x.version) {
		action, _, err := x.asks(placed)
		_ = x.checkStructure(placed, action, err) // also renders pods; a task reports its errors when it runs
	}
}

// checkStructure returns an error if a value changes the structure of a template of the task, or would be disclosed by it. err is the error
// of asks, which does not render the pod of a Pipe task and the parameter file of a KudoOperator task.
func (x *execution) checkStructure(placed plan.Placed, action plan.TaskAction, err error) error {
	switch file := placed.Task.Spec.ParameterFile; {
	case err != nil:
	case action == plan.Pipe:
		_, err = x.renderPod(placed)
	case action == plan.ApplyChild && file != "":
		_, _, err = render.File(x.context(placed), file)
	}
	var changes *render.StructureError
	var discloses *render.SensitiveError
	if !errors.As(err, &changes) && !errors.As(err, &discloses) {
		return nil
	}
	return fmt.Errorf("phase %q: step %q: task %q: %w", placed.Phase, placed.Step, placed.Task.Name, err)
}

// checkCleanup returns an error if a value changes the structure of a template of the cleanup plan. That plan takes the values that were
// started, and it could not be corrected during a removal.
func (x *execution) checkCleanup() error {
	for _, placed := range plan.Everywhere(x.version) {
		if placed.Plan != kudo.CleanupPlan || placed.Plan == x.Plan {
			continue
		}
		action, _, err := x.asks(placed)
		if err := x.checkStructure(placed, action, err); err != nil {
			return fmt.Errorf("plan %q, %w", placed.Plan, err)
		}
	}
	return nil
}

// artifacts returns the objects that store the files of a Pipe task.
func (x *execution) artifacts(placed plan.Placed) ([]*unstructured.Unstructured, error) {
	objects := pipe.Artifacts(x.owner().Name, placed.Task)
	for i, object := range objects {
		marked, err := render.Mark(x.context(placed), object)
		if err != nil {
			return nil, err
		}
		objects[i] = marked
	}
	return objects, nil
}

// context returns the rendering context of a task: it is based on the execution, never on the Instance's spec.
func (x *execution) context(placed plan.Placed) render.Context {
	values, _ := x.known.Of(x.ParametersFrom)
	return render.Context{
		Version:         x.version,
		OperatorVersion: x.version.Version,
		Instance:        x.instance.Name,
		Namespace:       x.instance.Namespace,
		Parameters:      x.Parameters,
		Sensitive:       values,
		Plan:            placed.Plan,
		Phase:           placed.Phase,
		Step:            placed.Step,
		Execution:       x.UID,
		Pipes:           pipe.Keys(x.version, render.InstanceName(x.instance.Name)),
	}
}

// defines reports whether the package itself contains the CustomResourceDefinition of that kind.
func (x *execution) defines(kind schema.GroupKind) bool {
	objects, _ := renderAll(x)
	return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		name, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		return o.GetKind() == "CustomResourceDefinition" && group == kind.Group && name == kind.Kind
	})
}

// maxRendered is the maximum number of objects of all plans of a version.
const maxRendered = 2 * plan.MaxObjects

// renderAll renders all templates that any task of the version names, each once, and returns outlines of their objects. The error reports
// templates that cannot be rendered with the effective parameters.
func renderAll(x *execution) ([]*unstructured.Unstructured, error) {
	if x.version == nil {
		return nil, errors.New("the OperatorVersion no longer exists")
	}
	var (
		outlines []*unstructured.Unstructured
		problems error
		seen     = map[string]bool{}
	)
	for _, task := range x.version.Tasks {
		for _, template := range task.Spec.Resources {
			if seen[template] {
				continue
			}
			seen[template] = true
			objects, err := x.render(plan.Placed{Task: task}, template)
			problems = errors.Join(problems, err)
			if len(outlines)+len(objects) > maxRendered {
				return outlines, errors.Join(problems, fmt.Errorf("the plans of the OperatorVersion have more than %d objects", maxRendered))
			}
			for _, object := range objects {
				outlines = append(outlines, plan.Outline(object))
			}
		}
	}
	return outlines, problems
}

// ledger is the inventory as updated by a pass. Parallel tasks write to it.
type ledger struct {
	mutex   sync.Mutex
	entries []kudo.InventoryEntry

	// rounds holds the first round since the last record that applied or deleted each object. once is set if such a round must be recorded
	// before the execution waits, because repeating it may have an effect.
	rounds map[kudo.InventoryEntry]int
	once   bool

	// live holds the objects that this pass has applied.
	live liveObjects

	// pods holds the pods that this pass has listed, by workload.
	pods map[place][]unstructured.Unstructured
}

// claim reports whether a task may apply or delete objects in a round: no earlier round that is not recorded yet has done so, unless
// the task itself has started in it.
func (l *ledger) claim(round int, started bool, objects []*unstructured.Unstructured) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.rounds == nil {
		l.rounds = make(map[kudo.InventoryEntry]int, len(objects))
	}
	for _, o := range objects {
		switch first, known := l.rounds[plan.Entry(o, "")]; {
		case !known:
			l.rounds[plan.Entry(o, "")] = round
		case first < round && !started:
			return false
		}
	}
	return true
}

// recordApplied records that an object was applied.
func (l *ledger) recordApplied(object plan.Object) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.entries = plan.MarkApplied(l.entries, plan.Entry(object.Live, ""), plan.Keeps(object.Want))
	l.live[placeOf(object.Live)] = object.Live
	l.once = l.once || plan.IsJob(object.Live)
}

// deletes records that objects are deleted.
func (l *ledger) deletes() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.once = true
}

// markSurplus marks the entries of a task for objects that it no longer renders.
func (l *ledger) markSurplus(task string, wants []*unstructured.Unstructured) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if surplus := plan.Surplus(l.entries, task, wants); len(surplus) > 0 {
		l.entries = plan.MarkSurplus(l.entries, surplus...)
	}
}

// dismiss records that the plan deletes an object.
func (l *ledger) dismiss(object kudo.InventoryEntry) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.entries = plan.Dismiss(l.entries, object)
}

func (l *ledger) list(entries ...kudo.InventoryEntry) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.entries = plan.List(l.entries, entries...)
}

func (l *ledger) forget(gone ...kudo.InventoryEntry) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.entries = plan.Forget(l.entries, gone...)
}

// recordDeleted records that the plan has deleted an object; returns is true if the plan is going to apply it again.
func (l *ledger) recordDeleted(object kudo.InventoryEntry, returns bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if returns {
		l.entries = plan.Retract(l.entries, object)
		return
	}
	l.entries = plan.Forget(l.entries, object)
}

// listedPods returns the pods of a workload, if this pass has listed them.
func (l *ledger) listedPods(workload *unstructured.Unstructured) (pods []unstructured.Unstructured, listed bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	pods, listed = l.pods[placeOf(workload)]
	return pods, listed
}

// keepPods keeps the pods of a workload for this pass.
func (l *ledger) keepPods(workload *unstructured.Unstructured, pods []unstructured.Unstructured) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.pods == nil {
		l.pods = map[place][]unstructured.Unstructured{}
	}
	l.pods[placeOf(workload)] = pods
}

// restart returns the execution that last required a restart of the object's pods; empty if there is none.
func (l *ledger) restart(object *unstructured.Unstructured) types.UID {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return plan.RequiredRestart(l.entries, plan.Entry(object, ""))
}
