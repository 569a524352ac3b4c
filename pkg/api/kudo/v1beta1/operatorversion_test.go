package v1beta1_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestOperatorName(t *testing.T) {
	for name, test := range map[string]struct{ operator, name, appVersion, version, want string }{
		"the spec's name":                        {"toy", "other-1.0.0", "", "1.0.0", "toy"},
		"the own name without the version":       {"", "toy-box-1.0.0", "", "1.0.0", "toy-box"},
		"the own name without both versions":     {"", "toy-3.4-1.0.0", "3.4", "1.0.0", "toy"},
		"the own name without the app's version": {"", "toy-1.0.0", "3.4", "1.0.0", "toy"},
		"the own name with another version":      {"", "toy-2.0.0", "", "1.0.0", "toy-2.0.0"},
		"the own name with an inner version":     {"", "toy-1.0.0-x", "", "1.0.0", "toy-1.0.0-x"},
		"the own name without any version":       {"", "toy", "", "", "toy"},
		"nothing is left of the own name":        {"", "-1.0.0", "", "1.0.0", "-1.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Name: test.name}}
			version.Spec.Operator.Name, version.Spec.AppVersion, version.Spec.Version = test.operator, test.appVersion, test.version
			if got := version.OperatorName(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if got := version.NamedSpec().Operator.Name; got != test.want || version.Spec.Operator.Name != test.operator {
				t.Errorf("the named spec has %q, and the original one %q", got, version.Spec.Operator.Name)
			}
		})
	}
}
