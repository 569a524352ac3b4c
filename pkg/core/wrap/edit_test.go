package wrap

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/pkg/core/release"
)

func TestEditKeepsWhatUsersWrote(t *testing.T) {
	const before = `# What it is
operatorVersion: "1.0.0" # ours
tasks:
  - {name: other, kind: Dummy}
  - name: chart # the one
    kind: Helm
    spec:
      # from upstream
      chart:   web-1.0.0.tgz   # é keep
      version: '1.0.0'

      valuesFile: values.yaml
plans: {} # end`
	fields := []Field{{"chart", "web-2.0.0.tgz"}, {"version", "2.0.0"}, {"repository", "oci://registry.example.com"}, {"digest", "sha256:12"}}
	got, err := Edit([]byte(before), 1, fields, []Field{{"operatorVersion", "1.1.0"}})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(`"1.0.0"`, "1.1.0", "web-1.0.0.tgz   # é keep", "web-2.0.0.tgz   # é keep\n      repository: oci://registry.example.com\n      digest: sha256:12",
		"'1.0.0'", "2.0.0").Replace(before)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	flow := "tasks: [{name: c, kind: Helm, spec: {chart: web.tgz, valuesFile: v.yaml}}]\r\n"
	got, err = Edit([]byte(flow), 0, []Field{{"chart", "a,b.tgz"}, {"version", "2.0"}}, nil)
	if want := `tasks: [{name: c, kind: Helm, spec: {chart: "a,b.tgz", version: "2.0", valuesFile: v.yaml}}]` + "\r\n"; string(got) != want || err != nil {
		t.Errorf("got %s and error %v", got, err)
	}
	for text, want := range map[string]string{
		"a: [": "operator.yaml is invalid", "": "is empty", "tasks: []": "has no task 0", "tasks: [{name: a}]": "has no spec",
		"tasks: [{spec: {chart: &a web}}]": "operator.yaml:1: chart is not a plain value in one line", "tasks: [{spec: {chart: \"w\\x65b\"}}]": "is not a plain value",
		"tasks: [{spec: {}}]": "has no chart: add it", "tasks:\n- spec:\n    chart: >\n      web\n": "operator.yaml:3: chart is not a plain value in one line",
	} {
		if _, err := Edit([]byte(text), 0, []Field{{"chart", "x"}}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", text, err, want)
		}
	}
}

func FuzzEdit(f *testing.F) {
	f.Add("tasks: [{spec: {chart: web}}]")
	f.Add("tasks:\n- spec:\n    chart: 'web' # x\n")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = Edit([]byte(text), 0, []Field{{"chart", "x"}, {"version", "1"}}, nil)
	})
}

func TestCompareValues(t *testing.T) {
	before := Chart{Name: "web", Values: []byte("a: 1\nb: {c: x, d: {}}\nlist: [1, 2] # comment\nsame: &s {x: 1}\nalias: *s\n")}
	after := Chart{Name: "web", Values: []byte("a: 2\nb: {d: {}, e: null}\nlist:\n- 1\nsame: {x: 1}\nalias: {x: 1}\n")}
	got, err := CompareValues(before, after)
	want := []Change{
		{InValues, "a", "changed", "1", "2"}, {InValues, "b.c", "removed", "x", ""}, {InValues, "b.e", "added", "", "null"}, {InValues, "list", "changed", "[1, 2]", "[1]"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := CompareValues(before, Chart{Name: "web", Values: []byte("[")}); err == nil {
		t.Error("no error for values that are no YAML")
	}
}

func TestGoneValues(t *testing.T) {
	before := Chart{Name: "web", Values: []byte("image: {tag: x, name: y}\nresources: {}\nold: 1\nnow: {open: 1}\nextra: a\n"), Subcharts: []Chart{{Name: "db"}, {Name: "cache"}},
		Defaults: defaultsOf("image: {tag: x, name: y}\nresources: {}\nold: 1\nnow: {open: 1}\nextra: a\ndb: {size: 1, mode: a, free: {}}\ncache: {}\n")}
	after := Chart{Name: "web", Values: []byte("image: {name: y}\nresources: {}\nnow: {}\n"), Subcharts: []Chart{{Name: "db"}},
		Defaults: defaultsOf("image: {name: y}\nresources: {}\nnow: {}\ndb: {size: 1, free: {}}\n"), Schema: []byte(`{"properties": {"extra": {}}}`)}
	got, err := Gone(before, after, `{"image": {"tag": "z", "name": "n"}, "resources": {"limits": {"cpu": 1}}, "old": 2, "now": {"open": 2}, "extra": "b",
		"db": {"size": 1, "mode": "b", "free": {"x": 1}, "other": 1, "global": {"y": 1}}, "cache": {"size": 1}, "global": {"x": 1}, "unknown": 1}`)
	if diff := cmp.Diff([]string{"cache.size", "db.mode", "image.tag", "old"}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if got, err := Gone(before, after, ""); len(got) > 0 || err != nil {
		t.Error(got, err)
	}
}

func TestCompareRenderings(t *testing.T) {
	object := func(kind, name string, fields map[string]any) release.Object {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}}
		for key, value := range fields {
			o.Object[key] = value
		}
		return release.Object{Object: o}
	}
	version := func(name string, stored bool) any { return map[string]any{"name": name, "storage": stored} }
	definition := func(versions ...any) release.Object {
		return object("CustomResourceDefinition", "a.example.com", map[string]any{"spec": map[string]any{"versions": versions}})
	}
	labelled := object("Secret", "same", nil)
	labelled.Object.SetLabels(map[string]string{"helm.sh/chart": "web-2.0.0"})
	same := object("Secret", "same", nil)
	same.Object.SetLabels(map[string]string{"helm.sh/chart": "web-1.0.0"})
	changes, warnings := CompareRenderings(
		release.Rendering{Objects: []release.Object{object("ConfigMap", "a", nil), object("ConfigMap", "b", nil), same}, Definitions: []release.Object{definition(version("v1", true))}},
		release.Rendering{
			Objects:     []release.Object{object("ConfigMap", "b", map[string]any{"data": map[string]any{"x": "y"}}), labelled},
			Definitions: []release.Object{definition(version("v2", true))}, Hooks: []release.Hook{{Object: object("Job", "init", nil)}},
		})
	want := []Change{
		{Section: InObjects, Name: `ConfigMap "a"`, Kind: "removed"}, {Section: InObjects, Name: `ConfigMap "b"`, Kind: "changed"},
		{Section: InDefinitions, Name: `CustomResourceDefinition "a.example.com"`, Kind: "changed"}, {Section: InHooks, Name: `Job "init"`, Kind: "added"},
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Error(diff)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], `"a.example.com" no longer has version "v1"`) {
		t.Errorf("the warnings are %q", warnings)
	}
	_, warnings = CompareRenderings(release.Rendering{Definitions: []release.Object{definition(version("v1", true))}},
		release.Rendering{Objects: []release.Object{definition(version("v2", true), version("v1", false))}})
	if len(warnings) > 0 {
		t.Errorf("the warnings are %q", warnings)
	}
}
