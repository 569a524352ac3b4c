package bundle

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/pkg/bundle/bundletest"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

// TestMain makes the test's program also the one that renders charts.
func TestMain(m *testing.M) {
	chart.ServeChild()
	os.Exit(m.Run())
}

// noise returns a text that gzip cannot compress much.
func noise(size int) string {
	random := rand.New(rand.NewPCG(1, 2))
	bytes := make([]byte, size)
	for i := range bytes {
		bytes[i] = byte(random.Uint32())
	}
	return string(bytes)
}

func TestVerifyRendersCharts(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"
	const at, not = `app/operator.yaml:4:38: `, `task "c": chart "web" does not render with the default parameters: `
	const operator = "apiVersion: kudo.dev/v1beta1\nname: app\noperatorVersion: 1.0.0\ntasks: [{name: c, kind: Helm, spec: {chart: web, valuesFile: values.yaml}}]\nplans:\n" +
		"  deploy: {phases: [{name: a, steps: [{name: a, tasks: [c]}]}]}\n"
	for sentence, test := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"a chart": {nil, nil},
		"a template that fails": {map[string]string{"web/templates/a.yaml": object + "  a: {{ .Values.color.name }}\n"},
			[]string{at + "error: " + not + `web/templates/a.yaml:5:15`}},
		"a template that may fail": {map[string]string{"web/templates/a.yaml": object + "  a: {{ (lookup \"v1\" \"Secret\" \"\" \"x\").data.a.b }}\n"},
			[]string{at + "warning: " + not + `web/templates/a.yaml:5:`}},
		"a template that fails with a sample": {map[string]string{"params.yaml": "apiVersion: kudo.dev/v1beta1\nparameters: [{name: COLOR}]\n", "web/templates/a.yaml": "{{ fail .Values.color }}"},
			[]string{at + "warning: " + not + `execution error at (web/templates/a.yaml:1:3): x`}},
		"YAML that is none":  {map[string]string{"web/templates/a.yaml": "a: {{ .Values.color }}: b\n"}, []string{at + "error: " + not + `YAML parse error on web/templates/a.yaml`}},
		"a missing subchart": {map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: [{name: db, version: 1.0.0}]\n"}, []string{at + `error: task "c": chart "web": chart "web": dependency "db" is in Chart.yaml, but not in folder charts, and it has no repository: run 'helm dependency build'`}},
		"a schema that the values violate": {map[string]string{"web/values.schema.json": `{"properties": {"color": {"enum": ["blue"]}}}`},
			[]string{at + "error: " + not + `the values do not conform to the schema: chart "web": - at '/color': value must be 'blue'`}},
		"another version of Kubernetes": {map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\nkubeVersion: <1.20\n"},
			[]string{at + "warning: " + not + `chart "web" requires Kubernetes <1.20`}},
		"a version of Kubernetes that is none": {map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\nkubeVersion: new\n"},
			[]string{at + `error: task "c": chart "web": kubeVersion in Chart.yaml is no constraint such as >=1.25.0-0: improper constraint`}},
		"an unknown hook": {map[string]string{"web/templates/a.yaml": strings.Replace(object, "name: a", "name: a, annotations: {helm.sh/hook: pre-instal}", 1)},
			[]string{at + `warning: task "c": chart "web": web/templates/a.yaml: ConfigMap "a" is omitted, because Helm has no hook "pre-instal"`}},
		"a values file that is a list": {map[string]string{"templates/values.yaml": "[{{ .Params.COLOR | quote }}]\n"},
			[]string{`app/templates/values.yaml:1: warning: does not render with the default parameters: document 1, line 1 of the rendered text: must contain the chart's values, an object, got a list`}},
		"an upgrade that fails": {map[string]string{"web/templates/a.yaml": "{{ if .Release.IsUpgrade }}{{ fail .Values.color }}{{ end }}"},
			[]string{at + `error: task "c": chart "web" does not render with the default parameters at an upgrade: execution error at (web/templates/a.yaml:1:30): red`}},
		"an upgrade that may fail": {map[string]string{"web/templates/a.yaml": `{{ if and .Release.IsUpgrade (not (lookup "v1" "Secret" "" "x")) }}{{ fail .Values.color }}{{ end }}`}, nil},
		"an object that is rendered twice": {map[string]string{"web/templates/b.yaml": object, "web/templates/c.yaml": object},
			[]string{at + `error: task "c": chart "web": web/templates/c.yaml: ConfigMap a is also rendered by web/templates/b.yaml: the chart has to name them differently`}},
		"plan cleanup": {map[string]string{"operator.yaml": operator + "  cleanup: {phases: [{name: a, steps: [{name: a, tasks: [c]}]}]}\n"},
			[]string{`app/operator.yaml:7:58: error: plan cleanup, step "a": task "c": a Helm task cannot be part of plan cleanup, because charts are removed after that plan: remove the task from the plan`}},
		"charts that are too large together": {map[string]string{"operator.yaml": strings.Replace(operator, "}}]", "}}, {name: d, kind: Helm, spec: {chart: db, releaseName: db}}]", 1),
			"web/a": noise(9 << 20), "db/a": noise(9 << 20), "db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n"},
			[]string{`app/operator.yaml:4:78: warning: task "d" is not used by any step`, `app/operator.yaml: error: charts and large templates have more than 16777216 bytes in total: split the operator; the largest is "`}},
		"an invalid .helmignore": {map[string]string{"web/.helmignore": "**"}, []string{at + `error: task "c": chart "web": reading .helmignore: double-star`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			l := &Loader{}
			l.Begin()
			b, err := l.LoadFrom(context.Background(), source{Name: "app", Archive: bundletest.WithChart(test.files), folder: "."})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Split(strings.TrimSuffix(b.ProblemsText(), "\n"), "\n")
			if len(test.want) == 0 {
				test.want = []string{""}
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

func TestVerifyTriesHostileValuesInCharts(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"
	const at = `app/operator.yaml:4:38: warning: task "c": chart "web": parameter `
	const wayOut = ", and is rejected: insert it with quote or toYaml in the chart, restrict the parameter with type or enum, or allow every value with structure: true"
	schema := `{"properties": {"color": {"pattern": "^[a-z]+$"}}}`
	for sentence, test := range map[string]struct {
		parameters, values, template, schema string
		want                                 []string
	}{
		"quoted": {"{name: P, default: red}", "p: {{ .Params.P | quote }}", head + "  p: {{ .Values.p | quote }}\n", "", nil},
		"not quoted": {"{name: P, default: red}, {name: Q, default: red}, {name: R, required: false, sensitive: true}",
			"p: {{ .Params.P | quote }}\nq: {{ .Params.Q | quote }}\nr: {{ .Params.R | quote }}\n",
			head + "  p: {{ .Values.p | quote }}\n  q: {{ .Values.q }}\n  r: {{ .Values.r }}\n", "", []string{
				at + `"Q": a value such as "x\ny: z" makes the chart render invalid YAML (YAML parse error on web/templates/a.yaml: error converting YAML to JSON: yaml: ` +
					`line 8: mapping values are not allowed in this context)` + wayOut,
				at + `"R": a value such as "x\ny: z" changes the structure of what the chart renders (web/templates/a.yaml: ConfigMap: the object has 5 keys instead of 4)` + wayOut}},
		"a schema that allows none": {"{name: P, default: red}, {name: Q, default: red}", "color: {{ .Params.P | quote }}\nq: {{ .Params.Q | quote }}\n",
			head + "  p: {{ .Values.color }}\n  q: {{ .Values.q }}\n", schema, []string{at + `"Q": a value such as "x\ny: z" changes `}},
	} {
		t.Run(sentence, func(t *testing.T) {
			files := bundletest.WithChart(map[string]string{"params.yaml": "apiVersion: kudo.dev/v1beta1\nparameters: [" + test.parameters + "]\n",
				"templates/values.yaml": test.values, "web/templates/a.yaml": test.template})
			if test.schema != "" {
				files["web/values.schema.json"] = &fstest.MapFile{Data: []byte(test.schema)}
			}
			l := &Loader{TryValues: true}
			l.Begin()
			b, err := l.LoadFrom(context.Background(), source{Name: "app", Archive: files, folder: "."})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Split(strings.TrimSuffix(b.ProblemsText(), "\n"), "\n")
			if len(test.want) == 0 {
				test.want = []string{""}
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

func TestChartsAreInTarballs(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(folder, bundletest.WithChart(nil)); err != nil {
		t.Fatal(err)
	}
	files := os.DirFS(folder)
	l := &Loader{}
	b, err := l.LoadFolder(context.Background(), folder, files)
	if err != nil {
		t.Fatal(err)
	}
	content, _, err := b.Tarball(files)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, _, err := pack.Archive(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	l = &Loader{}
	l.Begin()
	if b, err = l.LoadFrom(context.Background(), source{Name: "app.tgz", Archive: unpacked, folder: "."}); err != nil || b.ProblemsText() != "" {
		t.Errorf("got error %v and problems %s", err, b.ProblemsText())
	}
}
