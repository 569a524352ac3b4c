package fleet

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
)

// State is the summarized state of an add-on on a cluster.
type State string

// The states, worst first. An add-on that is Blocked, Degraded or Waiting is available.
const (
	NotAvailable State = "NotAvailable"
	Unknown      State = "Unknown"
	Removing     State = "Removing"
	// Blocked means that the last change cannot be applied (Resolved is False), or that its version has failed and was replaced by the former one: what was
	// installed before continues to run.
	Blocked  State = "Blocked"
	Degraded State = "Degraded"
	// Waiting means that the last change is pending: OCM has not rolled it out to the cluster yet, for example, or the cluster has to be healthy for longer
	// after it. So is the next one of a suspended add-on.
	Waiting    State = "Waiting"
	Available  State = "Available"
	NotEnabled State = "NotEnabled"
)

var States = []State{NotAvailable, Unknown, Removing, Blocked, Degraded, Waiting, Available, NotEnabled}

// Rank returns the position of the state, worst first.
func (s State) Rank() int { return slices.Index(States, s) }

// IsAvailable reports whether an add-on in the state works.
func (s State) IsAvailable() bool {
	return s == Available || s == Waiting || s == Degraded || s == Blocked
}

// marks are the symbols of the states.
var marks = map[State]string{
	NotAvailable: "✗", Unknown: "?", Removing: "-", Blocked: "⊘", Degraded: "!", Waiting: "~", Available: "✓", NotEnabled: "·",
}

// texts are the names of the states in texts.
var texts = map[State]string{
	NotAvailable: "not available", Unknown: "unknown", Removing: "removing", Blocked: "blocked", Degraded: "degraded", Waiting: "waiting",
	Available: "available", NotEnabled: "not enabled",
}

// Mark returns the symbol of the state in a matrix.
func (s State) Mark() string { return marks[s] }

// Text returns the name of the state in texts.
func (s State) Text() string { return texts[s] }

// Glimpse is the summarized status of an add-on or Instance on a cluster.
type Glimpse struct {
	State State `json:"state"`
	// Reason is the reason of the state.
	Reason string `json:"reason"`
	// Blocked is the reason why the last change is blocked if State is a worse one than Blocked, and has another reason.
	Blocked string `json:"blocked,omitempty"`
	// SuspendedBy lists the kinds of the objects on the hub that suspend it, if Reason is Suspended; empty if only its Instance does.
	SuspendedBy string `json:"suspendedBy,omitempty"`
}

// ReasonText returns the reason of the state with what suspends it, and the one why the last change is blocked.
func (g Glimpse) ReasonText() string {
	text := g.Reason
	if g.SuspendedBy != "" {
		text += " by " + g.SuspendedBy
	}
	if g.Blocked != "" {
		text += ", blocked: " + g.Blocked
	}
	return text
}

// Message returns the messages of the conditions that the reasons are of, given the type of the condition that is the health of the object.
func (g Glimpse) Message(conditions []metav1.Condition, health string) string {
	var messages []string
	kinds := []string{health, addonv1alpha1.ConditionDegraded, addonv1alpha1.ConditionResolved, kudo.ConditionWaiting}
	if install.SoakCondition(conditions) != nil {
		kinds = append(kinds, addonv1alpha1.ConditionManifestApplied)
	}
	for _, kind := range kinds {
		condition := meta.FindStatusCondition(conditions, kind)
		if condition == nil || condition.Message == "" {
			continue
		}
		isOfState := condition.Reason == g.Reason && len(messages) == 0
		isOfBlocked := kind == addonv1alpha1.ConditionResolved && condition.Reason == g.Blocked
		if isOfState || isOfBlocked {
			messages = append(messages, condition.Message)
		}
	}
	if len(messages) == 2 {
		return strings.TrimSuffix(messages[0], ".") + "; blocked: " + messages[1]
	}
	return strings.Join(messages, "")
}

