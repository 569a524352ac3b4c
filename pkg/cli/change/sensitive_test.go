package change

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/pkg/action"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestSensitiveParametersOfTheCommandLine(t *testing.T) {
	version := &kudo.OperatorVersion{}
	version.Spec.Parameters = []kudo.Parameter{{Name: "PASSWORD", Sensitive: new(true)}, {Name: "TEXT"}}
	reference := func(secret string) []kudo.ParameterFrom {
		return []kudo.ParameterFrom{{Name: "PASSWORD", SecretKeyRef: kudo.SecretKeyRef{Name: secret, Key: "k"}}}
	}
	existing := kudo.InstanceSpec{Parameters: map[string]string{"TEXT": "x"}, ParametersFrom: reference("a")}
	for name, test := range map[string]struct {
		given   givenParameters
		version *kudo.OperatorVersion
		want    kudo.InstanceSpec
	}{
		"an unchanged reference": {givenParameters{all: map[string]string{"TEXT": "y"}}, version,
			kudo.InstanceSpec{Parameters: map[string]string{"TEXT": "y"}, ParametersFrom: reference("a")}},
		"another reference": {givenParameters{all: map[string]string{"PASSWORD": "secret:b/k"}}, version,
			kudo.InstanceSpec{Parameters: map[string]string{"TEXT": "x"}, ParametersFrom: reference("b")}},
		"a reference for one cluster": {givenParameters{byCluster: map[string]map[string]string{"cluster1": {"PASSWORD": "secret:b/k"}}}, version,
			kudo.InstanceSpec{Parameters: map[string]string{"TEXT": "x"}, ParametersFrom: reference("b")}},
		"an unset reference": {givenParameters{unset: []string{"PASSWORD"}}, version,
			kudo.InstanceSpec{Parameters: map[string]string{"TEXT": "x"}}},
		"an unknown version": {givenParameters{all: map[string]string{"TEXT": "y"}}, nil,
			kudo.InstanceSpec{Parameters: map[string]string{"TEXT": "y"}, ParametersFrom: reference("a")}},
	} {
		t.Run(name, func(t *testing.T) {
			got := *existing.DeepCopy()
			if err := action.SetParameters(&got, test.given.changed(action.TextsOf(got), "cluster1"), test.version); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	spec := *existing.DeepCopy()
	err := action.SetParameters(&spec, map[string]string{"PASSWORD": "hunter2"}, version)
	if err == nil || !strings.Contains(err.Error(), "secret:NAME/KEY") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	if !setsTo(existing, "PASSWORD", "secret:a/k") || setsTo(existing, "PASSWORD", "secret:b/k") || !setsTo(existing, "TEXT", "x") {
		t.Error("the spec sets something else")
	}
}
