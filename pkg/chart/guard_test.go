package chart

import (
	"encoding/json"
	"strings"
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/release"
)

// TestValuesStayValues renders a chart that inserts a value of a parameter in the ways of public charts.
func TestValuesStayValues(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"
	careful := folder{
		"templates/quoted.yaml": object + "  quoted: {{ .Values.v | quote }}\n",
		"templates/yaml.yaml":   object + "  {{- toYaml (dict \"v\" .Values.v) | nindent 2 }}\n",
		"templates/block.yaml":  object + "  block: |\n{{ .Values.v | indent 4 }}\n",
		"templates/json.yaml":   object + "  config: {{ dict \"v\" .Values.v | toJson | quote }}\n",
		"templates/sum.yaml":    object + "  sum: {{ .Values.v | sha256sum }}\n  first: {{ .Values.v | trunc 3 | quote }}\n",
		"templates/if.yaml":     "{{- if .Values.v }}\n" + object + "  length: {{ len .Values.v | quote }}\n{{- end }}\n",
		"templates/hook.yaml":   strings.Replace(object, "name: a", "name: h, annotations: {helm.sh/hook: pre-install}", 1) + "  v: {{ .Values.v | quote }}\n",
	}
	raw := folder{"templates/raw.yaml": object + "  raw: {{ .Values.v }}\n  last: x\n"}
	loose := folder{"templates/loose.yaml": object + "  loose: \"{{ .Values.v }}\"\n  last: x\n"}
	document := folder{"templates/a.yaml": "{{ .Values.v }}\n", "templates/b.yaml": object}
	executed := folder{"templates/a.yaml": object + "  v: {{ tpl .Values.v . | quote }}\n"}

	const pem = "-----BEGIN CERTIFICATE-----\nMIIB+TCCAZ+gAwIBAgIUE\n-----END CERTIFICATE-----\n"
	for sentence, test := range map[string]struct {
		chart folder
		value string
		want  string
	}{
		"a schedule":                       {careful, "*/5 * * * *", ""},
		"a URL":                            {careful, "https://user@example.com:8443/a?b=c&d=#e", ""},
		"JSON":                             {careful, `{"a": ["b", {"c: d": null}]}`, ""},
		"a certificate":                    {careful, pem, ""},
		"a regular expression":             {careful, `^(a|b)\.[c-e]{2}: "#'$`, ""},
		"YAML":                             {careful, "a:\n- b: 'c'\n---\nd", ""},
		"a flag":                           {careful, "--log-level=debug", ""},
		"Windows lines":                    {careful, "a\r\nb", ""},
		"a plain value":                    {raw, "web-1.2", ""},
		"a flag, not quoted":               {raw, "--log-level=debug", ""},
		"a URL, not quoted":                {raw, "https://example.com/a?b=c", ""},
		"a schedule in quotes":             {loose, "*/5 * * * *", ""},
		"a field":                          {raw, "x\n  injected: y", "data has 3 keys instead of 2"},
		"another section":                  {raw, "x\nbinaryData:", "the object has 5 keys instead of 4"},
		"another object":                   {raw, "x\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\ndata:", "another object in place of the ConfigMap"},
		"a map":                            {raw, "{a: b}", "data.raw is a map instead of a scalar"},
		"the end of quotes":                {loose, "x\"\n  injected: \"y", "data has 3 keys instead of 2"},
		"the end of the document":          {document, "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\n", "plain ones of the same length"},
		"the end of the document, hidden":  {document, "#\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n", "plain ones of the same length"},
		"a hook":                           {raw, "x\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: b, annotations: {helm.sh/hook: pre-delete}}\ndata:", "1 hook instead of 0"},
		"an action":                        {executed, "{{ .Release.Name }}", `the value of parameter "V" contains {{`},
		"the value of another field, kept": {raw, "x # ", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			archive := test.chart.archive(t)
			render := func(values map[string]string) (release.Rendering, error) {
				given, err := json.Marshal(map[string]string{"v": values["V"]})
				if err != nil {
					t.Fatal(err)
				}
				out, err := renderer(t).Render(t.Context(), input(archive, string(given)), nothing)
				if err != nil {
					return release.Rendering{}, err
				}
				return *out, nil
			}
			values := map[string]string{"V": test.value}
			guard, err := release.NewGuard([]kudo.Parameter{{Name: "V"}}, values)
			if err == nil {
				var out release.Rendering
				if out, err = render(values); err != nil {
					t.Fatal(err)
				}
				err = guard.Check(out, render)
			}
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}