// GlimpseOf returns the status of an add-on.
func GlimpseOf(addOn *addonv1alpha1.ManagedClusterAddOn) Glimpse {
	return glimpseAt(addOn, addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
}

// GlimpseOfInstance returns the status of an Instance. A ready Instance counts as available.
func GlimpseOfInstance(instance *kudo.Instance) Glimpse {
	return glimpseAt(instance, instance.Status.Conditions, kudo.ConditionReady)
}

// glimpseAt returns the status of an object whose health is the condition of the given type.
func glimpseAt(object metav1.Object, conditions []metav1.Condition, health string) Glimpse {
	healthy, resolved := meta.FindStatusCondition(conditions, health), meta.FindStatusCondition(conditions, addonv1alpha1.ConditionResolved)
	switch {
	case object.GetDeletionTimestamp() != nil:
		return Glimpse{State: Removing, Reason: "Deleting"}
	case healthy == nil || healthy.Status == metav1.ConditionUnknown:
		return unhealthyGlimpse(Unknown, healthy, resolved)
	case healthy.Reason == kudo.ReasonReturned: // Ready of an Instance is False then
		return Glimpse{State: Blocked, Reason: healthy.Reason}
	case isSuspendedBefore(healthy, conditions):
		return waitingGlimpse(NotAvailable, conditions)
	case healthy.Status == metav1.ConditionFalse:
		return unhealthyGlimpse(NotAvailable, healthy, resolved)
	default:
		return healthyGlimpse(conditions, healthy, resolved)
	}
}

// healthyGlimpse returns the status of an object that works.
func healthyGlimpse(conditions []metav1.Condition, healthy, resolved *metav1.Condition) Glimpse {
	degraded := meta.FindStatusCondition(conditions, addonv1alpha1.ConditionDegraded)
	switch {
	case install.IsBlocked(resolved):
		return Glimpse{State: Blocked, Reason: resolved.Reason}
	case degraded != nil && degraded.Status == metav1.ConditionTrue:
		return Glimpse{State: Degraded, Reason: degraded.Reason}
	case install.IsWaiting(resolved):
		return Glimpse{State: Waiting, Reason: resolved.Reason}
	case meta.IsStatusConditionTrue(conditions, kudo.ConditionWaiting):
		return waitingGlimpse(Waiting, conditions)
	case install.SoakCondition(conditions) != nil:
		return Glimpse{State: Waiting, Reason: install.SoakCondition(conditions).Reason}
	default:
		return Glimpse{State: Available, Reason: healthy.Reason}
	}
}

// isSuspendedBefore reports whether an object is not available because it is suspended since before its installation.
func isSuspendedBefore(healthy *metav1.Condition, conditions []metav1.Condition) bool {
	waiting := meta.FindStatusCondition(conditions, kudo.ConditionWaiting)
	return healthy.Status == metav1.ConditionFalse && healthy.Reason == kudo.ReasonPlanPending &&
		waiting != nil && waiting.Status == metav1.ConditionTrue && waiting.Reason == kudo.ReasonSuspended
}

// waitingGlimpse returns the status of an object with condition Waiting.
func waitingGlimpse(state State, conditions []metav1.Condition) Glimpse {
	waiting := meta.FindStatusCondition(conditions, kudo.ConditionWaiting)
	g := Glimpse{State: state, Reason: waiting.Reason}
	if waiting.Reason == kudo.ReasonSuspended {
		g.SuspendedBy = strings.Join(suspension.Kinds(suspension.ParseMessage(waiting.Message)), ", ")
	}
	return g
}

// unhealthyGlimpse returns the status of an object in a state that is worse than Blocked. If its health was not reported, or it was not installed,
// condition Resolved has the reason. Both conditions may be missing.
func unhealthyGlimpse(state State, healthy, resolved *metav1.Condition) Glimpse {
	isHeldUp := install.IsBlocked(resolved) || install.IsWaiting(resolved)
	switch {
	case healthy == nil && resolved == nil:
		return Glimpse{State: state, Reason: "NotReported"}
	case healthy == nil, healthy.Reason == addonv1alpha1.ReasonNotInstalled && isHeldUp:
		return Glimpse{State: state, Reason: cmp.Or(resolved.Reason, "NotReported")}
	}
	g := Glimpse{State: state, Reason: cmp.Or(healthy.Reason, "NotReported")}
	if install.IsBlocked(resolved) && resolved.Reason != g.Reason {
		g.Blocked = resolved.Reason
	}
	return g
}
