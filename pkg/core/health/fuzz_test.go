package health

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tandem-addons/tandem/pkg/text"
)

// FuzzOf checks that any object gets one status and a one-line message that names it, and stays unmodified, and that a stale or deleted
// object is never healthy.
func FuzzOf(f *testing.F) {
	for kind := range judges {
		apiVersion := strings.TrimPrefix(kind.Group+"/v1", "/")
		for _, rest := range []string{
			`"metadata":{"generation":2},"status":{"observedGeneration":1}`,
			`"spec":{"replicas":1,"completions":1},"status":{"conditions":[{"type":"Ready","status":"True"}],"phase":"Running"}`,
			`"status":{"replicas":"1","conditions":[1],"containerStatuses":[{"state":[]}]}`,
		} {
			f.Add(fmt.Sprintf(`{"apiVersion":%q,"kind":%q,%s}`, apiVersion, kind.Kind, rest))
		}
	}
	f.Add(`{"apiVersion":"example.com/v1","kind":"Custom","metadata":{"deletionTimestamp":1,"namespace":"a","name":"b"},"status":{"conditions":[{"type":"Ready"}]}}`)
	f.Add(`{"apiVersion":"v1","kind":"Pod\r\n","metadata":{"name":"a\u2028b"},"status":{"phase":"Failed","reason":"x\ny"}}`)
	f.Add(`{"apiVersion":"v1","kind":"Pod","status":{"containerStatuses":[{"name":"a\nb","state":{"waiting":{"reason":"c\nd"}}}]}}`)
	f.Fuzz(func(t *testing.T, document string) {
		var content map[string]any
		if utiljson.Unmarshal([]byte(document), &content) != nil || content == nil {
			return
		}
		obj := &unstructured.Unstructured{Object: content}
		before := obj.DeepCopy()
		got := Of(obj)
		if diff := cmp.Diff(before, obj); diff != "" {
			t.Errorf("the object was changed (-want +got)\n%s", diff)
		}
		switch got.Status {
		case Healthy, Progressing, Failed, Unknown:
		default:
			t.Errorf("status %q", got.Status)
		}
		if strings.ContainsAny(got.Message, "\n\r\v\f\u0085\u2028\u2029") {
			t.Errorf("message %q has more than one line", got.Message)
		}
		if !strings.HasPrefix(got.Message, text.OneLine(subject(obj)+":")) {
			t.Errorf("message %q does not name the object", got.Message)
		}
		observed, found, _ := unstructured.NestedInt64(content, "status", "observedGeneration")
		stale := found && observed < obj.GetGeneration() && obj.GetAnnotations() == nil
		deleted, _, _ := unstructured.NestedFieldNoCopy(content, "metadata", "deletionTimestamp")
		if (stale || deleted != nil) && got.Status == Healthy {
			t.Errorf("outdated or deleted, and healthy: %s", got.Message)
		}
	})
}
