package pack

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
)

func TestVerifyChecksHelmTasks(t *testing.T) {
	for sentence, test := range map[string]struct {
		spec string
		want []string
	}{
		"a folder":              {"{chart: charts/web}", nil},
		"an archive":            {"{chart: charts/db.tgz, valuesFile: values.yaml, releaseName: a.b-c, crds: Skip, claims: Delete, postHooks: Healthy, enablingParameter: ON}", nil},
		"values that say so":    {"{chart: ./charts/web/, crds: Apply, claims: Keep, postHooks: Applied}", nil},
		"no chart":              {"{}", []string{`4:36: error: task "c": chart is required for kind Helm: set it to the folder or archive of a chart in the package`}},
		"a missing chart":       {"{chart: charts/api}", []string{`4:43: error: task "c": chart "charts/api" does not exist: set the path of a folder or archive relative to operator.yaml`}},
		"a folder without one":  {"{chart: charts}", []string{`4:43: error: task "c": chart "charts" is a folder without Chart.yaml`}},
		"a folder outside":      {"{chart: ../web}", []string{`4:43: error: task "c": chart "../web" is not in the package: copy it there, and set its path relative to operator.yaml`}},
		"the package itself":    {"{chart: .}", []string{`4:43: error: task "c": chart "." is not in the package: copy it there, and set its path relative to operator.yaml`}},
		"an absolute path":      {"{chart: /charts/web}", []string{`4:43: error: task "c": chart "/charts/web" is not in the package: copy it there, and set its path relative to operator.yaml`}},
		"a large archive":       {"{chart: large.tgz}", []string{`4:43: error: task "c": chart "large.tgz" has 16777217 bytes, more than the limit of 16777216`}},
		"a registry":            {"{chart: 'oci://registry.example.com/web', version: 1.0.0}", []string{`4:43: error: task "c": charts of registries and repositories are not supported: download it with 'helm pull', and set chart to the folder or archive in the package`}},
		"a repository":          {"{chart: web, repository: 'https://charts.example.com'}", []string{`4:43: error: task "c": charts of registries and repositories are not supported: download it with 'helm pull', and set chart to the folder or archive in the package`}},
		"a version":             {"{chart: charts/web, version: 1.0.0}", []string{`4:43: error: task "c": version has no effect, because the chart is in the package: remove it`}},
		"a missing values file": {"{chart: charts/web, valuesFile: value.yaml}", []string{`4:62: error: task "c": template "value.yaml" does not exist: did you mean values.yaml?`}},
		"a long name":           {"{chart: charts/web, releaseName: " + strings.Repeat("x", 54) + "}", []string{`4:62: error: task "c": releaseName "` + strings.Repeat("x", 54) + `" has 54 characters, more than the limit of 53`}},
		"an invalid name":       {"{chart: charts/web, releaseName: a_b}", []string{`4:62: error: task "c": releaseName "a_b" is not valid: a lowercase RFC 1123 subdomain`}},
		"a switch that is none": {"{chart: charts/web, enablingParameter: TEXT}", []string{`4:62: error: task "c": parameter "TEXT" has the default "a": must be true or false`}},
		"a missing switch":      {"{chart: charts/web, enablingParameter: OF}", []string{`4:62: error: task "c": parameter "OF" does not exist`}},
		"unknown choices": {"{chart: charts/web, crds: apply, claims: x, postHooks: Ready}", []string{
			`4:62: error: task "c": crds must be Apply or Skip, got "apply"`, `4:75: error: task "c": claims must be Keep or Delete, got "x"`, `4:86: error: task "c": postHooks must be Applied or Healthy, got "Ready"`}},
		"a field of another kind": {"{chart: charts/web, resources: [values.yaml]}", []string{`4:62: warning: task "c": a task of kind Helm does not use resources`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			p, _ := Load(fstest.MapFS{
				"operator.yaml": {Data: fmt.Appendf(nil, "apiVersion: kudo.dev/v1beta1\nname: app\noperatorVersion: 1.0.0\ntasks: [{name: c, kind: Helm,      spec: %s}]\n"+
					"plans: {deploy: {phases: [{name: a, steps: [{name: a, tasks: [c]}]}]}}\n", test.spec)},
				"params.yaml": {Data: []byte("apiVersion: kudo.dev/v1beta1\nparameters: [{name: ON, type: boolean, default: 'true', trigger: deploy}, " +
					"{name: TEXT, default: a, trigger: deploy}]\n")},
				"templates/values.yaml": {Data: []byte("a: {{ .Params.TEXT | quote }}\n")},
				"charts/web/Chart.yaml": {}, "charts/db.tgz": {}, "large.tgz": {Data: make([]byte, content.MaxBytes+1)},
			})
			var got []string
			for _, problem := range p.Verify() {
				if problem.File == operatorFile {
					got = append(got, strings.TrimPrefix(problem.String(), "operator.yaml:"))
				}
			}
			if len(got) != len(test.want) {
				t.Fatal(cmp.Diff(test.want, got))
			}
			for i := range got {
				if !strings.HasPrefix(got[i], test.want[i]) {
					t.Errorf("got %s, want %s", got[i], test.want[i])
				}
			}
		})
	}
}

func TestChartsAreFilesOfAPackage(t *testing.T) {
	files := fstest.MapFS{
		"operator.yaml": {Data: []byte("apiVersion: kudo.dev/v1beta1\nname: app\noperatorVersion: 1.0.0\n" +
			"tasks: [{name: a, kind: Helm, spec: {chart: ./web}}, {name: b, kind: Helm, spec: {chart: db.tgz, valuesFile: v.yaml}}, {name: c, kind: Helm, spec: {chart: web}}]\n" +
			"plans: {deploy: {phases: [{name: a, steps: [{name: a, tasks: [a, b, c]}]}]}}\n")},
		"params.yaml":      {Data: []byte("apiVersion: kudo.dev/v1beta1\nparameters: [{name: P, default: x}, {name: S, sensitive: true}]\n")},
		"templates/v.yaml": {Data: []byte("p: {{ .Params.P | quote }}\n{{ if .Params.S }}s: {{ .Params.S | quote }}{{ end }}\n")}, "web/Chart.yaml": {}, "web/templates/a.yaml": {}, "db.tgz": {}, "other": {},
	}
	p, problems := Load(files)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got, err := p.ChartFiles(files)
	if diff := cmp.Diff([]string{"db.tgz", "web/Chart.yaml", "web/templates/a.yaml"}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	values, isDefault, known := p.ChartValues(p.Version.Tasks[1])
	if !strings.HasPrefix(values, `{"p":"x"`) || isDefault || !known {
		t.Errorf("the values are %s, by default %t, known %t", values, isDefault, known)
	}
	if values, _, known := p.ChartValues(p.Version.Tasks[0]); values != "" || !known {
		t.Errorf("the values are %s, known %t", values, known)
	}
}

func TestStoredChartsAreInTheContent(t *testing.T) {
	spec := kudo.OperatorVersionSpec{Tasks: []kudo.Task{{Name: "c", Kind: kudo.TaskHelm}}}
	spec.Tasks[0].Spec.Chart = "web.tgz"
	const want = `task "c": chart "web.tgz" is not in the content of the OperatorVersion: push the package with 'kubectl addon package push'`
	if problems := helmTasks(newSubject(&spec)); len(problems) != 1 || problems[0].Message != want {
		t.Errorf("got %v", problems)
	}
	spec.Content = []kudo.ContentFile{{File: "web.tgz"}}
	if problems := helmTasks(newSubject(&spec)); len(problems) > 0 {
		t.Errorf("got %v", problems)
	}
}
