package pack

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestVerifyTriesHostileValuesInPodsAndParameterFiles(t *testing.T) {
	p, _ := Load(fstest.MapFS{
		"operator.yaml": {Data: []byte("apiVersion: kudo.dev/v1beta1\nname: app\noperatorVersion: 1.0.0\n" +
			"tasks:\n- {name: a, kind: Pipe, spec: {pod: pod.yaml, pipe: [{file: /v/a, kind: Secret, key: a}]}}\n" +
			"- {name: b, kind: KudoOperator, spec: {package: other, parameterFile: file.yaml}}\n" +
			"plans: {deploy: {phases: [{name: a, steps: [{name: a, tasks: [a, b]}]}]}}\n")},
		"params.yaml": {Data: []byte("apiVersion: kudo.dev/v1beta1\nparameters: [{name: P, default: a}, {name: F, default: a}, " +
			"{name: M, type: map, default: '{}'}, {name: L, type: array, default: '[]'}]\n")},
		"templates/pod.yaml": {Data: []byte("apiVersion: v1\nkind: Pod\nspec:\n  volumes: [{name: v, emptyDir: {}}]\n" +
			"  initContainers:\n  - {name: a, image: a, volumeMounts: [{name: v, mountPath: /v}]}\n  nodeName: {{ .Params.P }}\n" +
			"  message: |\n    {{ toYaml .Params.M }}\n")},
		"templates/file.yaml": {Data: []byte("A: {{ .Params.F }}\nB: |\n  {{ toYaml .Params.L }}\n")},
	})
	const change = `a value such as "x\ny: z" would change the structure of the rendered YAML, and is rejected: ` +
		"insert it with quote or toYaml, or with indent in a block of text"
	const structure = " would change the structure of the rendered YAML, and is rejected: insert it with quote, with toYaml and nindent, or with indent in a block of text"
	want := []string{
		`templates/file.yaml:1: warning: parameter "F": ` + change,
		`templates/file.yaml:3: warning: parameter "L": a value such as "[x, y]"` + structure,
		`templates/pod.yaml:7: warning: parameter "P": ` + change,
		`templates/pod.yaml:9: warning: parameter "M": a value such as "{x: x, y: y}"` + structure,
	}
	got := []string{}
	for _, problem := range p.VerifyValues() {
		got = append(got, problem.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestVerifyTriesHostileValues(t *testing.T) {
	const operator = "apiVersion: kudo.dev/v1beta1\nname: app\noperatorVersion: 1.0.0\n" +
		"tasks: [{name: a, kind: Apply, spec: {resources: [a.yaml]}}]\n" +
		"plans: {deploy: {phases: [{name: a, steps: [{name: a, tasks: [a]}]}]}}\n"
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}\n"
	for name, test := range map[string]struct{ parameter, data, want string }{
		"a plain text":                {"", "data:\n  a: {{ .Params.P }}\n", `:6: a value such as "x\ny: z" would change the structure of the rendered YAML, and is rejected: insert it with quote or toYaml, or with indent in a block of text`},
		"a plain number":              {`, default: "3"`, "data:\n  a: {{ .Params.P }}\n", `:6: a value such as "x\ny: z" would change the structure of the rendered YAML, and is rejected: set type: integer, or insert it with quote or toYaml`},
		"a text in other quotes":      {"", "data: {a: '{{ .Params.P }}'}\n", `:5: a value such as "x\n---\ny: z" would change the structure of the rendered YAML, and is rejected: insert it with quote or toYaml, or with indent in a block of text`},
		"a line of a block":           {"", "data:\n  a: |\n    {{ .Params.P }}\n", `:7: a value such as "x\ny: z" would change the structure of the rendered YAML, and is rejected: insert it with quote or toYaml, or with indent in a block of text`},
		"a comment":                   {"", "# {{ .Params.P }}\n", `:5: a value such as "x\ny: z" would change the structure of the rendered YAML, and is rejected: insert it with quote or toYaml, or with indent in a block of text`},
		"an item":                     {", type: array", "data:\n{{ range .Params.P }}  - {{ . }}\n{{ end }}", `:6: a value such as "x\ny: z" would change the structure of the rendered YAML, and is rejected: insert it with quote, with toYaml and nindent, or with indent in a block of text`},
		"a key":                       {", type: map", "data:\n{{ range $k, $v := .Params.P }}  {{ $k }}: {{ $v | quote }}\n{{ end }}", `:6: a value such as "x\ny: z" would change the structure of the rendered YAML, and is rejected: insert it with quote, with toYaml and nindent, or with indent in a block of text`},
		"a default that is YAML":      {`, default: "{a: b}"`, "data: {{ .Params.P }}\n", `:5: the default changes the structure of the rendered YAML, so any value may: insert it with toYaml, or set structure: true to confirm it`},
		"a map that is not indented":  {", type: map, default: '{}'", "  annotations:\n    a: |\n      {{ toYaml .Params.P }}\n", `:7: a value such as "{x: x, y: y}" would change the structure of the rendered YAML, and is rejected: insert it with quote, with toYaml and nindent, or with indent in a block of text`},
		"a list that is not indented": {", type: array, default: '[]'", "data:\n- a: |\n    {{ toYaml .Params.P }}\n", `:7: a value such as "[x, y]" would change the structure of the rendered YAML, and is rejected: insert it with quote, with toYaml and nindent, or with indent in a block of text`},
		"a map in a block":            {", type: map, default: '{}'", "data:\n  a: |\n    {{ toYaml .Params.P | nindent 4 }}\n", ""},
		"a map beside others":         {", type: map, default: '{}'", "data:\n  a: b\n{{ if .Params.P }}{{ toYaml .Params.P | indent 2 }}{{ end }}\n", ""},
		"a list beside others":        {", type: array, default: '[]'", "data:\n- a\n{{ if .Params.P }}{{ toYaml .Params.P }}{{ end }}\n", ""},
		"a quoted text":               {"", "data:\n  a: {{ .Params.P | quote }}\n", ""},
		"a text as YAML":              {"", "data:\n  a: {{ .Params.P | toYaml }}\n", ""},
		"a text in a block":           {"", "data:\n  a: |\n{{ .Params.P | indent 4 }}\n", ""},
		"a map as YAML":               {", type: map", "data: {{ .Params.P | toYaml | nindent 2 }}\n", ""},
		"a list as JSON":              {", type: array", "data: {{ .Params.P | toJson }}\n", ""},
		"an integer":                  {", type: integer", "data:\n  a: {{ .Params.P }}\n", ""},
		"an enum":                     {", enum: [x, y]", "data:\n  a: {{ .Params.P }}\n", ""},
		"YAML that is confirmed":      {`, structure: true, required: false`, "data:\n  a: {{ .Params.P }}\n", ""},
		"a condition":                 {"", "{{ if .Params.P }}data: {}{{ end }}\n", ""},
		"a text that must be set":     {", required: true", "data:\n  a: {{ .Params.P | quote }}\n", ""},
		"a text that is not quoted":   {", required: true", "data:\n  a: {{ .Params.P }}\n", `:6: a value such as "x\ny: z" would change the structure of the rendered YAML, and is rejected: insert it with quote or toYaml, or with indent in a block of text`},
	} {
		t.Run(name, func(t *testing.T) {
			required := ""
			if !strings.Contains(test.parameter, "required") && !strings.Contains(test.parameter, "default") {
				required = ", required: false"
			}
			p, _ := Load(fstest.MapFS{
				"operator.yaml":    {Data: []byte(operator)},
				"params.yaml":      {Data: []byte("apiVersion: kudo.dev/v1beta1\nparameters:\n- {name: P" + test.parameter + required + "}\n")},
				"templates/a.yaml": {Data: []byte(object + test.data)},
			})
			want := []string{}
			if test.want != "" {
				line, message, _ := strings.Cut(test.want, " ")
				want = append(want, `templates/a.yaml`+line+` warning: parameter "P": `+message)
			}
			got := []string{}
			for _, problem := range p.VerifyValues() {
				got = append(got, problem.String())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A package of KUDO's time has a hundred parameters that are not quoted: one line for each template and way out, not one for each parameter.
func TestVerifyCountsParametersWithTheSameProblem(t *testing.T) {
	var parameters, data strings.Builder
	for i := range 12 {
		fmt.Fprintf(&parameters, "- {name: PORT_%02d, default: \"3\"}\n", i)
		fmt.Fprintf(&data, "  p%d: {{ .Params.PORT_%02d }}\n", i, i)
	}
	p, _ := Load(fstest.MapFS{
		"operator.yaml": {Data: []byte("apiVersion: kudo.dev/v1beta1\nname: app\noperatorVersion: 1.0.0\n" +
			"tasks: [{name: a, kind: Apply, spec: {resources: [a.yaml, b.yaml]}}]\n" +
			"plans: {deploy: {phases: [{name: a, steps: [{name: a, tasks: [a]}]}]}}\n")},
		"params.yaml": {Data: []byte("apiVersion: kudo.dev/v1beta1\nparameters:\n" + parameters.String() +
			"- {name: A, default: a}\n- {name: B, default: b}\n- {name: C, default: c}\n- {name: D, default: '{c: d}'}\n- {name: E, default: '{a: b}'}\n")},
		"templates/a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}\ndata:\n  b: {{ .Params.B }}\n  a: {{ .Params.A }}\n" +
			data.String())},
		"templates/b.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}-b\n" +
			"  annotations: {{ .Params.D }}\nbinaryData: {{ .Params.E }}\ndata:\n  c: {{ .Params.C }}\n")},
	})
	const change = ` a value such as "x\ny: z" would change the structure of the rendered YAML, and is rejected: `
	want := []string{
		`templates/a.yaml:6: warning: 2 parameters: "B", "A":` + change + "insert it with quote or toYaml, or with indent in a block of text",
		`templates/a.yaml:8: warning: 12 parameters: "PORT_00", "PORT_01", "PORT_02", "PORT_03", "PORT_04", "PORT_05", "PORT_06", "PORT_07", "PORT_08", "PORT_09", and 2 more:` +
			change + "set type: integer, or insert it with quote or toYaml",
		`templates/b.yaml:5: warning: 2 parameters: "D", "E": the defaults change the structure of the rendered YAML, so any value may: insert it with toYaml, or set structure: true to confirm it`,
		`templates/b.yaml:8: warning: parameter "C":` + change + "insert it with quote or toYaml, or with indent in a block of text",
	}
	got := []string{}
	for _, problem := range p.VerifyValues() {
		got = append(got, problem.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestVerifyTriesHostileClaims(t *testing.T) {
	p, _ := Load(fstest.MapFS{
		"operator.yaml": {Data: []byte("apiVersion: kudo.dev/v1beta1\nname: app\noperatorVersion: 1.0.0\n" +
			"tasks: [{name: a, kind: Apply, spec: {resources: [a.yaml, b.yaml]}}]\n" +
			"plans: {deploy: {phases: [{name: a, steps: [{name: a, tasks: [a]}]}]}}\n")},
		"params.yaml":      {Data: []byte("apiVersion: kudo.dev/v1beta1\nparameters: []\n")},
		"templates/a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}-a\"}\ndata:\n  a: {{ index .Cluster.Claims \"id\" | quote }}\n")},
		"templates/b.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}-b\"}\ndata:\n  b: {{ index .Cluster.Claims \"id\" }}\n")},
	})
	got := []string{}
	for _, problem := range p.VerifyValues() {
		got = append(got, problem.String())
	}
	want := []string{
		`templates/b.yaml:5: warning: .Cluster.Claims of the cluster: a value such as "x\ny: z" would change the structure of the rendered YAML, and is rejected: ` +
			"insert it with quote, with toYaml and nindent, or with indent in a block of text",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
