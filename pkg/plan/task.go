package plan

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/health"
	"github.com/tandem-addons/tandem/pkg/parameter"
)

// Object is one object of a task: as it is wanted, and as it stands on the cluster (nil if it does not).
type Object struct{ Want, Live *unstructured.Unstructured }

// Owner is the Instance that objects belong to, by its namespace on the managed cluster and its name in labels, which is
// that of render.InstanceName.
type Owner struct{ Namespace, Name string }

// TaskAction is what a task does to its objects.
type TaskAction string

const (
	// Apply brings the objects about and waits for their health.
	Apply TaskAction = "Apply"
	// Delete removes the objects and waits until they are gone.
	Delete TaskAction = "Delete"
	// Pipe brings objects about that keep files of a pod's.
	Pipe TaskAction = "Pipe"
	// ApplyChild has the hub bring a child Instance about, and waits until that is ready.
	ApplyChild TaskAction = "ApplyChild"
	// DeleteChild has the hub remove a child Instance, and waits until that is gone.
	DeleteChild TaskAction = "DeleteChild"
	// Nothing means that the task has no objects.
	Nothing TaskAction = "Nothing"
)

// Makes reports whether objects are there once the task is complete.
func (a TaskAction) Makes() bool { return a == Apply || a == Pipe }

// HasObjects reports whether the task renders objects that the agent itself applies or deletes.
func (a TaskAction) HasObjects() bool { return a.Makes() || a == Delete }

// TaskActionOf says what a task does with the parameters of its execution. The error is final: the task cannot be carried out.
func TaskActionOf(task kudo.Task, version *kudo.OperatorVersionSpec, parameters map[string]string) (TaskAction, error) {
	switch task.Kind {
	case kudo.TaskApply:
		return Apply, nil
	case kudo.TaskDelete:
		return Delete, nil
	case kudo.TaskToggle:
		return switched(version, parameters, task.Spec.Parameter, Apply, Delete)
	case kudo.TaskKudoOperator, kudo.TaskOperator:
		if task.Spec.EnablingParameter == "" {
			return ApplyChild, nil
		}
		return switched(version, parameters, task.Spec.EnablingParameter, ApplyChild, DeleteChild)
	case kudo.TaskPipe:
		return Pipe, nil
	case kudo.TaskDummy:
		return Nothing, nil
	default:
		return Nothing, fmt.Errorf("this agent cannot carry out tasks of kind %q", task.Kind)
	}
}

// switched is what a boolean parameter of that name chooses (KEP-23, KEP-36).
func switched(version *kudo.OperatorVersionSpec, parameters map[string]string, name string, on, off TaskAction) (TaskAction, error) {
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

// DummyOutcome is what a Dummy task comes to (KUDO's rules).
func DummyOutcome(spec kudo.DummyTaskSpec) Outcome {
	switch {
	case spec.WantErr && spec.Fatal:
		return Outcome{kudo.FatalError, "the Dummy task is told to fail for good"}
	case spec.WantErr:
		return Outcome{kudo.Error, "the Dummy task is told to fail"}
	case spec.Done:
		return Outcome{kudo.Complete, ""}
	default:
		return Outcome{kudo.InProgress, "the Dummy task is told to wait"}
	}
}

// AppliedBy reports whether the object stands as that execution has applied it, or another task of it.
func (o Object) AppliedBy(execution types.UID) bool {
	return o.Live != nil && o.Live.GetAnnotations()[kudo.AnnotationExecution] == string(execution)
}

// Expired reports whether the object is gone because it was to be: a Job is deleted some time after it has finished, if it says so.
func (o Object) Expired() bool {
	_, expires, _ := unstructured.NestedFieldNoCopy(o.Want.Object, "spec", "ttlSecondsAfterFinished")
	return o.Live == nil && o.Want.GetKind() == "Job" && expires
}

// Deleted reports whether the object is gone or about to go.
func (o Object) Deleted() bool { return o.Live == nil || o.Live.GetDeletionTimestamp() != nil }

// ForeignError reports that an object exists and belongs to somebody else: it must not be touched.
type ForeignError struct{ Live *unstructured.Unstructured }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s: it exists and %s; delete or rename it, or choose other names in the package", Describe(e.Live), ownerOf(e.Live))
}

