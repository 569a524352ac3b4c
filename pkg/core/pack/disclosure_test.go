package pack

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestVerifyRefusesTemplatesThatDiscloseSensitiveParameters(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}\n"
	const decides = "templates/a.yaml:%s: error: sensitive parameter \"S\" decides about more than text inside of a field, such as which objects or " +
		"fields there are, which is no secret: only whether it is set may decide that, as in {{ if .Params.NAME }}"
	const names = "templates/a.yaml:%s: error: sensitive parameter \"S\" is part of the name or namespace of an object, which is no secret: " +
		"use another parameter there"
	const unmet = "templates/a.yaml:%s: warning: the condition depends on the value of a sensitive parameter, and is not met by any value that " +
		"verification tries for other parameters: the agent refuses it if it decides about more than text inside of a field"
	for name, test := range map[string]struct{ template, problem, line string }{
		"an object that it enables":             {"{{ if .Params.S }}" + object + "{{ end }}", "", ""},
		"text in a field":                       {object + "data:\n  tls: \"{{ if hasPrefix `https` .Params.S }}on{{ end }}\"\n", "", ""},
		"a name that it is part of":             {"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Params.S | sha256sum | trunc 8 }}\n", names, "4"},
		"a name that a part of it selects":      {"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}{{ if eq (substr 0 1 .Params.S) `a` }}a{{ end }}\n", decides, "4"},
		"a part of a likely value as a name":    {"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ index (splitList `:` .Params.S) 2 | b64enc }}\n", names, "4"},
		"an object that a part of it selects":   {object + "{{ if eq (substr 0 1 .Params.S) `a` }}\n---\n" + object + "{{ end }}\n", decides, "5"},
		"a field that a part of it selects":     {object + "{{ if eq (substr 0 1 .Params.S) `a` }}\ndata: {a: b}\n{{ end }}\n", decides, "5"},
		"a condition under a boolean parameter": {object + "{{ if .Params.B }}{{ if hasPrefix `a` .Params.S }}\ndata: {a: b}\n{{ end }}{{ end }}\n", decides, "5"},
		"a condition under an optional one":     {object + "{{ if .Params.O }}{{ if hasPrefix `a` .Params.S }}\ndata: {a: b}\n{{ end }}{{ end }}\n", decides, "5"},
		"a condition that is not met":           {object + "{{ if eq .Params.E `c` }}{{ if hasPrefix `a` .Params.S }}\ndata: {a: b}\n{{ end }}{{ end }}\n", unmet, "5"},
		"an assertion that is not met":          {object + "{{ if eq .Params.E `c` }}{{ if lt (len .Params.S) 8 }}{{ fail `too short` }}{{ end }}{{ end }}\n", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := Load(fstest.MapFS{
				"operator.yaml": {Data: []byte("apiVersion: kudo.dev/v1beta1\nname: app\noperatorVersion: 1.0.0\n" +
					"tasks: [{name: a, kind: Apply, spec: {resources: [a.yaml]}}]\nplans: {deploy: {phases: [{name: a, steps: [{name: a, tasks: [a]}]}]}}\n")},
				"params.yaml": {Data: []byte("apiVersion: kudo.dev/v1beta1\nparameters:\n- {name: S, sensitive: true}\n" +
					"- {name: B, type: boolean, default: \"false\"}\n- {name: O, required: false}\n- {name: E, default: b, enum: [a, b, c]}\n")},
				"templates/a.yaml": {Data: []byte(test.template)},
			})
			var want, got []string
			if test.problem != "" {
				want = append(want, fmt.Sprintf(test.problem, test.line))
			}
			for _, problem := range p.Verify() {
				if text := problem.String(); strings.HasPrefix(text, "templates") && !strings.Contains(text, "does not render") {
					got = append(got, text)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestVerifyRefusesParameterFilesThatDiscloseSensitiveParameters(t *testing.T) {
	p, _ := Load(fstest.MapFS{
		"operator.yaml": {Data: []byte("apiVersion: kudo.dev/v1beta1\nname: app\noperatorVersion: 1.0.0\n" +
			"tasks: [{name: b, kind: KudoOperator, spec: {package: other, parameterFile: file.yaml}}]\n" +
			"plans: {deploy: {phases: [{name: a, steps: [{name: a, tasks: [b]}]}]}}\n")},
		"params.yaml":         {Data: []byte("apiVersion: kudo.dev/v1beta1\nparameters: [{name: S, sensitive: true}]\n")},
		"templates/file.yaml": {Data: []byte("A: x{{ .Params.S }}\n")},
	})
	got := Errors(p.Verify())
	const want = `templates/file.yaml: error: sensitive parameter "S" can only be passed on as a whole`
	if len(got) != 1 || !strings.HasPrefix(got[0].String(), want) {
		t.Errorf("got %v", got)
	}
}
