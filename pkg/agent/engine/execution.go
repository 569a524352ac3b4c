package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tandem-addons/tandem/pkg/agent/charts"
	"github.com/tandem-addons/tandem/pkg/agent/secret"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/drift"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/release"
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

	// renderings holds the rendered tasks of the pass, and chart returns what the chart of a Helm task renders to. It is a trial until the
	// execution has recorded that, if renders is set.
	renderings *renderings
	chart      func(plan.Placed) (release.Rendering, error)
	renders    bool

	// shares is true while definitions of charts are checked and applied.
	shares bool

	// assumed are the kinds that the definitions of earlier Helm tasks of a trial define.
	assumed []string

	// round counts the rounds of tasks since the last record. since is when this one began: charts may depend on what the tasks before it have
	// defined.
	round int
	since time.Time
}

// executionOf returns the last started execution, if there is one.
func (p *pass) executionOf(ctx context.Context, o plan.Observation) *execution {
	x := &execution{
		known: p.view.Values, record: p.view.Record, renderings: &p.renderings,
		Execution: o.Instance.Status.Execution, instance: o.Instance, version: o.Running, since: time.Now(),
		inventory: &ledger{entries: o.Instance.Status.Inventory, records: o.Instance.Status.Tasks, live: liveObjects{}},
	}
	x.chart = func(placed plan.Placed) (release.Rendering, error) { return p.rendersTo(ctx, x, placed) }
	return x
}

func (x *execution) owner() plan.Owner {
	return plan.Owner{Namespace: x.instance.Namespace, Name: render.InstanceName(x.instance.Name), UID: x.instance.UID, Shares: x.shares}
}

// sharing returns the execution for the definitions of its charts.
func (x *execution) sharing() *execution {
	sharing := *x
	sharing.shares = true
	return &sharing
}

// isAside reports whether the execution does not influence condition Ready.
func (x *execution) isAside() bool {
	return x.Execution != nil && plan.IsAside(kudo.InstanceStatus{Execution: x.Execution})
}

