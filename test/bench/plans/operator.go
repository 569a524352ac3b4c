package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/bench/stage"
	"github.com/tandem-addons/tandem/test/sample"
)

// templates of the operator: objects that are healthy immediately, and a Deployment whose pods kwok runs.
var templates = map[string]string{
	"account.yaml": `apiVersion: v1
kind: ServiceAccount
metadata: {name: "{{ .Name }}"}
`,
	"settings.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}-settings"}
data: {operator: "{{ .OperatorName }}", plan: "{{ .PlanName }}"}
`,
	"rules.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}-rules"}
data: {size: "{{ .Params.SIZE }}"}
`,
	"service.yaml": `apiVersion: v1
kind: Service
metadata: {name: "{{ .Name }}"}
spec:
  selector: {app: "{{ .Name }}"}
  ports: [{port: 8080}]
`,
	"server.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Name }}"}
spec:
  replicas: {{ .Params.SIZE }}
  selector: {matchLabels: {app: "{{ .Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Name }}"}}
    spec:
      serviceAccountName: "{{ .Name }}"
      containers: [{name: server, image: simulated}]
`,
	"status.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}-status"}
data: {phase: "{{ .PhaseName }}"}
`,
}

// deploy is the measured plan: three parallel steps that are complete as soon as they are applied, then a step that waits for pods, then
// another one.
var deploy = kudo.Plan{Phases: []kudo.Phase{
	{Name: "base", Strategy: kudo.Parallel, Steps: []kudo.Step{sample.Step("account"), sample.Step("settings"), sample.Step("service")}},
	{Name: "server", Strategy: kudo.Serial, Steps: []kudo.Step{sample.Step("server"), sample.Step("status")}},
}}

// steps returns the number of steps of the plan.
func steps(plan kudo.Plan) int {
	count := 0
	for _, phase := range plan.Phases {
		count += len(phase.Steps)
	}
	return count
}

// operator returns the package of the benchmark.
func operator() *kudo.OperatorVersion {
	made := sample.Package("bench", "1.0.0", templates,
		sample.ApplyTask("account", "account.yaml"), sample.ApplyTask("settings", "settings.yaml", "rules.yaml"),
		sample.ApplyTask("service", "service.yaml"), sample.ApplyTask("server", "server.yaml"), sample.ApplyTask("status", "status.yaml"))
	made.Spec.Parameters = []kudo.Parameter{{Name: "SIZE", Type: kudo.IntegerType, Default: ptr.To("2")}}
	made.Spec.Plans = map[string]kudo.Plan{kudo.DeployPlan: deploy}
	return made
}

// instance returns an Instance of the operator on the managed cluster.
func instance(name string) *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: stage.Managed, Name: name},
		Spec: kudo.InstanceSpec{
			OperatorVersion:  corev1.ObjectReference{Namespace: operator().Namespace, Name: operator().Name},
			InstallNamespace: "bench",
		},
	}
}
