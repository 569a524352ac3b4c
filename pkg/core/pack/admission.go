package pack

import (
	"fmt"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"

	"github.com/tandem-addons/tandem/pkg/text"
)

// problemLimit is the maximum number of problems in an error of Admit. The others are reported once those are fixed.
const problemLimit = 10

// Admit rejects a new OperatorVersion for which Check finds errors. Warnings are for the author of the package, and are shown by
// verification.
func Admit(version *kudo.OperatorVersion) error {
	problems := Errors(Check(version.NamedSpec()))
	if len(problems) == 0 {
		return nil
	}
	lines := make([]string, len(problems))
	for i, problem := range problems[:min(len(problems), problemLimit)] {
		lines[i] = problem.String()
	}
	return fmt.Errorf("OperatorVersion %s/%s is not valid; fix the package ('kubectl addon package verify DIR' checks it): %s",
		version.Namespace, version.Name, strings.Join(text.Limit(lines, problemLimit, "more errors"), "; "))
}
