package packages

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

// TestMain makes the test's program also the one that renders charts.
func TestMain(m *testing.M) {
	chart.ServeChild()
	os.Exit(m.Run())
}

// charted returns a package with a chart, with some files replaced.
func charted(replaced map[string]string) fstest.MapFS {
	texts := map[string]string{
		"operator.yaml": "apiVersion: kudo.dev/v1beta1\nname: app\noperatorVersion: 1.0.0\n" +
			"tasks: [{name: c, kind: Helm, spec: {chart: web, valuesFile: values.yaml}}]\nplans: {deploy: {phases: [{name: a, steps: [{name: a, tasks: [c]}]}]}}\n",
		"params.yaml":           "apiVersion: kudo.dev/v1beta1\nparameters: [{name: COLOR, default: red}]\n",
		"templates/values.yaml": "color: {{ .Params.COLOR | quote }}\n",
		"web/Chart.yaml":        "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"web/templates/a.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata:\n  color: {{ .Values.color | quote }}\n",
	}
	maps.Copy(texts, replaced)
	files := fstest.MapFS{}
	for name, text := range texts {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

func TestVerifyRendersCharts(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"
	const at, not = `app/operator.yaml:4:38: `, `task "c": chart "web" does not render with the default parameters: `
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
		"a missing subchart": {map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: [{name: db, version: 1.0.0}]\n"}, []string{at + "error: " + not + `chart "web": dependency "db"`}},
		"a schema that the values violate": {map[string]string{"web/values.schema.json": `{"properties": {"color": {"enum": ["blue"]}}}`},
			[]string{at + "error: " + not + `the values do not conform to the schema: chart "web": - at '/color': value must be 'blue'`}},
		"another version of Kubernetes": {map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\nkubeVersion: <1.20\n"},
			[]string{at + "warning: " + not + `chart "web" requires Kubernetes <1.20`}},
		"an unknown hook": {map[string]string{"web/templates/a.yaml": strings.Replace(object, "name: a", "name: a, annotations: {helm.sh/hook: pre-instal}", 1)},
			[]string{at + `warning: task "c": chart "web": web/templates/a.yaml: ConfigMap "a" is omitted, because Helm has no hook "pre-instal"`}},
		"a values file that is a list": {map[string]string{"templates/values.yaml": "[{{ .Params.COLOR | quote }}]\n"},
			[]string{`app/templates/values.yaml:1: warning: does not render with the default parameters: document 1, line 1 of the rendered text: must contain the chart's values, an object, got a list`}},
		"an invalid .helmignore": {map[string]string{"web/.helmignore": "**"}, []string{at + `error: task "c": chart "web": reading .helmignore: double-star`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			l := &loader{}
			l.begin()
			b, err := l.loadFrom(context.Background(), source{name: "app", archive: charted(test.files), folder: "."})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Split(strings.TrimSuffix(b.problemsText(), "\n"), "\n")
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
	if err := os.CopyFS(folder, charted(nil)); err != nil {
		t.Fatal(err)
	}
	files := os.DirFS(folder)
	l := &loader{}
	b, err := l.loadFolder(context.Background(), folder, files)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "app.tgz")
	if _, err := writeTarball(file, b, files); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, _, err := pack.Archive(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	l = &loader{}
	l.begin()
	if b, err = l.loadFrom(context.Background(), source{name: "app.tgz", archive: unpacked, folder: "."}); err != nil || b.problemsText() != "" {
		t.Errorf("got error %v and problems %s", err, b.problemsText())
	}
}
