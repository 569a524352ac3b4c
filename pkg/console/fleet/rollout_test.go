package fleet_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/test/sample"
)

// TestUnfinishedOf covers what OCM and addon-manager report about a rollout: OCM alone knows which clusters it has not included.
func TestUnfinishedOf(t *testing.T) {
	configured := func(status metav1.ConditionStatus) metav1.Condition {
		return sample.Condition(addonv1alpha1.ConditionConfigured, string(status), "Configured", "")
	}
	waits := sample.Condition(addonv1alpha1.ConditionResolved, "False", addonv1alpha1.ReasonWaitingForDependencies, "waiting to change to kafka-2: x; first changes shop")
	applied := sample.Condition(addonv1alpha1.ConditionManifestApplied, "True", addonv1alpha1.ReasonPlanComplete, "")
	soaks := sample.Condition(addonv1alpha1.ConditionManifestApplied, "False", addonv1alpha1.ReasonSoaking, "healthy since noon")
	for name, tc := range map[string]struct {
		conditions         []metav1.Condition
		manual             bool
		unfinished, queued bool
		waitsFor           int
	}{
		"not included, as the hub reports":       {conditions: []metav1.Condition{configured("False"), sample.NotRolledOut}, unfinished: true, queued: true},
		"not included, and the hub has not seen": {conditions: []metav1.Condition{configured("False")}, unfinished: true, queued: true},
		"not by a Placement":                     {conditions: []metav1.Condition{configured("False")}, manual: true},
		"included, and waits for another add-on": {conditions: []metav1.Condition{configured("True"), waits}, unfinished: true, waitsFor: 1},
		"included":                               {conditions: []metav1.Condition{configured("True")}, unfinished: true},
		"has to be healthy for longer":           {conditions: []metav1.Condition{configured("True"), soaks}, unfinished: true},
		"ended":                                  {conditions: []metav1.Condition{configured("True"), applied}},
	} {
		t.Run(name, func(t *testing.T) {
			view := sample.NewCluster("kafka:").With("kafka", tc.conditions...).Progressive("kafka", 1)
			definition := view.Definitions["kafka"].Object
			if tc.manual {
				definition = nil
			}
			got, is := fleet.UnfinishedOf(view.AddOns["kafka"], definition, time.Now())
			if is != tc.unfinished || got.Queued != tc.queued || len(got.WaitsFor) != tc.waitsFor {
				t.Errorf("%+v, %t", got, is)
			}
		})
	}
}
