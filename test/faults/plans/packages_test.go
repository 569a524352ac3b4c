package plans

import (
	"errors"
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

func TestPackagesAreValid(t *testing.T) {
	first, _ := depot("1.0.0")
	second, _ := depot("2.0.0")
	for _, version := range []*kudo.OperatorVersion{
		gadgets("1.0.0"), gadgets("2.0.0"), fragile(), branch("link", "1.0.0"), branch("root", "1.0.0", child("trunk-1.0.0", ""), child("side-1.0.0", "SIDE")),
		worker(), patient(), first, second,
	} {
		var problems []error
		for _, p := range pack.Errors(pack.Check(version.NamedSpec())) {
			problems = append(problems, errors.New(p.String()))
		}
		if err := errors.Join(append(problems, pack.Admit(version))...); err != nil {
			t.Errorf("%s: %v", version.Name, err)
		}
	}
}
