package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
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

func TestMarkRelease(t *testing.T) {
	c := Context{
		Version:  &kudo.OperatorVersionSpec{Operator: corev1.ObjectReference{Name: "shop"}, Version: "1.0.0"},
		Instance: "shop.db", Namespace: "apps", Plan: "deploy", Execution: "1",
	}
	set := func(heritage string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{"name": "db"},
			"spec": map[string]any{
				"template":             map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "db"}}},
				"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "data"}}},
			},
		}}
		if heritage != "" {
			o.SetLabels(map[string]string{kudo.LabelHeritage: heritage})
		}
		return o
	}
	for heritage, want := range map[string]string{"": kudo.Heritage, "Helm": "Helm"} {
		made, err := MarkRelease(c, set(heritage))
		if err != nil {
			t.Fatal(err)
		}
		if labels := made.GetLabels(); labels[kudo.LabelHeritage] != want || labels[kudo.LabelInstance] != "shop-db" || labels[kudo.LabelOperator] != "shop" {
			t.Errorf("labels: got %v", labels)
		}
		if annotations := made.GetAnnotations(); annotations[kudo.AnnotationExecution] != "1" || annotations[kudo.AnnotationInstanceNamespace] != "apps" {
			t.Errorf("annotations: got %v", annotations)
		}
		if diff := cmp.Diff(set(heritage).Object["spec"], made.Object["spec"]); diff != "" {
			t.Errorf("the chart's own templates are changed (-want +got):\n%s", diff)
		}
		if err := MarkClaims(c, made, []string{"other"}); err != nil || !cmp.Equal(set(heritage).Object["spec"], made.Object["spec"]) {
			t.Errorf("another claim template is marked: %v", err)
		}
		if err := MarkClaims(c, made, []string{"data"}); err != nil {
			t.Fatal(err)
		}
		claims, _, _ := unstructured.NestedSlice(made.Object, "spec", "volumeClaimTemplates")
		labels, _, _ := unstructured.NestedStringMap(claims[0].(map[string]any), "metadata", "labels")
		if labels[kudo.LabelHeritage] != kudo.Heritage || labels[kudo.LabelInstance] != "shop-db" {
			t.Errorf("labels of the claims: got %v", labels)
		}
	}
	role := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": map[string]any{"name": "r", "labels": map[string]any{"heritage": "Helm"}},
	}}
	made, err := MarkRelease(c, role)
	if err != nil || made.GetLabels()[kudo.LabelHeritage] != kudo.Heritage {
		t.Errorf("a Role: got %v, %v", made.GetLabels(), err)
	}
	if _, err := MarkRelease(c, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"generateName": "x-"}}}); err == nil {
		t.Error("an object without a name is applied")
	}
}

func TestValuesOfAChart(t *testing.T) {
	for name, test := range map[string]struct{ template, value, want, problem string }{
		"an object":           {template: "a: {{ .Params.V }}\nb: [1]\n", value: "x", want: `{"a":"x","b":[1]}`},
		"nothing":             {template: "# no values\n", want: ""},
		"a character of YAML": {template: `a: "\x85"`, want: `{"a":"\u0085"}`},
		"a list":              {template: "[1]\n", problem: "must contain the chart's values, an object, got a list"},
		"two documents":       {template: "a: 1\n---\nb: 2\n", problem: "must contain the chart's values in one document, got 2"},
		"a value that breaks": {template: "a: {{ .Params.V }}\n", value: "x\nb: y", problem: `the value of parameter "V" changes the structure`},
		"invalid YAML":        {template: "a: [\n", problem: "values.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Context{Version: &kudo.OperatorVersionSpec{
				Templates: map[string]string{"values.yaml": test.template}, Parameters: []kudo.Parameter{{Name: "V"}},
			}, Parameters: map[string]string{"V": test.value}}
			got, err := Values(c, "values.yaml")
			if (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) || got != test.want {
				t.Errorf("got %q, %v; want %q, %q", got, err, test.want, test.problem)
			}
		})
	}
}
