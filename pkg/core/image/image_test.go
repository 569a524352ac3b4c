package image

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOf(t *testing.T) {
	for sentence, test := range map[string]struct {
		object      string
		want, notes []string
	}{
		"a pod": {object: "{apiVersion: v1, kind: Pod, spec: {initContainers: [{name: a, image: x}], containers: [{name: b, image: 'y:1'}], ephemeralContainers: [{name: c, image: z}]}}",
			want: []string{"spec.containers[0].image b y:1", "spec.ephemeralContainers[0].image c z", "spec.initContainers[0].image a x"}},
		"a Deployment": {object: "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: a, image: x}, {name: b}]}}}}",
			want: []string{"spec.template.spec.containers[0].image a x"}},
		"a CronJob": {object: "{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: x}]}}}}}}",
			want: []string{"spec.jobTemplate.spec.template.spec.containers[0].image a x"}},
		"a volume": {object: "{apiVersion: v1, kind: Pod, spec: {volumes: [{name: models, image: {reference: x}}, {name: b, emptyDir: {}}]}}",
			want: []string{"spec.volumes[0].image.reference  x"}},
		"a template of a custom resource": {object: "{apiVersion: example.com/v1, kind: Web, spec: {pods: [{podTemplate: {spec: {containers: [{name: a, image: x}]}}}]}}",
			want: []string{"spec.pods[0].podTemplate.spec.containers[0].image a x"}},
		"a field of a custom resource": {object: "{apiVersion: example.com/v1, kind: Web, spec: {image: x, reloaderImage: w, imagePullPolicy: Always}}",
			want: []string{"spec.image  x", "spec.reloaderImage  w"}},
		"a part of a custom resource": {object: "{apiVersion: example.com/v1, kind: Web, spec: {image: {repository: x, tag: y}}}",
			notes: []string{"field spec.image may describe an image", "its controller may run images"}},
		"a custom resource without any": {object: "{apiVersion: example.com/v1, kind: Web, spec: {replicas: 1}}", notes: []string{"its controller may run images"}},
		"containers that have no image": {object: "{apiVersion: example.com/v1, kind: Web, spec: {containers: [{name: a, spec: {containers: [{name: b, image: x}]}}]}}",
			want: []string{"spec.containers[0].spec.containers[0].image b x"}},
		"another field of Kubernetes":         {object: "{apiVersion: v1, kind: Service, spec: {image: x}}"},
		"metadata and status":                 {object: "{apiVersion: v1, kind: Pod, metadata: {annotations: {image: x}}, status: {containers: [{name: a, image: x}]}}"},
		"a definition":                        {object: "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {containers: [{name: a, image: x}]}}"},
		"a ConfigMap":                         {object: "{apiVersion: v1, kind: ConfigMap, data: {a: b}}"},
		"a ConfigMap with a template":         {object: "{apiVersion: v1, kind: ConfigMap, data: {a: 'image: x'}}", notes: []string{"its data mentions images"}},
		"fields of other types than expected": {object: "{apiVersion: v1, kind: Pod, spec: {containers: {image: x}, volumes: [a], initContainers: [3, {image: [a]}]}}"},
	} {
		t.Run(sentence, func(t *testing.T) {
			found, notes := Of(object(t, test.object))
			var got []string
			for _, f := range found {
				got = append(got, fmt.Sprintf("%s %s %s", f.Path, f.Container, f.Image))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.notes, notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheSearchIsBounded(t *testing.T) {
	deep := map[string]any{}
	for range 200 {
		deep = map[string]any{"a": deep}
	}
	_, notes := Of(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": deep}})
	if len(notes) != 1 || !strings.Contains(notes[0], "too deeply") {
		t.Errorf("got %v", notes)
	}
}
