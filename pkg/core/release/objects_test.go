package release

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// parse returns the object of a YAML document; nil for none.
func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// widgets returns a definition that serves versions; those that end with ! are not served.
func widgets(t *testing.T, versions ...string) *unstructured.Unstructured {
	t.Helper()
	text := "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.a.b}, " +
		"spec: {group: a.b, names: {kind: Widget}, versions: ["
	for _, v := range versions {
		name, off := strings.CutSuffix(v, "!")
		text += "{name: " + name + ", served: " + map[bool]string{false: "true", true: "false"}[off] + "},"
	}
	return parse(t, text+"]}}")
}

func TestServes(t *testing.T) {
	r := Rendering{Definitions: []Object{{Object: widgets(t, "v1", "v2!", "v3")}}}
	want := []string{"a.b/v1", "a.b/v1/Widget", "a.b/v3", "a.b/v3/Widget"}
	if got := r.Serves(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestCheckDefinition(t *testing.T) {
	live := widgets(t, "v1", "v2")
	live.Object["status"] = map[string]any{"storedVersions": []any{"v1", "v2"}}
	if err := CheckDefinition(widgets(t, "v1!", "v2", "v3"), live); err != nil {
		t.Errorf("a version that is no longer served is dropped: %v", err)
	}
	if err := CheckDefinition(widgets(t, "v2"), nil); err != nil {
		t.Errorf("a definition that does not exist yet: %v", err)
	}
	err := CheckDefinition(widgets(t, "v2"), live)
	if err == nil || !strings.Contains(err.Error(), "CustomResourceDefinition widgets.a.b: the chart drops version v1, in which objects are stored") {
		t.Errorf("got %v", err)
	}
}

func TestCheckServed(t *testing.T) {
	if err := CheckServed(widgets(t, "v1", "v3!"), widgets(t, "v1", "v2")); err != nil {
		t.Error(err)
	}
	for _, live := range []*unstructured.Unstructured{widgets(t, "v1"), widgets(t, "v1", "v2!")} {
		err := CheckServed(widgets(t, "v1", "v2"), live)
		if err == nil || !strings.Contains(err.Error(), "lacks version v2, which the chart defines") {
			t.Errorf("got %v", err)
		}
	}
}

func TestForTask(t *testing.T) {
	mark := func(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if o.GetName() == "wrong" {
			return nil, errors.New("no name")
		}
		o = o.DeepCopy()
		o.SetLabels(map[string]string{"marked": "true"})
		return o, nil
	}
	config := Object{Source: "web/templates/config.yaml", Object: parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: config}}")}
	both := Hook{Object: Object{Source: "web/templates/hook.yaml", Object: parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: hook}}")},
		Events: []Event{"test", PreInstall, PreUpgrade}}
	tests := both
	tests.Events = []Event{"test", "pre-rollback"}
	rendered := Rendering{Definitions: []Object{{Object: widgets(t, "v1")}}, Hooks: []Hook{both, tests}, Objects: []Object{config}}

	made, err := rendered.ForTask(kudo.HelmTaskSpec{}, mark)
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Hooks) != 1 || !slices.Equal(made.Hooks[0].Events, []Event{PreInstall, PreUpgrade}) {
		t.Errorf("hooks: got %+v", made.Hooks)
	}
	for _, o := range made.All() {
		if o.GetLabels()["marked"] == "" {
			t.Errorf("%s is not marked", o.GetName())
		}
	}
	if made.Definitions[0].Object.GetAnnotations()[kudo.AnnotationKeep] != "true" || made.Hooks[0].Object.Object.GetAnnotations()[kudo.AnnotationHook] != "pre-install" {
		t.Error("definitions stay, and hooks are no manifests: the annotations are missing")
	}
	if len(rendered.All()[0].GetAnnotations()) > 0 {
		t.Error("the rendering itself was changed")
	}
	if made, _ := rendered.ForTask(kudo.HelmTaskSpec{CRDs: kudo.SkipCRDs}, mark); len(made.Definitions) > 0 {
		t.Error("definitions are applied although they are to be skipped")
	}

	later := both
	later.Events = []Event{PostInstall}
	for name, test := range map[string]struct {
		change func(*Rendering)
		want   string
	}{
		"an object twice":                   {func(r *Rendering) { r.Objects = append(r.Objects, config) }, "ConfigMap config is also rendered by web/templates/config.yaml"},
		"a hook that is also an object":     {func(r *Rendering) { r.Objects = append(r.Objects, both.Object) }, "ConfigMap hook is also rendered by web/templates/hook.yaml"},
		"a hook twice for one event":        {func(r *Rendering) { r.Hooks = append(r.Hooks, both) }, "ConfigMap hook is also rendered by"},
		"one object as hooks of two events": {func(r *Rendering) { r.Hooks = append(r.Hooks, later) }, ""},
		"too many hooks": {func(r *Rendering) {
			for i := range 300 {
				h := both
				h.Object.Object = parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: hook-"+strconv.Itoa(i)+"}}")
				r.Hooks = append(r.Hooks, h)
			}
		}, "the chart has 602 hooks, more than 512"},
		"an object that cannot be marked": {func(r *Rendering) {
			r.Objects = append(r.Objects, Object{Source: "web/x.yaml", Object: parse(t, "{kind: ConfigMap, metadata: {name: wrong}}")})
		}, "web/x.yaml: no name"},
	} {
		changed := rendered.DeepCopy()
		test.change(&changed)
		_, err := changed.ForTask(kudo.HelmTaskSpec{}, mark)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

func TestRemovalOf(t *testing.T) {
	of := func(event Event, state kudo.HookState) kudo.HookRecord {
		return kudo.HookRecord{Event: string(event), State: state}
	}
	record := kudo.TaskRecord{HooksOf: "first", Hooks: []kudo.HookRecord{
		of(PostInstall, kudo.HookSucceeded), of(PreDelete, kudo.HookSucceeded), of(PreDelete, kudo.HookFailed), of(PostDelete, kudo.HookRunning),
	}}
	if !HasFailed(record) {
		t.Error("a hook has failed")
	}
	got := RemovalOf(record, "second")
	if want := []kudo.HookRecord{of(PreDelete, kudo.HookSucceeded)}; got.HooksOf != "second" || !slices.Equal(got.Hooks, want) {
		t.Errorf("got %+v, want hooks %+v", got, want)
	}
	if len(record.Hooks) != 4 || HasFailed(got) {
		t.Error("the record before was changed")
	}
}

func TestShadow(t *testing.T) {
	defs := []kudo.Parameter{{Name: "TOKEN"}, {Name: "LIST", Type: kudo.ArrayType}, {Name: "EMPTY"}}
	given := map[string]string{"TOKEN": "s3cr&t", "LIST": `["one", "two"]`, "EMPTY": ""}
	shadow, err := Shadow(defs, given)
	if err != nil {
		t.Fatal(err)
	}
	if len(shadow["TOKEN"]) != len(given["TOKEN"]) || shadow["TOKEN"] == given["TOKEN"] || shadow["LIST"] == given["LIST"] || shadow["EMPTY"] != "" {
		t.Errorf("got %v", shadow)
	}
	named := func(names ...string) Rendering {
		var r Rendering
		for _, name := range names {
			r.Objects = append(r.Objects, Object{Object: parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+"}}")})
		}
		return r
	}
	if err := CheckNames(named("a", "b"), named("a", "b")); err != nil {
		t.Error(err)
	}
	for _, other := range []Rendering{named("a", "c"), named("a"), named("a", "b", "c")} {
		if CheckNames(named("a", "b"), other) == nil {
			t.Errorf("other objects are not noticed: %v", other)
		}
	}
}

