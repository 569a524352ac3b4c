package webhook

import (
	"context"
	"fmt"
	"slices"

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

// declares reports whether the add-on of that name declares a required dependency on need that nothing else satisfies. With a cluster, only what is
// on it counts.
func (a *admissions) declares(ctx context.Context, addOn, need, cluster string) (bool, error) {
	if addOn == need {
		return false, nil
	}
	definition, err := read.Definition(ctx, a.client, addOn)
	if err != nil {
		return false, err
	}
	needs := dependency.Needs(definition)
	if cluster != "" {
		if needs, err = read.NeedsOn(ctx, a.client, cluster, needs); err != nil {
			return false, err
		}
	}
	for _, n := range needs {
		candidates := dependency.Candidates(n)
		if n.Type != addonv1alpha1.DependencyTypeRequired || !slices.Contains(candidates, need) {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(candidates), func(name string) bool { return name == need })
		if cluster == "" { // another add-on may be missing where this one is
			return true, nil
		}
		if replaced, err := a.anyAvailable(ctx, others, cluster); err != nil || !replaced {
			return true, err
		}
	}
	return false, nil
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
