package drift_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/drift"
)

const manager = "engine"

// object returns an object of a kind with these fields, in YAML, and managed fields by manager. The engine applies, others update.
func object(t *testing.T, kind, fields string, managed map[string]string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(fields), &o.Object); err != nil {
		t.Fatal(err)
	}
	if o.Object == nil {
		o.Object = map[string]any{}
	}
	o.SetKind(kind)
	o.SetName("x")
	var entries []metav1.ManagedFieldsEntry
	for name, set := range managed {
		operation := metav1.ManagedFieldsOperationUpdate
		if name == manager {
			operation = metav1.ManagedFieldsOperationApply
		}
		entries = append(entries, metav1.ManagedFieldsEntry{Manager: name, Operation: operation, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(set)}})
	}
	o.SetManagedFields(entries)
	return o
}

const (
	bothKeys   = `{"f:data":{"f:a":{},"f:b":{}}}`
	firstKey   = `{"f:data":{"f:a":{}}}`
	secondKey  = `{"f:data":{"f:b":{}}}`
	containers = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:args":{},"f:image":{},"f:name":{}}}}}}}`
	noImage    = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:args":{},"f:name":{}}}}}}}`
	imageOnly  = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{"f:image":{}}}}}}}`
	web        = `spec: {template: {spec: {containers: [{name: side, image: s:1}, {name: web, image: %q, args: [a]}]}}}`
)

func TestCompare(t *testing.T) {
	ignore := func(kind, name, path string) []kudo.IgnoredFields {
		return []kudo.IgnoredFields{{Kind: kind, Name: name, Paths: []string{path}}}
	}
	for name, test := range map[string]struct {
		kind           string // ConfigMap if empty
		live, applied  string
		now            map[string]string // managed fields of the live object
		after          string            // the manager's fields after the apply
		ignored        []kudo.IgnoredFields
		opaque, unsure bool
		want           []string // paths with their changes
		zero           bool
	}{
		"nothing changed": {
			live: `data: {a: "1", b: "2"}`, applied: `data: {a: "1", b: "2"}`, now: map[string]string{manager: bothKeys}, after: bothKeys,
		},
		"another writer has changed a field": {
			live: `data: {a: "1", b: evil}`, applied: `data: {a: "1", b: "2"}`, now: map[string]string{manager: firstKey, "kubectl-edit": secondKey},
			after: bothKeys, want: []string{"/data/b was changed (by kubectl-edit)"},
		},
		"another writer has removed a field": {
			live: `data: {a: "1"}`, applied: `data: {a: "1", b: "2"}`, now: map[string]string{manager: firstKey}, after: bothKeys,
			want: []string{"/data/b was removed"},
		},
		"a field that an earlier execution has not applied": {
			live: `data: {a: "1"}`, applied: `data: {a: "1", b: "2"}`, now: map[string]string{manager: firstKey}, after: bothKeys, unsure: true,
		},
		"another writer has changed a field that an earlier execution has applied": {
			live: `data: {a: "1", b: evil}`, applied: `data: {a: "1", b: "2"}`, now: map[string]string{manager: firstKey, "kubectl-edit": secondKey},
			after: bothKeys, unsure: true, want: []string{"/data/b was changed (by kubectl-edit)"},
		},
		"another writer has removed all fields": {
			live: ``, applied: `data: {a: "1", b: "2"}`, now: map[string]string{}, after: bothKeys, want: []string{"/data was removed"},
		},
		"another writer has changed a field back": {
			live: `data: {a: "1", b: "2"}`, applied: `data: {a: "1", b: "2"}`, now: map[string]string{manager: firstKey, "kubectl-edit": secondKey}, after: bothKeys,
		},
		"another writer has added a field": {
			live: `data: {a: "1", b: "2"}`, applied: `data: {a: "1", b: "2"}`, now: map[string]string{manager: firstKey, "kubectl-edit": secondKey}, after: firstKey,
		},
		"a field that still belongs to the manager would be rendered differently": {
			live: `data: {a: "1", b: "2"}`, applied: `data: {a: "9", b: "2"}`, now: map[string]string{manager: bothKeys}, after: bothKeys,
		},
		"an item of a list by its keys, and an image is shown": {
			kind: "Deployment", live: fmt.Sprintf(web, "evil:latest"), applied: fmt.Sprintf(web, "good:1"),
			now: map[string]string{manager: noImage, "kubectl": imageOnly}, after: containers,
			want: []string{"/spec/template/spec/containers/web/image is evil:latest instead of good:1 (by kubectl)"},
		},
		"no values of an object that holds sensitive ones": {
			kind: "Deployment", live: fmt.Sprintf(web, "evil:latest"), applied: fmt.Sprintf(web, "good:1"), opaque: true,
			now: map[string]string{manager: noImage, "kubectl": imageOnly}, after: containers,
			want: []string{"/spec/template/spec/containers/web/image was changed (by kubectl)"},
		},
		"an ignored path": {
			live: `data: {a: "1", b: evil}`, applied: `data: {a: "1", b: "2"}`, now: map[string]string{manager: firstKey, "kubectl-edit": secondKey},
			after: bothKeys, ignored: ignore("", "", "/data/b"),
		},
		"an ignored parent, with any item": {
			kind: "Deployment", live: fmt.Sprintf(web, "evil:latest"), applied: fmt.Sprintf(web, "good:1"),
			now: map[string]string{manager: noImage}, after: containers, ignored: ignore("Deployment", "x", "/spec/template/spec/containers/*"),
		},
		"a path that is ignored in other objects": {
			live: `data: {a: "1", b: evil}`, applied: `data: {a: "1", b: "2"}`, now: map[string]string{manager: firstKey},
			after: bothKeys, ignored: append(ignore("Secret", "", "/data/b"), ignore("", "y", "/data/b")...), want: []string{"/data/b was changed"},
		},
		"a malformed path ignores nothing": {
			live: `data: {a: "1", b: evil}`, applied: `data: {a: "1", b: "2"}`, now: map[string]string{manager: firstKey},
			after: bothKeys, ignored: append(ignore("", "", "data/b"), ignore("", "", "")...), want: []string{"/data/b was changed"},
		},
		"a key with a slash": {
			live: `data: {a/b~c: evil}`, applied: `data: {a/b~c: "1"}`, now: map[string]string{}, after: `{"f:data":{"f:a/b~c":{}}}`,
			want: []string{"/data/a~1b~0c was changed"},
		},
		"scaled to zero": {
			kind: "Deployment", live: `spec: {replicas: 0}`, applied: `spec: {replicas: 3}`, now: map[string]string{"kubectl": `{"f:spec":{"f:replicas":{}}}`},
			after: `{"f:spec":{"f:replicas":{}}}`, want: []string{"/spec/replicas is 0 instead of 3 (by kubectl)"}, zero: true,
		},
		"scaled up": {
			kind: "Deployment", live: `spec: {replicas: 5}`, applied: `spec: {replicas: 3}`, now: map[string]string{"kubectl": `{"f:spec":{"f:replicas":{}}}`},
			after: `{"f:spec":{"f:replicas":{}}}`, want: []string{"/spec/replicas is 5 instead of 3 (by kubectl)"},
		},
		"a member of a set, and an index": {
			live: `{metadata: {finalizers: [other]}, items: [1]}`, applied: `{metadata: {finalizers: [other, a.b/c]}, items: [2]}`, now: map[string]string{},
			after: `{"f:metadata":{"f:finalizers":{"v:\"a.b/c\"":{}}},"f:items":{"i:0":{},"i:x":{},"q:0":{}}}`,
			want:  []string{"/items/0 is 1 instead of 2", "/metadata/finalizers/* was removed"},
		},
		"the mark of an execution": {
			live: `metadata: {annotations: {kudo.dev/plan: update}}`, applied: `metadata: {annotations: {kudo.dev/plan: deploy}}`, now: map[string]string{},
			after: `{"f:metadata":{"f:annotations":{"f:kudo.dev/plan":{}}}}`,
		},
		"malformed managed fields": {
			live: `data: {a: "1"}`, applied: `data: {a: "2"}`, now: map[string]string{"other": `[]`}, after: `{"f:data":"x","k:{":{},"v:{":{}}`,
			want: []string{"/data was changed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			kind := test.kind
			if kind == "" {
				kind = "ConfigMap"
			}
			finding := drift.Compare(drift.Objects{
				Live: object(t, kind, test.live, test.now), Applied: object(t, kind, test.applied, map[string]string{manager: test.after}),
				Manager: manager, Opaque: test.opaque, IsUnsure: test.unsure,
			}, kind+" x", test.ignored)
			var got []string
			for _, field := range finding.Fields {
				got = append(got, field.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			if (drift.StoppedText(statusOf(finding)) != "") != test.zero || finding.IsDrift() != (len(test.want) > 0) {
				t.Errorf("finding %+v", finding)
			}
		})
	}
}

func TestConditionIsBounded(t *testing.T) {
	var live, applied, after []string
	for i := range 50 {
		live, applied = append(live, fmt.Sprintf("k%d: %d", i, i+1)), append(applied, fmt.Sprintf("k%d: %d", i, i))
		after = append(after, fmt.Sprintf(`"f:k%d":{}`, i))
	}
	finding := drift.Compare(drift.Objects{
		Live:    object(t, "ConfigMap", "data: {"+strings.Join(live, ", ")+"}", map[string]string{strings.Repeat("long\n", 99): `{"f:data":{}}`}),
		Applied: object(t, "ConfigMap", "data: {"+strings.Join(applied, ", ")+"}", map[string]string{manager: `{"f:data":{` + strings.Join(after, ",") + `}}`}),
		Manager: manager,
	}, "ConfigMap x", nil)
	if len(finding.Fields) != drift.MaxFields || finding.More != 50-drift.MaxFields {
		t.Fatalf("%d fields and %d more", len(finding.Fields), finding.More)
	}
	findings := []drift.Finding{{Object: "Secret a"}, {Object: "Secret b", Gone: true}}
	for range 50 {
		findings = append(findings, finding)
	}
	condition := drift.NewCondition(findings, nil)
	if !strings.HasPrefix(condition.Message, "Secret b is gone; ConfigMap x: /data/k0 is 1 instead of 0") || !strings.Contains(condition.Message, "and 47 more fields") ||
		!strings.HasSuffix(condition.Message, "more objects") || len(condition.Message) > 2000 || strings.Contains(condition.Message, "\n") {
		t.Errorf("%d bytes: %s", len(condition.Message), condition.Message)
	}
	if none := drift.NewCondition(findings[:1], nil); none.Status != metav1.ConditionFalse || none.Reason != kudo.ReasonInSync {
		t.Errorf("no drift: %+v", none)
	}
	failed := errors.New("the API server\nrefuses")
	if unknown := drift.NewCondition(findings[:1], failed); unknown.Status != metav1.ConditionUnknown || unknown.Message != "the API server refuses" {
		t.Errorf("not compared: %+v", unknown)
	}
	if condition := drift.NewCondition(findings[:2], failed); condition.Status != metav1.ConditionTrue || condition.Message != "Secret b is gone; the API server refuses" {
		t.Errorf("drift of other objects: %+v", condition)
	}
}

// statusOf returns the object of a finding in a status.
func statusOf(finding drift.Finding) kudo.DriftedObject {
	objects := drift.Status([]drift.Finding{finding})
	if len(objects) == 0 {
		return kudo.DriftedObject{}
	}
	return objects[0]
}

// A workload that is stopped is found behind any number of other objects and fields, and although no values may be shown.
func TestStopped(t *testing.T) {
	var live, applied, after []string
	for i := range 30 {
		live, applied = append(live, fmt.Sprintf("a%d: 1", i)), append(applied, fmt.Sprintf("a%d: 2", i))
		after = append(after, fmt.Sprintf(`"f:a%d":{}`, i))
	}
	o := drift.Objects{
		Live:    object(t, "Deployment", "spec: {replicas: 0, "+strings.Join(live, ", ")+"}", map[string]string{"kubectl": `{"f:spec":{"f:replicas":{}}}`}),
		Applied: object(t, "Deployment", "spec: {replicas: 3, "+strings.Join(applied, ", ")+"}", map[string]string{manager: `{"f:spec":{"f:replicas":{},` + strings.Join(after, ",") + `}}`}),
		Manager: manager, Opaque: true,
	}
	findings := make([]drift.Finding, 25)
	for i := range findings {
		findings[i] = drift.Finding{Object: "ConfigMap x", Gone: true}
	}
	stopped := drift.Compare(o, "Deployment ns/x", nil)
	stopped.Key.Kind, stopped.Key.Namespace, stopped.Key.Name = "Deployment", "ns", "x"
	objects := drift.Status(append(findings, stopped))
	if len(objects) != drift.MaxObjects {
		t.Errorf("%d objects", len(objects))
	}
	if got := drift.StoppedText(objects[0]); got != "Deployment ns/x: has 0 replicas where 3 were applied (by kubectl)" {
		t.Error(got)
	}
	if got := drift.StoppedText(objects[1]); got != "" {
		t.Error(got)
	}
}

func TestDigest(t *testing.T) {
	both := object(t, "ConfigMap", "data: {a: x}", map[string]string{manager: bothKeys, "other": firstKey})
	fewer := object(t, "ConfigMap", "data: {a: x}", map[string]string{manager: firstKey, "other": bothKeys})
	none := object(t, "ConfigMap", "data: {a: x}", map[string]string{"other": bothKeys})
	if full := drift.Digest(both, manager); full == "" || full == drift.Digest(fewer, manager) || drift.Digest(none, manager) != "" {
		t.Fatal("the digest is not that of the manager's fields")
	}
	for _, o := range []*unstructured.Unstructured{both, fewer, none} {
		want := drift.Digest(o, manager)
		drift.Trim(o, manager)
		drift.Trim(o, manager) // again
		if drift.Digest(o, manager) != want || len(o.GetManagedFields()) > 1 || o.GetName() != "x" {
			t.Errorf("trimmed: %v", o)
		}
	}
}

func TestDiffers(t *testing.T) {
	applied := object(t, "ConfigMap", `{metadata: {resourceVersion: "2", generation: 3, annotations: {kudo.dev/plan: deploy, own: z}}, status: {a: b}}`, map[string]string{manager: bothKeys})
	if live := object(t, "ConfigMap", `{metadata: {annotations: {kudo.dev/plan: update, own: z}}}`, nil); drift.Differs(live, applied) {
		t.Error("equal objects differ")
	}
	if live := object(t, "ConfigMap", `{metadata: {annotations: {own: other}}}`, nil); !drift.Differs(live, applied) {
		t.Error("different objects do not differ")
	}
}

// FuzzCompare checks that no managed fields make a comparison fail, and that an object without a change in its fields never drifts.
func FuzzCompare(f *testing.F) {
	f.Add(bothKeys, firstKey, `{"data":{"a":"1"}}`)
	f.Add(containers, noImage, `{"spec":{"template":{"spec":{"containers":[{"name":"web"}]}}}}`)
	f.Add(`{"k:{}":{},"v:1":{},"i:-1":{},"f:":{}}`, `{`, `[]`)
	f.Fuzz(func(t *testing.T, after, now, fields string) {
		o := &unstructured.Unstructured{}
		if o.UnmarshalJSON([]byte(`{"kind":"X","apiVersion":"v1","spec":`+fields+`}`)) != nil {
			return
		}
		live, applied := o.DeepCopy(), o.DeepCopy()
		entry := func(set string) []metav1.ManagedFieldsEntry {
			return []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: &metav1.FieldsV1{Raw: []byte(set)}}}
		}
		if !strings.HasPrefix(after, "{") || !strings.HasPrefix(now, "{") {
			return
		}
		live.SetManagedFields(entry(now))
		applied.SetManagedFields(entry(after))
		if finding := drift.Compare(drift.Objects{Live: live, Applied: applied, Manager: manager}, "X", nil); finding.IsDrift() {
			t.Errorf("%+v", finding)
		}
	})
}
