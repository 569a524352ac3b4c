package action

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestSensitiveParameters(t *testing.T) {
	version := &kudo.OperatorVersion{}
	version.Spec.Parameters = []kudo.Parameter{{Name: "PASSWORD", Sensitive: new(true)}, {Name: "TEXT"}}
	reference := func(secret string) []kudo.ParameterFrom {
		return []kudo.ParameterFrom{{Name: "PASSWORD", SecretKeyRef: kudo.SecretKeyRef{Name: secret, Key: "k"}}}
	}
	existing := kudo.InstanceSpec{Parameters: map[string]string{"TEXT": "x"}, ParametersFrom: reference("a")}
	for name, test := range map[string]struct {
		given   map[string]string
		unset   []string
		version *kudo.OperatorVersion
		want    kudo.InstanceSpec
	}{
		"an unchanged reference": {given: map[string]string{"TEXT": "y"}, version: version, want: kudo.InstanceSpec{Parameters: map[string]string{"TEXT": "y"}, ParametersFrom: reference("a")}},
		"another reference":      {given: map[string]string{"PASSWORD": "secret:b/k"}, version: version, want: kudo.InstanceSpec{Parameters: map[string]string{"TEXT": "x"}, ParametersFrom: reference("b")}},
		"an unset reference":     {unset: []string{"PASSWORD"}, version: version, want: kudo.InstanceSpec{Parameters: map[string]string{"TEXT": "x"}}},
		"an unknown version":     {given: map[string]string{"TEXT": "y"}, want: kudo.InstanceSpec{Parameters: map[string]string{"TEXT": "y"}, ParametersFrom: reference("a")}},
	} {
		t.Run(name, func(t *testing.T) {
			got := *existing.DeepCopy()
			if err := SetParameters(&got, Changed(TextsOf(got), test.given, test.unset), test.version); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	spec := *existing.DeepCopy()
	err := SetParameters(&spec, map[string]string{"PASSWORD": "hunter2"}, version)
	if err == nil || !strings.Contains(err.Error(), "secret:NAME/KEY") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	if !SetsTo(existing, "PASSWORD", "secret:a/k") || SetsTo(existing, "PASSWORD", "secret:b/k") || !SetsTo(existing, "TEXT", "x") {
		t.Error("the spec sets something else")
	}
}
