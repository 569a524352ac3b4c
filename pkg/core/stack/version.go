package stack

import (
	"errors"
	"slices"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

// FindVersion returns the OperatorVersion that a user means: NAME is its name, or that of an operator for its highest version, and NAME@VERSION
// is an operator and its version, or the name of its OperatorVersion.
func FindVersion(name string, versions []kudo.OperatorVersion) (kudo.OperatorVersion, error) {
	operator, version, versioned := strings.Cut(name, "@")
	if !versioned {
		return tree.Find(name, versions)
	}
	at := slices.IndexFunc(versions, func(v kudo.OperatorVersion) bool { return v.Name == version && v.OperatorName() == operator })
	if at >= 0 {
		return versions[at], nil
	}
	var task kudo.Task
	task.Spec.Package, task.Spec.OperatorVersion = operator, version
	found, err := tree.Choose(task, versions)
	var absent *tree.AbsenceError
	if errors.As(err, &absent) && len(absent.Others) == 0 {
		if _, err := tree.Find(operator, versions); err != nil { // it suggests a similar name
			return kudo.OperatorVersion{}, err
		}
	}
	return found, err
}
