package render

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/template"
)

// FuzzObjects checks that rendering any template results in marked objects without duplicates, or in a *template.Error.
func FuzzObjects(f *testing.F) {
	f.Add(everything)
	f.Add(named("a") + "---\n" + named("{{ .Params.NODES }}"))
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
