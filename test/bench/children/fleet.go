package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/test/bench/stage"
	"github.com/tandem-addons/tandem/test/sample"
)

// fleet is the size of the fleet: the number of parents, of children per parent, and of namespaces on the managed cluster.
type fleet struct{ parents, children, namespaces int }

// The operators of the benchmark, each in one version.
const (
	parentOperator, childOperator = "parent", "child"
	packageVersion                = "1.0.0"
	// childPrefix is the prefix of the names of tasks that create children, of their steps, and of the last part of the children's names.
	childPrefix = "child-"
)

// pods returns the maximum number of pods: one per child, and a second one of one child per parent during an update.
func (f fleet) pods() int { return f.parents * (f.children + 1) }

// names returns the names of the parents.
func (f fleet) names() []string {
	names := make([]string, f.parents)
	for i := range names {
		names[i] = fmt.Sprintf("bench-%03d", i)
	}
	return names
}

// family returns the names of an Instance and its children.
func (f fleet) family(parent string) []string {
	names := []string{parent}
	for i := range f.children {
		names = append(names, tree.ChildName(parent, childTask(i)))
	}
	return names
}

// all returns the names of all Instances.
func (f fleet) all() []string {
	var all []string
	for _, parent := range f.names() {
		all = append(all, f.family(parent)...)
	}
	return all
}

// instances returns the parents.
func (f fleet) instances() []*kudo.Instance {
	var parents []*kudo.Instance
	for i, name := range f.names() {
		parents = append(parents, &kudo.Instance{
			ObjectMeta: metav1.ObjectMeta{Namespace: stage.Managed, Name: name},
			Spec: kudo.InstanceSpec{
				OperatorVersion:  corev1.ObjectReference{Namespace: kudo.DefaultPackagesNamespace, Name: parentOperator + "-" + packageVersion},
				InstallNamespace: fmt.Sprintf("bench-%d", i%f.namespaces),
			},
		})
	}
	return parents
}

// parent returns the package of an operator that applies its settings and then creates its children one after the other. Each child gets a
// parameter of its own.
func (f fleet) parent() *kudo.OperatorVersion {
	settings := sample.ApplyTask("settings", "settings.yaml")
	version := sample.Package(parentOperator, packageVersion, map[string]string{"settings.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}"}
data: {operator: "{{ .OperatorName }}"}
`}, settings)
	steps := []kudo.Step{sample.Step(settings.Name)}
	for i := range f.children {
		task := childTask(i)
		version.Spec.Parameters = append(version.Spec.Parameters, kudo.Parameter{Name: parameterOf(i), Default: ptr.To("a")})
		version.Spec.Templates[task.Spec.ParameterFile] = fmt.Sprintf("COLOR: {{ .Params.%s }}\n", parameterOf(i))
		version.Spec.Tasks = append(version.Spec.Tasks, task)
		steps = append(steps, sample.Step(task.Name))
	}
	version.Spec.Plans = sample.Deploy(steps...)
	return version
}

// child returns the package of an operator that applies a Deployment of one pod with its parameter.
func child() *kudo.OperatorVersion {
	server := sample.ApplyTask("server", "server.yaml")
	version := sample.Package(childOperator, packageVersion, map[string]string{"server.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Name }}"}
spec:
  replicas: 1
  selector: {matchLabels: {app: "{{ .Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Name }}"}}
    spec:
      containers: [{name: server, image: simulated, env: [{name: COLOR, value: "{{ .Params.COLOR }}"}]}]
`}, server)
	version.Spec.Parameters = []kudo.Parameter{{Name: "COLOR", Default: ptr.To("none")}}
	version.Spec.Plans = sample.Deploy(sample.Step(server.Name))
	return version
}

// childTask returns the task that creates the child of that number as `package push` stores it, with its exact version.
func childTask(number int) kudo.Task {
	name := fmt.Sprint(childPrefix, number)
	task := kudo.Task{Name: name, Kind: kudo.TaskKudoOperator}
	task.Spec.Package, task.Spec.InstanceName = childOperator, name
	task.Spec.OperatorVersion, task.Spec.ParameterFile = packageVersion, name+".yaml"
	return task
}

// createsChild reports whether the step of that name creates a child.
func createsChild(step string) bool { return strings.HasPrefix(step, childPrefix) }

// isChild reports whether the Instance of that name is a child.
func isChild(instance string) bool { return strings.Contains(instance, ".") }

// parameterOf returns the parent's parameter that is passed only to the child of that number.
func parameterOf(number int) string { return fmt.Sprintf("COLOR_%d", number) }
