package pack

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/release"
)

func TestVerifyChecksHelmTasks(t *testing.T) {
	for sentence, test := range map[string]struct {
		spec string
		want []string
	}{
		"a folder":              {"{chart: charts/web}", nil},
		"an archive":            {"{chart: charts/db.tgz, valuesFile: values.yaml, releaseName: a.b-c, crds: Skip, claims: Delete, postHooks: Healthy, enablingParameter: ON}", nil},
		"values that say so":    {"{chart: ./charts/web/, crds: Apply, claims: Keep, postHooks: Applied}", nil},
		"no chart":              {"{}", []string{`4:36: error: task "c": chart is required for kind Helm: set it to a folder or archive in the package, to the name of a chart in repository, or to oci://HOST/PATH/NAME`}},
		"a missing chart":       {"{chart: charts/api}", []string{`4:43: error: task "c": chart "charts/api" does not exist: set the path of a folder or archive relative to operator.yaml`}},
		"a folder without one":  {"{chart: charts}", []string{`4:43: error: task "c": chart "charts" is a folder without Chart.yaml`}},
		"a folder outside":      {"{chart: ../web}", []string{`4:43: error: task "c": chart "../web" is not in the package: copy it there, and set its path relative to operator.yaml`}},
		"the package itself":    {"{chart: .}", []string{`4:43: error: task "c": chart "." is not in the package: copy it there, and set its path relative to operator.yaml`}},
		"an absolute path":      {"{chart: /charts/web}", []string{`4:43: error: task "c": chart "/charts/web" is not in the package: copy it there, and set its path relative to operator.yaml`}},
		"a large archive":       {"{chart: large.tgz}", []string{`4:43: error: task "c": chart "large.tgz" has 16777217 bytes, more than the limit of 16777216`}},
		"a registry":            {"{chart: 'oci://registry.example.com/web', version: 1.0.0}", nil},
		"a repository":          {"{chart: web, repository: 'https://charts.example.com', version: v1.0.0, digest: 'sha256:" + strings.Repeat("0", 64) + "'}", nil},
		"an archive from one":   {"{chart: charts/db.tgz, repository: 'oci://registry.example.com/charts', version: 1.0.0}", nil},
		"a missing one from it": {"{chart: charts/x.tgz, repository: 'oci://registry.example.com/charts', version: 1.0.0}", []string{`4:43: error: task "c": chart "charts/x.tgz" does not exist`}},
		"a version":             {"{chart: charts/web, version: 1.0.0}", []string{`4:62: error: task "c": version has no effect, because the chart is in the package`}},
		"a digest":              {"{chart: charts/web, digest: x}", []string{`4:62: error: task "c": digest has no effect, because the chart is in the package`}},
		"no version":            {"{chart: web, repository: 'https://charts.example.com'}", []string{`4:36: error: task "c": version is required for a chart from a repository`}},
		"a constraint":          {"{chart: web, repository: 'https://charts.example.com', version: 1.x}", []string{`4:97: error: task "c": version "1.x" is not exact`}},
		"a digest that is none": {"{chart: 'oci://registry.example.com/web', version: 1.0.0, digest: x}", []string{`4:100: error: task "c": digest "x" is not sha256:`}},
		"a tag":                 {"{chart: 'oci://registry.example.com/web:1.0.0', version: 1.0.0}", []string{`4:43: error: task "c": chart contains a tag or a digest`}},
		"a URL":                 {"{chart: 'https://charts.example.com/web', version: 1.0.0}", []string{`4:43: error: task "c": chart is a URL: set chart to the name`}},
		"two repositories":      {"{chart: 'oci://registry.example.com/web', repository: 'https://charts.example.com', version: 1.0.0}", []string{`4:84: error: task "c": repository is set twice`}},
		"a name for repository": {"{chart: web, repository: example, version: 1.0.0}", []string{`4:55: error: task "c": "example" is no URL of a repository`}},
		"credentials":           {"{chart: web, repository: 'https://a:b@charts.example.com', version: 1.0.0}", []string{`4:55: error: task "c": the URL contains credentials`}},
		"a path in repository":  {"{chart: charts/web, repository: 'https://charts.example.com', version: 1.0.0}", []string{`4:43: error: task "c": chart "charts/web": "charts/web" is not the name of a chart`}},
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

// renderYAML returns a function that renders a chart of one template, like Helm. The template may fail.
func renderYAML(t *testing.T, source string) func(values string) (release.Rendering, error) {
	parsed, err := template.New("a.yaml").Funcs(template.FuncMap{
		"quote": strconv.Quote, "fail": func() (string, error) { return "", errors.New("not accepted") },
		"toJson": func(v any) (string, error) { encoded, err := json.Marshal(v); return string(encoded), err },
	}).Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	return func(values string) (release.Rendering, error) {
		var decoded map[string]any
		if err := json.Unmarshal([]byte(values), &decoded); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := parsed.Execute(&out, decoded); err != nil {
			return release.Rendering{}, err
		}
		var rendering release.Rendering
		for document := range strings.SplitSeq(out.String(), "\n---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				return release.Rendering{}, fmt.Errorf("%w: %w", release.ErrInvalidOutput, err)
			}
			rendering.Objects = append(rendering.Objects, release.Object{Source: "a.yaml", Object: object})
		}
		return rendering, nil
	}
}

func TestVerifyTriesHostileValuesOnCharts(t *testing.T) {
	const text, list, object = `{name: P, default: a}`, `{name: P, type: array, default: '[]'}`, `{name: P, type: map, default: '{}'}`
	for sentence, test := range map[string]struct {
		parameters, template string
		// want is what the warnings say after "parameter".
		want []string
	}{
		"a quoted text":            {text, "a: {{ quote .p }}", nil},
		"a text in JSON":           {text, "a: {{ toJson .p }}", nil},
		"a map in JSON":            {object, "a: {{ toJson .p }}", nil},
		"a text without quotes":    {text, "a: {{ .p }}", []string{`"P": a value such as "x\ny: z" changes the structure of what the chart renders (a.yaml: : the object has 2 keys instead of 1), and is rejected: `}},
		"a text in a comment":      {text, "a: b # {{ .p }}", []string{`"P": a value such as "x\ny: z" changes the structure `}},
		"a text in other quotes":   {text, "a: '{{ .p }}'", []string{`"P": a value such as "x\n---\ny: z" makes the chart render invalid YAML (the chart renders invalid YAML: `}},
		"an item without quotes":   {list, "a:{{ range .p }}\n- {{ . }}{{ end }}", []string{`"P": a value such as "x\ny: z" `}},
		"a key without quotes":     {object, "a:{{ range $k, $v := .p }}\n  {{ $k }}: {{ quote $v }}{{ end }}", []string{`"P": a value such as "x\ny: z" `}},
		"the default of an enum":   {`{name: P, default: a, enum: [a, b]}`, "a: {{ .p }}", nil},
		"an integer":               {`{name: P, type: integer, default: 1}`, "a: {{ .p }}", nil},
		"a text that is confirmed": {`{name: P, default: a, structure: true}`, "a: {{ .p }}", nil},
		"an unused text":           {`{name: P, default: a}, {name: Q, default: a}`, "a: {{ quote .p }}", nil},
		"a text that the chart checks": {text + `, {name: Q, default: a}`, `a: {{ if ne .p "a" }}{{ fail }}{{ end }}` + "\nb: {{ .q }}",
			[]string{`"Q": a value such as "x\ny: z" `}},
		"a default that is not accepted": {text, `a: {{ if eq .p "a" }}{{ fail }}{{ end }}{{ .p }}`, nil},
		"one of many": {`{name: P, default: a}, {name: Q, default: a}, {name: R, default: a}`, "a: {{ quote .p }}\nb: '{{ .q }}'\nc: {{ quote .r }}",
			[]string{`"Q": a value such as "x\n---\ny: z" `}},
		"a claim in quotes":      {text, "a: {{ quote .claim }}", nil},
		"a claim without quotes": {text, "a: {{ .claim }}", []string{`.Cluster.Claims of the cluster: a value such as "x\ny: z" changes the structure `}},
		"texts together":         {`{name: P, default: a}, {name: Q, default: a}`, "a: {{ quote .p }}\nb: {{ quote .q }}\n{{ if and (ne .p `a`) (ne .q `a`) }}{{ fail }}{{ end }}", nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			values := "p: {{ toYaml .Params.P | nindent 2 }}\n"
			if strings.Contains(test.template, ".claim") {
				values += "claim: {{ index .Cluster.Claims \"id\" | quote }}\n"
			}
			for _, name := range []string{"Q", "R"} {
				if strings.Contains(test.parameters, "name: "+name) {
					values += strings.ToLower(name) + ": {{ .Params." + name + " | quote }}\n"
				}
			}
			p, problems := Load(fstest.MapFS{
				"operator.yaml": {Data: []byte("apiVersion: kudo.dev/v1beta1\nname: app\noperatorVersion: 1.0.0\ntasks: [{name: c, kind: Helm, spec: {chart: web, valuesFile: v.yaml}}]\n" +
					"plans: {deploy: {phases: [{name: a, steps: [{name: a, tasks: [c]}]}]}}\n")},
				"params.yaml":      {Data: []byte("apiVersion: kudo.dev/v1beta1\nparameters: [" + test.parameters + "]\n")},
				"templates/v.yaml": {Data: []byte(values)},
				"web/Chart.yaml":   {},
			})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			got := p.TryChartValues(0, renderYAML(t, test.template))
			if len(got) != len(test.want) {
				t.Fatal(cmp.Diff(test.want, got))
			}
			for i := range got {
				want := `operator.yaml:4:38: warning: task "c": chart "web": parameter ` + test.want[i]
				if strings.HasPrefix(test.want[i], ".Cluster") {
					want = strings.Replace(want, "parameter ", "", 1)
				}
				if !strings.HasPrefix(got[i].String(), want) {
					t.Errorf("got %s, want %s", got[i].String(), want)
				}
			}
		})
	}
}

