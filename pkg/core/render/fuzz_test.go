package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
)

// FuzzObjects checks that rendering any template results in marked objects without duplicates, or in a *template.Error.
func FuzzObjects(f *testing.F) {
	f.Add(everything)
	f.Add(configMapNamed("a") + "---\n" + configMapNamed("{{ .Params.NODES }}"))
	f.Add("apiVersion: v1\nkind: List\nitems: [{}, 1]\n")
	f.Add("{{ range .Params.HOSTS }}---\n{{ . | toYaml }}{{ end }}")
	f.Add("a: &a [*a]\n...\n%YAML 1.1\n--- {b: !!binary x}")
	f.Fuzz(func(t *testing.T, text string) {
		objects, err := Objects(newContext("t", text), "t")
		if err != nil {
			var problem *template.Error
			if !errors.As(err, &problem) || problem.Template != "t" || err.Error() == "" {
				t.Fatalf("want an *Error of template t, got %v", err)
			}
			if strings.ContainsAny(err.Error()+problem.Err.Error(), "\n\r\v\f\u0085\u2028\u2029") {
				t.Fatalf("the error has more than one line: %q", err)
			}
			return
		}
		seen := map[identity]bool{}
		for _, obj := range objects {
			id := identify(obj, "prod")
			if seen[id] || obj.GetName() == "" || obj.GetKind() == "" || obj.GetAPIVersion() == "" {
				t.Errorf("%s stands twice or lacks its identity", id)
			}
			seen[id] = true
			if obj.GetLabels()[kudo.LabelInstance] != "parent-zk" || obj.GetAnnotations()[kudo.AnnotationExecution] != "uid-1" {
				t.Errorf("%s is not marked", id)
			}
			obj.DeepCopy() // panics on values that JSON does not have
		}
	})
}

// FuzzRestartPods checks that any two objects result in an object, that the input stays unmodified, and that a second pass changes nothing.
func FuzzRestartPods(f *testing.F) {
	f.Add(`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{}}}`, `{"spec":{"template":{"metadata":{"annotations":{"a":1}}}}}`, "me")
	f.Add(`{"apiVersion":"batch/v1","kind":"CronJob","spec":{"jobTemplate":{"spec":{"template":{"metadata":[]}}}}}`, `{}`, "")
	f.Add(`{"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"template":{"metadata":{"annotations":{"kudo.dev/last-plan-execution-uid":{}}}}}}`, `null`, "")
	f.Fuzz(func(t *testing.T, first, second, restart string) {
		obj, live := decodedObject(first), decodedObject(second)
		if obj == nil {
			return
		}
		before := obj.DeepCopy()
		once := RestartPods(obj, live, "me", types.UID(restart))
		if diff := cmp.Diff(before, obj); diff != "" {
			t.Errorf("the object was changed (-want +got)\n%s", diff)
		}
		if diff := cmp.Diff(once, RestartPods(once, live, "me", types.UID(restart))); diff != "" {
			t.Errorf("a second pass changes it (-once +twice)\n%s", diff)
		}
	})
}

func decodedObject(text string) *unstructured.Unstructured {
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) != nil || object == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: object}
}

