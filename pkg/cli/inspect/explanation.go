package inspect

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/planstatus"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/dependency"
)

// explanation is what `why` says of an add-on: sentences, and the commands to type.
type explanation struct {
	view      hubclient.Cluster
	sentences []string
	// told are the add-ons at fault that sentences speak of.
	told []dependency.Root
	// enable are the commands that enable add-ons, those that others wait for last; commands are all others.
	enable, commands []string
}

// Text is a paragraph, and below it the commands.
func (e *explanation) Text() string {
	text := strings.Join(e.sentences, " ") + "\n"
	if len(e.commands) > 0 {
		text += "\n  " + strings.Join(e.commands, "\n  ") + "\n"
	}
	return text
}

// whyData is an explanation for programs.
type whyData struct {
	AddOn       string `json:"addOn"`
	Cluster     string `json:"cluster"`
	Explanation string `json:"explanation"`
	// Causes are the add-ons at fault among those that it depends on.
	Causes []whyCause `json:"causes"`
	// Commands are what to type, in that order.
	Commands []string `json:"commands"`
}

// whyCause is an add-on at fault, and what is wrong with it.
type whyCause struct {
	AddOn string                       `json:"addOn"`
	Type  addonv1alpha1.DependencyType `json:"type"`
	Cause dependency.Cause             `json:"cause,omitempty"`
	// Way leads there from the add-on that was asked about; Circle goes from there back to it, where that is the cause.
	Way    []string `json:"way"`
	Circle []string `json:"circle,omitempty"`
}

func (e *explanation) data(addOn string) whyData {
	data := whyData{
		AddOn: addOn, Cluster: e.view.Name, Explanation: strings.Join(e.sentences, " "),
		Causes: []whyCause{}, Commands: append([]string{}, e.commands...),
	}
	for _, root := range e.told {
		data.Causes = append(data.Causes, whyCause{AddOn: root.Name, Type: root.Type, Cause: root.Cause, Way: root.Way, Circle: root.Cycle})
	}
	return data
}

func (e *explanation) say(format string, args ...any) {
	e.sentences = append(e.sentences, fmt.Sprintf(format, args...))
}

func (e *explanation) do(format string, args ...any) {
	if command := fmt.Sprintf(format, args...); !slices.Contains(e.commands, command) {
		e.commands = append(e.commands, command)
	}
}

// look names the command that shows more of an add-on: its plans if it runs by plans.
func (e *explanation) look(addOn *addonv1alpha1.ManagedClusterAddOn) {
	if meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionResolved) != nil {
		e.do("kubectl addon plan status %s --cluster %s", addOn.Name, e.view.Name)
		return
	}
	e.do("kubectl describe managedclusteraddon %s --namespace %s", addOn.Name, e.view.Name)
}

// lastTold is the hub's last verdict over an add-on's dependencies, as condition Degraded tells it; nil if nothing was unmet.
func lastTold(addOn *addonv1alpha1.ManagedClusterAddOn) *metav1.Condition {
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
	text := " and waits for the finalizers " + strings.Join(addOn.Finalizers, ", ")
	if remaining := planstatus.RemainingText(addOn); remaining != "" {
		text += ": " + remaining
	}
	return text
}

func stateText(available *metav1.Condition) string {
	if available.Status == metav1.ConditionUnknown {
		return "in an unknown state"
	}
	return "not available"
}

// reasonText is reason and message without a full stop.
func reasonText(condition *metav1.Condition) string {
	message := strings.TrimSuffix(terminal.OneLine(condition.Message), ".")
	if message == "" {
		return condition.Reason
	}
	return condition.Reason + ": " + message
}

// sentence is text that ends with a full stop.
func sentence(text string) string { return strings.TrimSuffix(text, ".") + "." }
