package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/health"
	"github.com/tandem-addons/tandem/pkg/tree"
)

// Child is the child Instance of a KudoOperator task, as it is seen on the managed cluster.
type Child struct {
	// Name of the Instance on the managed cluster.
	Name types.NamespacedName

	// Acknowledged is what the hub said last about the task; its zero value if it has said nothing yet.
	Acknowledged kudo.ChildStatus

	// Mirror is nil where there is none.
	Mirror *kudo.Instance

	// Due is true if a plan is to run of which nothing has started.
	Due bool

	// Vanished is true if the version that stands has no task which makes it: the hub is to remove it.
	Vanished bool
}

// ChildOutcome is what has come of a KudoOperator task of that execution. Only what the hub has said to this very execution counts,
// and only a child that is as the hub made it then, or newer: a child of old that stands healthy completes nothing.
func ChildOutcome(action TaskAction, execution types.UID, child Child) Outcome {
	said := child.Acknowledged
	switch {
	case said.Execution == execution && said.State == kudo.ChildFailed:
		return Outcome{kudo.FatalError, child.describe(said.Message)}
	case child.Mirror != nil && child.Mirror.Removing(): // one that the hub has let go of stays, and is waited for by nobody
		return Outcome{kudo.InProgress, child.describe("is being removed" + child.why())}
	case said.Execution == execution && said.State == kudo.ChildRemoved && action == DeleteChild:
		return Outcome{kudo.Complete, ""}
	case action == DeleteChild:
		return Outcome{kudo.InProgress, child.describe("waits for the hub to remove it")}
	case said.Execution != execution || said.State != kudo.ChildApplied:
		return Outcome{kudo.InProgress, child.describe("waits for the hub to bring it about")}
	default:
		return child.applied()
	}
}

// applied is what has come of a child that the hub has brought about.
func (c Child) applied() Outcome {
	switch {
	case !c.stands():
		return Outcome{kudo.InProgress, c.describe("has not been mirrored yet")}
	case c.Mirror.HubGeneration() < c.Acknowledged.Generation:
		return Outcome{kudo.InProgress, c.describe(fmt.Sprintf("generation %d has not been mirrored yet", c.Acknowledged.Generation))}
	case c.Due:
		return Outcome{kudo.InProgress, c.describe("a plan is about to start")}
	}
	switch result := c.health(); result.Status {
	case health.Healthy:
		return Outcome{kudo.Complete, ""}
	case health.Failed:
		return Outcome{kudo.FatalError, result.Message}
	default:
		return Outcome{kudo.InProgress, result.Message}
	}
}

// fault says what is wrong with the child of an Instance at rest; empty if nothing is, or there is to be none.
func (c Child) fault() string {
	if c.Acknowledged.State != kudo.ChildApplied {
		return ""
	}
	switch {
	case !c.stands():
		return c.describe("is missing")
	case c.Mirror.Removing():
		return c.describe("is being removed" + c.why())
	case c.Vanished:
		return c.describe("no task makes it any more, and the hub is to remove it")
	case c.Due:
		return c.describe("a plan is about to start")
	case meta.IsStatusConditionTrue(c.Mirror.Status.Conditions, kudo.ConditionReady): // also before a generation that changes nothing is observed
		return ""
	default:
		return c.health().Message
	}
}

// AsksForChild reports whether the hub, which was told one status, learns by the next of a KudoOperator task in progress: the execution
// goes no further until it has heard of that.
func AsksForChild(version *kudo.OperatorVersionSpec, told, next kudo.InstanceStatus) bool {
	known := childrenAsked(version, told)
	for asked := range childrenAsked(version, next) {
		if !known[asked] {
			return true
		}
	}
	return false
}

// childAsked is a KudoOperator task in progress, at its place in an execution.
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

// stands reports whether the mirror is that of the Instance which the hub means, and neither of another one of its name nor of one that
// the hub does not have any more.
func (c Child) stands() bool {
	return c.Mirror != nil && c.Mirror.Annotations[kudo.AnnotationHubUID] == string(c.Acknowledged.UID) &&
		c.Mirror.Annotations[kudo.AnnotationOrphaned] == ""
}

// health judges the mirror as any other object that a task has brought about.
func (c Child) health() health.Result {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.Mirror)
	if err != nil {
		return health.Result{Status: health.Unknown, Message: c.describe(err.Error())}
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(kudo.GroupVersion.WithKind("Instance"))
	return health.Of(object)
}

// why is what condition Ready of the mirror says, as the end of a sentence.
func (c Child) why() string {
	if ready := meta.FindStatusCondition(c.Mirror.Status.Conditions, kudo.ConditionReady); ready != nil && ready.Message != "" {
		return ": " + ready.Message
	}
	return ""
}

func (c Child) describe(what string) string { return "Instance " + c.Name.String() + ": " + what }
