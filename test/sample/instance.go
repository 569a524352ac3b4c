package sample

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/progress"
)

// Instance returns an Instance of kafka on cluster1, without a status.
func Instance() *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Name: "kafka", Namespace: "cluster1"},
		Spec:       kudo.InstanceSpec{OperatorVersion: corev1.ObjectReference{Namespace: "addon-packages", Name: "kafka-3.9.0-1.0.0"}},
	}
}

// Version returns an OperatorVersion of kafka with serial and parallel phases.
func Version() *kudo.OperatorVersion {
	return &kudo.OperatorVersion{Spec: kudo.OperatorVersionSpec{
		Operator: corev1.ObjectReference{Name: "kafka"},
		Version:  "1.0.0",
		Plans: map[string]kudo.Plan{
			"deploy": {Strategy: kudo.Serial, Phases: []kudo.Phase{
				{Name: "brokers", Strategy: kudo.Parallel, Steps: []kudo.Step{{Name: "config"}, {Name: "brokers"}}},
				{Name: "topics", Steps: []kudo.Step{{Name: "setup"}}},
			}},
			"cleanup": {Phases: []kudo.Phase{{Name: "drain", Steps: []kudo.Step{{Name: "drain"}, {Name: "wait"}}}}},
			"noop":    {},
		},
	}}
}

// Condition returns a condition with the given fields.
func Condition(conditionType, status, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionStatus(status), Reason: reason, Message: message}
}

const Waiting = "StatefulSet kafka/kafka: 1 of 3 replicas ready"

// Ran returns an Instance of generation 2 with a plan in the given status, fully observed by its agent. Its OperatorVersion has the
// parameters SIZE, which triggers backup, and BROKERS.
func Ran(plan string, status kudo.ExecutionStatus, change ...func(*kudo.Instance)) (*kudo.Instance, *kudo.OperatorVersion) {
	version := Version()
	version.ObjectMeta = metav1.ObjectMeta{Namespace: "addon-packages", Name: "kafka-3.9.0-1.0.0", UID: "version"}
	version.Spec.Plans = map[string]kudo.Plan{"deploy": {}, "backup": {}, "cleanup": {}}
	version.Spec.Parameters = []kudo.Parameter{
		{Name: "SIZE", Default: ptr.To("1"), Trigger: "backup"}, {Name: "BROKERS", Default: ptr.To("3"), Type: kudo.IntegerType},
	}
	instance := Instance()
	instance.Generation = 2
	resolved := Condition(kudo.ConditionResolved, "True", kudo.ReasonResolved, "")
	resolved.ObservedGeneration = 2
	instance.Status = kudo.InstanceStatus{
		ObservedGeneration: 2, Conditions: []metav1.Condition{resolved},
		Execution: &kudo.Execution{UID: "ran", Plan: plan, Generation: 2, OperatorVersion: corev1.ObjectReference{
			Namespace: version.Namespace, Name: version.Name, UID: version.UID,
		}},
		PlanStatus: map[string]kudo.PlanStatus{plan: {Name: plan, UID: "ran", Status: status, Message: "no more disks"}},
	}
	for _, c := range change {
		c(instance)
	}
	return instance, version
}

// ViewOf is Ran as a view.
func ViewOf(plan string, status kudo.ExecutionStatus, change ...func(*kudo.Instance)) progress.View {
	instance, version := Ran(plan, status, change...)
	return progress.View{Instance: instance, Version: version}
}

// WithRequest requests a plan under that UID.
func WithRequest(plan string, uid types.UID) func(*kudo.Instance) {
	return func(i *kudo.Instance) { i.Spec.PlanExecution = kudo.PlanExecution{PlanName: plan, UID: uid} }
}

// ByHand marks the last execution as requested under that UID.
func ByHand(uid types.UID) func(*kudo.Instance) {
	return func(i *kudo.Instance) { i.Status.Execution.Request = uid }
}
