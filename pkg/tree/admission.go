package tree

import (
	"errors"
	"fmt"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Admit says what admission has against a new OperatorVersion because of what it brings along; candidates are the versions that there
// are already. A circle, and children that cannot have their names, are refused. Versions that do not exist are warned of, for they may
// be pushed yet: until then condition Resolved of Instances says the same.
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
		refused = fmt.Errorf("OperatorVersion %s/%s cannot be run: %w", version.Namespace, version.Name, &Error{Faults: faults})
	}
	return warnings, refused
}
