package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/health"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Object is one object of a task: the desired object, and the live object on the cluster (nil if it does not exist).
type Object struct {
	Want, Live *unstructured.Unstructured

	// Classes are the StorageClasses of the cluster if the health of Live depends on them (health.DependsOnStorageClass); nil if they were
	// not read.
	Classes []health.StorageClass

	// Rule is the rule of the package for objects of that kind; nil if it has none.
	Rule *kudo.HealthRule

	// Refusal is why the API server refuses updates of the live object, which is being deleted; empty if it does not, or was not asked.
	Refusal string

	// Unread is why the object can be read in no version of its kind, although it may exist; empty if it was read, and Live is its state.
	Unread string

	// Opaque is true if no details of the live object may be shown: it holds a part of a sensitive value that cannot be masked.
	Opaque bool
}

// Owner identifies the Instance that objects belong to: its namespace on the managed cluster, its name in labels, which is
// render.InstanceName, and its uid on the managed cluster.
type Owner struct {
	Namespace, Name string
	UID             types.UID

	// Shares is true for the definitions of charts, which several Instances use and none deletes: one that another Instance has released is taken over.
	Shares bool
}

// Placed is a task with its position in a plan.
type Placed struct {
	Plan, Phase, Step string
	Task              kudo.Task
}

// Find returns the task at that position in a plan of version, and whether the version has it.
func Find(version *kudo.OperatorVersionSpec, plan string, at Task) (Placed, bool) {
	phases := version.Plans[plan].Phases
	if at.Phase >= len(phases) || at.Step >= len(phases[at.Phase].Steps) {
		return Placed{}, false
	}
	phase, step := phases[at.Phase], phases[at.Phase].Steps[at.Step]
	if at.Task >= len(step.Tasks) {
		return Placed{}, false
	}
	i := slices.IndexFunc(version.Tasks, func(t kudo.Task) bool { return t.Name == step.Tasks[at.Task] })
	if i < 0 {
		return Placed{Plan: plan, Phase: phase.Name, Step: step.Name, Task: kudo.Task{Name: step.Tasks[at.Task]}}, false
	}
	return Placed{Plan: plan, Phase: phase.Name, Step: step.Name, Task: version.Tasks[i]}, true
}

// Everywhere lists every task of the version at each of its positions, plan by plan.
func Everywhere(version *kudo.OperatorVersionSpec) []Placed {
	var placed []Placed
	for _, name := range slices.Sorted(maps.Keys(version.Plans)) {
		for p, phase := range version.Plans[name].Phases {
			for s, step := range phase.Steps {
				for t := range step.Tasks {
					if task, found := Find(version, name, Task{p, s, t}); found {
						placed = append(placed, task)
					}
				}
			}
		}
	}
	return placed
}

// TaskAction is the effect of a task on its objects.
type TaskAction string

const (
	// Apply applies the objects and waits until they are healthy.
	Apply TaskAction = "Apply"
	// Delete removes the objects and waits until they are gone.
	Delete TaskAction = "Delete"
	// Pipe applies objects that store files from a pod.
	Pipe TaskAction = "Pipe"
	// ApplyChild requests a child Instance from the hub, and waits until it is ready.
	ApplyChild TaskAction = "ApplyChild"
	// ApplyChart applies what a chart renders, with its hooks, and waits until it is healthy.
	ApplyChart TaskAction = "ApplyChart"
	// DeleteChart runs the chart's hooks for its removal, and deletes its objects.
	DeleteChart TaskAction = "DeleteChart"
	// DeleteChild requests the removal of a child Instance from the hub, and waits until it is deleted.
	DeleteChild TaskAction = "DeleteChild"
	// Nothing means that the task has no objects.
	Nothing TaskAction = "Nothing"
)

// Makes reports whether the objects exist once the task is complete.
func (a TaskAction) Makes() bool { return a == Apply || a == Pipe || a == ApplyChart }

// HasObjects reports whether the task renders objects that the agent itself applies or deletes.
func (a TaskAction) HasObjects() bool { return a.Makes() || a == Delete }

