package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/tree"
	"github.com/tandem-addons/tandem/test/bench/stage"
)

// fleet is how many Instances there are: parents, with as many children each, in so many namespaces of the managed cluster.
type fleet struct{ parents, children, namespaces int }

// The operators of the benchmark, each in one version.
const (
	parentOperator, childOperator = "parent", "child"
	packageVersion                = "1.0.0"
	// childPrefix begins the names of the tasks that bring children along, and of their steps, and the last part of the children's names.
	childPrefix = "child-"
)

// pods is how many there are at most: one of every child, and while one child of each parent changes, two of that.
func (f fleet) pods() int { return f.parents * (f.children + 1) }

// names are those of the parents.
func (f fleet) names() []string {
	names := make([]string, f.parents)
	for i := range names {
		names[i] = fmt.Sprintf("bench-%03d", i)
	}
	return names
}

// family are the names of an Instance and its children.
func (f fleet) family(parent string) []string {
	names := []string{parent}
	for i := range f.children {
		names = append(names, tree.ChildName(parent, childTask(i)))
	}
	return names
}

// all are the names of all Instances.
func (f fleet) all() []string {
	var all []string
	for _, parent := range f.names() {
		all = append(all, f.family(parent)...)
	}
	return all
}

// instances are the parents.
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

// parent is the package of an operator that applies its settings and then brings its children along, one after the other. Each
// child gets a parameter of its own.
func (f fleet) parent() *kudo.OperatorVersion {
	settings := applyTask("settings", "settings.yaml")
	version := operator(parentOperator, map[string]string{"settings.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}"}
data: {operator: "{{ .OperatorName }}"}
`}, settings)
	steps := []kudo.Step{stepOf(settings)}
	for i := range f.children {
		task := childTask(i)
		version.Spec.Parameters = append(version.Spec.Parameters, kudo.Parameter{Name: parameterOf(i), Default: ptr.To("a")})
		version.Spec.Templates[task.Spec.ParameterFile] = fmt.Sprintf("COLOR: {{ .Params.%s }}\n", parameterOf(i))
		version.Spec.Tasks = append(version.Spec.Tasks, task)
		steps = append(steps, stepOf(task))
	}
	version.Spec.Plans = planOf(steps)
	return version
}

// child is the package of an operator that applies a Deployment of one pod, whom it tells its parameter.
func child() *kudo.OperatorVersion {
	server := applyTask("server", "server.yaml")
	version := operator(childOperator, map[string]string{"server.yaml": `apiVersion: apps/v1
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
	version.Spec.Plans = planOf([]kudo.Step{stepOf(server)})
	return version
}

func operator(name string, templates map[string]string, tasks ...kudo.Task) *kudo.OperatorVersion {
	return &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: kudo.DefaultPackagesNamespace, Name: name + "-" + packageVersion},
		Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: name}, Version: packageVersion, Templates: templates, Tasks: tasks,
		},
	}
}

// planOf is the one plan deploy: everything in order, as in KEP-29.
func planOf(steps []kudo.Step) map[string]kudo.Plan {
	return map[string]kudo.Plan{kudo.DeployPlan: {Strategy: kudo.Serial, Phases: []kudo.Phase{
		{Name: "main", Strategy: kudo.Serial, Steps: steps},
	}}}
}

func stepOf(task kudo.Task) kudo.Step { return kudo.Step{Name: task.Name, Tasks: []string{task.Name}} }

func applyTask(name, template string) kudo.Task {
	task := kudo.Task{Name: name, Kind: kudo.TaskApply}
	task.Spec.Resources = []string{template}
	return task
}

// childTask brings the child of that number along, as `package push` stores it: with its exact version.
func childTask(number int) kudo.Task {
	name := fmt.Sprint(childPrefix, number)
	task := kudo.Task{Name: name, Kind: kudo.TaskKudoOperator}
	task.Spec.Package, task.Spec.InstanceName = childOperator, name
	task.Spec.OperatorVersion, task.Spec.ParameterFile = packageVersion, name+".yaml"
	return task
}

// bringsChild tells the step of a child by its name.
func bringsChild(step string) bool { return strings.HasPrefix(step, childPrefix) }

// isChild tells a child by its name.
func isChild(instance string) bool { return strings.Contains(instance, ".") }

// parameterOf is the parent's parameter that reaches the child of that number, and no other.
func parameterOf(number int) string { return fmt.Sprintf("COLOR_%d", number) }
