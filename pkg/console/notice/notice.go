// Package notice finds what a user should know about Instances that run no plan: they are suspended, wait for a maintenance window, have drifted, have returned
// to their former version, have to be healthy for longer or were not healthy for long enough, or have a failed plan that can be resumed. It touches no cluster.
package notice

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/core/former"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Kind is what a notice is about.
type Kind string

// The kinds, those that need a user first.
const (
	Returned         Kind = "Returned"
	PlanFailed       Kind = "PlanFailed"
	SoakFailed       Kind = "SoakFailed"
	Drifted          Kind = "Drifted"
	ComparisonFailed Kind = "ComparisonFailed"
	Window           Kind = "Window"
	Suspended        Kind = "Suspended"
	Soaking          Kind = "Soaking"
)

// Kinds are all kinds, in order.
var Kinds = []Kind{Returned, PlanFailed, SoakFailed, Drifted, ComparisonFailed, Window, Suspended, Soaking}

// texts are the names of the kinds in texts.
var texts = map[Kind]string{
	Returned: "returned", PlanFailed: "plan failed", SoakFailed: "soak failed", Drifted: "drifted", ComparisonFailed: "drift unknown",
	Window: "waits for a window", Suspended: "suspended", Soaking: "soaking",
}

// Text returns the name of the kind in texts.
func (k Kind) Text() string { return texts[k] }

// Notice is one thing that a user should know about an Instance.
type Notice struct {
	Kind Kind
	// Message is one line of bounded length. Agents and users write parts of it.
	Message string
	// Commands show more, or change it; there may be none.
	Commands []string
}

// maxMessage is the number of characters of a message.
const maxMessage = 1024

// KindsOf returns the kinds of the notices about an Instance, in order, without their messages: that is fast. An Instance that is being removed has none.
func KindsOf(instance *kudo.Instance) []Kind {
	if !instance.DeletionTimestamp.IsZero() {
		return nil
	}
	conditions := instance.Status.Conditions
	var found []Kind
	add := func(kind Kind, is bool) {
		if is {
			found = append(found, kind)
		}
	}
	isCompared := instance.Spec.DriftModeOrDefault() != kudo.DriftOff
	add(Returned, instance.Status.Returned != nil && reasonOf(conditions, kudo.ConditionReady, metav1.ConditionFalse) == kudo.ReasonReturned)
	add(PlanFailed, progress.CanResume(instance))
	soaks := reasonOf(conditions, kudo.ConditionSoaked, metav1.ConditionFalse)
	add(SoakFailed, soaks == kudo.ReasonSoakFailed)
	add(Drifted, isCompared && reasonOf(conditions, kudo.ConditionDrifted, metav1.ConditionTrue) != "")
	add(ComparisonFailed, isCompared && reasonOf(conditions, kudo.ConditionDrifted, metav1.ConditionUnknown) != "")
	add(Window, reasonOf(conditions, kudo.ConditionWaiting, metav1.ConditionTrue) == kudo.ReasonWindow)
	add(Suspended, instance.IsSuspended())
	add(Soaking, !slices.Contains([]string{"", kudo.ReasonPlanPending, kudo.ReasonSoakFailed}, soaks))
	return found
}

// reasonOf returns the reason of a condition with a status; empty if it does not exist, or has another status. A condition always has a reason.
func reasonOf(conditions []metav1.Condition, kind string, status metav1.ConditionStatus) string {
	if found := meta.FindStatusCondition(conditions, kind); found != nil && found.Status == status {
		return found.Reason
	}
	return ""
}

// Of returns the notices about an Instance, in order.
func Of(instance *kudo.Instance) []Notice {
	kinds := KindsOf(instance)
	found := make([]Notice, len(kinds))
	for i, kind := range kinds {
		found[i] = About(kind, instance)
	}
	return found
}

