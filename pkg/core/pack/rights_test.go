package pack

import (
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const rightsOperator = `apiVersion: kudo.dev/v1beta1
name: app
operatorVersion: 1.0.0
%stasks:
- {name: config, kind: Apply, spec: {resources: [config.yaml]}}
- {name: feature, kind: Toggle, spec: {parameter: ON, resources: [feature.yaml]}}
- {name: keys, kind: Pipe, spec: {pod: pod.yaml, pipe: [{file: /tmp/k, kind: Secret, key: k}]}}
- {name: gone, kind: Delete, spec: {resources: [gone.yaml]}}
plans: {deploy: {phases: [{name: a, steps: [{name: a, tasks: [config, feature, keys, gone]}]}]}}
`

// rightsPackage returns a package with tasks of all kinds that have objects.
func rightsPackage(permissions string, templates map[string]string) *Package {
	files := fstest.MapFS{
		"operator.yaml": {Data: []byte(strings.Replace(rightsOperator, "%s", permissions, 1))},
		"params.yaml": {Data: []byte("apiVersion: kudo.dev/v1beta1\nparameters:\n- {name: ON, type: boolean, default: \"false\"}\n" +
			"- {name: MORE, type: boolean, default: \"false\"}\n- {name: KIND, required: false, default: Secret}\n" +
			"- {name: PLACE, required: false, default: elsewhere}\n")},
		"templates/config.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}\"}\n" +
			"{{ if eq .Params.MORE \"true\" }}\n---\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: \"{{ .Name }}\"}\n{{ end }}\n")},
		"templates/feature.yaml": {Data: []byte("apiVersion: batch/v1\nkind: Job\nmetadata: {name: \"{{ .Name }}\", namespace: \"{{ .Namespace }}\"}\n")},
		"templates/gone.yaml":    {Data: []byte("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: \"{{ .Name }}\"}\n")},
		"templates/pod.yaml": {Data: []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: \"{{ .Name }}\"}\n" +
			"spec:\n  volumes: [{name: s, emptyDir: {}}]\n  initContainers: [{name: i, image: i, volumeMounts: [{name: s, mountPath: /tmp}]}]\n")},
	}
	for name, text := range templates {
		files["templates/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	p, _ := Load(files)
	return p
}

const allRights = `rules:
- {apiGroups: [""], resources: [configmaps, secrets], verbs: [create, patch]}
- {apiGroups: [""], resources: [pods], verbs: [create, delete, patch]}
- {apiGroups: [""], resources: [pods/exec], verbs: [create, get]}
- {apiGroups: [apps], resources: [daemonsets], verbs: [delete]}
- {apiGroups: [batch], resources: [jobs], verbs: [create, delete, patch]}
- {apiGroups: [policy], resources: [poddisruptionbudgets], verbs: [create, patch]}
`

func TestRightsCoverAllTasksAndConditions(t *testing.T) {
	permissions, unknown := rightsPackage("", nil).Rights()
	got, err := yaml.Marshal(permissions)
	if err != nil {
		t.Fatal(err)
	}
	want, err := yaml.YAMLToJSON([]byte(allRights))
	if err != nil {
		t.Fatal(err)
	}
	if want, err = yaml.JSONToYAML(want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(unknown) > 0 {
		t.Errorf("unknown: %q", unknown)
	}
}

func TestRightsNameWhatDependsOnParameters(t *testing.T) {
	permissions, unknown := rightsPackage("", map[string]string{
		"config.yaml":  "apiVersion: v1\nkind: {{ .Params.KIND }}\nmetadata:\n  name: \"{{ .Name }}\"\n  namespace: {{ .Params.PLACE | quote }}\n",
		"feature.yaml": "{{ fail \"no\" }}\napiVersion: v1\nkind: Service\nmetadata: {name: \"{{ .Name }}\"}\n",
	}).Rights()
	for i, want := range []string{
		`template "feature.yaml" does not render with the default parameters`, `the kinds of template "config.yaml" depend on parameters`,
		`the namespaces of template "config.yaml" depend on parameters`,
	} {
		if i >= len(unknown) || !strings.Contains(unknown[i], want) {
			t.Fatalf("got %q, want %q", unknown, want)
		}
	}
	if len(permissions.Namespaces) != 1 || permissions.Namespaces[0].Name != "elsewhere" || permissions.Namespaces[0].Rules[0].Resources[0] != "secrets" {
		t.Errorf("the defaults are missing in %v", permissions.Namespaces)
	}
	if services := permissions.Rules[len(permissions.Rules)-1]; cmp.Diff([]string{"daemonsets"}, services.Resources) != "" {
		t.Errorf("got %v", permissions.Rules)
	}
}

func TestVerifyComparesDeclaredPermissions(t *testing.T) {
	indented := "permissions:\n  " + strings.ReplaceAll(strings.TrimSpace(allRights), "\n", "\n  ") + "\n"
	for name, test := range map[string]struct {
		permissions string
		want        []string
	}{
		"none are declared": {"", nil},
		"all that it needs": {indented, nil},
		"one is missing": {strings.Replace(indented, "configmaps, ", "", 1), []string{
			`operator.yaml:4:1: warning: task "config" has no permission to create, patch on configmaps: add it ('kubectl addon package rights' prints all that are needed)`}},
		"one is not needed": {strings.Replace(indented, "[daemonsets], verbs: [delete", "[daemonsets], verbs: [delete, list", 1), []string{
			"operator.yaml:9:5: warning: no task needs the permission to list on daemonsets.apps: remove it"}},
		"logs may be read": {indented + "  - {apiGroups: [''], resources: [pods/log], verbs: [get]}\n", nil},
		"a power": {indented + "  clusterRules:\n  - {apiGroups: [''], resources: [secrets], verbs: [create]}\n", []string{
			"operator.yaml:13:5: warning: create on secrets reaches the Secrets of every namespace: agents refuse this unless they run with --allow-escalation=secrets"}},
		"a rule is malformed": {"permissions:\n  rules:\n  - {apiGroups: [apps], resources: [deployments], verbs: []}\n", []string{
			"operator.yaml:6:5: error: the rule has no verbs: list them, such as create and patch"}},
		"a field is misspelt": {"permissions:\n  rule: []\n", []string{
			"operator.yaml:5:3: error: permissions.rule: unknown field: did you mean rules?"}},
		"verbs are not set": {"permissions:\n  clusterRules:\n  - {nonResourceURLs: [/a]}\n", []string{
			"operator.yaml:6:5: error: permissions.clusterRules[0]: required field verbs is missing"}},
		"a namespace has no name": {"permissions:\n  namespaces:\n  - {rules: []}\n", []string{
			"operator.yaml:6:5: error: permissions.namespaces[0]: required field name is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, problem := range rightsPackage(test.permissions, nil).Verify() {
				if problem.File == "operator.yaml" {
					got = append(got, problem.String())
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestVerifyWarnsOfSensitiveParametersThatCannotBeRead(t *testing.T) {
	const declared = "permissions:\n  rules:\n  - {apiGroups: [\"\"], resources: [secrets], verbs: [create, patch]}\n"
	for name, test := range map[string]struct {
		permissions string
		want        []string
	}{
		"no permissions are declared": {"", nil},
		"without get": {declared, []string{`operator.yaml:4:1: warning: sensitive parameter "PASSWORD" is read from a Secret, and the plans have no ` +
			`permission to get it: add get on secrets, with the names of the Secrets as resourceNames`}},
		"get on one":  {declared + "  - {apiGroups: [\"\"], resources: [secrets], resourceNames: [db], verbs: [get]}\n", nil},
		"get on each": {declared + "  - {apiGroups: [\"\"], resources: [secrets], verbs: [get]}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := Load(fstest.MapFS{
				"operator.yaml": {Data: []byte("apiVersion: kudo.dev/v1beta1\nname: app\noperatorVersion: 1.0.0\n" + test.permissions +
					"tasks:\n- {name: a, kind: Apply, spec: {resources: [s.yaml]}}\nplans: {deploy: {phases: [{name: a, steps: [{name: a, tasks: [a]}]}]}}\n")},
				"params.yaml": {Data: []byte("apiVersion: kudo.dev/v1beta1\nparameters:\n- {name: PASSWORD, sensitive: true}\n")},
				"templates/s.yaml": {Data: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: \"{{ .Name }}\"}\n" +
					"stringData: {password: {{ .Params.PASSWORD | quote }}}\n")},
			})
			var got []string
			for _, problem := range p.Verify() {
				if problem.File == "operator.yaml" && strings.Contains(problem.Message, "PASSWORD") || strings.Contains(problem.Message, "permission") {
					got = append(got, problem.String())
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The examples declare exactly what `package rights` prints.
func TestExamplesDeclareTheirRights(t *testing.T) {
	for _, name := range []string{
		"kafka", "zookeeper", "spark", "spark/packages/history-server", "streaming", "streaming/packages/schema-registry",
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := Load(os.DirFS(path.Join("../../../examples/packages", name)))
			needed, unknown := p.Rights()
			if diff := cmp.Diff(needed, p.Version.Permissions); diff != "" {
				t.Errorf("(-needed +declared):\n%s", diff)
			}
			if len(unknown) > 0 {
				t.Errorf("unknown: %q", unknown)
			}
		})
	}
}