// OfChart reports whether the task applies or deletes what a chart has rendered.
func (a TaskAction) OfChart() bool { return a == ApplyChart || a == DeleteChart }

// OfChild reports whether the task waits for the hub to apply or to remove a child Instance.
func (a TaskAction) OfChild() bool { return a == ApplyChild || a == DeleteChild }

// canRunEarly reports whether a task may run before the outcomes of the tasks before it are recorded: it either has no effect if it runs
// again in the same execution, or only begins to wait for a child.
func (a TaskAction) canRunEarly() bool {
	return a == Apply || a == Delete || a == Nothing || a.OfChild()
}

// TaskActionOf returns the action of a task for the parameters of its execution. An error is terminal: the task cannot run.
func TaskActionOf(task kudo.Task, version *kudo.OperatorVersionSpec, parameters map[string]string) (TaskAction, error) {
	switch task.Kind {
	case kudo.TaskApply:
		return Apply, nil
	case kudo.TaskDelete:
		return Delete, nil
	case kudo.TaskToggle:
		return selectAction(version, parameters, task.Spec.Parameter, Apply, Delete)
	case kudo.TaskKudoOperator, kudo.TaskOperator:
		if task.Spec.EnablingParameter == "" {
			return ApplyChild, nil
		}
		return selectAction(version, parameters, task.Spec.EnablingParameter, ApplyChild, DeleteChild)
	case kudo.TaskHelm:
		if task.Spec.EnablingParameter == "" {
			return ApplyChart, nil
		}
		return selectAction(version, parameters, task.Spec.EnablingParameter, ApplyChart, DeleteChart)
	case kudo.TaskPipe:
		return Pipe, nil
	case kudo.TaskDummy:
		return Nothing, nil
	default:
		return Nothing, fmt.Errorf("this agent does not support tasks of kind %q", task.Kind)
	}
}

// RecordOf returns the record of a Helm task; if there is none, one with its name.
func RecordOf(records []kudo.TaskRecord, task string) (record kudo.TaskRecord, known bool) {
	i := slices.IndexFunc(records, func(r kudo.TaskRecord) bool { return r.Task == task })
	if i < 0 {
		return kudo.TaskRecord{Task: task}, false
	}
	return records[i], true
}

// WithRecord returns the records with that of a Helm task, in the order of their names.
func WithRecord(records []kudo.TaskRecord, record kudo.TaskRecord) []kudo.TaskRecord {
	others := slices.DeleteFunc(slices.Clone(records), func(r kudo.TaskRecord) bool { return r.Task == record.Task })
	return slices.SortedFunc(slices.Values(append(others, record)), func(a, b kudo.TaskRecord) int { return strings.Compare(a.Task, b.Task) })
}

// selectAction returns the action that a boolean parameter of that name selects (KEP-23, KEP-36).
func selectAction(version *kudo.OperatorVersionSpec, parameters map[string]string, name string, on, off TaskAction) (TaskAction, error) {
	value, err := parameter.Bool(version.Parameters, parameters, name)
	switch {
	case err != nil:
		return Nothing, err
	case value:
		return on, nil
	default:
		return off, nil
	}
}

// EarlyTasks lists the next tasks if they may run before the outcomes of the tasks before them are recorded; empty otherwise. If the agent
// restarts in between, all of them run again for the same execution. That changes nothing, because they only apply and delete objects, and
// the caller separates tasks that share an object. A KudoOperator task only begins to wait: the hub receives it once it is recorded. Once
// such a task is complete, only other KudoOperator tasks run ahead, because tasks of other kinds could change objects before the completion
// is recorded.
func EarlyTasks(version *kudo.OperatorVersionSpec, status kudo.InstanceStatus, outcomes map[Task]Outcome) []Task {
	mayRun := TaskAction.canRunEarly
	for at, outcome := range outcomes {
		action, known := actionAt(version, *status.Execution, at)
		if outcome.Status != kudo.Complete || !known || !action.canRunEarly() {
			return nil
		}
		if action.OfChild() {
			mayRun = TaskAction.OfChild
		}
	}
	progress := status.PlanStatus[status.Execution.Plan]
	next := Next(version.Plans[status.Execution.Plan], progress)
	for _, at := range next {
		state := progress.Phases[at.Phase].Steps[at.Step].Tasks[at.Task].Status
		action, known := actionAt(version, *status.Execution, at)
		if state != kudo.Pending || !known || !mayRun(action) {
			return nil
		}
	}
	return next
}

