package fleet

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// conditionOf returns the condition of a type, from its status and reason; none for "-".
func conditionOf(kind, text string) []metav1.Condition {
	status, reason, found := strings.Cut(text, " ")
	if !found {
		return nil
	}
	return []metav1.Condition{{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason}}
}

// TestGlimpse covers every combination of the conditions Available, Degraded and Resolved.
func TestGlimpse(t *testing.T) {
	resolved := []string{"-", "True Resolved", "Unknown Other", "False ParametersInvalid", "False WaitingForConfiguration", "False WaitingForDependencies"}
	for conditions, want := range map[[2]string][6]string{ // Available and Degraded: a state for each value of Resolved
		{"-", "-"}: {"Unknown NotReported", "Unknown Resolved", "Unknown Other", "Unknown ParametersInvalid",
			"Unknown WaitingForConfiguration", "Unknown WaitingForDependencies"},
		{"-", "True Lacks"}: {"Unknown NotReported", "Unknown Resolved", "Unknown Other", "Unknown ParametersInvalid",
			"Unknown WaitingForConfiguration", "Unknown WaitingForDependencies"},
		{"Unknown Lost", "-"}: {"Unknown Lost", "Unknown Lost", "Unknown Lost", "Unknown Lost, blocked: ParametersInvalid",
			"Unknown Lost", "Unknown Lost"},
		{"Unknown Lost", "True Lacks"}: {"Unknown Lost", "Unknown Lost", "Unknown Lost", "Unknown Lost, blocked: ParametersInvalid",
			"Unknown Lost", "Unknown Lost"},
		{"False PlanFailed", "-"}: {"NotAvailable PlanFailed", "NotAvailable PlanFailed", "NotAvailable PlanFailed",
			"NotAvailable PlanFailed, blocked: ParametersInvalid", "NotAvailable PlanFailed", "NotAvailable PlanFailed"},
		{"False PlanFailed", "True Lacks"}: {"NotAvailable PlanFailed", "NotAvailable PlanFailed", "NotAvailable PlanFailed",
			"NotAvailable PlanFailed, blocked: ParametersInvalid", "NotAvailable PlanFailed", "NotAvailable PlanFailed"},
		{"False NotInstalled", "-"}: {"NotAvailable NotInstalled", "NotAvailable NotInstalled", "NotAvailable NotInstalled",
			"NotAvailable ParametersInvalid", "NotAvailable WaitingForConfiguration", "NotAvailable WaitingForDependencies"},
		{"False NotInstalled", "True Lacks"}: {"NotAvailable NotInstalled", "NotAvailable NotInstalled", "NotAvailable NotInstalled",
			"NotAvailable ParametersInvalid", "NotAvailable WaitingForConfiguration", "NotAvailable WaitingForDependencies"},
		{"True Works", "-"}: {"Available Works", "Available Works", "Available Works", "Blocked ParametersInvalid",
			"Waiting WaitingForConfiguration", "Waiting WaitingForDependencies"},
		{"True Works", "False Other"}: {"Available Works", "Available Works", "Available Works", "Blocked ParametersInvalid",
			"Waiting WaitingForConfiguration", "Waiting WaitingForDependencies"},
		{"True Works", "True Lacks"}: {"Degraded Lacks", "Degraded Lacks", "Degraded Lacks", "Blocked ParametersInvalid",
			"Degraded Lacks", "Degraded Lacks"},
	} {
		for i, text := range resolved {
			addOn, instance := &addonv1alpha1.ManagedClusterAddOn{}, &kudo.Instance{}
			others := append(conditionOf(addonv1alpha1.ConditionDegraded, conditions[1]), conditionOf(addonv1alpha1.ConditionResolved, text)...)
			addOn.Status.Conditions = append(conditionOf(addonv1alpha1.ConditionAvailable, conditions[0]), others...)
			instance.Status.Conditions = append(conditionOf(kudo.ConditionReady, conditions[0]), others...)
			for kind, g := range map[string]Glimpse{"add-on": GlimpseOf(addOn), "Instance": GlimpseOfInstance(instance)} {
				if got := fmt.Sprintf("%s %s", g.State, g.ReasonText()); got != want[i] {
					t.Errorf("%s: health %s, Degraded %s, Resolved %s: got %q, want %q", kind, conditions[0], conditions[1], text, got, want[i])
				}
			}
			addOn.DeletionTimestamp = new(metav1.Now())
			if got := GlimpseOf(addOn); got != (Glimpse{State: Removing, Reason: "Deleting"}) {
				t.Errorf("an add-on that is being deleted: got %v", got)
			}
		}
	}
}

// TestGlimpseOfARollout covers an add-on whose plan is complete, and whose cluster has to be healthy for longer.
func TestGlimpseOfARollout(t *testing.T) {
	for applied, want := range map[string]Glimpse{
		"False Soaking":           {State: Waiting, Reason: "Soaking"},
		"False SoakFailed":        {State: Waiting, Reason: "SoakFailed"},
		"False HealthyForInvalid": {State: Waiting, Reason: "HealthyForInvalid"},
		"False AgentTooOld":       {State: Waiting, Reason: "AgentTooOld"},
		"False PlanNotComplete":   {State: Available, Reason: "Works"},
		"False OfAnother":         {State: Available, Reason: "Works"},
		"True PlanComplete":       {State: Available, Reason: "Works"},
	} {
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		addOn.Status.Conditions = append(conditionOf(addonv1alpha1.ConditionAvailable, "True Works"), conditionOf(addonv1alpha1.ConditionManifestApplied, applied)...)
		addOn.Status.Conditions[1].Message = "until noon"
		got, message := GlimpseOf(addOn), ""
		if want.State == Waiting {
			message = "until noon"
		}
		if got != want || got.Message(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable) != message {
			t.Errorf("%s: got %+v with message %q", applied, got, got.Message(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable))
		}
	}
}

func TestStates(t *testing.T) {
	seen := map[string]State{}
	for i, state := range States {
		if state.Rank() != i || state.Text() == "" || len([]rune(state.Mark())) != 1 {
			t.Errorf("%s: rank %d, text %q, mark %q", state, state.Rank(), state.Text(), state.Mark())
		}
		if other, twice := seen[state.Mark()]; twice {
			t.Errorf("%s and %s have the same mark", state, other)
		}
		seen[state.Mark()] = state
	}
}

func TestMessageExplainsTheReason(t *testing.T) {
	conditions := []metav1.Condition{
		{Type: addonv1alpha1.ConditionAvailable, Reason: "Crashed", Message: "it has crashed"},
		{Type: addonv1alpha1.ConditionDegraded, Reason: "Lacks", Message: "it lacks graphs"},
		{Type: addonv1alpha1.ConditionResolved, Reason: "ParametersInvalid", Message: "no such parameter"},
	}
	for want, glimpse := range map[string]Glimpse{
		"it has crashed": {State: NotAvailable, Reason: "Crashed"}, "it lacks graphs": {State: Degraded, Reason: "Lacks"},
		"no such parameter":                          {State: Blocked, Reason: "ParametersInvalid"},
		"it has crashed; blocked: no such parameter": {State: NotAvailable, Reason: "Crashed", Blocked: "ParametersInvalid"},
		"": {State: Removing, Reason: "Deleting"},
	} {
		if got := glimpse.Message(conditions, addonv1alpha1.ConditionAvailable); got != want {
			t.Errorf("%+v: got %q, want %q", glimpse, got, want)
		}
	}
}
