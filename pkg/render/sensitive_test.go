package render_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/render"
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
