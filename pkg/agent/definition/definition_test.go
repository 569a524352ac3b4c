package definition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var gadget = schema.GroupKind{Group: "bugs.example.org", Kind: "Gadget"}

func TestADefinitionIsReadFromItsObject(t *testing.T) {
	version := func(name string, served bool) any { return map[string]any{"name": name, "served": served} }
	condition := func(kind, status string) any { return map[string]any{"type": kind, "status": status} }
	object := func(scope string, versions, conditions []any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "gadgets.bugs.example.org", "uid": "one"},
			"spec": map[string]any{
				"group": gadget.Group, "scope": scope, "names": map[string]any{"kind": gadget.Kind, "plural": "gadgets"}, "versions": versions,
			},
			"status": map[string]any{"conditions": conditions},
		}}
	}
	established := []any{condition("NamesAccepted", "True"), condition("Established", "True")}
	for sentence, test := range map[string]struct {
		object *unstructured.Unstructured
		want   Definition
	}{
		"of two versions, sorted": {
			object("Namespaced", []any{version("v1", true), version("v1alpha1", false), version("v0", true)}, established),
			Definition{Name: "gadgets.bugs.example.org", UID: "one", Kind: gadget, Namespaced: true, Served: "v0 v1", Established: true},
		},
		"of a kind without a namespace, whose names are taken": {
			object("Cluster", []any{version("v1", true)}, []any{condition("Established", "False")}),
			Definition{Name: "gadgets.bugs.example.org", UID: "one", Kind: gadget, Served: "v1"},
		},
		"of no version, just created": {
			object("Namespaced", nil, nil), Definition{Name: "gadgets.bugs.example.org", UID: "one", Kind: gadget, Namespaced: true},
		},
		"with nonsense": {
			object("Namespaced", []any{"v1", map[string]any{"served": true}}, []any{1}),
			Definition{Name: "gadgets.bugs.example.org", UID: "one", Kind: gadget, Namespaced: true},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(test.want, of(test.object)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatTheServerShowsAgreesWithADefinitionOnceItHasAppliedIt(t *testing.T) {
	mapping := func(version string, change ...func(*meta.RESTMapping)) *meta.RESTMapping {
		m := &meta.RESTMapping{
			Resource:         schema.GroupVersionResource{Group: gadget.Group, Version: version, Resource: "gadgets"},
			GroupVersionKind: gadget.WithVersion(version), Scope: meta.RESTScopeNamespace,
		}
		for _, c := range change {
			c(m)
		}
		return m
	}
	root := func(m *meta.RESTMapping) { m.Scope = meta.RESTScopeRoot }
	other := func(m *meta.RESTMapping) { m.Resource.Resource = "gizmos" }
	renamed := func(m *meta.RESTMapping) { m.GroupVersionKind.Kind = "Gizmo" }
	defined := Definition{Name: "gadgets.bugs.example.org", Kind: gadget, Namespaced: true, Served: "v1 v2", Established: true}
	pending := defined
	pending.Established = false
	none := defined
	none.Served = ""
	absent := Definition{Name: defined.Name}
	for sentence, test := range map[string]struct {
		definition Definition
		shown      []*meta.RESTMapping
		want       bool
	}{
		"exactly the served versions":              {defined, []*meta.RESTMapping{mapping("v2"), mapping("v1")}, true},
		"a version that is no longer served":       {defined, []*meta.RESTMapping{mapping("v1"), mapping("v2"), mapping("v1alpha1")}, false},
		"a version is still missing":               {defined, []*meta.RESTMapping{mapping("v1")}, false},
		"the former scope":                         {defined, []*meta.RESTMapping{mapping("v1", root), mapping("v2", root)}, false},
		"the former kind of the resource":          {defined, []*meta.RESTMapping{mapping("v1", renamed), mapping("v2", renamed)}, false},
		"nothing yet":                              {defined, nil, false},
		"nothing before it is established":         {pending, nil, true},
		"a former definition of the name":          {pending, []*meta.RESTMapping{mapping("v1")}, false},
		"nothing of a definition without versions": {none, nil, true},
		"something of a definition without any":    {none, []*meta.RESTMapping{mapping("v1")}, false},
		"nothing of a definition that is deleted":  {absent, nil, true},
		"still a definition that is deleted":       {absent, []*meta.RESTMapping{mapping("v1")}, false},
		"another resource of the kind":             {absent, []*meta.RESTMapping{mapping("v1", other)}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := test.definition.Agrees(test.shown); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestADefinitionServesVersionsOnceItIsEstablished(t *testing.T) {
	d := Definition{Name: "gadgets.bugs.example.org", Served: "v1 v1alpha1"}
	if d.Serves("v1") {
		t.Error("it serves a version before it is established")
	}
	d.Established = true
	if !d.Serves("v1") || !d.Serves("v1alpha1") || d.Serves("v1alpha") || d.Serves("") {
		t.Error("it does not serve exactly its versions")
	}
	if (Definition{}).Serves("v1") {
		t.Error("a definition that does not exist serves a version")
	}
}
