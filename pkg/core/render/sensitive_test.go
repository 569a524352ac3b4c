package render_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

// confidential returns the context of a template with a sensitive parameter S that has a value, another one O that has none, and a plain one.
func confidential(text string) render.Context {
	return render.Context{
		Instance: "app", Namespace: "ns", Parameters: map[string]string{"P": "tandem-sensitive-0."}, Sensitive: map[string]string{"S": "hunter2"},
		Version: &kudo.OperatorVersionSpec{
			Templates: map[string]string{"t": text},
			Parameters: []kudo.Parameter{
				{Name: "S", Sensitive: new(true)}, {Name: "O", Sensitive: new(true), Required: new(false)}, {Name: "P"},
			},
		},
	}
}

func TestParameterFilesPassSensitiveParametersOn(t *testing.T) {
	type result struct{ values, passed map[string]string }
	for text, want := range map[string]result{
		"A: {{ .Params.S }}":                             {map[string]string{}, map[string]string{"A": "S"}},
		"A: \"{{ .Params.S }}\"\nB: {{ .Params.S }}":     {map[string]string{}, map[string]string{"A": "S", "B": "S"}},
		"A: {{ .Params.O }}\nB: b":                       {map[string]string{"B": "b"}, nil},
		"{{ if .Params.O }}A: {{ .Params.O }}{{ end }}":  {map[string]string{}, nil},
		"{{ if .Params.S }}A: {{ .Params.S }}{{ end }}":  {map[string]string{}, map[string]string{"A": "S"}},
		"A: {{ .Params.P }}":                             {map[string]string{"A": "tandem-sensitive-0."}, nil},
		"A: {{ .Params.P | quote }}\nB: {{ .Params.S }}": {map[string]string{"A": "tandem-sensitive-0."}, map[string]string{"B": "S"}},
	} {
		t.Run(text, func(t *testing.T) {
			values, passed, err := render.File(confidential(text), "t")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, result{values, passed}, cmp.AllowUnexported(result{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The time that it takes is in proportion to the length of the values.
func TestValuesThatLookLikeTokensArePassedOn(t *testing.T) {
	c := confidential("B: {{ .Params.S }}")
	c.Parameters["P"] = "tandem-sensitive-" + strings.Repeat("-", 500_000)
	_, passed, err := render.File(c, "t")
	if diff := cmp.Diff(map[string]string{"B": "S"}, passed); err != nil || diff != "" {
		t.Errorf("got %v: %s", err, diff)
	}
}

func TestParameterFilesDiscloseNoSensitiveParameter(t *testing.T) {
	for _, text := range []string{
		"A: x{{ .Params.S }}", "A: {{ .Params.S }}{{ .Params.S }}", "A: [{{ .Params.S }}]", "{{ .Params.S }}: a", "A: {{ .Params.S | b64enc }}",
		"A: {{ .Params.S | toString | sha256sum }}", "A: {{ len .Params.S }}", "{{ if eq .Params.S \"x\" }}A: a{{ end }}", "A: {{ toYaml .Params }}",
		"{{ $x := .Params.S }}A: {{ $x }}", "{{ range $k, $v := .Params }}{{ $k }}: {{ $v }}\n{{ end }}", "A: {{ index .Params \"S\" }}",
		"{{ with .Params }}A: {{ .S | upper }}{{ end }}", "{{ template \"x\" . }}{{ define \"x\" }}A: a{{ end }}", "{{ fail .Params.S }}",
	} {
		t.Run(text, func(t *testing.T) {
			values, passed, err := render.File(confidential(text), "t")
			var discloses *render.SensitiveError
			if !errors.As(err, &discloses) || len(discloses.Parameters) != 1 || discloses.Parameters[0] != "S" {
				t.Fatalf("got %v and %v, %v", values, passed, err)
			}
			if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "tandem-sensitive") {
				t.Error(err)
			}
		})
	}
}

func TestNamesOfObjectsDiscloseNoSensitiveParameter(t *testing.T) {
	for text, refused := range map[string]bool{
		"{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: {{ .Params.S | quote }}}}":                             false,
		"{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {a: {{ .Params.S | quote }}}}}":                                 false,
		"{apiVersion: v1, kind: Secret, metadata: {name: {{ .Params.P }}}}":                                                         false,
		"{apiVersion: v1, kind: Secret, metadata: {name: \"a{{ .Params.O }}\"}}":                                                    false,
		"{apiVersion: v1, kind: Secret, metadata: {name: {{ .Params.S }}}}":                                                         true,
		"{apiVersion: v1, kind: Secret, metadata: {name: \"a-{{ .Params.S | b64enc | lower }}\"}}":                                  true,
		"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: {{ .Params.S }}}}":                                           true,
		"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, metadata: {name: {{ .Params.S }}}}]}":                  true,
		"apiVersion: v1\nkind: Secret\nmetadata: {{ dict \"name\" .Params.S | toYaml | nindent 2 }}\n":                              true,
		"apiVersion: v1\nkind: Secret\nmetadata: {name: {{ index .Params \"S\" | sha256sum | trunc 8 | quote }}}\n":                 true,
		"{{ $x := .Params.S }}apiVersion: v1\nkind: Secret\nmetadata: {name: \"{{ $x }}\"}\n":                                       true,
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Params.S }}}\n": true,
	} {
		t.Run(text, func(t *testing.T) {
			_, err := render.Objects(confidential(text), "t")
			var discloses *render.SensitiveError
			if errors.As(err, &discloses) != refused || err != nil && !refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSensitiveParametersDecideAboutNoObject(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	const met, unmet = `{{ if hasPrefix "hunter" .Params.S }}`, `{{ if hasPrefix "x" .Params.S }}`
	for text, refused := range map[string]bool{
		// Whether it is set decides.
		object + "{{ if .Params.S }}---\n" + strings.Replace(object, "name: a", "name: b", 1) + "{{ end }}":           false,
		object + "{{ if not .Params.S }}data: {}{{ end }}{{ with .Params.S }}\ndata: {a: {{ . | quote }}}{{ end }}\n": false,
		object + "{{ if and .Params.P (ne .Params.S \"\") }}data: {a: b}{{ end }}":                                    false,
		object + "{{ if .Params.O }}data: {a: b}{{ end }}{{ if eq .Params.O \"x\" }}data: {a: c}{{ end }}":            false,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ if .Params.S }}a{{ else }}b{{ end }}}\n":                false,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ ternary \"a\" \"b\" (empty .Params.S) }}'}\n":          false,
		// It selects text inside of a field.
		object + "data: {tls: \"" + met + "true{{ else }}false{{ end }}\"}\n":                                                 false,
		object + "data: {tls: '" + unmet + "true{{ end }}'}\n":                                                                false,
		object + "data: {tls: " + met + "yes{{ else }}no{{ end }}}\n":                                                         false,
		object + "data: {tls: " + unmet + "\"yes\"{{ else }}\"no\"{{ end }}}\n":                                               false,
		object + "data:\n  a: |\n    b\n    " + met + "\n    tls = on\n    {{ end }}\n    c\n":                                false,
		object + "data:\n  a: |\n    b\n    " + unmet + "\n    tls = on\n    {{ end }}\n    c\n":                              false,
		object + "data:\n  a: |\n    b\n    {{- " + met[3:] + "\n    tls = on\n    {{- end }}\n    c\n":                       false,
		object + "data:\n  a: |\n    b\n    {{- " + unmet[3:] + "\n    tls = on\n    {{- end }}\n    c\n":                     false,
		object + "data:\n  a: |\n    {{- " + met[3:] + "\n    tls = on\n    {{- end }}\n    c\n":                              false,
		object + "data:\n  a: |\n    {{- " + unmet[3:] + "\n    tls = on\n    {{- end }}\n    c\n":                            false,
		object + "data: {a: {{ range splitList \"n\" .Params.S }}x{{ . }}{{ end }}}\n":                                        false,
		"# " + met + "a{{ end }}\n" + object:                                                                                  false,
		"{{ $tls := \"off\" }}" + met + "\n{{ $tls = \"on\" }}\n{{ end }}\n" + object + "data: {tls: {{ $tls | quote }}}\n":   false,
		"{{ $tls := \"off\" }}" + unmet + "\n{{ $tls = \"on\" }}\n{{ end }}\n" + object + "data: {tls: {{ $tls | quote }}}\n": false,
		"{{- if lt (len .Params.S) 4 }}{{ fail \"S is too short\" }}{{ end -}}\n" + object:                                    false,
		"{{ if lt (len .Params.S) 4 }}\n{{ fail \"S is too short\" }}\n{{ end }}\n" + object:                                  false,
		// It decides about more.
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + met + "a{{ else }}b{{ end }}}\n":                                              true,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"a" + unmet + "b{{ end }}\"}\n":                                                  true,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: " + met + "a{{ else }}b{{ end }}}\n":                                true,
		"apiVersion: v1\nkind: " + met + "ConfigMap{{ else }}Secret{{ end }}\nmetadata: {name: a}\n":                                         true,
		"apiVersion: v1\n{{ dict \"kind\" (ternary \"ConfigMap\" \"Secret\" (hasPrefix \"h\" .Params.S)) | toYaml }}\nmetadata: {name: a}\n": true,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, {{ ternary \"namespace\" \"x\" (hasPrefix \"h\" .Params.S) }}: b}\n":           true,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace:" + unmet + "x{{ end }} b}\n":                                        true,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace:{{ ternary \"x\" \"\" (hasPrefix \"x\" .Params.S) }} b}\n":           true,
		met + object + "{{ end }}":                                                                                                                      true,
		unmet + object + "---\n{{ end }}" + object:                                                                                                      true,
		object + met + "\n---\n" + object + "{{ end }}":                                                                                                 true,
		object + unmet + "\n---\n" + object + "{{ end }}\n":                                                                                             true,
		object + "data:\n  a: b\n  " + met + "\n  c: d\n  {{ end }}\n  e: f\n":                                                                          true,
		object + "data:\n  a: b\n  " + unmet + "\n  c: d\n  {{ end }}\n  e: f\n":                                                                        true,
		object + "data:\n  a: b\n  {{- " + unmet[3:] + "\n  c: d\n  {{- end }}\n  e: f\n":                                                               true,
		object + "data:\n- a\n{{- " + unmet[3:] + "\n- b\n{{- end }}\n":                                                                                 true,
		object + "data: [a" + unmet + ", b{{ end }}]\n":                                                                                                 true,
		object + "{{ range splitList \"n\" .Params.S }}\n---\n" + object + "{{ end }}\n":                                                                true,
		"apiVersion: v1\nkind: List\n{{ ternary \"items\" \"x\" (hasPrefix \"h\" .Params.S) }}: []\nmetadata: {name: a}\n":                              true,
		"{{ $name := \"a\" }}" + met + "{{ $name = \"b\" }}{{ end }}apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ $name }}}\n":                   true,
		"{{ define \"x\" }}name: {{ . }}{{ end }}apiVersion: v1\nkind: ConfigMap\nmetadata:\n  {{ template \"x\" (substr 0 2 .Params.S) }}\n":           true,
		"{{ define \"x\" }}name: a{{ end }}apiVersion: v1\nkind: ConfigMap\nmetadata:\n  " + met + "{{ template \"x\" }}{{ end }}\n":                    true,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ range until 3 }}a{{ if hasPrefix \"h\" $.Params.S }}{{ break }}{{ end }}{{ end }}\"}\n": true,
	} {
		t.Run(text, func(t *testing.T) {
			_, err := render.Objects(confidential(text), "t")
			var discloses *render.SensitiveError
			if errors.As(err, &discloses) != refused || err != nil && !refused {
				t.Fatalf("got %v", err)
			}
			if refused && (len(discloses.Parameters) != 1 || discloses.Parameters[0] != "S") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTracesAreWhatObjectsHoldOfSensitiveParameters(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for text, want := range map[string]struct {
		texts  []string
		opaque bool
	}{
		object + "data: {a: b}\n":                                                                            {nil, false},
		object + "data: {a: {{ .Params.P | quote }}}\n":                                                      {nil, false},
		object + "data: {a: {{ .Params.S | quote }}}\n":                                                      {[]string{"hunter2"}, false},
		object + "data: {a: {{ substr 0 5 .Params.S }}}\n":                                                   {[]string{"hunte"}, false},
		object + "data: {a: \"x {{ printf \"a\\\\tb%s\" .Params.S }}\"}\n":                                   {[]string{"a\tbhunter2", `a\tbhunter2`}, false},
		object + "data: {{ dict \"pass\" (substr 0 4 .Params.S) | toYaml | nindent 2 }}\n":                   {[]string{"pass", "pass: hunt", "hunt"}, false},
		object + "data: {a: {{ substr 0 3 .Params.S }}}\n":                                                   {nil, true},
		object + "data: {a: {{ len .Params.S }}}\n":                                                          {nil, true},
		object + "data: {a: {{ printf \"0%o\" 8191 | replace \"x\" .Params.S }}}\n":                          {[]string{"017777"}, true},
		object + "data: {a: '{{ if hasPrefix \"h\" .Params.S }}with {{ substr 0 4 .Params.S }}{{ end }}'}\n": {[]string{"with hunt", "hunt"}, false},
		object + "data: {a: '{{ if hasPrefix \"x\" .Params.S }}with{{ end }}'}\n":                            {nil, false},
		"# {{ substr 0 2 .Params.S }}\n" + object:                                                            {nil, false},
		object + "data: {{ .Params | toJson }}\n":                                                            {[]string{`{"O":"","P":"tandem-sensitive-0.","S":"hunter2"}`, "tandem-sensitive-0.", "hunter2"}, true},
		object + "data: {a: {{ repeat 10000 .Params.S }}}\n":                                                 {nil, true},
	} {
		t.Run(text, func(t *testing.T) {
			rendered, err := render.Templates(confidential(text), "t")
			if err != nil {
				t.Fatal(err)
			}
			got := rendered.Traces
			sorted := cmpopts.SortSlices(strings.Compare)
			if diff := cmp.Diff(want.texts, got.Texts, sorted, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if opaque := len(got.Opaque) > 0; opaque != want.opaque || opaque && got.Opaque[0] != (sensitive.Object{Kind: "ConfigMap", Name: "a"}) {
				t.Errorf("got %v", got.Opaque)
			}
		})
	}
}

func TestErrorsOfDocumentsDiscloseNoSensitiveParameter(t *testing.T) {
	for text, want := range map[string]string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {a: {{ .Params.S | quote }}, b: 1}}\n": `the value of "b" must be a string, got 1`,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: [{{ substr 0 5 .Params.S }}]}\n":       `metadata.labels must be an object, got a list`,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {{ substr 0 5 .Params.S }}}\n":         `metadata.labels must be an object, got "*****"`,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {{ substr 0 3 .Params.S }}}\n":         `its message is not shown, because it depends on sensitive parameter "S"`,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {{ repeat 300 .Params.S }}}\n":         `metadata.labels must be an object, got "*****"`,
		"{{ fail (repeat 300 .Params.S) }}": `its message is not shown, because it depends on sensitive parameter "S"`,
	} {
		t.Run(text, func(t *testing.T) {
			_, err := render.Objects(confidential(text), "t")
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hun") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The number of lines that a condition selects inside of a field is no secret of the cluster only if no message contains it.
func TestLinesOfErrorsDiscloseNoSensitiveParameter(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	const lines = object + "data:\n  a: |\n    x\n    {{- range until (len .Params.S) }}\n    y\n    {{- end }}\n    z\n"
	for name, text := range map[string]string{
		"a document that is no YAML":   lines + "---\nbroken: [\n",
		"a document that is no object": lines + "---\na: b\n",
		"the same document":            lines + "  b: [\n",
		"after a comment":              "# {{ range until (len .Params.S) }}\n# {{ end }}\n" + object + "---\na: b\n",
		"after printed lines":          object + "data:\n  a: |\n    {{ repeat (len .Params.S) \"y\\n\" | indent 4 | trim }}\n---\na: b\n",
		"an entry that is missing":     lines + "  b: {{ index (dict) \"x\" }}\n",
	} {
		t.Run(name, func(t *testing.T) {
			messages := map[string]bool{}
			for _, value := range []string{"hunter2", "a longer one"} {
				c := confidential(text)
				c.Sensitive["S"] = value
				_, err := render.Objects(c, "t")
				if err == nil {
					t.Fatal("there is no error")
				}
				messages[err.Error()] = true
			}
			if len(messages) != 1 {
				t.Errorf("the messages differ by the value: %q", slices.Collect(maps.Keys(messages)))
			}
		})
	}
}
