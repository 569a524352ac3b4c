package change

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestUnsettable(t *testing.T) {
	version := &kudo.OperatorVersion{}
	version.Spec.Parameters = []kudo.Parameter{{Name: "BROKERS"}, {Name: "TEXT"}}
	for sentence, test := range map[string]struct {
		version *kudo.OperatorVersion
		unset   []string
		want    string
	}{
		"a parameter that is not set":                     {version: version, unset: []string{"TEXT"}},
		"one that is set, but no longer defined":          {version: version, unset: []string{"OLD"}},
		"a misspelt one":                                  {version: version, unset: []string{"OLD", "BROKRS"}, want: `parameter "BROKRS": not defined: did you mean BROKERS?`},
		"one that resembles no other":                     {version: version, unset: []string{"NOPE"}, want: `parameter "NOPE": not defined: the operator has BROKERS, TEXT`},
		"any name, if the version is not known":           {unset: []string{"NOPE"}},
		"nothing, of a version that requires a parameter": {version: version},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := checkUnset(test.version, test.unset, func(name string) bool { return name == "OLD" })
			if diff := cmp.Diff(test.want, errorText(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

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
			if err := SetParameters(&got, WithChanges(TextsOf(got), test.given, test.unset), test.version); err != nil {
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
