package sample

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Package returns a version of an operator as a package, without plans.
func Package(operator, number string, templates map[string]string, tasks ...kudo.Task) *kudo.OperatorVersion {
	return &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: kudo.DefaultPackagesNamespace, Name: operator + "-" + number},
		Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: operator}, Version: number, Templates: templates, Tasks: tasks,
		},
	}
}

// ApplyTask returns a task that applies templates.
func ApplyTask(name string, templates ...string) kudo.Task {
	return kudo.Task{Name: name, Kind: kudo.TaskApply, Spec: kudo.TaskSpec{ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: templates}}}
}

// Deploy returns the plan deploy of a version: one serial phase.
func Deploy(steps ...kudo.Step) map[string]kudo.Plan {
	return map[string]kudo.Plan{kudo.DeployPlan: {Strategy: kudo.Serial, Phases: []kudo.Phase{{Name: "main", Strategy: kudo.Serial, Steps: steps}}}}
}

// Step returns a step with one task of the same name.
func Step(task string) kudo.Step { return kudo.Step{Name: task, Tasks: []string{task}} }