// places are templates that insert a value at every kind of place.
var places = []string{
	"data:\n  a: {{ .Params.A }}\n  b: c\n",
	"data:\n  a: x{{ .Params.A }}y\n  b: c\n",
	"data:\n  a: {{ .Params.A }} # d\n  b: c\n",
	"data:\n  a:\n    {{ .Params.A }}\n  b: c\n",
	"data:\n  a: &a {{ .Params.A }}\n  b: *a\n  c: &c {d: e}\n",
	"data:\n- {{ .Params.A }}\n- b\n",
	"data:\n- a:{{ .Params.A }}\n- b\n",
	"data:\n- a: b\n  {{ .Params.A }}: c\n- d\n",
	"data:\n- {{ .Params.A }}{{ .Params.A }}\n- b\n",
	"data:\n  a: \"{{ .Params.A }}\"\n  b: c\n",
	"data:\n  a: '{{ .Params.A }}'\n  b: c\n",
	"data: {a: \"{{ .Params.A }}\", b: '{{ .Params.A }}'}\n",
	"data: [\"{{ .Params.A }}\", '{{ .Params.A }}', {{ .Params.A | quote }}, {{ .Params.A | squote }}]\n",
	"data: [{{ .Params.A }}, b]\n",
	"data: {a: {{ .Params.A }}, b: [c, {{ .Params.A }}]}\n",
	"data: ['{{ .Params.A | toJson }}', {{ .Params.A | toJson }}, \"{{ .Params.A | toYaml }}\", {{ .Params.A | toYaml }}]\n",
	"data: {a: '{{ dict \"a\" .Params.A | toJson }}', b: {{ dict \"a\" .Params.A | toJson }}}\n",
	"data:\n{{ dict \"a\" .Params.A | toYaml | indent 2 }}\n  b: c\n",
	"data:\n  # {{ dict \"a\" .Params.A \"b\" .Params.A | toYaml }}\n  b: c\n",
	"data:\n  a: |\n    {{ .Params.A }}\n    x\n  b: c\n",
	"data:\n  a: |-\n{{ .Params.A | indent 4 }}\n  b: c\n",
	"data:\n  a: >{{ .Params.A | nindent 4 }}\n  b: c\n",
	"data:\n  a: |\n    x\n{{ .Params.A | indent 4 | trim | indent 4 }}\n  b: c\n",
	"data:\n  a: |\n    x={{ .Params.A }};\n    y\n  b: c\n",
	"data:\n  {{ .Params.A }}: b\n  c: d\n",
	"data:\n  {{ .Params.A }}b: c\n  c: d\n",
	"data:\n  \"{{ .Params.A }}\": b\n  c: d\n",
	"# {{ .Params.A }}\ndata:\n  b: c # {{ .Params.A }} d\n",
	"data:\n  b: c\n{{ .Params.A }}\n",
	"data:\n  b: c\n---\n{{ .Params.A }}\n",
	"k: &k kept\ndata:\n  a: {{ .Params.A }}\nkeep: *k\n",
	"k: &k kept\ndata: [{{ .Params.A }}, '{{ .Params.A }}', \"{{ .Params.A }}\", {{ .Params.A }}]\nkeep: *k\n",
}

// FuzzValues checks that a value that is accepted leaves the structure as any other value does.
func FuzzValues(f *testing.F) {
	for i := range places {
		for _, value := range []string{"a", "a\n---\nb: c", "x\n  d: e", "|1", "{", "*a", "#", "\"", "', 'x", "a: b", " ", "\n  ", "- a", "? a", "\u2028 a", "a\r# b", "&k b", "*k", "!a &k b", "a\n  &k b"} {
			f.Add(uint8(i), value)
		}
	}
	f.Fuzz(func(t *testing.T, place uint8, value string) {
		if strings.TrimSpace(value) == "" || value == "x" {
			return
		}
		template := places[int(place)%len(places)]
		expected, err := Objects(guardedContext(template, map[string]string{"A": "x"}), "t")
		if err != nil {
			return // the place takes only other values
		}
		objects, err := Objects(guardedContext(template, map[string]string{"A": value}), "t")
		if err != nil {
			return
		}
		var want, got []any
		for _, o := range expected {
			want = append(want, skeleton(o.Object))
		}
		for _, o := range objects {
			got = append(got, skeleton(o.Object))
			if keep, anchored := o.Object["keep"]; anchored && keep != "kept" {
				t.Errorf("%q in\n%schanges another field: %q", value, template, keep)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q in\n%s(-want +got)\n%s", value, template, diff)
		}
	})
}

// skeleton returns the structure of a value: the sizes of its maps and lists.
func skeleton(value any) any {
	switch v := value.(type) {
	case map[string]any:
		parts := []any{"map"}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, skeleton(v[key]))
		}
		slices.SortFunc(parts[1:], func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		return parts
	case []any:
		parts := []any{"list"}
		for _, item := range v {
			parts = append(parts, skeleton(item))
		}
		return parts
	default:
		return "scalar"
	}
}
