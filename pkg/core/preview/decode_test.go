package preview_test

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/preview"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

func TestFieldsThatDoNotFit(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app}\n"
	containers := func(flow string) string {
		return deployment + "spec: {template: {spec: {containers: [" + flow + "]}}}\n"
	}
	const quantity = `"lots" is not a quantity, such as 500m or 1Gi`
	for sentence, test := range map[string]struct {
		template string
		cpu      string
		want     []string
	}{
		"a quantity": {template: containers("{name: a, resources: {requests: {cpu: {{ .Params.CPU }}, memory: 1Gi}}}"), cpu: "100m"},
		"an invalid quantity": {template: containers("{name: a, resources: {requests: {cpu: {{ .Params.CPU }}, memory: 1Gi}}}"), cpu: "lots",
			want: []string{"Deployment app: spec.template.spec.containers[0].resources.requests.cpu: " + quantity}},
		"invalid values in different places": {template: containers("{name: a}, {name: b, ports: [{containerPort: web}], resources: {limits: {cpu: {{ .Params.CPU }}}}}"), cpu: "lots",
			want: []string{"Deployment app: spec.template.spec.containers[1].ports[0].containerPort: must be int32, not string",
				"Deployment app: spec.template.spec.containers[1].resources.limits.cpu: " + quantity}},
		"a number as a text": {template: containers("{name: a, env: [{name: A, value: {{ .Params.CPU }}}]}"), cpu: "3",
			want: []string{"Deployment app: spec.template.spec.containers[0].env[0].value: must be string, not number"}},
		"an unknown field": {template: deployment + "spec: {replica: 3}\n", want: []string{`Deployment app: unknown field "spec.replica": did you mean replicas?`}},
		"an unknown field in a list": {template: containers("{name: a, imagePullPolcy: Always}"),
			want: []string{`Deployment app: unknown field "spec.template.spec.containers[0].imagePullPolcy": did you mean imagePullPolicy?`}},
		"a field in the wrong case": {template: deployment + "spec: {template: {spec: {hostnetwork: true}}}\n",
			want: []string{`Deployment app: unknown field "spec.template.spec.hostnetwork": did you mean hostNetwork?`}},
		"a field of an inlined struct": {template: containers("{name: a, volumeMounts: [], readinessProbe: {tcpSockets: {port: 1}}}"),
			want: []string{`Deployment app: unknown field "spec.template.spec.containers[0].readinessProbe.tcpSockets": did you mean tcpSocket?`}},
		"an unknown field at the top": {template: deployment + "specs: {}\n", want: []string{`Deployment app: unknown field "specs": did you mean spec?`}},
		"a field below a key with dots": {template: "apiVersion: v1\nkind: Secret\nmetadata: {name: app, label: {a.b/c: d}}\n",
			want: []string{`Secret app: unknown field "metadata.label": did you mean labels?`}},
		"a field that Kubernetes has removed": {template: deployment + "spec: {template: {metadata: {initializers: {pending: []}}}}\nstatus: {x: y}\n"},
		"a field like a sensitive value":      {template: deployment + "spec: {\"{{ .Params.KEY }}\": 1}\n"},
		"many unknown fields":                 {template: deployment + "spec: {a: 1, b: 1, c: 1, d: 1, e: 1}\n", want: []string{`Deployment app: unknown field "spec.a"`, `Deployment app: unknown field "spec.b"`, `Deployment app: unknown field "spec.c"`, "and 2 more"}},
		"a sensitive quantity":                {template: containers("{name: a, resources: {requests: {cpu: {{ .Params.KEY }}}}}")},
		"a kind that is not known":            {template: "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: app}\nspec: {replicas: many}\n"},
		"a Secret":                            {template: "apiVersion: v1\nkind: Secret\nmetadata: {name: app}\ndata: {a: \"{{ .Params.KEY | b64enc }}\", b: \"?\"}\n", want: []string{"Secret app: data.b: illegal base64 data at input byte 0"}},
		"a kind that Kubernetes does not have": {template: "apiVersion: apps/v1\nkind: Deploymet\nmetadata: {name: app}\n",
			want: []string{`Deploymet app: Kubernetes has no kind "Deploymet" in apps/v1 (did you mean Deployment?)`}},
		"a version that Kubernetes has removed": {template: "apiVersion: networking.k8s.io/v1beta1\nkind: Ingress\nmetadata: {name: app}\n",
			want: []string{"Ingress app: networking.k8s.io/v1beta1 Ingress is no longer served as of Kubernetes 1.22: use networking.k8s.io/v1, which has different fields"}},
		"a name that is not valid": {template: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: My_App}\n",
			want: []string{`ConfigMap My_App: metadata.name: invalid value "My_App": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`}},
		"a name of a kind with other rules": {template: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'System:App_1'}\n"},
		"a label that is too long": {template: "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: app, labels: {a: '{{ .Params.CPU }}', b: '{{ .Params.KEY }}'}}\n", cpu: strings.Repeat("a", 64),
			want: []string{`Gadget app: metadata.labels.a: invalid value "` + strings.Repeat("a", 60) + `"…: must be no more than 63 bytes`}},
		"a label of pods": {template: deployment + "spec: {template: {metadata: {labels: {'a b': c}}}}\n",
			want: []string{`Deployment app: spec.template.metadata.labels: invalid value "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			version := shop(func(s *kudo.OperatorVersionSpec) {
				s.Parameters = []kudo.Parameter{{Name: "CPU"}, {Name: "KEY", Sensitive: new(true)}}
				s.Templates, s.Plans = map[string]string{"app.yaml": test.template}, map[string]kudo.Plan{"deploy": planOf("app")}
			})
			after := withSecretReference(instance(version, map[string]string{"CPU": test.cpu}))
			change := preview.Change{After: after, Version: version}
			data := preview.DataOf(preview.Of(change))
			if diff := cmp.Diff(strings.Join(test.want, "; "), data.Plans[0].Tasks[0].Problem); diff != "" {
				t.Errorf("strict: %s", diff)
			}
			change.Validation = preview.ValidationWarn
			if data = preview.DataOf(preview.Of(change)); data.Err() != nil {
				t.Fatal(data.Err())
			}
			if diff := cmp.Diff(test.want, data.Plans[0].Tasks[0].Warnings); diff != "" {
				t.Errorf("warn: %s", diff)
			}
			change.Validation = preview.ValidationIgnore
			if data = preview.DataOf(preview.Of(change)); data.Err() != nil || len(data.TaskWarnings()) > 0 {
				t.Errorf("ignore: %v, %v", data.Err(), data.TaskWarnings())
			}
		})
	}
}

// TestObjectsOfExamplesFit covers warnings of fields that the kinds of Kubernetes have.
func TestObjectsOfExamplesFit(t *testing.T) {
	for _, name := range []string{
		"kafka", "zookeeper", "redis", "spark", "spark/packages/history-server", "streaming", "streaming/packages/schema-registry",
	} {
		t.Run(name, func(t *testing.T) {
			loaded, _ := pack.Load(os.DirFS(path.Join("../../../examples/packages", name)))
			_, version := loaded.Objects("addon-packages")
			version.Spec.Tasks = slices.DeleteFunc(version.Spec.Tasks, tree.MakesChild)
			after := instance(version, map[string]string{})
			for _, p := range version.Spec.Parameters {
				switch {
				case p.IsSensitive():
					after.Spec.ParametersFrom = append(after.Spec.ParametersFrom, kudo.ParameterFrom{Name: p.Name, SecretKeyRef: kudo.SecretKeyRef{Name: "a", Key: "b"}})
				case p.Type == kudo.BooleanType:
					after.Spec.Parameters[p.Name] = "true"
				case p.Default == nil && *p.Required:
					after.Spec.Parameters[p.Name] = "sample"
				}
			}
			data := preview.DataOf(preview.Of(preview.Change{After: after, Version: version}))
			if err := data.Err(); err != nil {
				t.Error(err)
			}
			for _, warning := range data.TaskWarnings() {
				t.Error(warning)
			}
		})
	}
}