// MayWait reports whether the outcomes of these tasks need not be recorded before the tasks are observed again: all are complete or in progress,
// no other program depends on them, and if the agent restarts in between, applying their objects again changes nothing.
func MayWait(version *kudo.OperatorVersionSpec, execution kudo.Execution, outcomes map[Task]Outcome) bool {
	for at, outcome := range outcomes {
		action, known := actionAt(version, execution, at)
		if outcome.Status != kudo.Complete && outcome.Status != kudo.InProgress || !known || action != Apply && action != Nothing {
			return false
		}
	}
	return len(outcomes) > 0
}

// actionAt returns the action of a task of an execution. It is not known if the task cannot run.
func actionAt(version *kudo.OperatorVersionSpec, execution kudo.Execution, at Task) (action TaskAction, known bool) {
	placed, found := Find(version, execution.Plan, at)
	if !found {
		return Nothing, false
	}
	action, err := TaskActionOf(placed.Task, version, execution.Parameters)
	return action, err == nil
}

// DummyOutcome returns the outcome of a Dummy task (KUDO's rules).
func DummyOutcome(spec kudo.DummyTaskSpec) Outcome {
	switch {
	case spec.WantErr && spec.Fatal:
		return Outcome{Status: kudo.FatalError, Message: "the Dummy task is configured to fail permanently"}
	case spec.WantErr:
		return Outcome{Status: kudo.Error, Message: "the Dummy task is configured to fail"}
	case spec.Done:
		return Outcome{Status: kudo.Complete}
	default:
		return Outcome{Status: kudo.InProgress, Message: "the Dummy task is configured to wait"}
	}
}

// AppliedBy reports whether the object is as last applied by a task of that execution.
func (o Object) AppliedBy(execution types.UID) bool {
	return o.Live != nil && o.Live.GetAnnotations()[kudo.AnnotationExecution] == string(execution)
}

// IsJob reports whether the object is a Job: almost nothing of an existing Job can be changed.
func IsJob(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "batch", Kind: "Job"}
}

// IsExpired reports whether the object is missing as intended: a Job may set a time after which it is deleted once finished.
func (o Object) IsExpired() bool {
	_, expires := timeToLive(o.Want)
	return o.Live == nil && expires
}

// provisionalTimeToLive is the time to live of Jobs that render a shorter one, until it is recorded that they have run or are running: nothing else remembers
// it. Jobs with a day, in seconds, satisfy policies that require one.
const provisionalTimeToLive int64 = 24 * 60 * 60

// timeToLive returns after how many seconds an object is deleted once it has finished; expires is false if it is no Job, or stays.
func timeToLive(o *unstructured.Unstructured) (seconds int64, expires bool) {
	value, expires, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "ttlSecondsAfterFinished")
	switch number := value.(type) {
	case int64:
		seconds = number
	case float64:
		seconds = int64(number)
	}
	return seconds, expires && IsJob(o)
}

// IsShortLived reports whether a rendered object is a Job that must not be deleted before it is recorded that it has run.
func IsShortLived(rendered *unstructured.Unstructured) bool {
	seconds, expires := timeToLive(rendered)
	return expires && seconds < provisionalTimeToLive
}

// Provisional returns a rendered object as it is applied until that is recorded.
func Provisional(rendered *unstructured.Unstructured) *unstructured.Unstructured {
	if !IsShortLived(rendered) {
		return rendered
	}
	longer := rendered.DeepCopy()
	_ = unstructured.SetNestedField(longer.Object, provisionalTimeToLive, "spec", "ttlSecondsAfterFinished") // it is set
	return longer
}

