package template

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestActionsNameTheParametersThatTheyPrint(t *testing.T) {
	for name, test := range map[string]struct{ template, want string }{
		"a field":                    {`{{ .Params.NODES }}`, "NODES"},
		"a field by the argument":    {`{{ $.Params.NODES }}`, "NODES"},
		"a field of a field":         {`{{ .Params.LABELS.port }}`, "LABELS"},
		"a constant index":           {`{{ index .Params "NODES" }}{{ index .Params.HOSTS 0 }}`, "NODES|HOSTS"},
		"a computed index":           {`{{ index .Params (print "NODES") }}`, "*"},
		"two of them":                {`{{ print .Params.NODES .Params.EMPTY }}`, "EMPTY NODES"},
		"a variable":                 {`{{ $x := .Params.NODES }}{{ $y := $x }}{{ $y }}`, "NODES"},
		"a variable of all":          {`{{ $root := . }}{{ $root.Params.NODES }}`, "NODES"},
		"a variable that changes":    {`{{ $x := "" }}{{ range .Params.HOSTS }}{{ $x }}{{ $x = . }}{{ end }}`, "HOSTS"},
		"a variable in a condition":  {`{{ if $x := .Params.NODES }}{{ $x }}{{ end }}`, "NODES"},
		"items":                      {`{{ range $i, $x := .Params.HOSTS }}{{ $i }}{{ $x }}{{ . }}{{ end }}`, "HOSTS"},
		"items of all":               {`{{ range .Params }}{{ . }}{{ end }}`, "*"},
		"all by one variable":        {`{{ range $x := .Params }}{{ $x }}{{ end }}`, "*"},
		"with":                       {`{{ with .Params }}{{ .NODES }}{{ end }}{{ with .Params.NODES }}{{ . }}{{ end }}`, "NODES"},
		"a template":                 {`{{ define "x" }}{{ .a }}{{ end }}{{ template "x" dict "a" .Params.NODES }}`, "NODES"},
		"a template of all":          {`{{ define "x" }}{{ .Params.NODES }}{{ end }}{{ template "x" . }}`, "NODES"},
		"a map that is changed":      {`{{ $d := dict }}{{ $_ := set $d "a" .Params.NODES }}{{ $d.a }}{{ .Name }}`, "NODES"},
		"none":                       {`{{ .Name }}{{ "x" }}{{ 1 }}{{ until 3 }}{{ if .Params.NODES }}{{ .Name }}{{ end }}`, ""},
		"too many assignments":       {chain(20), "*"},
		"a count":                    {`{{ range $i := until (int .Params.NODES) }}{{ end }}{{ len .Params.HOSTS }}`, "HOSTS"},
		"an alternative":             {`{{ default "x" .Params.EMPTY }}{{ .Params.EMPTY | default .Params.NODES }}`, "EMPTY|EMPTY NODES"},
		"a text that is not printed": {`{{ $x := .Params.NODES }}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			data := sample()
			data["Name"] = "name"
			parsed, err := Parse("t", test.template)
			if err != nil {
				t.Fatal(err)
			}
			out, err := Execute(parsed, data)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range out.Prints {
				names := strings.Join(p.Action.Parameters, " ")
				if p.Action.AnyParameter {
					names = "*"
				}
				got = append(got, names)
			}
			want := strings.Split(test.want, "|")
			if test.want == "" {
				want = nil
			}
			if diff := cmp.Diff(unique(want), unique(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// unique drops equal neighbours: loops print repeatedly.
func unique(names []string) []string {
	var kept []string
	for i, name := range names {
		if i == 0 || name != names[i-1] {
			kept = append(kept, name)
		}
	}
	return kept
}

// chain returns a template whose variables depend on each other, against the order of the text.
func chain(variables int) string {
	text := ""
	for i := range variables {
		text += "{{ $" + strings.Repeat("x", i+1) + ` := "" }}`
	}
	text += "{{ range .Params.HOSTS }}"
	for i := range variables - 1 {
		text += "{{ $" + strings.Repeat("x", i+1) + " = $" + strings.Repeat("x", i+2) + " }}"
	}
	return text + "{{ $" + strings.Repeat("x", variables) + " = .}}{{ end }}{{ $x }}"
}
