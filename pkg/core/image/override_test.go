package image

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// registries returns image registries, given as source, mirror, source, mirror.
func registries(pairs ...string) (all []kudo.ImageRegistry) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, kudo.ImageRegistry{Source: pairs[i], Mirror: pairs[i+1]})
	}
	return all
}

func TestMirrored(t *testing.T) {
	for sentence, test := range map[string]struct {
		registries  []kudo.ImageRegistry
		image, want string
	}{
		"without registries nothing changes":         {nil, "quay.io/a/b:1", "quay.io/a/b:1"},
		"a registry":                                 {registries("quay.io", "mirror.corp:5000/quay"), "quay.io/a/b:1", "mirror.corp:5000/quay/a/b:1"},
		"a whole image":                              {registries("quay.io/a/b", "mirror.corp/c"), "quay.io/a/b@sha256:0", "mirror.corp/c@sha256:0"},
		"an image with its tag":                      {registries("quay.io/a/b:1", "mirror.corp/c:2"), "quay.io/a/b:1", "mirror.corp/c:2"},
		"trailing slashes do not count":              {registries("quay.io/", "mirror.corp/"), "quay.io/a", "mirror.corp/a"},
		"another registry stays":                     {registries("quay.io", "mirror.corp"), "docker.io/a", "docker.io/a"},
		"an image without a registry stays":          {registries("docker.io", "mirror.corp"), "nginx", "nginx"},
		"an empty source matches all":                {registries("", "mirror.corp/all"), "quay.io/a/b:1", "mirror.corp/all/b:1"},
		"an empty source, an image without a path":   {registries("", "mirror.corp"), "nginx", "mirror.corp/nginx"},
		"the last match applies":                     {registries("quay.io", "one.corp", "quay.io/a", "two.corp"), "quay.io/a/b", "two.corp/b"},
		"the last match applies, whatever is longer": {registries("quay.io/a", "one.corp", "quay.io", "two.corp"), "quay.io/a/b", "two.corp/a/b"},
		"one that changes nothing does not apply":    {registries("quay.io", "one.corp", "quay.io/a", "quay.io/a"), "quay.io/a/b", "one.corp/a/b"},
		"mirrors are not replaced again":             {registries("quay.io", "quay.io/mirror", "quay.io/mirror", "x"), "quay.io/a", "quay.io/mirror/a"},
		"without a mirror, an entry has no effect":   {registries("quay.io", "one.corp", "quay.io", ""), "quay.io/a", "one.corp/a"},
		"a source is a prefix, as in OCM":            {registries("quay.io/a", "mirror.corp/b"), "quay.io/alpha", "mirror.corp/blpha"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := Mirrored(test.registries, test.image); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestOverride(t *testing.T) {
	for sentence, test := range map[string]struct{ object, want string }{
		"all containers and volumes of a pod": {
			"{apiVersion: v1, kind: Pod, spec: {initContainers: [{name: a, image: q.io/a}], containers: [{name: b, image: q.io/b}, {name: d, image: other/d}], " +
				"ephemeralContainers: [{name: c, image: q.io/c}], volumes: [{name: m, image: {reference: q.io/m}}]}}",
			"{apiVersion: v1, kind: Pod, spec: {initContainers: [{name: a, image: m.io/x/a}], containers: [{name: b, image: m.io/x/b}, {name: d, image: all.io/d}], " +
				"ephemeralContainers: [{name: c, image: m.io/x/c}], volumes: [{name: m, image: {reference: m.io/x/m}}]}}",
		},
		"a template in another object": {
			"{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: q.io/a}]}}}}}}",
			"{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: m.io/x/a}]}}}}}}",
		},
		"a field of a custom resource only by its source": {
			"{apiVersion: example.com/v1, kind: Web, spec: {image: q.io/a, backgroundImage: images/logo.png, pod: {containers: [{name: a, image: b}]}}}",
			"{apiVersion: example.com/v1, kind: Web, spec: {image: m.io/x/a, backgroundImage: images/logo.png, pod: {containers: [{name: a, image: all.io/b}]}}}",
		},
		"nothing else": {
			"{apiVersion: v1, kind: ConfigMap, metadata: {annotations: {image: q.io/a}}, data: {image: q.io/a}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {annotations: {image: q.io/a}}, data: {image: q.io/a}}",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := object(t, test.object)
			if err := NewOverride(registries("", "all.io", "q.io", "m.io/x")).Apply(got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(t, test.want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOverrideLimitsHowMuchObjectsGrow(t *testing.T) {
	containers := make([]string, 5000)
	for i := range containers {
		containers[i] = fmt.Sprintf("{name: c%d, image: a}", i)
	}
	pod := object(t, "{apiVersion: v1, kind: Pod, spec: {containers: ["+strings.Join(containers, ", ")+"]}}")
	images := NewOverride(registries("", strings.Repeat("m", 200)))
	if err := images.Apply(pod.DeepCopy()); err != nil {
		t.Error(err)
	}
	if err := images.Apply(pod); err == nil || !strings.Contains(err.Error(), "1048576 bytes larger") {
		t.Error(err)
	}
}
