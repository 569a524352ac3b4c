package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/health"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

// Child is the child Instance of a KudoOperator task, as observed on the managed cluster.
type Child struct {
	// Name of the Instance on the managed cluster.
	Name types.NamespacedName

	// Acknowledged is the last status that the hub reported for the task; the zero value if there is none yet.
	Acknowledged kudo.ChildStatus

	// Mirror is the mirrored child; nil if there is none.
	Mirror *kudo.Instance

	// Due is true if a plan of the child is to run and has not started yet.
	Due bool

	// Former is true if the task has another child now: the hub is to remove this one.
	Former bool

	// Vanished is true if the current version has no task for the child: the hub is to remove it.
	Vanished bool
}

// ChildOutcome returns the outcome of a KudoOperator task of that execution. Only the hub's status for this execution counts, and only a
// child at the generation that the hub applied then, or newer: an older healthy child does not complete the task.
func ChildOutcome(action TaskAction, execution types.UID, child Child) Outcome {
	said := child.Acknowledged
	switch {
	case said.Execution == execution && said.State == kudo.ChildFailed:
		return Outcome{Status: kudo.FatalError, Message: child.describe(said.Message)}
	case child.Mirror != nil && child.Mirror.IsRemoving(): // a child that the hub has released stays, and is not waited for
		return Outcome{Status: kudo.InProgress, Message: child.describe("is being removed" + child.why())}
	case said.Execution == execution && said.State == kudo.ChildRemoved && action == DeleteChild:
		return Outcome{Status: kudo.Complete}
	case action == DeleteChild:
		return Outcome{Status: kudo.InProgress, Message: child.describe("waiting for the hub to remove it")}
	case said.Execution != execution || said.State != kudo.ChildApplied:
		return Outcome{Status: kudo.InProgress, Message: child.describe("waiting for the hub to apply it")}
	default:
		return child.applyOutcome()
	}
}

// applyOutcome returns the outcome for a child that the hub has applied.
func (c Child) applyOutcome() Outcome {
	switch {
	case !c.isCurrent():
		return Outcome{Status: kudo.InProgress, Message: c.describe("has not been mirrored yet")}
	case c.Mirror.HubGeneration() < c.Acknowledged.Generation:
		return Outcome{Status: kudo.InProgress, Message: c.describe(fmt.Sprintf("generation %d has not been mirrored yet", c.Acknowledged.Generation))}
	case c.Due:
		return Outcome{Status: kudo.InProgress, Message: c.dueText()}
	}
	switch result := c.health(); result.Status {
	case health.Healthy:
		return Outcome{Status: kudo.Complete}
	case health.Failed:
		return Outcome{Status: kudo.FatalError, Message: result.Message, Passing: NextRetry(c.Mirror.Status) != nil}
	default:
		return Outcome{Status: kudo.InProgress, Message: result.Message}
	}
}

// problem describes the problem of a child of an idle Instance; empty if it is healthy, or not expected to exist.
func (c Child) problem() string {
	switch {
	case c.Former && c.Mirror != nil && c.Mirror.IsRemoving():
		return c.describe("is being removed" + c.why())
	case c.Former:
		return c.describe("no task creates it any longer, waiting for the hub to remove it")
	case c.Acknowledged.State != kudo.ChildApplied:
		return ""
	case !c.isCurrent():
		return c.describe("is missing")
	case c.Mirror.IsRemoving():
		return c.describe("is being removed" + c.why())
	case c.Vanished:
		return c.describe("no task creates it any longer, waiting for the hub to remove it")
	case c.Due:
		return c.dueText()
	case meta.IsStatusConditionTrue(c.Mirror.Status.Conditions, kudo.ConditionReady): // even before a generation without changes is observed
		return ""
	default:
		return c.health().Message
	}
}

// AsksForChild reports whether the change from reported to next informs the hub of a KudoOperator task in progress. The execution does not
// continue before the hub has received it.
func AsksForChild(version *kudo.OperatorVersionSpec, reported, next kudo.InstanceStatus) bool {
	known := childrenAsked(version, reported)
	for asked := range childrenAsked(version, next) {
		if !known[asked] {
			return true
		}
	}
	return false
}

// childAsked is a KudoOperator task in progress, with its position in an execution.
type childAsked struct {
	execution         types.UID
	phase, step, task string
}

func childrenAsked(version *kudo.OperatorVersionSpec, status kudo.InstanceStatus) map[childAsked]bool {
	asked := map[childAsked]bool{}
	if status.Execution == nil {
		return asked
	}
	for _, phase := range status.PlanStatus[status.Execution.Plan].Phases {
		for _, step := range phase.Steps {
			for _, task := range step.Tasks {
				atWork := task.Status == kudo.InProgress || task.Status == kudo.Error
				if atWork && slices.ContainsFunc(version.Tasks, func(t kudo.Task) bool { return t.Name == task.Name && tree.MakesChild(t) }) {
					asked[childAsked{status.Execution.UID, phase.Name, step.Name, task.Name}] = true
				}
			}
		}
	}
	return asked
}

// isCurrent reports whether the mirror belongs to the Instance that the hub reported, and not to another one of the same name or to one that
// no longer exists on the hub.
func (c Child) isCurrent() bool {
	return c.Mirror != nil && c.Mirror.Annotations[kudo.AnnotationHubUID] == string(c.Acknowledged.UID) &&
		!c.Mirror.IsOrphaned()
}

// health judges the mirror like any other applied object.
func (c Child) health() health.Result {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.Mirror)
	if err != nil {
		return health.Result{Status: health.Unknown, Message: c.describe(err.Error())}
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(kudo.GroupVersion.WithKind("Instance"))
	return health.Of(object)
}

// why formats condition Ready of the mirror as the end of a sentence.
func (c Child) why() string {
	if ready := meta.FindStatusCondition(c.Mirror.Status.Conditions, kudo.ConditionReady); ready != nil && ready.Message != "" {
		return ": " + ready.Message
	}
	return ""
}

// dueText describes that a plan of the child is to start, and what it waits for.
func (c Child) dueText() string {
	if wait := meta.FindStatusCondition(c.Mirror.Status.Conditions, kudo.ConditionWaiting); wait != nil && wait.Status == metav1.ConditionTrue {
		return c.describe(wait.Message)
	}
	if ready := meta.FindStatusCondition(c.Mirror.Status.Conditions, kudo.ConditionReady); ready != nil && waitsToStart(ready.Reason) {
		return c.describe(ready.Message)
	}
	return c.describe("a plan is about to start")
}

func (c Child) describe(what string) string { return "Instance " + c.Name.String() + ": " + what }
