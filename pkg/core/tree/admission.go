package tree

import (
	"errors"
	"fmt"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Admit validates the child operators of a new OperatorVersion; candidates are the existing versions. It rejects cycles, and children that
// cannot have their names. It warns about missing versions, because they may be pushed later: until then condition Resolved of Instances
// reports the same.
func Admit(version *kudo.OperatorVersion, candidates []kudo.OperatorVersion) (warnings []string, refused error) {
	_, err := Resolve(version, append([]kudo.OperatorVersion{*version}, candidates...))
	var invalid *Error
	if !errors.As(err, &invalid) {
		return nil, err
	}
	var problems []Problem
	for _, problem := range invalid.Problems {
		if problem.Reason == kudo.ReasonChildVersionNotFound {
			warnings = append(warnings, "the operator cannot run yet: "+problem.Message)
		} else {
			problems = append(problems, problem)
		}
	}
	if len(problems) > 0 {
		refused = fmt.Errorf("OperatorVersion %s/%s is not valid: %w", version.Namespace, version.Name, &Error{Problems: problems})
	}
	return warnings, refused
}