// Claim is a *ForeignError if the object exists and does not belong to the owner.
func (w Owner) Claim(o Object) error {
	if o.Live == nil || w.Owns(o.Live) {
		return nil
	}
	return &ForeignError{Live: o.Live}
}

// Owns reports whether an object on the cluster carries the labels of the owner.
func (w Owner) Owns(live *unstructured.Unstructured) bool {
	labels := live.GetLabels()
	if labels[kudo.LabelHeritage] != kudo.Heritage || labels[kudo.LabelInstance] != w.Name {
		return false
	}
	if namespace, marked := live.GetAnnotations()[kudo.AnnotationInstanceNamespace]; marked {
		return namespace == w.Namespace
	}
	return live.GetNamespace() == w.Namespace
}

func ownerOf(live *unstructured.Unstructured) string {
	labels := live.GetLabels()
	if labels[kudo.LabelHeritage] != kudo.Heritage || labels[kudo.LabelInstance] == "" {
		return "was not made by this Instance"
	}
	namespace := live.GetAnnotations()[kudo.AnnotationInstanceNamespace]
	return "belongs to Instance " + strings.TrimPrefix(namespace+"/"+labels[kudo.LabelInstance], "/")
}

// ApplyOutcome is what has come of objects that were applied: the first failure, else the first that is waited for.
func ApplyOutcome(objects []Object) Outcome {
	waiting := ""
	for _, o := range objects {
		if o.Live == nil {
			return Outcome{kudo.InProgress, Describe(o.Want) + ": is gone and will be applied again"}
		}
		switch result := health.Of(o.Live); result.Status {
		case health.Failed:
			return Outcome{kudo.FatalError, result.Message}
		case health.Healthy:
		default:
			if waiting == "" && !waitsForConsumer(o.Live) {
				waiting = result.Message
			}
		}
	}
	if waiting != "" {
		return Outcome{kudo.InProgress, waiting}
	}
	return Outcome{kudo.Complete, ""}
}

// waitsForConsumer reports whether the object is a volume claim that is not bound yet. It does not hold up a step, for many are
// bound only when a pod uses them, and that pod may be a later step's. Condition Ready does not overlook it.
func waitsForConsumer(live *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
	return live.GetKind() == "PersistentVolumeClaim" && live.GetDeletionTimestamp() == nil && phase != "Bound"
}

// DeleteOutcome is what has come of objects that were deleted. It names the first that is still there; one that a finalizer holds
// comes before those that go by themselves.
func DeleteOutcome(objects []Object) Outcome {
	there := slices.DeleteFunc(slices.Clone(objects), func(o Object) bool { return o.Live == nil })
	if len(there) == 0 {
		return Outcome{kudo.Complete, ""}
	}
	held := slices.IndexFunc(there, Object.held)
	return Outcome{kudo.InProgress, deleting(there[max(held, 0)].Live)}
}

// held reports whether another writer's finalizer keeps the object.
func (o Object) held() bool { return o.Live != nil && len(holders(o.Live)) > 0 }

// deleting says what holds an object that is on its way out.
func deleting(live *unstructured.Unstructured) string {
	message := Describe(live) + ": is being deleted"
	if held := holders(live); len(held) > 0 {
		return message + ", held by finalizer " + strings.Join(held, ", ")
	}
	return message
}

// holders are the finalizers of an object but that of its deletion in the foreground, which goes by itself.
func holders(live *unstructured.Unstructured) []string {
	return slices.DeleteFunc(slices.Clone(live.GetFinalizers()), func(f string) bool { return f == metav1.FinalizerDeleteDependents })
}

// Describe names an object as messages do: `Deployment ns/name`.
func Describe(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + " " + o.GetName()
	}
	return o.GetKind() + " " + types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}.String()
}
