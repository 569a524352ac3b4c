package chart

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/pkg/core/wrap"
)

func TestDescribe(t *testing.T) {
	described, err := Describe(t.Context(), folder{
		"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\ndependencies:\n" +
			"- {name: cache, version: ~1.0, alias: fast, condition: 'fast.enabled, other.enabled', tags: [speed]}\n" +
			"- {name: cache, version: ~2.0, condition: second.enabled, import-values: [data]}\n" +
			"- {name: extra, version: 1.0.0, condition: extra.enabled, import-values: [data]}\n",
		"values.yaml":                             "common: &c {size: 2}\nmerged: {<<: *c}\nyes: no\nfast: {size: 3, disk: {class: ssd}, global: {top: 1}}\nextra: {enabled: false}\nnothing: null\n---\nsecond: 1\n",
		"charts/a/Chart.yaml":                     "apiVersion: v2\nname: cache\nversion: 1.0.5\ndependencies:\n- {name: disk, version: 1.0.0, tags: [deep], condition: disk.enabled}\n",
		"charts/a/values.yaml":                    "size: 1\nttl: 5\nglobal: {zone: eu, top: 2}\n",
		"charts/a/charts/disk/Chart.yaml":         "apiVersion: v2\nname: disk\nversion: 1.0.0\n",
		"charts/a/charts/disk/values.yaml":        "class: hdd\nglobal: {encrypted: true}\n",
		"charts/a/charts/disk/values.schema.json": `{"type": "object"}`,
		"charts/b/Chart.yaml":                     "apiVersion: v2\nname: cache\nversion: 2.0.0\n",
		"charts/b/values.yaml":                    "size: 9\nexports: {data: {path: /x}}\n",
		"charts/extra/Chart.yaml":                 "apiVersion: v2\nname: extra\nversion: 1.0.0\n",
		"charts/extra/values.yaml":                "size: 7\nexports: {data: {never: true}}\n",
		"charts/undeclared/Chart.yaml":            "apiVersion: v2\nname: undeclared\nversion: 1.0.0\n",
		"charts/undeclared/values.yaml":           "# nothing\n",
	}.archive(t))
	if err != nil {
		t.Fatal(err)
	}
	var defaults map[string]any
	if err := json.Unmarshal(described.Defaults, &defaults); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"common": map[string]any{"size": 2.0}, "merged": map[string]any{"size": 2.0}, "true": false, "second": 1.0, "path": "/x",
		"fast":  map[string]any{"size": 3.0, "ttl": 5.0, "disk": map[string]any{"class": "ssd"}},
		"cache": map[string]any{"size": 9.0, "exports": map[string]any{"data": map[string]any{"path": "/x"}}},
		"extra": map[string]any{"enabled": false, "size": 7.0, "exports": map[string]any{"data": map[string]any{"never": true}}}, "undeclared": map[string]any{},
	}
	if diff := gocmp.Diff(want, defaults); diff != "" {
		t.Error(diff)
	}
	described.Defaults, described.Values = nil, nil
	parts := wrap.Chart{
		Name: "web", Version: "1.2.3", Switches: []string{"fast.enabled", " other.enabled", "second.enabled", "extra.enabled", "tags.speed", "tags.deep"},
		Subcharts: []wrap.Chart{
			{Name: "fast", Switches: []string{"disk.enabled"}, Globals: []byte(`{"top":1,"zone":"eu"}`), Subcharts: []wrap.Chart{
				{Name: "disk", Schema: []byte(`{"type": "object"}`), Globals: []byte(`{"encrypted":true}`)},
			}},
			{Name: "cache"}, {Name: "extra"}, {Name: "undeclared"},
		},
	}
	if diff := gocmp.Diff(parts, described); diff != "" {
		t.Error(diff)
	}
}

func TestDescribeLimitsSubcharts(t *testing.T) {
	f := folder{"charts/a/Chart.yaml": "apiVersion: v2\nname: a\nversion: 1.0.0\n"}
	var aliases strings.Builder
	for i := range maxSubcharts + 1 {
		fmt.Fprintf(&aliases, "- {name: a, version: 1.0.0, alias: a%d}\n", i)
	}
	f["Chart.yaml"] = "apiVersion: v2\n" + "name: web\nversion: 1.2.3\ndependencies:\n" + aliases.String()
	if _, err := Describe(t.Context(), f.archive(t)); err == nil || !strings.Contains(err.Error(), `chart "web" has more than 1000 subcharts`) {
		t.Errorf("aliases: %v", err)
	}
	f["Chart.yaml"] = "apiVersion: v2\n" + "name: web\nversion: 1.2.3\ndependencies:\n- {name: a, version: 1.0.0, condition: 'x" + strings.Repeat(",x", 1_000_000) + "'}\n"
	if described, err := Describe(t.Context(), f.archive(t)); err != nil || len(described.Switches) != 1 {
		t.Errorf("equal conditions: %v, %d", err, len(described.Switches))
	}
	var conditions strings.Builder
	for i := range maxSubcharts + 1 {
		fmt.Fprintf(&conditions, "x%d,", i)
	}
	f["Chart.yaml"] = metadata + "dependencies:\n- {name: a, version: 1.0.0, condition: '" + conditions.String() + "'}\n"
	if _, err := Describe(t.Context(), f.archive(t)); err == nil || !strings.Contains(err.Error(), `chart "web" has more than 1000 subcharts, or conditions and tags of them`) {
		t.Errorf("conditions: %v", err)
	}
}

func TestDescribeWithAnInvalidSubchartThatIsDisabled(t *testing.T) {
	described, err := Describe(t.Context(), folder{
		"Chart.yaml":                   metadata + "dependencies:\n- {name: d, version: 1.0.0, condition: d.enabled}\n- {name: g, version: 1.0.0}\n",
		"values.yaml":                  "d: {enabled: false}\nglobal: {zone: eu}\n",
		"charts/d/Chart.yaml":          "apiVersion: v2\nname: d\nversion: 1.0.0\ndependencies:\n- {name: e, version: 1.0.0, alias: f}\n",
		"charts/d/values.yaml":         "f: text\n",
		"charts/d/charts/e/Chart.yaml": "apiVersion: v2\nname: e\nversion: 1.0.0\n",
		"charts/g/Chart.yaml":          "apiVersion: v2\nname: g\nversion: 1.0.0\ndependencies:\n- {name: e, version: 1.0.0, alias: f}\n",
		"charts/g/charts/e/Chart.yaml": "apiVersion: v2\nname: e\nversion: 1.0.0\n",
	}.archive(t))
	if want := `{"d":{"enabled":false},"g":{"f":{}},"global":{"zone":"eu"}}`; err != nil || string(described.Defaults) != want {
		t.Errorf("got %s and %v, want %s", described.Defaults, err, want)
	}
}