// IsProvisional reports whether the object is a Job that does not have its own time to live yet.
func (o Object) IsProvisional() bool {
	if o.Live == nil || !IsShortLived(o.Want) {
		return false
	}
	seconds, _ := timeToLive(o.Live)
	return seconds == provisionalTimeToLive
}

// IsDeleted reports whether the object is deleted or being deleted.
func (o Object) IsDeleted() bool { return o.Live == nil || o.Live.GetDeletionTimestamp() != nil }

// Claim returns a *ForeignError if the object exists and does not belong to the owner.
func (w Owner) Claim(o Object) error {
	if o.Live == nil || w.Owns(o.Live) || w.hasReleased(o.Live) || w.Shares && o.isFreeDefinition() {
		return nil
	}
	return &ForeignError{Live: o.Live, Released: w.ReleasedByValue()}
}

// isFreeDefinition reports whether the object is a definition that an Instance has released, and that this one keeps at its removal as well.
func (o Object) isFreeDefinition() bool {
	return o.Want != nil && IsDefinition(Entry(o.Want, "")) && Keeps(o.Want) && o.Live.GetAnnotations()[kudo.AnnotationReleasedBy] != "" && isFree(o.Live)
}

// Has reports whether the object exists and belongs to the owner.
func (w Owner) Has(o Object) bool { return o.Live != nil && w.Owns(o.Live) }

// HasApplied reports whether the object exists, belongs to the owner, and was applied by a task, which annotates it and lets the Instance
// own it; or is a volume claim, which a StatefulSet creates with labels only. Labels alone do not prove it: other programs copy them to
// objects of their own, and the inventory may name such an object.
func (w Owner) HasApplied(o Object) bool {
	return w.Has(o) && (IsClaim(o.Live.GroupVersionKind().GroupKind()) || o.Live.GetAnnotations()[kudo.AnnotationExecution] != "" ||
		slices.ContainsFunc(o.Live.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return w.UID != "" && r.UID == w.UID }))
}

var volumeClaim = schema.GroupKind{Kind: "PersistentVolumeClaim"}

// IsClaim reports whether objects of the kind are volume claims.
func IsClaim(kind schema.GroupKind) bool { return kind == volumeClaim }

// Owns reports whether an object on the cluster carries the labels of the owner.
func (w Owner) Owns(live *unstructured.Unstructured) bool {
	labels := live.GetLabels()
	if labels[kudo.LabelInstance] != w.Name || labels[kudo.LabelHeritage] != kudo.Heritage && live.GetAnnotations()[kudo.AnnotationExecution] == "" {
		return false // a chart may set heritage itself
	}
	if namespace, marked := live.GetAnnotations()[kudo.AnnotationInstanceNamespace]; marked {
		return namespace == w.Namespace
	}
	return live.GetNamespace() == w.Namespace
}

// ReleasedByValue returns the value of the annotation on objects that the owner has released: they stay, belong to no Instance, and only
// this one may apply them again.
func (w Owner) ReleasedByValue() string { return w.Namespace + "/" + w.Name }

// hasReleased reports whether the owner has released the object, and no other has taken it over since.
func (w Owner) hasReleased(live *unstructured.Unstructured) bool {
	return live.GetAnnotations()[kudo.AnnotationReleasedBy] == w.ReleasedByValue() && isFree(live)
}

// ApplyOutcome returns the outcome for applied objects: the first failure, else the first object that is blocked, else the first that is
// waited for.
func ApplyOutcome(objects []Object) Outcome {
	var blocked, waiting string
	for _, o := range objects {
		if o.Live == nil {
			return Outcome{Status: kudo.InProgress, Message: Describe(o.Want) + ": no longer exists and will be applied again"}
		}
		switch result := o.health(); {
		case result.Status == health.Failed:
			return Outcome{Status: kudo.FatalError, Message: result.Message}
		case result.Status == health.Healthy:
		case result.Blocked:
			blocked = cmp.Or(blocked, result.Message)
		default:
			waiting = cmp.Or(waiting, result.Message)
		}
	}
	switch {
	case blocked != "":
		return Outcome{Status: kudo.Error, Message: blocked}
	case waiting != "":
		return Outcome{Status: kudo.InProgress, Message: waiting}
	default:
		return Outcome{Status: kudo.Complete}
	}
}

