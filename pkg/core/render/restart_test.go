package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// object parses an object from YAML; nil for empty text.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestRestartPods(t *testing.T) {
	const (
		plain     = "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {}}}}"
		carriesX  = "{apiVersion: apps/v1, kind: Deployment, spec: {template: {metadata: {annotations: {kudo.dev/last-plan-execution-uid: x}}, spec: {}}}}"
		carriesMe = "{apiVersion: apps/v1, kind: Deployment, spec: {template: {metadata: {annotations: {kudo.dev/last-plan-execution-uid: me}}, spec: {}}}}"
		job       = "{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {}}}}"
		malformed = "{apiVersion: apps/v1, kind: Deployment, spec: {template: []}}"
	)
	for name, test := range map[string]struct {
		obj, live string
		restart   types.UID
		want      string
	}{
		"a new object gets the execution":                       {plain, "", "", carriesMe},
		"a restart sets the execution":                          {plain, carriesX, "me", carriesMe},
		"without a restart the live value stays":                {plain, carriesX, "", carriesX},
		"without a restart a live object without it stays so":   {plain, plain, "", plain},
		"a value that the template wrote gives way to the live": {carriesX, carriesMe, "", carriesMe},
		"a Job is left alone":                                   {job, "", "me", job},
		"other annotations are kept": {
			"{apiVersion: apps/v1, kind: DaemonSet, spec: {template: {metadata: {annotations: {a: b}}}}}", "", "me",
			"{apiVersion: apps/v1, kind: DaemonSet, spec: {template: {metadata: {annotations: {a: b, kudo.dev/last-plan-execution-uid: me}}}}}",
		},
		"a CronJob's pods": {
			"{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {}}}}}}", "", "me",
			"{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {metadata: {annotations: {kudo.dev/last-plan-execution-uid: me}}, spec: {}}}}}}",
		},
		"a custom resource is left alone": {
			"{apiVersion: example.com/v1, kind: Deployment, spec: {template: {}}}", "", "me",
			"{apiVersion: example.com/v1, kind: Deployment, spec: {template: {}}}",
		},
		"an object without pod template is left alone": {"{apiVersion: apps/v1, kind: Deployment}", "", "me", "{apiVersion: apps/v1, kind: Deployment}"},
		"a malformed object is left alone":             {malformed, "", "me", malformed},
		"a malformed live object carries nothing":      {plain, malformed, "", plain},
	} {
		t.Run(name, func(t *testing.T) {
			obj, live := object(t, test.obj), object(t, test.live)
			got := RestartPods(obj, live, "me", test.restart)
			if diff := cmp.Diff(object(t, test.want), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(object(t, test.obj), obj); diff != "" {
				t.Errorf("the object was changed (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(object(t, test.live), live); diff != "" {
				t.Errorf("the live object was changed (-want +got)\n%s", diff)
			}
		})
	}
}