// isStored reports whether the start of the execution is recorded.
func (x *execution) isStored() bool {
	last := x.instance.Status.Execution
	return last != nil && x.Execution != nil && last.UID == x.UID
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

// renderedTask holds everything that the templates of a task render to.
type renderedTask struct {
	action  plan.TaskAction
	objects []*unstructured.Unstructured
	err     error // terminal

	// release are the objects of a Helm task. transient is why its chart could not be rendered now.
	release   release.Rendering
	transient error

	// pod belongs to a Pipe task. hiddenErr is the error of its template, or of the parameter file of a KudoOperator task, whose content the
	// hub applies.
	pod       *unstructured.Unstructured
	hiddenErr error

	// omissions are the fields that are not applied.
	omissions []render.Omission
}

// structureError returns an error if a value changes the structure of a template of the task, or would be disclosed by it.
func (r renderedTask) structureError(placed plan.Placed) error {
	err := cmp.Or(r.err, r.hiddenErr)
	var changes *render.StructureError
	var discloses *render.SensitiveError
	if !errors.As(err, &changes) && !errors.As(err, &discloses) {
		return nil
	}
	return inTask(placed, err)
}

// chartError returns an error if the chart of the task cannot be rendered.
func (r renderedTask) chartError(placed plan.Placed) error {
	if !r.action.OfChart() || r.err == nil {
		return nil
	}
	return inTask(placed, r.err)
}

// inTask returns an error with the place of its task.
func inTask(placed plan.Placed, err error) error {
	return fmt.Errorf("phase %q: step %q: task %q: %w", placed.Phase, placed.Step, placed.Task.Name, err)
}

// clone returns a copy whose objects the caller may change.
func (r renderedTask) clone() renderedTask {
	objects := make([]*unstructured.Unstructured, len(r.objects))
	for i, object := range r.objects {
		objects[i] = object.DeepCopy()
	}
	r.objects, r.pod, r.release = objects, r.pod.DeepCopy(), r.release.DeepCopy()
	return r
}

// renderings holds what executions render to: each task is rendered once in a pass.
type renderings struct {
	tasks    memo[renderingKey, renderedTask]
	outlines memo[types.UID, outlines]
}

// renderingKey identifies a task of an execution.
type renderingKey struct {
	execution               types.UID
	plan, phase, step, task string
}

// outlines holds the outlines of all objects of a version. The error reports templates that cannot be rendered.
type outlines struct {
	objects []*unstructured.Unstructured
	err     error
}

// memo caches values. It is safe for concurrent use.
type memo[K comparable, V any] struct {
	mutex  sync.Mutex
	values map[K]V
}

// of returns the value of a key, which the first call computes. Concurrent calls may each compute it.
func (m *memo[K, V]) of(key K, compute func() V) V {
	m.mutex.Lock()
	value, known := m.values[key]
	m.mutex.Unlock()
	if known {
		return value
	}
	value = compute()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.values == nil {
		m.values = map[K]V{}
	}
	m.values[key] = value
	return value
}

// task returns a task of the execution with what it renders to.
func (x *execution) task(placed plan.Placed) renderedTask {
	key := renderingKey{execution: x.UID, plan: placed.Plan, phase: placed.Phase, step: placed.Step, task: placed.Task.Name}
	return x.renderings.tasks.of(key, func() renderedTask { return x.renderTask(placed) }).clone()
}

// renderTask renders all templates of a task, and records what the objects hold of sensitive values. Errors are terminal, as those of
// TaskActionOf and of rendering are.
func (x *execution) renderTask(placed plan.Placed) (r renderedTask) {
	r.action, r.err = plan.TaskActionOf(placed.Task, x.version, x.Parameters)
	file := placed.Task.Spec.ParameterFile
	switch {
	case r.err != nil:
	case r.action == plan.ApplyChart:
		x.renderRelease(placed, &r)
	case r.action == plan.Pipe:
		if r.objects, r.err = x.artifacts(placed); r.err == nil {
			r.hiddenErr = x.renderPod(placed, &r)
		}
	case r.action == plan.ApplyChild && file != "":
		_, _, r.hiddenErr = render.File(x.context(placed), file)
	case r.action.HasObjects():
		var rendered render.Rendering
		rendered, r.err = render.Templates(x.context(placed), placed.Task.Spec.Resources...)
		x.record.Add(rendered.Objects, rendered.Traces)
		r.objects, r.omissions = rendered.Objects, rendered.Omissions
	}
	return r
}

// renderRelease adds what the chart of a Helm task renders to.
func (x *execution) renderRelease(placed plan.Placed, r *renderedTask) {
	made, err := x.chart(placed)
	if transient := (*charts.TransientError)(nil); errors.As(err, &transient) {
		r.transient = transient.Err
		return
	}
	if x.isStored() && holdReason(err) != "" { // it passes, and before the start the plan is held
		r.transient = err
		return
	}
	r.release, r.err = made, err
	r.objects = made.All()
	x.record.Add(r.objects, x.tracesOf(r.objects))
}

// holdReason returns the reason of an error that delays a plan before it starts, because it can pass; empty if the plan cannot succeed.
func holdReason(err error) string {
	if unsupported := (*chart.VersionError)(nil); errors.As(err, &unsupported) {
		return kudo.ReasonKubernetesVersionUnsupported
	}
	if collision := (*release.CollisionError)(nil); errors.As(err, &collision) {
		return kudo.ReasonNameCollision
	}
	return ""
}

// tracesOf returns what the objects of a chart hold of sensitive values: nothing shows where a chart uses them, so they may hold parts that cannot be
// masked.
func (x *execution) tracesOf(objects []*unstructured.Unstructured) (traces sensitive.Traces) {
	if values, _ := x.known.Of(x.ParametersFrom); len(values) == 0 {
		return traces
	}
	for _, o := range objects {
		traces.Opaque = append(traces.Opaque, sensitive.ObjectOf(o))
	}
	return traces
}

// renderPod renders the pod of a Pipe task.
func (x *execution) renderPod(placed plan.Placed, r *renderedTask) error {
	rendered, err := render.NamedTemplate(x.context(placed), placed.Task.Spec.Pod, pipe.PodName(x.owner().Name, placed.Task.Name))
	if err != nil {
		return err
	}
	x.record.Add(rendered.Objects, rendered.Traces)
	r.pod, r.omissions = rendered.Objects[0], rendered.Omissions
	return nil
}

// retrace records, once, what the objects of all plans hold of the sensitive values of the last execution: an earlier process may have applied
// them.
func (p *pass) retrace(ctx context.Context, o plan.Observation) {
	x := p.executionOf(ctx, o)
	if x.Execution == nil || x.version == nil || x.record.MarkComplete(string(x.UID)) {
		return
	}
	x.renderings = new(renderings) // charts that are still to be rendered have rendered nothing here
	for _, placed := range plan.Everywhere(x.version) {
		x.task(placed) // reports its errors when it runs
	}
}

// checkCleanup returns an error if a value changes the structure of a template of the cleanup plan. That plan takes the values that were
// started, and it could not be corrected during a removal.
func (x *execution) checkCleanup() error {
	for _, placed := range plan.Everywhere(x.version) {
		if placed.Plan != kudo.CleanupPlan || placed.Plan == x.Plan {
			continue
		}
		if err := x.task(placed).structureError(placed); err != nil {
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
		Registries:      x.ImageRegistries,
		Cluster:         x.Cluster,

		KubernetesVersion: x.KubernetesVersion,

		Plan:      placed.Plan,
		Phase:     placed.Phase,
		Step:      placed.Step,
		Execution: x.UID,
		Pipes:     pipe.Keys(x.version, render.InstanceName(x.instance.Name)),
	}
}

// defines reports whether the package itself contains the CustomResourceDefinition of that kind.
func (x *execution) defines(kind schema.GroupKind) bool {
	return slices.ContainsFunc(x.outlines().objects, func(o *unstructured.Unstructured) bool {
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		name, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		return o.GetKind() == "CustomResourceDefinition" && group == kind.Group && name == kind.Kind
	})
}

// maxRendered is the maximum number of objects of all plans of a version.
const maxRendered = 2 * plan.MaxObjects

// outlines returns the outlines of all objects of the version, with the effective parameters.
func (x *execution) outlines() outlines {
	return x.renderings.outlines.of(x.UID, x.renderOutlines)
}

// renderOutlines renders all templates that any task of the version names, each once.
func (x *execution) renderOutlines() (all outlines) {
	if x.version == nil {
		return outlines{err: fmt.Errorf("OperatorVersion %q no longer exists: upgrade the Instance to one that exists", x.OperatorVersion.Name)}
	}
	seen := map[string]bool{}
	for _, task := range x.version.Tasks {
		if task.Kind == kudo.TaskHelm {
			made, err := x.chart(plan.Placed{Task: task})
			all.err = errors.Join(all.err, err)
			for _, object := range made.All() {
				all.objects = append(all.objects, plan.Outline(object))
			}
			continue
		}
		for _, template := range task.Spec.Resources {
			if seen[template] {
				continue
			}
			seen[template] = true
			rendered, err := render.Templates(x.context(plan.Placed{Task: task}), template)
			x.record.Add(rendered.Objects, rendered.Traces)
			all.err = errors.Join(all.err, err)
			if len(all.objects)+len(rendered.Objects) > maxRendered {
				all.err = errors.Join(all.err, fmt.Errorf("the plans of the OperatorVersion have more than %d objects", maxRendered))
				return all
			}
			for _, object := range rendered.Objects {
				all.objects = append(all.objects, plan.Outline(object))
			}
		}
	}
	return all
}

// ledger is the inventory as updated by a pass. Parallel tasks write to it.
type ledger struct {
	mutex   sync.Mutex
	entries []kudo.InventoryEntry

	// records are those of Helm tasks.
	records []kudo.TaskRecord

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

// recordResponse records that an object was applied, from the response to that: its fields are as they were applied.
func (l *ledger) recordResponse(object plan.Object) {
	l.record(object, drift.Digest(object.Live, fieldManager))
}

// recordApplied records that an object was applied before. Other writers may have changed it since.
func (l *ledger) recordApplied(object plan.Object) { l.record(object, "") }

func (l *ledger) record(object plan.Object, fields string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	applied := plan.Entry(object.Live, "")
	applied.Fields = fields
	l.entries = plan.MarkApplied(l.entries, applied, plan.Keeps(object.Want))
	l.live[placeOf(object.Live)] = object.Live
	l.once = l.once || plan.IsJob(object.Live)
}

// note replaces the record of a Helm task.
func (l *ledger) note(record kudo.TaskRecord) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.records = plan.WithRecord(l.records, record)
}

// entriesOf returns the entries of a task, the last one first.
func (l *ledger) entriesOf(task string) []kudo.InventoryEntry {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return plan.EntriesOf(l.entries, task)
}

// recordOf returns the record of a Helm task, as the pass has updated it.
func (l *ledger) recordOf(task string) kudo.TaskRecord {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	record, _ := plan.RecordOf(l.records, task)
	return record
}

// drop removes the record of a Helm task.
func (l *ledger) drop(task string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.records = slices.DeleteFunc(slices.Clone(l.records), func(r kudo.TaskRecord) bool { return r.Task == task })
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
