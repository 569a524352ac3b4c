package wrap

import (
	"cmp"
	"strconv"
	"strings"
	"testing"
	"text/template"
)

// nested has a subchart with an alias, and in it another one.
func nested() Chart {
	return Chart{
		Name: "site", Switches: []string{"cache.enabled", "tags.fast", ""}, Schema: []byte(`{"properties": {"cache": {"properties": {"mode": {"description": "How"}}}}}`),
		Values: []byte("name: 0x1F\nflag: no\nratio: 0.50\ncount: 1e2\nbase: &base {size: 2, kind: a}\nlate: {<<: *base, kind: b}\ntext: x\n" +
			"cache:\n  # In GiB, here\n  size: 2\n  gone: null\nglobal: {zone: eu, own: null}\nport: null\n"),
		Defaults: []byte(`{"name": 31, "flag": false, "ratio": 0.5, "count": 100, "base": {"size": 2, "kind": "a"}, "late": {"size": 2, "kind": "b"}, "text": "another document",
			"cache": {"size": 2, "ttl": 5, "gone": "x", "mode": "fast", "disk": {"class": "hdd"}, "imported": "/x"}, "empty": {}, "global": {"zone": "eu"}}`),
		Subcharts: []Chart{
			{
				Name: "cache", Globals: []byte(`{"zone": "us", "own": "a", "registry": "", "level": 1, "mixed": 1, "shadowed": "a"}`), Switches: []string{"disk.enabled"},
				Schema:    []byte(`{"properties": {"mode": {"type": "string", "enum": ["fast", "safe"], "title": "Mode"}, "hidden": {"type": "integer"}}}`),
				Subcharts: []Chart{{Name: "disk", Globals: []byte(`{"encrypted": true, "shadowed": "b"}`)}},
			},
			{Name: "empty", Globals: []byte(`{"registry": "", "level": 2, "mixed": "x", "unset": null}`)},
		},
	}
}

