package pack

import (
	"fmt"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"

	"github.com/tandem-addons/tandem/pkg/text"
)

// faultLimit is how many faults an error of Admit names; who mends those is told the others.
const faultLimit = 10

// Admit says what admission has against a new OperatorVersion: the errors that Check finds. Warnings are for the author of the
// package, to whom verification shows them.
func Admit(version *kudo.OperatorVersion) error {
	faults := Errors(Check(&version.Spec))
	if len(faults) == 0 {
		return nil
	}
	lines := make([]string, len(faults))
	for i, fault := range faults {
		lines[i] = fault.String()
	}
	return fmt.Errorf("OperatorVersion %s/%s cannot be run; correct the package ('kubectl addon package verify DIR' checks it): %s",
		version.Namespace, version.Name, strings.Join(text.Limit(lines, faultLimit, "more errors"), "; "))
}