func TestObjectsOfOneKindAreAppliedInParallel(t *testing.T) {
	for name, c := range map[string]struct{ objects, want string }{
		"none":                                  {"", ""},
		"one":                                   {"v1/Secret", "1"},
		"neighbors of one kind are a batch":     {"v1/Secret v1/Secret v1/Service apps/v1/Deployment apps/v1/Deployment apps/v1/Deployment", "2 1 3"},
		"the order of kinds is that of objects": {"v1/Service v1/Secret v1/Service", "1 1 1"},
		"versions of a kind are not mixed":      {"policy/v1/Budget policy/v1beta1/Budget", "1 1"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []*unstructured.Unstructured
			for _, kind := range strings.Fields(c.objects) {
				o := &unstructured.Unstructured{}
				o.SetAPIVersion(path.Dir(kind))
				o.SetKind(path.Base(kind))
				objects = append(objects, o)
			}
			var sizes []string
			all := []*unstructured.Unstructured(nil)
			for _, batch := range Batches(objects) {
				sizes, all = append(sizes, strconv.Itoa(len(batch))), append(all, batch...)
			}
			if got := strings.Join(sizes, " "); got != c.want {
				t.Errorf("batches of %s, want %s", got, c.want)
			}
			if !slices.Equal(all, objects) {
				t.Error("the batches do not contain the objects in their order")
			}
		})
	}
}