func TestDefaults(t *testing.T) {
	for path, want := range map[string]string{
		"name":                   "type: integer\ndefault: 31\n||P: {{ .Params.P }}",
		"flag":                   "type: boolean\ndefault: false\n||P: {{ .Params.P }}",
		"ratio":                  "type: number\ndefault: 0.50\n||P: {{ .Params.P }}",
		"count":                  "type: number\ndefault: 1e2\n||P: {{ .Params.P }}",
		"late":                   "type: map\ndefault: {kind: b, size: 2}\n||P: {{ .Params.P | toJson }}",
		"late.size":              "type: integer\ndefault: 2\n||late:\n  P: {{ .Params.P }}",
		"text":                   "default: another document\n||P: {{ .Params.P | quote }}",
		"port":                   "required: false\n||{{ with .Params.P }}P: {{ . | quote }}{{ end }}",
		"cache.size":             "type: integer\ndefault: 2\n|In GiB, here|cache:\n  P: {{ .Params.P }}",
		"cache.ttl":              "type: integer\ndefault: 5\n||cache:\n  P: {{ .Params.P }}",
		"cache.gone":             "default: x\n||cache:\n  P: {{ .Params.P | quote }}",
		"cache.mode":             "enum:\n- fast\n- safe\ndefault: fast\n|How|cache:\n  P: {{ .Params.P | quote }}",
		"cache.hidden":           "type: integer\nrequired: false\n||{{ if or .Params.P }}cache:{{ end }}\n{{ with .Params.P }}  P: {{ . }}{{ end }}",
		"cache.disk.class":       "default: hdd\n||cache:\n  disk:\n    P: {{ .Params.P | quote }}",
		"cache.imported":         "default: /x\n||cache:\n  P: {{ .Params.P | quote }}",
		"cache.enabled":          "type: boolean\nrequired: false\n||{{ if or .Params.P }}cache:{{ end }}\n{{ with .Params.P }}  P: {{ . }}{{ end }}",
		"cache.disk.enabled":     "type: boolean\nrequired: false\n||{{ if or .Params.P }}cache:{{ end }}\n{{ if or .Params.P }}  disk:{{ end }}\n{{ with .Params.P }}    P: {{ . }}{{ end }}",
		"tags.fast":              "type: boolean\nrequired: false\n||{{ if or .Params.P }}tags:{{ end }}\n{{ with .Params.P }}  P: {{ . }}{{ end }}",
		"empty":                  "type: map\ndefault: {}\n||P: {{ .Params.P | toJson }}",
		"global.zone":            "default: eu\n||global:\n  P: {{ .Params.P | quote }}",
		"global.own":             "required: false\n||{{ if or .Params.P }}global:{{ end }}\n{{ with .Params.P }}  P: {{ . | quote }}{{ end }}",
		"global.registry":        "required: false\n||{{ if or .Params.P }}global:{{ end }}\n{{ with .Params.P }}  P: {{ . | quote }}{{ end }}",
		"global.level":           "type: integer\nrequired: false\n||{{ if or .Params.P }}global:{{ end }}\n{{ with .Params.P }}  P: {{ . }}{{ end }}",
		"global.encrypted":       "type: boolean\nrequired: false\n||{{ if or .Params.P }}global:{{ end }}\n{{ with .Params.P }}  P: {{ . }}{{ end }}",
		"global.shadowed":        "required: false\n||{{ if or .Params.P }}global:{{ end }}\n{{ with .Params.P }}  P: {{ . | quote }}{{ end }}",
		"cache.global.shadowed":  "required: false\n||{{ if or .Params.P }}cache:{{ end }}\n{{ if or .Params.P }}  global:{{ end }}\n{{ with .Params.P }}    P: {{ . | quote }}{{ end }}",
		"cache.global.encrypted": "type: boolean\nrequired: false\n||{{ if or .Params.P }}cache:{{ end }}\n{{ if or .Params.P }}  global:{{ end }}\n{{ with .Params.P }}    P: {{ . }}{{ end }}",
		"global.mixed":           "required: false\n||{{ if or .Params.P }}global:{{ end }}\n{{ with .Params.P }}  P: {{ . | quote }}{{ end }}",
		"global.unset":           "required: false\n||{{ if or .Params.P }}global:{{ end }}\n{{ with .Params.P }}  P: {{ . | quote }}{{ end }}",
		"global":                 "type: map\ndefault: {zone: eu}\n||P: {{ .Params.P | toJson }}",
		"empty.global":           "type: map\nrequired: false\n||{{ if or .Params.P }}empty:{{ end }}\n{{ with .Params.P }}  P: {{ . | toJson }}{{ end }}",
		"global.other":           "required: false\n||{{ if or .Params.P }}global:{{ end }}\n{{ with .Params.P }}  P: {{ . | quote }}{{ end }}",
	} {
		t.Run(path, func(t *testing.T) {
			files, err := Files("site", "site.tgz", nested(), parse(t, path+"=P"))
			if err != nil {
				t.Fatal(err)
			}
			rest, description := "", ""
			_, parameter, _ := strings.Cut(files["params.yaml"], "name: P\n")
			for line := range strings.SplitSeq(strings.TrimSpace(parameter), "\n") {
				if text, is := strings.CutPrefix(strings.TrimSpace(line), "description: "); is {
					description = strings.TrimPrefix(text, "Value "+path+" of chart site")
				} else {
					rest += strings.TrimSpace(line) + "\n"
				}
			}
			last := path[strings.LastIndex(path, ".")+1:]
			template := strings.TrimRight(strings.ReplaceAll(files["templates/values.yaml"], last+": {{", "P: {{"), "\n")
			if got := rest + "|" + description + "|" + template; got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

func TestSeveralOptionalValuesBelowOneKey(t *testing.T) {
	files, err := Files("site", "site.tgz", nested(), parse(t, "cache.hidden=A", "cache.enabled=B", "tags.fast=C"))
	if err != nil {
		t.Fatal(err)
	}
	want := "{{ if or .Params.A .Params.B }}cache:{{ end }}\n{{ with .Params.A }}  hidden: {{ . }}{{ end }}\n{{ with .Params.B }}  enabled: {{ . }}{{ end }}\n" +
		"{{ if or .Params.C }}tags:{{ end }}\n{{ with .Params.C }}  fast: {{ . }}{{ end }}\n"
	if got := files["templates/values.yaml"]; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestOmittedValuesChangeNoOthers(t *testing.T) {
	c := Chart{
		Name: "web", Values: []byte("config: x\nx: {y: {z: null}}\nctl: {replicas: 1, res: {cpu: null}}\nport: null\nlist: [yes, {a: yes, <<: &b {c: 1}, d: null}]\nwhole: {on: a, x: null, k: 1, k: 2}\n"),
		Defaults: []byte(`{"config": "x", "x": {"y": {}}, "ctl": {"replicas": 1, "res": {}}, "list": [true, {"a": true, "c": 1, "d": null}], "whole": {"true": "a", "k": 2}, "tab": "\ta\nb"}`),
	}
	for sentence, test := range map[string]struct {
		choices []string
		values  string
		given   map[string]any
		want    string
	}{
		"after a text of several lines":   {choices: []string{"x.y.z=P", "port=Q"}, values: `{"config": "a\nb\n"}`, want: `{"config":"a\nb\n"}`},
		"a text without an end":           {choices: []string{"x.y.z=P"}, values: `{"config": "a\nb"}`, want: `{"config":"a\nb"}`},
		"a map that the package sets":     {choices: []string{"ctl.res.cpu=P"}, values: `{"ctl": {"res": {}}}`, want: `{"ctl":{"res":{}}}`},
		"and with a value":                {choices: []string{"ctl.res.cpu=P"}, values: `{"ctl": {"res": {}}}`, given: map[string]any{"P": "1"}, want: `{"ctl":{"res":{"cpu":"1"}}}`},
		"one of two":                      {choices: []string{"x.y.z=P", "port=Q", "ctl.res.cpu=R", "ctl.replicas=S"}, given: map[string]any{"Q": "a", "S": "2"}, want: `{"ctl":{"replicas":2},"port":"a"}`},
		"something beside it that is set": {choices: []string{"ctl.res.cpu=P"}, values: `{"ctl": {"replicas": 3}}`, want: `{"ctl":{"replicas":3}}`},
		"a list":                          {choices: []string{"list=P"}, want: `[true, {a: true, d: null, c: 1}]`},
		"a text with a tab":               {choices: []string{"tab=P"}, want: `"\ta\nb"`},
		"a map":                           {choices: []string{"whole=P"}, want: `{k: 2, "true": a}`},
	} {
		t.Run(sentence, func(t *testing.T) {
			files, err := FilesWith("web", "web.tgz", c, parse(t, test.choices...), valuesOf(t, cmp.Or(test.values, "{}")))
			if err != nil {
				t.Fatal(err)
			}
			if _, byDefault, whole := strings.Cut(files["params.yaml"], "default: "); whole && len(test.choices) == 1 {
				if got := strings.TrimSpace(byDefault); got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
				return
			}
			functions := template.FuncMap{"quote": strconv.Quote}
			var rendered strings.Builder
			parsed, err := template.New("").Funcs(functions).Parse(files["templates/values.yaml"])
			if err == nil {
				err = parsed.Execute(&rendered, map[string]any{"Params": test.given})
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(defaultsOf(rendered.String())); got != test.want {
				t.Errorf("got %s, want %s:\n%s", got, test.want, rendered.String())
			}
		})
	}
}

func TestInvalidDefaults(t *testing.T) {
	invalid, undescribed, unread := nested(), nested(), nested()
	invalid.Defaults, undescribed.Subcharts[0].Schema, unread.Subcharts[1].Globals = []byte("["), []byte("["), []byte("[")
	for want, test := range map[string]struct {
		chart Chart
		path  string
	}{
		`chart "site" has no value "cache.tll" (did you mean cache.ttl?)`: {nested(), "cache.tll"},
		`chart "site" has no value "empty.x"`:                             {nested(), "empty.x"},
		`the values of chart "site" are invalid: unexpected EOF`:          {invalid, "cache.ttl"},
		`values.schema.json of chart "cache" is invalid`:                  {undescribed, "cache.ttl"},
		`the global values of chart "empty" are invalid`:                  {unread, "cache.ttl"},
	} {
		if _, err := Files("site", "site.tgz", test.chart, parse(t, test.path)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", test.path, err, want)
		}
	}
}
