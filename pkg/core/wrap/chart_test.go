package wrap

import (
	"fmt"
	"strings"
	"testing"
)

// nested has a subchart with an alias, and in it another one.
func nested() Chart {
	return Chart{
		Name: "site", Values: []byte("name: a\ncache:\n  # In GiB, here\n  size: 2\n  gone: null\nglobal: {zone: eu}\n"), Switches: []string{"cache.enabled", "tags.fast", ""},
		Schema: []byte(`{"properties": {"cache": {"properties": {"mode": {"description": "How"}}}}}`),
		Subcharts: []Chart{
			{
				Name: "cache", Values: []byte("size: 1\n# Seconds\nttl: 5\ngone: x\nglobal: {zone: us, registry: a}\nmode: fast\n"),
				Schema:    []byte(`{"properties": {"mode": {"type": "string", "enum": ["fast", "safe"], "title": "Mode"}, "hidden": {"type": "integer"}}}`),
				Subcharts: []Chart{{Name: "disk", Values: []byte("class: hdd\nglobal: {encrypted: true}\n")}}, Switches: []string{"disk.enabled"},
			},
			{Name: "empty"},
		},
	}
}

func TestValuesOfSubcharts(t *testing.T) {
	for path, want := range map[string]string{
		"cache.size":             "type: integer\ndefault: 2\n|In GiB, here|{{ .Params.P }}",
		"cache.ttl":              "type: integer\ndefault: 5\n|Seconds|{{ .Params.P }}",
		"cache.gone":             "required: false\n||{{ with .Params.P }}{{ . | quote }}{{ else }}null{{ end }}",
		"cache.mode":             "enum:\n- fast\n- safe\ndefault: fast\n|How|{{ .Params.P | quote }}",
		"cache.hidden":           "type: integer\nrequired: false\n||{{ with .Params.P }}{{ . }}{{ else }}null{{ end }}",
		"cache.disk.class":       "default: hdd\n||{{ .Params.P | quote }}",
		"cache.enabled":          "type: boolean\nrequired: false\n||{{ with .Params.P }}{{ . }}{{ else }}null{{ end }}",
		"cache.disk.enabled":     "type: boolean\nrequired: false\n||{{ with .Params.P }}{{ . }}{{ else }}null{{ end }}",
		"tags.fast":              "type: boolean\nrequired: false\n||{{ with .Params.P }}{{ . }}{{ else }}null{{ end }}",
		"empty":                  "type: map\ndefault: {}\n||{{ .Params.P | toJson }}",
		"global.zone":            "default: eu\n||{{ .Params.P | quote }}",
		"global.registry":        "||{{ .Params.P | quote }}",
		"global.encrypted":       "||{{ .Params.P | quote }}",
		"cache.global.encrypted": "||{{ .Params.P | quote }}",
		"global.other":           "required: false\n||{{ with .Params.P }}{{ . | quote }}{{ else }}null{{ end }}",
	} {
		t.Run(path, func(t *testing.T) {
			files, err := Files("site", "site.tgz", nested(), parse(t, path+"=P"))
			if err != nil {
				t.Fatal(err)
			}
			rest, description := []string{}, ""
			_, parameter, _ := strings.Cut(files["params.yaml"], "name: P\n")
			for line := range strings.SplitSeq(strings.TrimSpace(parameter), "\n") {
				line = strings.TrimSpace(line)
				if text, is := strings.CutPrefix(line, "description: "); is {
					description = strings.TrimPrefix(text, "Value "+path+" of chart site")
					continue
				}
				rest = append(rest, line+"\n")
			}
			_, template, _ := strings.Cut(files["templates/values.yaml"], "{{")
			if got := strings.Join(rest, "") + "|" + description + "|{{" + strings.TrimRight(template, "\n"); got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

func TestValuesOfSubchartsThatAreWrong(t *testing.T) {
	large := nested()
	var base, over strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&base, "k%d: 1\n", i)
		fmt.Fprintf(&over, "  a%d: {x: 1}\n", i)
	}
	large.Subcharts[0].Values = []byte("big: &big\n  " + strings.ReplaceAll(base.String(), "\n", "\n  ") + "\n")
	for i := range 1000 {
		large.Subcharts[0].Values = fmt.Appendf(large.Subcharts[0].Values, "a%d: *big\n", i)
	}
	large.Values = []byte("cache:\n" + over.String())
	invalid, undescribed := nested(), nested()
	invalid.Subcharts[0].Values, undescribed.Subcharts[0].Schema = []byte("["), []byte("[")
	for want, test := range map[string]struct {
		chart Chart
		path  string
	}{
		`chart "site" has no value "cache.tll" in values.yaml (did you mean cache.ttl?)`: {nested(), "cache.tll"},
		`chart "site" has no value "empty.x" in values.yaml`:                             {nested(), "empty.x"},
		`chart "site" and its subcharts have more than 100000 values`:                    {large, "cache.k1"},
		`values.yaml of chart "cache" is invalid`:                                        {invalid, "cache.ttl"},
		`values.schema.json of chart "cache" is invalid`:                                 {undescribed, "cache.ttl"},
	} {
		if _, err := Files("site", "site.tgz", test.chart, parse(t, test.path)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", test.path, err, want)
		}
	}
}