// health judges the live object.
func (o Object) health() health.Result {
	result := o.judge()
	if o.Opaque && o.Live != nil {
		result.Message = Describe(o.Live) + ": is not healthy, and " + sensitive.NotShown
	}
	return result
}

func (o Object) judge() health.Result {
	switch {
	case o.Rule != nil:
		return health.ByRule(o.Live, o.Rule)
	case o.Classes != nil && health.DependsOnStorageClass(o.Live):
		return health.OfClaim(o.Live, o.Classes)
	default:
		return health.Of(o.Live)
	}
}

// WithRules returns objects with the rules of a package for their kinds. version is nil if it is lost.
func WithRules(version *kudo.OperatorVersionSpec, objects []Object) []Object {
	if version == nil || len(version.Health) == 0 {
		return objects
	}
	objects = slices.Clone(objects)
	for i := range objects {
		objects[i].Rule = health.RuleOf(version.Health, objects[i].Live)
	}
	return objects
}

// OneLine formats a masked message for a status. Responses of an API server may quote whole objects.
func OneLine(message string) string {
	const maxBytes = 4096
	return text.Prefix(text.OneLine(message), maxBytes)
}

// DeleteOutcome returns the outcome for deleted objects. It names the first one that still exists; objects blocked by a finalizer come
// before others.
func DeleteOutcome(objects []Object) Outcome {
	there := slices.DeleteFunc(slices.Clone(objects), func(o Object) bool { return o.Live == nil })
	if len(there) == 0 {
		return Outcome{Status: kudo.Complete}
	}
	held := slices.IndexFunc(there, Object.isHeld)
	return Outcome{Status: kudo.InProgress, Message: describeDeletion(there[max(held, 0)])}
}

// isHeld reports whether another writer's finalizer blocks the deletion of the object.
func (o Object) isHeld() bool { return o.Live != nil && len(holders(o.Live)) > 0 }

// describeDeletion describes what blocks the deletion of an object.
func describeDeletion(o Object) string {
	message, held := Describe(o.Live)+": is being deleted", holders(o.Live)
	switch {
	case len(held) > 0 && o.Opaque:
		message += ", held by finalizers"
	case len(held) > 0:
		message += ", held by finalizer " + strings.Join(held, ", ")
	case o.Refusal != "" && len(o.Live.GetFinalizers()) > 0:
		message += ", held by finalizer " + strings.Join(o.Live.GetFinalizers(), ", ")
	}
	if o.Refusal != "" {
		message += ", whose removal is refused: " + o.Refusal
	}
	return message
}

// stuckDelay is how long an object is being deleted before it counts as stuck.
const stuckDelay = 5 * time.Second

// FindStuck returns the position of the first object whose deletion takes long because of its finalizers, those of other writers first;
// negative if there is none.
func FindStuck(objects []Object, now time.Time) int {
	isStuck := func(o Object) bool {
		return o.Live != nil && o.Live.GetDeletionTimestamp() != nil && len(o.Live.GetFinalizers()) > 0 &&
			now.Sub(o.Live.GetDeletionTimestamp().Time) >= stuckDelay
	}
	if held := slices.IndexFunc(objects, func(o Object) bool { return o.isHeld() && isStuck(o) }); held >= 0 {
		return held
	}
	return slices.IndexFunc(objects, isStuck)
}

// holders returns the finalizers of an object except for foreground deletion, which completes by itself.
func holders(live *unstructured.Unstructured) []string {
	return slices.DeleteFunc(slices.Clone(live.GetFinalizers()), func(f string) bool { return f == metav1.FinalizerDeleteDependents })
}
