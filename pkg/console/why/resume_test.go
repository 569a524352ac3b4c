package why

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestAFailedPlanIsResumable(t *testing.T) {
	failed := func(change ...func(*kudo.Instance)) *kudo.Instance {
		i := &kudo.Instance{}
		i.Spec.OperatorVersion = corev1.ObjectReference{Name: "kafka-1.0.0"}
		i.Status.Execution = &kudo.Execution{Plan: "deploy", OperatorVersion: corev1.ObjectReference{Name: "kafka-1.0.0"}}
		i.Status.PlanStatus = map[string]kudo.PlanStatus{"deploy": {Status: kudo.FatalError, Phases: []kudo.PhaseStatus{
			{Steps: []kudo.StepStatus{{Status: kudo.Complete}, {Status: kudo.FatalError}}},
		}}}
		for _, c := range change {
			c(i)
		}
		return i
	}
	for sentence, c := range map[string]struct {
		instance *kudo.Instance
		want     bool
	}{
		"it has failed after a step":     {failed(), true},
		"another plan has run since":     {failed(func(i *kudo.Instance) { i.Status.Execution.Plan = "backup" }), false},
		"another version is wanted":      {failed(func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "kafka-2.0.0" }), false},
		"it has failed before any step":  {failed(func(i *kudo.Instance) { i.Status.PlanStatus["deploy"].Phases[0].Steps[0].Status = kudo.FatalError }), false},
		"it has no status in the Status": {failed(func(i *kudo.Instance) { i.Status.PlanStatus = nil }), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := isResumable(c.instance, "deploy"); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
