package progress_test

import (
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/core/former"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

func TestDueAfterAReturn(t *testing.T) {
	version := &kudo.OperatorVersion{}
	version.Name, version.UID = "kafka-2.0.0", "first"
	version.Spec.Plans = map[string]kudo.Plan{kudo.DeployPlan: {}}
	instance := &kudo.Instance{}
	instance.Generation = 2
	instance.Status.Execution = &kudo.Execution{Plan: kudo.DeployPlan}
	instance.Status.Execution.OperatorVersion.Name = "kafka-1.0.0"
	instance.Status.PlanStatus = map[string]kudo.PlanStatus{kudo.DeployPlan: {Status: kudo.Complete}}
	instance.Status.Returned = &kudo.Return{Plan: kudo.DeployPlan, Wanted: former.SpecDigest(instance.Spec), Content: plan.ContentDigest(&version.Spec)}
	instance.Status.Returned.OperatorVersion.Name, instance.Status.Returned.OperatorVersion.UID = version.Name, version.UID
	for name, test := range map[string]struct {
		change func(*kudo.Instance, *kudo.OperatorVersion)
		want   string
	}{
		"nothing has changed":                           {func(*kudo.Instance, *kudo.OperatorVersion) {}, ""},
		"a parameter has changed":                       {func(i *kudo.Instance, _ *kudo.OperatorVersion) { i.Spec.Parameters = map[string]string{"A": "2"} }, "deploy"},
		"the version was pushed again, and is the same": {func(_ *kudo.Instance, v *kudo.OperatorVersion) { v.UID = "second" }, ""},
		"the version was pushed again, and is another": {func(_ *kudo.Instance, v *kudo.OperatorVersion) {
			v.UID, v.Spec.Version = "second", "2.0.1"
		}, "deploy"},
		"it is requested again": {func(i *kudo.Instance, _ *kudo.OperatorVersion) {
			i.Spec.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "again"}
		}, "deploy"},
	} {
		t.Run(name, func(t *testing.T) {
			view := progress.View{Instance: instance.DeepCopy(), Version: version.DeepCopy()}
			test.change(view.Instance, view.Version)
			if got := view.Due(); got != test.want {
				t.Errorf("due is plan %q, want %q", got, test.want)
			}
		})
	}
}
