package template

import (
	"testing"
)

func TestIsVolatile(t *testing.T) {
	for source, want := range map[string]bool{
		`value: {{ randAlphaNum 16 | quote }}`:                    true,
		`{{ if eq .Name "a" }}{{ (now).Unix }}{{ end }}`:          true,
		`{{ $at := date "2006" .Name }}{{ $at }}`:                 true,
		`{{ define "a" }}{{ uuidv4 }}{{ end }}{{ template "a" }}`: true,
		`{{ range (list (genCA "a" 1).Cert) }}{{ . }}{{ end }}`:   true,
		`now: {{ .Params.date }} # randAlpha`:                     false,
		`{{ "now" | quote }}`:                                     false,
		`{{ .Name }}`:                                             false,
		`{{ now`:                                                  false,
	} {
		if got := IsVolatile(source); got != want {
			t.Errorf("%q is volatile: %t, want %t", source, got, want)
		}
	}
	for _, name := range volatile {
		if functions[name] == nil {
			t.Errorf("%s is no function of templates", name)
		}
	}
}
