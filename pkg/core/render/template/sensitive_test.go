package template

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// secrets returns data with a sensitive parameter P, an empty one O, and a plain one N.
func secrets() (map[string]any, Sensitive) {
	data := sample()
	data["Name"] = "name"
	data["Params"] = map[string]any{"P": "hunter2", "O": "", "N": "3", "M": map[string]any{"a": "b"}}
	return data, Sensitive{Parameters: map[string]bool{"P": true}, Known: true}
}

func TestTracesAreWhatDependsOnSensitiveParameters(t *testing.T) {
	for name, test := range map[string]struct{ template, want string }{
		"nothing":                         {`{{ .Params.N }}{{ .Params.O }}{{ .Name }}{{ if .Params.N }}a{{ end }}`, ""},
		"the value":                       {`{{ .Params.P }}`, "hunter2"},
		"a part of it":                    {`a {{ substr 0 2 .Params.P | quote }} {{ .Params.N }}`, `"hu"`},
		"nothing that depends on it":      {`a{{ substr 0 0 .Params.P }}b`, ""},
		"all parameters":                  {`{{ index .Params (print "N") }}{{ len .Params }}`, "3|4"},
		"whether it is set":               {`{{ if .Params.P }}a{{ else }}b{{ end }}{{ with .Params.P }}c{{ end }}`, ""},
		"whether it is not set":           {`{{ if not .Params.P }}a{{ end }}{{ if empty .Params.P }}a{{ end }}`, ""},
		"whether it differs from nothing": {`{{ if ne .Params.P "" }}a{{ end }}{{ if .Params.P | eq "" }}a{{ else }}b{{ end }}`, ""},
		"whether it is set, in a variable": {
			`{{ $set := not (empty .Params.P) }}{{ $p := .Params.P }}{{ if and $set $p (eq .Params.N "3") }}a{{ end }}{{ $set }}`, ""},
		"whether one of two is set":     {`{{ if or .Params.O .Params.P }}a{{ end }}{{ if coalesce .Params.O .Params.P }}b{{ end }}`, ""},
		"whether a parameter exists":    {`{{ if hasKey .Params "P" }}a{{ end }}{{ with .Params }}{{ .N }}{{ end }}{{ range $k, $v := .Params }}{{ if $v }}a{{ end }}{{ end }}`, ""},
		"a condition":                   {`a{{ if eq (substr 0 1 .Params.P) "h" }}b{{ else }}c{{ end }}d`, "b"},
		"a condition that is not met":   {`a{{ if eq (substr 0 1 .Params.P) "x" }}b{{ end }}c`, "[]"},
		"a condition on its length":     {`{{ if len .Params.P }}b{{ end }}`, "b"},
		"a condition on both":           {`{{ if and .Params.P (hasPrefix "h" .Params.P) }}b{{ end }}`, "b"},
		"a condition in a variable":     {`{{ $is := hasPrefix "h" .Params.P }}{{ if and .Params.N $is }}b{{ end }}`, "b"},
		"a condition in a condition":    {`{{ if hasPrefix "h" .Params.P }}b{{ if .Params.N }}c{{ .Params.P }}{{ end }}{{ end }}`, "bchunter2|hunter2"},
		"an alternative":                {`{{ if .Params.O }}b{{ else if hasPrefix "h" .Params.P }}c{{ else }}d{{ end }}`, "c"},
		"a variable under a condition":  {`{{ $x := "a" }}{{ if hasPrefix "h" .Params.P }}{{ $x = "b" }}{{ end }}{{ $x }}`, "[]|b"},
		"a variable before a condition": {`{{ range until 2 }}{{ $x := "a" }}{{ $x }}{{ if hasPrefix "h" $.Params.P }}{{ $x = "b" }}{{ end }}{{ end }}`, "a|[]|a|[]"},
		"a variable under one that only tests": {
			`{{ $x := "a" }}{{ if .Params.P }}{{ $x = "b" }}{{ end }}{{ $x }}`, ""},
		"with":                              {`{{ with substr 0 2 .Params.P }}a{{ . }}{{ end }}`, "ahu|hu"},
		"a loop":                            {`{{ range $i, $x := splitList "t" .Params.P }}{{ $i }}{{ end }}`, "01|0|1"},
		"a loop that a condition ends":      {`{{ range until 3 }}a{{ if hasPrefix "h" $.Params.P }}{{ break }}{{ end }}b{{ end }}`, "a|[]"},
		"a loop that a condition continues": {`{{ range until 2 }}{{ if hasPrefix "h" $.Params.P }}{{ continue }}{{ end }}b{{ end }}c`, "[]|[]|[]"},
		"a template under a condition":      {`{{ define "x" }}b{{ end }}{{ if hasPrefix "h" .Params.P }}{{ template "x" }}{{ end }}`, "b"},
		"a template with its value":         {`{{ define "x" }}b{{ . }}{{ end }}{{ template "x" .Params.P }}`, "hunter2"},
		"a template of all":                 {`{{ define "x" }}{{ .Params.P }}{{ .Name }}{{ end }}{{ template "x" . }}`, "hunter2"},
		"a condition in a template":         {`{{ define "x" }}{{ if eq . "hunter2" }}a{{ end }}{{ end }}{{ template "x" .Params.P }}`, "a"},
		"a map that is changed under a condition": {
			`{{ $d := dict "a" "b" }}{{ if hasPrefix "h" .Params.P }}{{ $_ := set $d "a" "c" }}{{ end }}{{ $d.a }}`, "[]|c"},
		"a map that is changed by a lazy function": {
			`{{ $d := dict "a" "b" }}{{ $_ := and (hasPrefix "h" .Params.P) (set $d "a" "c") }}{{ $d.a }}`, "c"},
		"a list that is sorted under a condition": {
			`{{ $l := splitList "," "b,a" }}{{ if hasPrefix "h" .Params.P }}{{ $_ := sortAlpha $l }}{{ end }}{{ first $l }}`, "[]|a"},
		"an index of the parameters":       {`{{ index .Params "P" }}{{ index .Params "N" }}`, "hunter2"},
		"a choice by whether it is set":    {`{{ ternary "a" "b" (empty .Params.P) }}{{ .Params.P | not | ternary "a" "b" }}`, ""},
		"a choice by a part of it":         {`{{ ternary "a" "b" (hasPrefix "h" .Params.P) }}`, "a"},
		"whether it is set, after a map":   {`{{ $d := dict }}{{ $_ := set $d "a" .Params.P }}{{ if .Params.P }}a{{ end }}`, "a"},
		"a text in one of several columns": {"a\n  {{ .Params.P }}\n{{ with .Params.P }}{{ . }}{{ end }}", "hunter2|hunter2"},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := Parse("t", test.template)
			if err != nil {
				t.Fatal(err)
			}
			data, sensitive := secrets()
			out, err := ExecuteWith(parsed, data, sensitive)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, trace := range out.Traces {
				text := out.Text[trace.Begin:trace.End]
				if trace.Action.Block != nil && text == "" {
					text = "[]"
				}
				got = append(got, text)
			}
			if strings.Join(got, "") == "" && !strings.Contains(test.want, "[]") {
				got = nil
			}
			var want []string
			if test.want != "" {
				want = strings.Split(test.want, "|")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestEverythingIsATraceIfVariablesDependOnEachOtherInTooManyWays(t *testing.T) {
	parsed, err := Parse("t", strings.NewReplacer(".Params.HOSTS", "until 1", " = .}}", " = $.Params.P }}").Replace(chain(20))+"{{ .Name }}{{ if .Params.N }}a{{ end }}")
	if err != nil {
		t.Fatal(err)
	}
	data, sensitive := secrets()
	out, err := ExecuteWith(parsed, data, sensitive)
	if err != nil || len(out.Traces) != 4 || !out.Traces[len(out.Traces)-1].Action.AnyParameter {
		t.Errorf("got %v, %v", out.Traces, err)
	}
}

func TestBlocksAreDescribed(t *testing.T) {
	for text, want := range map[string]Block{
		"{{ if eq .Params.P `x` }}a{{ end }}":                                           {Sample: "a"},
		"{{ if eq .Params.P `x` }}\n  a{{ .Name }}b{{ end }}":                           {Sample: "\n  ab"},
		"{{ if eq .Params.P `x` }}{{ else }}\n a{{ end }}":                              {Sample: "\n a"},
		"{{ if eq .Params.P `x` }} {{ $x := 1 }}\n {{ $x }}{{ end }}":                   {Sample: " \n "},
		"{{ if eq .Params.P `x` }}{{ if .Name }}a{{ else }}b{{ end }}c{{ end }}":        {Sample: "ac"},
		"{{ if eq .Params.P `x` }}\n{{ $x := 1 }}\n{{ end }}":                           {Sample: "\n\n", Silent: true},
		"{{ if eq .Params.P `x` }}{{ fail `no` }}{{ end }}":                             {Silent: true},
		"{{ if eq .Params.P `x` }}{{ printf `no` | fail }}{{ else }}a{{ end }}":         {Sample: "a"},
		"{{ if eq .Params.P `x` }}{{ if .Name }}{{ $x := 1 }}{{ end }}{{ end }}":        {Silent: true},
		"{{ if eq .Params.P `x` }}{{ with .Name }}{{ . }}{{ end }}{{ end }}":            {},
		"{{ define `x` }}{{ end }}{{ if eq .Params.P `x` }}{{ template `x` }}{{ end }}": {},
	} {
		t.Run(text, func(t *testing.T) {
			parsed, err := Parse("t", text)
			if err != nil {
				t.Fatal(err)
			}
			data, sensitive := secrets()
			out, err := ExecuteWith(parsed, data, sensitive)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want, out.Traces[0].Action.Block); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestErrorsThatDependOnSensitiveParametersAreConcealed(t *testing.T) {
	const concealed = `rendering fails, and its message is not shown, because it depends on sensitive parameter "P"`
	for name, test := range map[string]struct{ template, want string }{
		"a message with a value":            {"\n{{ fail .Params.P }}", `template "t", line 2: ` + concealed},
		"a message with another encoding":   {"\n{{ b32enc .Params.P | printf `bad %s` | fail }}", `template "t", line 2: ` + concealed},
		"an argument that a function shows": {"{{ mustToDate \"2006\" .Params.P }}", `template "t", line 1: ` + concealed},
		"a message over several lines":      {"{{ fail (print\n\n.Params.P) }}", `template "t", line 1: ` + concealed},
		"a message under a condition":       {"\n{{ if hasPrefix \"h\" .Params.P }}\n{{ fail \"it begins with h\" }}{{ end }}", `template "t", line 2: ` + concealed},
		"a message in a template":           {"{{ define \"x\" }}\n{{ fail . }}{{ end }}{{ template \"x\" .Params.P }}", `template "t", line 2: ` + concealed},
		"a message in a template under a condition": {
			"{{ define \"x\" }}\n{{ fail \"a\" }}{{ end }}{{ if hasPrefix \"h\" .Params.P }}{{ template \"x\" }}{{ end }}", `template "t": ` + concealed},
		"a loop over a text":       {"{{ range .Params.P }}{{ end }}", `template "t", line 1: ` + concealed},
		"a field of a text":        {"{{ .Params.P.hunter }}", `template "t", line 1: ` + concealed},
		"a message of the package": {"{{ .Params.P }}\n{{ fail \"set N\" }}", `template "t", line 2: at <fail "set N">: error calling fail: set N`},
		"a message under a test":   {"{{ if .Params.P }}{{ fail \"unset P\" }}{{ end }}", `error calling fail: unset P`},
		"an unknown parameter":     {"{{ .Params.P }}{{ .Params.X }}", `map has no entry for key "X"`},
		"a limit":                  {"{{ repeat 2000000000 .Params.P }}", "renders more than 4 MiB"},
		"a limit, without a value": {"\n{{ repeat 2000000000 .Params.N }}", `template "t", line 2: at <repeat 2000000000 .Params.N>: error calling repeat: it renders`},
		"a map in itself under a condition": {
			"\n{{ $m := dict }}{{ if hasPrefix \"h\" .Params.P }}\n{{ $_ := set $m \"a\" $m }}{{ end }}", `template "t", line 2: ` + concealed},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := Parse("t", test.template)
			if err != nil {
				t.Fatal(err)
			}
			data, sensitive := secrets()
			_, err = ExecuteWith(parsed, data, sensitive)
			var problem *Error
			if !errors.As(err, &problem) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			var hidden *ConcealedError
			if isHidden := errors.As(err, &hidden); isHidden != strings.Contains(test.want, concealed) || isHidden && strings.Contains(err.Error(), "hunter") {
				t.Errorf("got %v", err)
			}
			parsed, _ = Parse("t", test.template)
			if _, err := ExecuteWith(parsed, data, Sensitive{Parameters: sensitive.Parameters}); errors.As(err, &hidden) {
				t.Errorf("without known values: %v", err)
			}
		})
	}
}

// A line could disclose any number that a package computes from a value.
func TestPlacesOfErrorsDiscloseNoSensitiveParameter(t *testing.T) {
	for name, text := range map[string]string{
		"the text limit":               "{{ if hasPrefix \"h\" .Params.P }}\n{{ repeat 100000000 \"x\" }}{{ else }}\n\n{{ repeat 100000000 \"x\" }}{{ end }}",
		"the text limit, after a loop": "{{ range until (ternary 9 1 (hasPrefix \"h\" .Params.P)) }}{{ repeat 400000 \"x\" }}{{ end }}" + strings.Repeat("\n{{ repeat 400000 \"x\" }}", 11),
		"the limit of steps":           "{{ if hasPrefix \"h\" .Params.P }}\n{{ range until 5000000 }}{{ end }}{{ else }}\n\n{{ range until 5000000 }}{{ end }}{{ end }}",
		"the limit of steps, in templates": "{{ define \"x\" }}{{ template \"x\" }}{{ end }}\n{{ define \"y\" }}{{ template \"y\" }}{{ end }}" +
			"{{ if hasPrefix \"h\" .Params.P }}{{ template \"x\" }}{{ else }}{{ template \"y\" }}{{ end }}",
		"a missing entry": "{{ if hasPrefix \"h\" .Params.P }}\n{{ end }}{{ index (dict) \"x\" }}",
	} {
		t.Run(name, func(t *testing.T) {
			messages := map[string]bool{}
			for _, value := range []string{"hunter2", "passwd1"} {
				parsed, err := Parse("t", text)
				if err != nil {
					t.Fatal(err)
				}
				data, sensitive := secrets()
				data["Params"].(map[string]any)["P"] = value
				if _, err = ExecuteWith(parsed, data, sensitive); err == nil {
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
