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
	var faults []Fault
	for _, fault := range invalid.Faults {
		if fault.Reason == kudo.ReasonChildVersionNotFound {
			warnings = append(warnings, "the operator cannot run yet: "+fault.Message)
		} else {
			faults = append(faults, fault)
		}
	}
	if len(faults) > 0 {
		refused = fmt.Errorf("OperatorVersion %s/%s is not valid: %w", version.Namespace, version.Name, &Error{Faults: faults})
	}
	return warnings, refused
}
