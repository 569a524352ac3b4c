package template_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/pkg/core/render/template"
)

func TestUses(t *testing.T) {
	for text, want := range map[string][]template.Use{
		"{{ .Name }}{{ .Pipes.A }}":                                        nil,
		"{{ .Params.A }}":                                                  {{1, "A", true}},
		"\n{{ $.Params.A }}":                                               {{2, "A", true}},
		"{{ if .Params.A }}a{{ end }}":                                     {{1, "A", true}},
		"{{ if not .Params.A }}a{{ end }}":                                 {{1, "A", false}},
		"{{ .Params.A | quote }}":                                          {{1, "A", false}},
		"{{ quote .Params.A }}":                                            {{1, "A", false}},
		"{{ (.Params.A) }}":                                                {{1, "A", false}},
		"{{ .Params.A.B }}":                                                {{1, "A", false}},
		"{{ $x := .Params.A }}{{ $x }}":                                    {{1, "A", false}},
		"{{ if $x := .Params.A }}{{ $x }}{{ end }}":                        {{1, "A", false}},
		"{{ with .Params.A }}{{ . }}{{ end }}":                             {{1, "A", false}},
		"{{ range .Params.A }}{{ . }}{{ end }}":                            {{1, "A", false}},
		"{{ toYaml .Params }}":                                             {{1, "", false}},
		"{{ index .Params \"A\" }}":                                        {{1, "", false}},
		"{{ with .Params }}{{ .A }}{{ end }}":                              {{1, "", false}},
		"{{ toYaml . }}":                                                   {{1, "", false}},
		"{{ $x := . }}{{ $x.Params.A }}":                                   {{1, "", false}, {1, "A", true}},
		"{{ (index .).Params.A }}":                                         {{1, "", false}},
		"{{ template \"x\" . }}{{ define \"x\" }}{{ .Params.A }}{{ end }}": {{1, "", false}, {1, "A", true}},
	} {
		t.Run(text, func(t *testing.T) {
			parsed, err := template.Parse("t", text)
			if err != nil {
				t.Fatal(err)
			}
			got := template.Uses(parsed)
			unordered := cmp.Transformer("set", func(uses []template.Use) map[template.Use]bool {
				set := map[template.Use]bool{}
				for _, use := range uses {
					set[use] = true
				}
				return set
			})
			if diff := cmp.Diff(want, got, unordered); diff != "" {
				t.Error(diff)
			}
		})
	}
}
