package planstatus

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
)

// Text returns the output of `plan status` for an Instance: its description, its conditions, and the tree of its plans.
func Text(view progress.View) string {
	var b strings.Builder
	instance := view.Instance
	terminal.WriteField(&b, "Instance", fmt.Sprintf("%s (cluster %s)", instance.Name, instance.Namespace))
	terminal.WriteField(&b, "OperatorVersion", instance.Spec.OperatorVersion.Name)
	if execution := instance.Status.Execution; execution != nil {
		terminal.WriteField(&b, "Last plan", lastPlan(instance))
	}
	if text := progress.LastChange(view); text != "" {
		terminal.WriteField(&b, "Last change", text)
	}
	if text := progress.FactsChange(instance); text != "" {
		terminal.WriteField(&b, "Cluster facts", text)
	}
	for _, condition := range []struct{ kind, absent string }{
		{kudo.ConditionResolved, "Unknown: not reported yet; if this takes longer than a few seconds, check that addon-manager is running on the hub"},
		{kudo.ConditionReady, "Unknown: not reported yet"},
	} {
		terminal.WriteField(&b, condition.kind, progress.ConditionText(instance.Status.Conditions, condition.kind, condition.absent))
	}
	for _, kind := range []string{kudo.ConditionWaiting, kudo.ConditionDrifted} {
		if text := progress.ConditionText(instance.Status.Conditions, kind, ""); text != "" && !meta.IsStatusConditionFalse(instance.Status.Conditions, kind) {
			terminal.WriteField(&b, kind, text)
		}
	}
	if text := progress.ConditionText(instance.Status.Conditions, kudo.ConditionSoaked, ""); text != "" {
		terminal.WriteField(&b, kudo.ConditionSoaked, text)
	}
	if view.Unreadable != nil {
		fmt.Fprintf(&b, "\nOnly the plan status that the agent has reported is shown: reading OperatorVersion %q: %v\n",
			instance.Spec.OperatorVersion.Name, view.Unreadable)
	}
	b.WriteString("\n")
	terminal.WriteTree(&b, Tree(view, progress.PlanNames(view)))
	return b.String()
}

// addOnText returns the output of `plan status` for an add-on without an Instance: what its installation waits for.
func addOnText(addOn *addonv1alpha1.ManagedClusterAddOn) string {
	var b strings.Builder
	state := "no Instance yet"
	if !addOn.DeletionTimestamp.IsZero() {
		state = "being removed"
	}
	terminal.WriteField(&b, "Add-on", fmt.Sprintf("%s (cluster %s), %s", addOn.Name, addOn.Namespace, state))
	for _, condition := range []struct{ kind, absent string }{
		{addonv1alpha1.ConditionAvailable, "Unknown: not reported yet"},
		{addonv1alpha1.ConditionDegraded, "not set: no dependency of the add-on is known to be missing"},
		{addonv1alpha1.ConditionResolved, "not set: addon-manager has not processed the add-on yet, or it is not plan-based, which " +
			"requires a ClusterManagementAddOn of its name with an OperatorVersion among the supported configs"},
	} {
		terminal.WriteField(&b, condition.kind, progress.ConditionText(addOn.Status.Conditions, condition.kind, condition.absent))
	}
	return b.String()
}

// lastPlan returns the last started plan, with its version and parameters if they differ from the desired ones.
func lastPlan(instance *kudo.Instance) string {
	execution := instance.Status.Execution
	text := execution.Plan
	if started := execution.OperatorVersion.Name; started != "" && started != instance.Spec.OperatorVersion.Name {
		text += " of " + started
	}
	return text
}
