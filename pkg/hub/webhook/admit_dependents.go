package webhook

import (
	"context"
	"fmt"
	"slices"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/dependency"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// losing warns about the add-ons that the deletion of addOn affects: on describes where they are, when in which case. If their names do not
// fit into a warning, it gives the number of the others.
func losing(dependents []string, on, addOn, when string) opinion {
	if len(dependents) == 0 {
		return opinion{}
	}
	slices.Sort(dependents)
	verb := "require"
	if len(dependents) == 1 {
		verb = "requires"
	}
	var warning string
	for shown := len(dependents); shown > 0; shown-- {
		warning = fmt.Sprintf("%s%s %s %s and will become unavailable%s (kubectl addon dependents %s)",
			text.List(dependents, shown), on, verb, addOn, when, addOn)
		if len(warning) <= warningLimit {
			break
		}
	}
	return opinion{warnings: []string{warning}}
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
