package drift_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/drift"
)

// What is applied to put an object back holds the fields that the manager still owns, as they exist, and those that differ, as they were applied.
func TestRestored(t *testing.T) {
	const (
		web    = `{spec: {paused: %s, template: {spec: {containers: [{name: side, image: "other:1"}, {name: web, image: %s, imagePullPolicy: Always, args: [%s]}]}}}}`
		all    = `{"f:spec":{"f:paused":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{},"f:args":{}}}}}}}`
		noArgs = `{"f:spec":{"f:paused":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{}}}}}}}`
		paused = `{"f:spec":{"f:paused":{}}}`
		ports  = `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{},"f:targetPort":{}}}}}`
	)
	for name, test := range map[string]struct {
		live, applied, now, after string
		others                    string
		unsure                    bool
		ignored                   []kudo.IgnoredFields
		want                      string
	}{
		"a key, and another one that is rendered differently since": {
			live: `data: {a: "1", b: evil, c: foreign}`, applied: `data: {a: "9", b: "2", c: foreign}`, now: firstKey, after: bothKeys,
			want: `data: {a: "1", b: "2"}`,
		},
		"a list that is owned as a whole, in an item of another list": {
			live: fmt.Sprintf(web, "true", "good:1", "evil"), applied: fmt.Sprintf(web, "true", "good:1", "a, b"), now: noArgs, after: all,
			want: `{spec: {paused: true, template: {spec: {containers: [{name: web, image: "good:1", args: [a, b]}]}}}}`,
		},
		"an item of a list": {
			live: fmt.Sprintf(web, "true", "evil:1", "evil"), applied: fmt.Sprintf(web, "true", "good:1", "a"), now: paused, after: all,
			want: `{spec: {paused: true, template: {spec: {containers: [{name: web, image: "good:1", args: [a]}]}}}}`,
		},
		"an item of a list that does not exist any more, without defaults": {
			live: `{spec: {clusterIP: "1"}}`, applied: `{spec: {clusterIP: "1", ports: [{port: 80, protocol: TCP, targetPort: 8080}]}}`, now: "", after: ports,
			want: `{spec: {ports: [{port: 80, protocol: TCP, targetPort: 8080}]}}`,
		},
		"an ignored field stays with its writer": {
			live: `data: {a: evil, b: leader}`, applied: `data: {a: "1", b: "2"}`, now: "", after: bothKeys,
			ignored: []kudo.IgnoredFields{{Paths: []string{"/data/b"}}}, want: `data: {a: "1"}`,
		},
		"a field that was maybe not applied": {
			live: `data: {a: evil}`, applied: `data: {a: "1", b: "2"}`, now: "", others: firstKey, after: bothKeys, unsure: true, want: `data: {a: "1"}`,
		},
		"the first item of a list, in its place": {
			live: `{spec: {steps: [{name: b, image: "b:1"}, {name: c, image: "c:1"}]}}`, applied: `{spec: {steps: [{name: a, image: "a:1"}, {name: b, image: "b:1"}, {name: c, image: "c:1"}]}}`,
			now:   `{"f:spec":{"f:steps":{"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:image":{}},"k:{\"name\":\"c\"}":{".":{},"f:name":{},"f:image":{}}}}}`,
			after: `{"f:spec":{"f:steps":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:image":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:image":{}},"k:{\"name\":\"c\"}":{".":{},"f:name":{},"f:image":{}}}}}`,
			want:  `{spec: {steps: [{name: a, image: "a:1"}, {name: b, image: "b:1"}, {name: c, image: "c:1"}]}}`,
		},
		"a member of a set": {
			live: `metadata: {finalizers: [other, x/y]}`, applied: `metadata: {finalizers: [other, x/y, a/b]}`, now: `{"f:metadata":{"f:finalizers":{".":{},"v:\"x/y\"":{}}}}`,
			after: `{"f:metadata":{"f:finalizers":{".":{},"v:\"x/y\"":{},"v:\"a/b\"":{}}}}`, want: `metadata: {finalizers: [x/y, a/b]}`,
		},
		"an empty map that is owned": {
			live: `{data: {b: evil}, spec: {}}`, applied: `{data: {b: "2"}, spec: {}}`, now: `{"f:spec":{".":{}}}`, after: `{"f:spec":{".":{}},"f:data":{"f:b":{}}}`,
			want: `{data: {b: "2"}, spec: {}}`,
		},
		"an index of a list cannot be followed": {
			live: `{spec: {items: [{a: 1}]}}`, applied: `{spec: {items: [{a: 1}, {a: 2}]}}`, now: "", after: `{"f:spec":{"f:items":{"i:1":{"f:a":{}}}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := map[string]string{}
			if test.now != "" {
				now[manager] = test.now
			}
			if test.others != "" {
				now["other"] = test.others
			}
			live, applied := object(t, "X", test.live, now), object(t, "X", test.applied, map[string]string{manager: test.after})
			before := live.DeepCopy()
			got := drift.Restoration(drift.Objects{Live: live, Applied: applied, Manager: manager, IsUnsure: test.unsure}, test.ignored)
			if test.want == "" || got == nil {
				if test.want != "" || got != nil {
					t.Errorf("got %v", got)
				}
				return
			}
			want := object(t, "X", test.want, nil)
			want.SetManagedFields(nil)
			want.SetAPIVersion("")
			if diff := cmp.Diff(asYAML(t, want.Object), asYAML(t, got.Object)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before.Object, live.Object); diff != "" {
				t.Errorf("the object has changed: %s", diff)
			}
		})
	}
}

func asYAML(t *testing.T, value any) string {
	t.Helper()
	out, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Fields in another version of a kind have other paths.
func TestRestoredNeedsOneVersion(t *testing.T) {
	live := object(t, "X", `data: {a: "1", b: evil}`, map[string]string{manager: firstKey})
	applied := object(t, "X", `data: {a: "1", b: "2"}`, map[string]string{manager: bothKeys})
	entries := live.GetManagedFields()
	for i := range entries {
		entries[i].APIVersion = "example.com/v1beta1"
	}
	live.SetManagedFields(entries)
	if got := drift.Restoration(drift.Objects{Live: live, Applied: applied, Manager: manager}, nil); got != nil {
		t.Errorf("got %v", got)
	}
	var none []metav1.ManagedFieldsEntry
	live.SetManagedFields(none)
	if got := drift.Restoration(drift.Objects{Live: live, Applied: applied, Manager: manager}, nil); got == nil || len(got.Object["data"].(map[string]any)) != 1 {
		t.Errorf("without fields of its own: %v", got)
	}
}
