// Package why explains why an add-on is not available on a cluster, down to the root causes, and suggests the commands that fix it.
// It is pure and touches no cluster.
package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Explanation is why an add-on is not available: sentences and suggested commands.
type Explanation struct {
	view      fleet.Cluster
	now       time.Time
	sentences []string
	// roots lists the root causes mentioned in the sentences.
	roots []dependency.Root
	// queued lists the add-ons mentioned in the sentences whose rollouts have not reached the cluster.
	queued []string
	// deadlocks lists the rollouts mentioned in the sentences that wait for each other.
	deadlocks []dependency.SlotDeadlock
	// enable lists the commands that enable add-ons, dependencies first; commands lists all others.
	enable, commands []string
}

// Text returns a paragraph followed by the commands.
func (e *Explanation) Text() string {
	text := strings.Join(e.sentences, " ") + "\n"
	if len(e.commands) > 0 {
		text += "\n  " + strings.Join(e.commands, "\n  ") + "\n"
	}
	return text
}

// Data is an explanation for programs.
type Data struct {
	AddOn       string `json:"addOn"`
	Cluster     string `json:"cluster"`
	Explanation string `json:"explanation"`
	// Causes lists the root causes among its dependencies.
	Causes []Cause `json:"causes"`
	// Deadlocks lists the rollouts that wait for each other, and hold up the add-on.
	Deadlocks []dependency.SlotDeadlock `json:"deadlocks,omitempty"`
	// Commands lists the suggested commands in order.
	Commands []string `json:"commands"`
}

// Cause is an add-on that is a root cause, and its problem.
type Cause struct {
	AddOn string                       `json:"addOn"`
	Type  addonv1alpha1.DependencyType `json:"type"`
	Cause dependency.Cause             `json:"cause,omitempty"`
	// Path lists the chain of dependencies from the requested add-on; Cycle is the cycle through the requested add-on, if that is the cause.
	Path  []string `json:"path"`
	Cycle []string `json:"cycle,omitempty"`
}

func (e *Explanation) Data(addOn string) Data {
	data := Data{
		AddOn: addOn, Cluster: e.view.Name, Explanation: strings.Join(e.sentences, " "),
		Causes: []Cause{}, Deadlocks: e.deadlocks, Commands: append([]string{}, e.commands...),
	}
	for _, root := range e.roots {
		data.Causes = append(data.Causes, Cause{AddOn: root.Name, Type: root.Type, Cause: root.Cause, Path: root.Way, Cycle: root.Cycle})
	}
	return data
}

func (e *Explanation) addSentence(format string, args ...any) {
	e.sentences = append(e.sentences, fmt.Sprintf(format, args...))
}

func (e *Explanation) suggest(format string, names ...string) {
	if command := text.Command(format, names...); !slices.Contains(e.commands, command) {
		e.commands = append(e.commands, command)
	}
}

// suggestDetails suggests the command that shows more about an add-on: its plans if it is plan-based.
func (e *Explanation) suggestDetails(addOn *addonv1alpha1.ManagedClusterAddOn) {
	if e.isPlanBased(addOn) {
		e.suggest("kubectl addon plan status %s --cluster %s", addOn.Name, e.view.Name)
		return
	}
	e.suggest("kubectl describe managedclusteraddon %s --namespace %s", addOn.Name, e.view.Name)
}

func (e *Explanation) isPlanBased(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	return e.view.Definitions[addOn.Name].PlanManaged || meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionResolved) != nil
}

// lastVerdict returns condition Degraded with the hub's last verdict on an add-on's dependencies, or nil if none were unmet.
func lastVerdict(addOn *addonv1alpha1.ManagedClusterAddOn) *metav1.Condition {
	degraded := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionDegraded)
	if degraded == nil || degraded.Status != metav1.ConditionTrue || !dependency.IsReason(degraded.Reason) {
		return nil
	}
	return degraded
}

func waitsFor(addOn *addonv1alpha1.ManagedClusterAddOn) string {
	if len(addOn.Finalizers) == 0 {
		return ""
	}
	text := " and is waiting for finalizers " + progress.FinalizerList(addOn)
	if remaining := progress.RemainingText(addOn); remaining != "" {
		text += ": " + remaining
	}
	return text
}

// explainFinalizers states what to do if only finalizers of other controllers delay the deletion of an add-on.
func (e *Explanation) explainFinalizers(addOn *addonv1alpha1.ManagedClusterAddOn) {
	if !progress.IsHeldByOthers(addOn) {
		return
	}
	e.addSentence("Only the controllers that set the finalizers of ManagedClusterAddOn %s/%s can finish its deletion: check that these controllers are "+
		"running, or remove the finalizers of those that no longer exist.", addOn.Namespace, addOn.Name)
	e.suggest("kubectl get managedclusteraddon %s --namespace %s -o yaml --show-managed-fields", addOn.Name, addOn.Namespace)
	e.suggest("kubectl edit managedclusteraddon %s --namespace %s", addOn.Name, addOn.Namespace)
}

func stateText(available *metav1.Condition) string {
	if available.Status == metav1.ConditionUnknown {
		return "in an unknown state"
	}
	return "not available"
}

// reasonText returns reason and message without a full stop.
func reasonText(condition *metav1.Condition) string {
	message := strings.TrimSuffix(text.JoinMessage(condition.Message), ".")
	if message == "" {
		return condition.Reason
	}
	return condition.Reason + ": " + message
}

// sentence returns the text with a full stop.
func sentence(text string) string { return strings.TrimSuffix(text, ".") + "." }
