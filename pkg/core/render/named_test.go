package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestNamed(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\n"
	for sentence, test := range map[string]struct{ template, problem string }{
		"without metadata":            {pod, ""},
		"with empty metadata":         {pod + "metadata:\n", ""},
		"with a name of its own":      {pod + "metadata: {name: other, labels: {a: b}}\n", ""},
		"behind a comment":            {"# what it does\n---\n" + pod, ""},
		"with metadata that are none": {pod + "metadata: [1]\n", `template "pod.yaml", document 1 (line 1 of the rendered text): metadata must be an object`},
		"without a kind":              {"apiVersion: v1\n", "kind is missing or empty"},
		"of two documents":            {pod + "---\n" + pod, `template "pod.yaml": must contain exactly one object, got 2 documents`},
		"of a list":                   {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod}, {apiVersion: v1, kind: Pod}]\n", "must contain exactly one object, got 2"},
		"of nothing":                  {"# nothing\n", "must contain exactly one object, got 0 documents"},
		"that does not render":        {"{{ .Params.NOPE }}", "NOPE"},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newContext("pod.yaml", test.template)
			object, err := NamedObject(c, "pod.yaml", "given")
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("the error is %v, want one with %q", err, test.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if object.GetName() != "given" || object.GetKind() != "Pod" || object.GetLabels()[kudo.LabelHeritage] != kudo.Heritage {
				t.Errorf("got %v", object.Object)
			}
		})
	}
}

func TestMarkPutsOnWhatObjectsDoes(t *testing.T) {
	c := newContext("config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	rendered, err := Objects(c, "config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	bare := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
	marked, err := Mark(c, bare)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rendered[0].Object, marked.Object); diff != "" {
		t.Errorf("the marks (-rendered +marked):\n%s", diff)
	}
	if len(bare.GetLabels())+len(bare.GetAnnotations()) > 0 {
		t.Error("the input changed")
	}
}
