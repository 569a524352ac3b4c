package template

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// sample returns the data for the templates of these tests.
func sample() map[string]any {
	return map[string]any{
		"Params": map[string]any{
			"NODES": "3", "EMPTY": "", "HOSTS": []any{"a", "b"},
			"LABELS": map[string]any{"port": int64(2000000), "ratio": json.Number("1.10")},
		},
		"Pipes": map[string]string{"certificate": "zk-cert"},
	}
}

// run parses and executes a template named t.
func run(text string) (string, error) {
	t, err := Parse("t", text)
	if err != nil {
		return "", err
	}
	out, err := Execute(t, sample())
	return out.Text, err
}

func TestExecute(t *testing.T) {
	for name, test := range map[string]struct{ template, want string }{
		"JSON without float64":        {`{{ (fromJson "{\"a\": 2000000}").a }}`, "2000000"},
		"a sequence":                  {"{{ until 3 }} {{ untilStep 1 6 2 }} {{ seq 3 }} {{ seq 2 0 }} {{ seq 0 5 10 }}", "[0 1 2] [1 3 5] 1 2 3 2 1 0 0 5 10"},
		"a repeated text":             {`{{ repeat 3 "ab" }}`, "ababab"},
		"a template of the same file": {`{{ define "x" }}<{{ . }}>{{ end }}{{ template "x" .Params.NODES }}`, "<3>"},
		"a list in a loop":            {"{{ range .Params.HOSTS }}{{ . }};{{ end }}", "a;b;"},
		"a list by index":             {"{{ index .Params.HOSTS 1 }}", "b"},
		"a map as YAML":               {"{{ toYaml .Params.LABELS }}", "port: 2000000\nratio: 1.10"},
		"a list as YAML":              {"{{ toYaml (dict \"hosts\" .Params.HOSTS) }}", "hosts:\n- a\n- b"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := run(test.template)
			if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestErrorNamesTheFault(t *testing.T) {
	for name, test := range map[string]struct{ template, want string }{
		"an unknown parameter": {
			"a\nb: {{ .Params.NODE }}",
			`template "t", line 2: at <.Params.NODE>: map has no entry for key "NODE": .Params contains the parameters that the operator defines`,
		},
		"an unknown field": {
			"{{ .Instance }}",
			`template "t", line 1: at <.Instance>: map has no entry for key "Instance": a template may refer to .Name, .Namespace, ` +
				`.OperatorName, .OperatorVersion, .AppVersion, .PlanName, .PhaseName, .StepName, .Params, .Pipes, .Cluster and .Capabilities`,
		},
		"an unknown parameter by index": {
			"a\n{{ index .Params \"NODE\" }}",
			`template "t": line 2 of the rendered text contains <no value>: an index or lookup found nothing; set a default`,
		},
		"an unknown pipe":           {"{{ .Pipes.key }}", `line 1: at <.Pipes.key>: map has no entry for key "key"`},
		"an action left open":       {"a\n\n{{ .Name", `template "t", line 3: unclosed action`},
		"an unknown function":       {"\n{{ lookup }}", `template "t", line 2: function "lookup" not defined`},
		"the environment":           {`{{ env "HOME" }}`, `function "env" not defined`},
		"the network":               {`{{ getHostByName "localhost" }}`, `function "getHostByName" not defined`},
		"the file system":           {`{{ osBase "/x" }}`, `function "osBase" not defined`},
		"a problem of a package":    {`{{ fail "set NODES" }}`, `template "t", line 1: at <fail "set NODES">: error calling fail: set NODES`},
		"a division by zero":        {"{{ div 1 0 }}", `template "t", line 1:`},
		"a count mistyped":          {"{{ range until 2000000000 }}{{ end }}", "more than 100000 items"},
		"a sequence mistyped":       {"{{ seq 0 9223372036854775807 }}", "more than 100000 items"},
		"a text repeated for ever":  {`{{ repeat 2000000000 "x" }}`, "renders more than 4 MiB"},
		"a text of negative length": {`{{ repeat -1 "x" }}`, "negative"},
		"a loop that never ends":    {`{{ define "x" }}{{ repeat 1000 "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`, "renders more than 4 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(test.template)
			var problem *Error
			if !errors.As(err, &problem) || problem.Template != "t" {
				t.Fatalf("want an *Error of template t, got %v", err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %s\nwant %s", err, test.want)
			}
		})
	}
}

func TestAFaultIsOneLine(t *testing.T) {
	for name, test := range map[string]struct{ template, want string }{
		"that a package says":      {`{{ fail "set\nNODES\r\n\tto \u2028 3" }}`, `template "t", line 1: at <fail "set\nNODES\r\n\tto \u2028 3">: error calling fail: set NODES to 3`},
		"that a package says long": {`{{ fail (repeat 5000 "ä") }}`, "ää…ää"},
		"of syntax":                {"{{ if\n\ntrue }", "template \"t\""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(test.template)
			var problem *Error
			if !errors.As(err, &problem) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got  %v\nwant %s", err, test.want)
			}
			if strings.ContainsAny(err.Error()+problem.Err.Error(), "\n\r\v\f\u0085\u2028\u2029") || len(err.Error()) > 3*maxMessageRunes {
				t.Errorf("more than a line: %q", err)
			}
		})
	}
}
