package tree

import (
	"fmt"
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Find returns the OperatorVersion of that name, or the highest version of the operator of that name.
func Find(name string, versions []kudo.OperatorVersion) (kudo.OperatorVersion, error) {
	i := slices.IndexFunc(versions, func(v kudo.OperatorVersion) bool { return v.Name == name })
	if i >= 0 {
		return versions[i], nil
	}
	var task kudo.Task
	task.Spec.Package = name
	if highest, err := Choose(task, versions); err == nil {
		return highest, nil
	}
	var names []string
	for _, version := range versions {
		names = append(names, version.OperatorName(), version.Name)
	}
	switch meant := text.ClosestMatch(name, names); {
	case meant != "":
		return kudo.OperatorVersion{}, fmt.Errorf("package %q not found: did you mean %s?", name, meant)
	case len(names) == 0:
		return kudo.OperatorVersion{}, fmt.Errorf("package %q not found, and there are no other packages: "+
			"push one with 'kubectl addon package push DIR', or select another location with -n or --repository", name)
	default:
		return kudo.OperatorVersion{}, fmt.Errorf("package %q not found: run 'kubectl addon package list' to list the available packages", name)
	}
}
