package webhook

import (
	"context"
	"fmt"
	"slices"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// dependentsOpinion warns about the add-ons that the deletion of addOn affects: on describes where they are, when in which case. If their
// names do not fit into a warning, it gives the number of the others.
func dependentsOpinion(dependents []string, on, addOn, when string) opinion {
	if len(dependents) == 0 {
		return opinion{}
	}
	slices.Sort(dependents)
	verb := "require"
	if len(dependents) == 1 {
		verb = "requires"
	}
	return opinion{warnings: []string{warningFor(dependents, func(listed string) string {
		return fmt.Sprintf("%s%s %s %s and will become unavailable%s (kubectl addon dependents %s)", listed, on, verb, addOn, when, addOn)
	})}}
}

// warningFor returns the warning with as many of the names as fit into it, and the number of the others.
func warningFor(names []string, warn func(listed string) string) (warning string) {
	for shown := len(names); shown > 0; shown-- {
		if warning = warn(text.List(names, shown)); len(warning) <= warningLimit {
			break
		}
	}
	return warning
}

// declares reports whether the add-on of that name declares a required dependency on need.
func (a *admissions) declares(ctx context.Context, addOn, need string) (bool, error) {
	if addOn == need {
		return false, nil
	}
	definition, err := read.Definition(ctx, a.client, addOn)
	return slices.ContainsFunc(dependency.Needs(definition), func(n addonv1alpha1.AddonDependency) bool {
		return n.Name == need && n.Type == addonv1alpha1.DependencyTypeRequired
	}), err
}
