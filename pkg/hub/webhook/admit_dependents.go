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
func (a *admissions) requires(ctx context.Context, addOn types.NamespacedName, need string) (addonv1alpha1.RemovalPolicy, error) {
	var installed addonv1alpha1.ManagedClusterAddOn
	switch err := a.client.Get(ctx, addOn, &installed); {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading ManagedClusterAddOn %s: %w", addOn, err)
	case !installed.DeletionTimestamp.IsZero():
		return "", nil
	}
	return a.declares(ctx, addOn.Name, need, addOn.Namespace)
}

// declares returns the effect on need of the add-on of that name, which declares a required dependency on it that nothing else satisfies: it is removed with a
// warning, or is protected; empty without such a dependency. With a cluster, only what is on it counts.
func (a *admissions) declares(ctx context.Context, addOn, need, cluster string) (removal addonv1alpha1.RemovalPolicy, err error) {
	if addOn == need {
		return "", nil
	}
	definition, err := read.Definition(ctx, a.client, addOn)
	if err != nil {
		return "", err
	}
	needs := dependency.Needs(definition)
	if cluster != "" {
		if needs, err = read.NeedsOn(ctx, a.client, cluster, needs); err != nil {
			return "", err
		}
	}
	for _, n := range needs {
		requires, err := a.isUnreplaced(ctx, n, need, cluster)
		if err != nil {
			return "", err
		}
		if requires && removal != addonv1alpha1.RemovalProtect {
			removal = cmp.Or(n.Removal, addonv1alpha1.RemovalWarn)
		}
	}
	return removal, nil
}

// isUnreplaced reports whether a dependency requires need, and no other candidate satisfies it.
func (a *admissions) isUnreplaced(ctx context.Context, n addonv1alpha1.AddonDependency, need, cluster string) (bool, error) {
	candidates := dependency.Candidates(n)
	if n.Type != addonv1alpha1.DependencyTypeRequired || !slices.Contains(candidates, need) {
		return false, nil
	}
	if cluster == "" { // another add-on may be missing where this one is
		return true, nil
	}
	others := slices.DeleteFunc(slices.Clone(candidates), func(name string) bool { return name == need })
	replaced, err := a.anyAvailable(ctx, others, cluster)
	return !replaced, err
}

// anyAvailable reports whether one of the add-ons is available on a cluster and is not being deleted.
func (a *admissions) anyAvailable(ctx context.Context, names []string, cluster string) (bool, error) {
	for _, name := range names {
		var addOn addonv1alpha1.ManagedClusterAddOn
		err := a.client.Get(ctx, types.NamespacedName{Namespace: cluster, Name: name}, &addOn)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("reading ManagedClusterAddOn %s/%s: %w", cluster, name, err)
		}
		if err == nil && dependency.See(nil, &addOn).Works() {
			return true, nil
		}
	}
	return false, nil
}
