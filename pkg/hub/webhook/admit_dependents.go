package webhook

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// requires returns the effect on need of that add-on if it is installed, is not being deleted, and requires need.
func requires(ctx context.Context, c client.Reader, addOn types.NamespacedName, need string) (addonv1alpha1.RemovalPolicy, error) {
	var installed addonv1alpha1.ManagedClusterAddOn
	switch err := c.Get(ctx, addOn, &installed); {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading ManagedClusterAddOn %s: %w", addOn, err)
	case !installed.DeletionTimestamp.IsZero():
		return "", nil
	}
	needs, err := declares(ctx, c, addOn.Name, need)
	if err != nil || len(needs) == 0 {
		return "", err
	}
	if needs, err = read.NeedsOn(ctx, c, addOn.Namespace, needs); err != nil {
		return "", err
	}
	constraints, err := read.ConstraintsOf(ctx, c, &installed)
	if err != nil {
		return "", err
	}
	return policyOf(needs, func(n addonv1alpha1.AddonDependency) (bool, error) {
		return read.IsReplaced(ctx, c, n, types.NamespacedName{Namespace: addOn.Namespace, Name: need}, constraints)
	})
}

// declares returns the required dependencies of the add-on of that name that need satisfies, on whatever clusters.
func declares(ctx context.Context, c client.Reader, addOn, need string) ([]addonv1alpha1.AddonDependency, error) {
	if addOn == need {
		return nil, nil
	}
	definition, err := read.Definition(ctx, c, addOn)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(dependency.Needs(definition)), func(n addonv1alpha1.AddonDependency) bool {
		return n.Type != addonv1alpha1.DependencyTypeRequired || !slices.Contains(dependency.Candidates(n), need)
	}), nil
}

// policyOf returns what the dependencies that are not replaced say about the removal of what they require: a warning, or protection. It is empty if all are
// replaced.
func policyOf(
	needs []addonv1alpha1.AddonDependency, isReplaced func(addonv1alpha1.AddonDependency) (bool, error),
) (removal addonv1alpha1.RemovalPolicy, err error) {
	for _, n := range needs {
		replaced, err := isReplaced(n)
		if err != nil {
			return "", err
		}
		if !replaced && removal != addonv1alpha1.RemovalProtect {
			removal = cmp.Or(n.Removal, addonv1alpha1.RemovalWarn)
		}
	}
	return removal, nil
}
