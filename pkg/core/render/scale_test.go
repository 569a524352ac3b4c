package render_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tandem-addons/tandem/pkg/core/render"
)

func TestReplicasOfAutoscaledWorkloads(t *testing.T) {
	const (
		five   = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 5}}"
		three  = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 3}}"
		unset  = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {}}"
		broken = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: many}}"
		scaler = "{metadata: {namespace: shop}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}"
	)
	for name, test := range map[string]struct {
		want, live, scaler string
		replicas           int64 // zero if it is not set
		unchanged          bool  // it changes nothing anyway
	}{
		"an autoscaler's number stays":                    {want: three, live: five, scaler: scaler, replicas: 5},
		"it stays without one in the template":            {want: unset, live: five, scaler: scaler, replicas: 5},
		"an autoscaler of an older version counts":        {want: three, live: five, scaler: "{metadata: {namespace: shop}, spec: {scaleTargetRef: {apiVersion: apps/v1beta2, kind: Deployment, name: web}}}", replicas: 5},
		"without an autoscaler it is applied":             {want: three, live: five, scaler: "{}", replicas: 3},
		"one of another workload changes nothing":         {want: three, live: five, scaler: "{metadata: {namespace: shop}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}}}", replicas: 3},
		"one of another name changes nothing":             {want: three, live: five, scaler: "{metadata: {namespace: shop}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: api}}}", replicas: 3},
		"one of another group changes nothing":            {want: three, live: five, scaler: "{metadata: {namespace: shop}, spec: {scaleTargetRef: {apiVersion: example.com/v1, kind: Deployment, name: web}}}", replicas: 3},
		"one of another namespace changes nothing":        {want: three, live: five, scaler: "{metadata: {namespace: else}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}", replicas: 3},
		"one that is being deleted changes nothing":       {want: three, live: five, scaler: "{metadata: {namespace: shop, deletionTimestamp: '2026-01-01T00:00:00Z'}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}", replicas: 3},
		"a malformed one changes nothing":                 {want: three, live: five, scaler: "{metadata: {namespace: shop}, spec: {scaleTargetRef: {apiVersion: a/b/c, kind: Deployment, name: web}}}", replicas: 3},
		"the same number is no change":                    {want: five, live: five, scaler: scaler, replicas: 5, unchanged: true},
		"a workload without replicas is not scaled":       {want: unset, live: unset, scaler: "{}", unchanged: true},
		"a number that is none is left to the API server": {want: broken, live: five, scaler: "{}", unchanged: true},
	} {
		t.Run(name, func(t *testing.T) {
			want, live := objectOf(t, test.want), objectOf(t, test.live)
			if got := render.Rescales(want, live); got == test.unchanged {
				t.Errorf("rescales: %v", got)
			}
			kept := render.KeepReplicas(want, live, []unstructured.Unstructured{*objectOf(t, "{}"), *objectOf(t, test.scaler)})
			if got, _, _ := unstructured.NestedInt64(kept.Object, "spec", "replicas"); got != test.replicas {
				t.Errorf("got %d, want %d", got, test.replicas)
			}
		})
	}
	if render.Rescales(objectOf(t, three), nil) {
		t.Error("a workload that does not exist yet is rescaled")
	}
}

func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err == nil && o.GetKind() != "" {
		err = o.UnmarshalJSON(encoded) // with integers as the API server sends them
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}