func TestHostileValuesOfManyParametersAreTriedInFewRenderings(t *testing.T) {
	const parameters, checked = 100, 10
	var defs, values, rendered strings.Builder
	for i := range parameters {
		fmt.Fprintf(&defs, "{name: P%d, default: a}, ", i)
		fmt.Fprintf(&values, "p%d: {{ .Params.P%d | quote }}\n", i, i)
		if i < checked {
			fmt.Fprintf(&rendered, "{{ if ne .p%d `a` }}{{ fail }}{{ end }}", i)
		}
		fmt.Fprintf(&rendered, "p%d: {{ quote .p%d }}\n", i, i)
	}
	p, problems := Load(fstest.MapFS{
		"operator.yaml": {Data: []byte("apiVersion: kudo.dev/v1beta1\nname: app\noperatorVersion: 1.0.0\ntasks: [{name: c, kind: Helm, spec: {chart: web, valuesFile: v.yaml}}]\n" +
			"plans: {deploy: {phases: [{name: a, steps: [{name: a, tasks: [c]}]}]}}\n")},
		"params.yaml":      {Data: []byte("apiVersion: kudo.dev/v1beta1\nparameters: [" + defs.String() + "]\n")},
		"templates/v.yaml": {Data: []byte(values.String())}, "web/Chart.yaml": {},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	count, render := 0, renderYAML(t, rendered.String())
	got := p.TryChartValues(0, func(values string) (release.Rendering, error) {
		count++
		return render(values)
	})
	if len(got) > 0 || count >= maxTrials {
		t.Errorf("got %v with %d renderings", got, count)
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

func TestReleasesHaveNamesOfTheirOwn(t *testing.T) {
	spec := kudo.OperatorVersionSpec{Content: []kudo.ContentFile{{File: "web.tgz"}}}
	for _, name := range []string{"a", "b", "c", "d"} {
		task := kudo.Task{Name: name, Kind: kudo.TaskHelm}
		task.Spec.Chart = "web.tgz"
		spec.Tasks = append(spec.Tasks, task)
	}
	spec.Tasks[1].Spec.ReleaseName, spec.Tasks[2].Spec.ReleaseName = "x", "x"
	var got []string
	for _, problem := range helmTasks(newSubject(&spec)) {
		got = append(got, problem.Message)
	}
	const same = `: the release has the same name as that of task `
	if diff := cmp.Diff([]string{`task "c"` + same + `"b": set another releaseName`, `task "d"` + same + `"a": set another releaseName`}, got); diff != "" {
		t.Error(diff)
	}
}