// About returns the notice of a kind about an Instance, which is one of its KindsOf.
func About(kind Kind, instance *kudo.Instance) Notice {
	name, cluster := instance.Name, instance.Namespace
	n := Notice{Kind: kind}
	messageOf := func(condition string) string {
		if found := meta.FindStatusCondition(instance.Status.Conditions, condition); found != nil {
			return found.Message
		}
		return ""
	}
	switch kind {
	case Returned:
		n.Message = former.Text(instance.Status.Returned)
		n.Commands = []string{ResumePlanCommand(name, cluster)}
	case PlanFailed:
		plan := instance.Status.Execution.Plan
		n.Message = "plan " + plan + " has failed, and can be resumed without its complete steps: " + instance.Status.PlanStatus[plan].Message
		n.Commands = []string{ResumePlanCommand(name, cluster)}
	case Drifted:
		n.Message = cmp.Or(messageOf(kudo.ConditionDrifted), "objects differ from what was applied")
		n.Commands = []string{text.Command("kubectl addon drift %s --cluster %s", name, cluster)}
	case ComparisonFailed:
		n.Message = "objects cannot be compared with what was applied: " + messageOf(kudo.ConditionDrifted)
		n.Commands = []string{text.Command("kubectl addon drift %s --cluster %s", name, cluster)}
	case Window:
		n.Message = messageOf(kudo.ConditionWaiting)
		if command := NowCommand(instance); command != "" {
			n.Commands = []string{command}
		}
	case Suspended:
		n.Message = suspendedText(instance)
		n.Commands = ResumeCommands(instance)
	case Soaking, SoakFailed:
		n.Message = messageOf(kudo.ConditionSoaked)
		n.Commands = []string{text.Command("kubectl addon plan status %s --cluster %s", name, cluster)}
	}
	n.Message = text.Truncate(strings.TrimSuffix(text.JoinMessage(n.Message), ": "), maxMessage)
	return n
}

// suspendedText states what suspends an Instance, and which plan waits because of that, as far as the agent has reported it.
func suspendedText(instance *kudo.Instance) string {
	waiting := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionWaiting)
	if waiting != nil && waiting.Status == metav1.ConditionTrue && waiting.Reason == kudo.ReasonSuspended && waiting.Message != "" {
		return waiting.Message
	}
	return suspension.Message(suspension.By(instance.Spec))
}

// ResumeCommands returns the commands that resume an Instance: one for each object on the hub that suspends it, and one if its own spec does.
func ResumeCommands(instance *kudo.Instance) []string {
	var commands []string
	for _, origin := range suspension.Sort(suspension.Parse(instance.Spec.SuspendedBy)) {
		commands = append(commands, origin.ResumeCommand())
	}
	if instance.Spec.Suspend {
		commands = append(commands, ResumeCommand(instance.Name, instance.Namespace))
	}
	return commands
}

// ResumeCommand returns the command that ends the suspension of a single Instance.
func ResumeCommand(name, cluster string) string {
	return text.Command("kubectl addon resume %s --cluster %s", name, cluster)
}

// ResumePlanCommand returns the command that runs the last plan of an Instance again, without the steps that have completed.
func ResumePlanCommand(name, cluster string) string {
	return text.Command("kubectl addon plan resume %s --cluster %s", name, cluster)
}

// planOfWait matches the plan that waits for a maintenance window.
var planOfWait = regexp.MustCompile(`^plan "([A-Za-z0-9][A-Za-z0-9_.-]*)" waits for a maintenance window`)

// PlanOfWindow returns the plan that waits for a maintenance window according to the message of condition Waiting, if the hub may start it now; empty if the
// administrator of the cluster has closed the window, or if the message names no plan.
func PlanOfWindow(message string) string {
	found := planOfWait.FindStringSubmatch(message)
	if found == nil || strings.Contains(message, "by the managed cluster (ConfigMap ") {
		return ""
	}
	return found[1]
}

// PlanToStart returns the plan of an Instance that waits for a maintenance window that the hub may override; empty if there is none. A child has the windows of
// its parent.
func PlanToStart(instance *kudo.Instance) string {
	waiting := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionWaiting)
	if waiting == nil || waiting.Status != metav1.ConditionTrue || waiting.Reason != kudo.ReasonWindow || instance.Parent() != nil {
		return ""
	}
	return PlanOfWindow(waiting.Message)
}

// NowCommand returns the command that starts the plan of an Instance outside of the maintenance windows of the hub; empty if there is none.
func NowCommand(instance *kudo.Instance) string {
	if plan := PlanToStart(instance); plan != "" {
		return text.Command("kubectl addon plan run %s %s --cluster %s --now", instance.Name, plan, instance.Namespace)
	}
	return ""
}
