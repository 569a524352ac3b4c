package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// mirrors returns an AddOnDeploymentConfig with registries, given as source, mirror, source, mirror.
func mirrors(name string, pairs ...string) *addonv1alpha1.AddOnDeploymentConfig {
	c := variables(name, "")
	for at := 0; at < len(pairs); at += 2 {
		c.Spec.Registries = append(c.Spec.Registries, upstream.ImageMirror{Source: pairs[at], Mirror: pairs[at+1]})
	}
	return c
}

func TestRegistriesOfAnAddOn(t *testing.T) {
	one := []kudo.ImageRegistry{{Source: "quay.io", Mirror: "one.corp"}}
	for name, tc := range map[string]struct {
		configs []*addonv1alpha1.AddOnDeploymentConfig
		want    []kudo.ImageRegistry
		problem string
	}{
		"none": {configs: []*addonv1alpha1.AddOnDeploymentConfig{variables("a", "", "TEXT", "one")}},
		"of one config": {
			configs: []*addonv1alpha1.AddOnDeploymentConfig{mirrors("a", "quay.io", "one.corp", "", "all.corp:5000/x/")},
			want:    []kudo.ImageRegistry{{Source: "quay.io", Mirror: "one.corp"}, {Mirror: "all.corp:5000/x/"}},
		},
		"of the last config that has any": {
			configs: []*addonv1alpha1.AddOnDeploymentConfig{mirrors("a", "docker.io", "zero.corp"), mirrors("b", "quay.io", "one.corp"), variables("c", "", "TEXT", "one")},
			want:    one,
		},
		"entries without a mirror have no effect": {
			configs: []*addonv1alpha1.AddOnDeploymentConfig{mirrors("a", "docker.io", "", "quay.io", "one.corp"), mirrors("b", "quay.io", "")}, want: one,
		},
		"a mirror that is a URL": {
			configs: []*addonv1alpha1.AddOnDeploymentConfig{mirrors("a", "quay.io", "https://one.corp")},
			problem: `AddOnDeploymentConfig cluster1/a: registries: mirror "https://one.corp" is not the beginning of an image's name, such as ` +
				"registry.example.com:5000/path, without https://",
		},
		"a source that is no name": {
			configs: []*addonv1alpha1.AddOnDeploymentConfig{mirrors("a", "quay.io\n", "one.corp")}, problem: `registries: source "quay.io\n" is not the beginning`,
		},
		"a mirror that is too long": {
			configs: []*addonv1alpha1.AddOnDeploymentConfig{mirrors("a", "quay.io", strings.Repeat("m", 256))}, problem: "has 256 characters, more than 255",
		},
		"too many": {
			configs: []*addonv1alpha1.AddOnDeploymentConfig{mirrors("a", strings.Split(strings.Repeat("a,b,", 65), ",")[:130]...)},
			problem: "it has 65 registries, more than 64: remove some",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(addOn(tc.configs...))
			if tc.problem != "" {
				if got.Instance != nil || got.Resolved.Reason != addonv1alpha1.ReasonConfigurationInvalid || !strings.Contains(got.Resolved.Message, tc.problem) {
					t.Errorf("got %+v", got.Resolved)
				}
				return
			}
			if got.Instance == nil {
				t.Fatal(got.Resolved)
			}
			if diff := cmp.Diff(tc.want, got.Instance.Spec.ImageRegistries); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAConfigIsRolledOutOnceAPlanHasRunWithItsRegistries(t *testing.T) {
	config := mirrors("a", "quay.io", "one.corp")
	wanted := []kudo.ImageRegistry{{Source: "quay.io", Mirror: "one.corp"}}
	for name, tc := range map[string]struct {
		spec, ran []kudo.ImageRegistry
		want      string
	}{
		"a plan has run with them":                     {wanted, wanted, "True"},
		"the Instance does not have them":              {nil, nil, "False"},
		"an agent of an earlier release does not know": {wanted, nil, "False"},
	} {
		t.Run(name, func(t *testing.T) {
			a := ready(rolledOut(config, VersionHash(&kudo.OperatorVersion{}), DeploymentConfigHash(config)), "", "True", 7).with(runs("version"))
			own := &a.Instances[0]
			own.Spec.Parameters, own.Spec.ImageRegistries, own.Status.Execution.ImageRegistries = nil, tc.spec, tc.ran
			if got := RolloutOf(a, "").Applied.Status; string(got) != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAChildHasTheRegistriesOfItsParentsExecution(t *testing.T) {
	started := []kudo.ImageRegistry{{Source: "quay.io", Mirror: "one.corp"}}
	of := func(aa *kudo.Instance) {
		aa.Spec.ImageRegistries, aa.Status.Execution.ImageRegistries = []kudo.ImageRegistry{{Mirror: "next.corp"}}, started
	}
	got := Children(parent(deployingParent(of), bb()))[0].Apply
	if got == nil {
		t.Fatal("the child is not changed")
	}
	if diff := cmp.Diff(started, got.Spec.ImageRegistries); diff != "" {
		t.Error(diff)
	}
	has := bb(func(i *kudo.Instance) { i.Spec.ImageRegistries = started })
	if steps := Children(parent(deployingParent(of), has)); steps[0].Apply != nil {
		t.Errorf("an equal child is applied: %+v", steps[0].Apply.Spec)
	}
}
