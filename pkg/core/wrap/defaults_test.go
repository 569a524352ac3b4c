package wrap

import (
	"strings"
	"testing"
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
		"count":                  "type: integer\ndefault: 100\n||P: {{ .Params.P }}",
		"late":                   "type: map\ndefault: {kind: b, size: 2}\n||P: {{ .Params.P | toJson }}",
		"late.size":              "type: integer\ndefault: 2\n||late:\n  P: {{ .Params.P }}",
		"text":                   "default: another document\n||P: {{ .Params.P | quote }}",
		"port":                   "required: false\n||{{ with .Params.P }}P: {{ . | quote }}{{ end }}",
		"cache.size":             "type: integer\ndefault: 2\n|In GiB, here|cache:\n  P: {{ .Params.P }}",
		"cache.ttl":              "type: integer\ndefault: 5\n||cache:\n  P: {{ .Params.P }}",
		"cache.gone":             "default: x\n||cache:\n  P: {{ .Params.P | quote }}",
		"cache.mode":             "enum:\n- fast\n- safe\ndefault: fast\n|How|cache:\n  P: {{ .Params.P | quote }}",
		"cache.hidden":           "type: integer\nrequired: false\n||{{ if or .Params.P }}cache:{{ end }}\n  {{ with .Params.P }}P: {{ . }}{{ end }}",
		"cache.disk.class":       "default: hdd\n||cache:\n  disk:\n    P: {{ .Params.P | quote }}",
		"cache.imported":         "default: /x\n||cache:\n  P: {{ .Params.P | quote }}",
		"cache.enabled":          "type: boolean\nrequired: false\n||{{ if or .Params.P }}cache:{{ end }}\n  {{ with .Params.P }}P: {{ . }}{{ end }}",
		"cache.disk.enabled":     "type: boolean\nrequired: false\n||{{ if or .Params.P }}cache:{{ end }}\n  {{ if or .Params.P }}disk:{{ end }}\n    {{ with .Params.P }}P: {{ . }}{{ end }}",
		"tags.fast":              "type: boolean\nrequired: false\n||{{ if or .Params.P }}tags:{{ end }}\n  {{ with .Params.P }}P: {{ . }}{{ end }}",
		"empty":                  "type: map\ndefault: {}\n||P: {{ .Params.P | toJson }}",
		"global.zone":            "default: eu\n||global:\n  P: {{ .Params.P | quote }}",
		"global.own":             "default: a\n||global:\n  P: {{ .Params.P | quote }}",
		"global.registry":        "default: \"\"\n||global:\n  P: {{ .Params.P | quote }}",
		"global.level":           "type: integer\n||global:\n  P: {{ .Params.P }}",
		"global.encrypted":       "type: boolean\ndefault: true\n||global:\n  P: {{ .Params.P }}",
		"global.shadowed":        "default: a\n||global:\n  P: {{ .Params.P | quote }}",
		"cache.global.shadowed":  "default: a\n||cache:\n  global:\n    P: {{ .Params.P | quote }}",
		"cache.global.encrypted": "type: boolean\ndefault: true\n||cache:\n  global:\n    P: {{ .Params.P }}",
		"global.unset":           "required: false\n||{{ if or .Params.P }}global:{{ end }}\n  {{ with .Params.P }}P: {{ . | quote }}{{ end }}",
		"global.other":           "required: false\n||{{ if or .Params.P }}global:{{ end }}\n  {{ with .Params.P }}P: {{ . | quote }}{{ end }}",
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
	want := "{{ if or .Params.A .Params.B }}cache:{{ end }}\n  {{ with .Params.A }}hidden: {{ . }}{{ end }}\n  {{ with .Params.B }}enabled: {{ . }}{{ end }}\n" +
		"{{ if or .Params.C }}tags:{{ end }}\n  {{ with .Params.C }}fast: {{ . }}{{ end }}\n"
	if got := files["templates/values.yaml"]; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestInvalidDefaults(t *testing.T) {
	invalid, undescribed, unread := nested(), nested(), nested()
	invalid.Defaults, undescribed.Subcharts[0].Schema, unread.Subcharts[1].Globals = []byte("["), []byte("["), []byte("[")
	for want, test := range map[string]struct {
		chart Chart
		path  string
	}{
		`chart "site" has no value "cache.tll" in values.yaml (did you mean cache.ttl?)`:                {nested(), "cache.tll"},
		`chart "site" has no value "empty.x" in values.yaml`:                                            {nested(), "empty.x"},
		`value global.mixed has different types in subcharts of chart "site": it cannot be a parameter`: {nested(), "global.mixed"},
		`the values of chart "site" are invalid: unexpected EOF`:                                        {invalid, "cache.ttl"},
		`values.schema.json of chart "cache" is invalid`:                                                {undescribed, "cache.ttl"},
		`the global values of chart "empty" are invalid`:                                                {unread, "cache.ttl"},
	} {
		if _, err := Files("site", "site.tgz", test.chart, parse(t, test.path)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", test.path, err, want)
		}
	}
}