func TestEndedHooksAreCountedOnce(t *testing.T) {
	hook := func(event, name string, state kudo.HookState) kudo.HookRecord {
		return kudo.HookRecord{Event: event, Kind: "Job", Name: name, State: state}
	}
	hooks := func(hooks ...kudo.HookRecord) []kudo.HookRecord { return hooks }
	const install, remove = "pre-install", "pre-delete"
	for sentence, test := range map[string]struct{ before, after, want []kudo.HookRecord }{
		"none":            {nil, hooks(), nil},
		"running":         {nil, hooks(hook(install, "a", kudo.HookRunning)), nil},
		"at once":         {nil, hooks(hook(install, "a", kudo.HookSucceeded)), hooks(hook(install, "a", kudo.HookSucceeded))},
		"after running":   {hooks(hook(install, "a", kudo.HookRunning)), hooks(hook(install, "a", kudo.HookFailed)), hooks(hook(install, "a", kudo.HookFailed))},
		"before":          {hooks(hook(install, "a", kudo.HookSucceeded)), hooks(hook(install, "a", kudo.HookSucceeded), hook(install, "b", kudo.HookRunning)), nil},
		"another event":   {hooks(hook(install, "a", kudo.HookSucceeded)), hooks(hook(install, "a", kudo.HookSucceeded), hook(remove, "a", kudo.HookSucceeded)), hooks(hook(remove, "a", kudo.HookSucceeded))},
		"a retry":         {hooks(hook(remove, "a", kudo.HookSucceeded), hook(remove, "b", kudo.HookRunning)), hooks(hook(remove, "a", kudo.HookSucceeded), hook(remove, "b", kudo.HookFailed)), hooks(hook(remove, "b", kudo.HookFailed))},
		"a removed chart": {hooks(hook(remove, "a", kudo.HookSucceeded)), nil, nil},
	} {
		before, after := kudo.TaskRecord{Hooks: test.before}, kudo.TaskRecord{Hooks: test.after, HooksOf: "another"}
		if got := EndedHooks(before, after); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", sentence, got, test.want)
		}
	}
}

func TestMirrorsReplaceTheRegistriesOfHooksAndObjectsInACopy(t *testing.T) {
	const job = "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {containers: [{name: a, image: IMAGE}]}}}}"
	rendering := func(image string) Rendering {
		o := func() Object {
			return Object{Source: "a.yaml", Object: parse(t, strings.ReplaceAll(job, "IMAGE", image))}
		}
		return Rendering{Hooks: []Hook{{Object: o(), Events: []Event{PreInstall}}}, Objects: []Object{o()}, Warnings: []string{"w"}}
	}
	before := rendering("quay.io/a:1")
	for range 2 { // a rendering is cached
		got, err := before.WithMirrors([]kudo.ImageRegistry{{Source: "quay.io", Mirror: "quay.io/mirror"}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rendering("quay.io/mirror/a:1"), got); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff(rendering("quay.io/a:1"), before); diff != "" {
		t.Error(diff)
	}
}
