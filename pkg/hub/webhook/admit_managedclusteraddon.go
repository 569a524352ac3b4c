package webhook

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/hub/read"
)

// addOn rejects a ManagedClusterAddOn with a config that its cluster must not use, or with a reserved install namespace. It warns about the deletion of one
// that others on the cluster require, and about a change of one that is being deleted. It never rejects either: the dependents are Degraded,
// and all of them may have to be removed.
func (a *admissions) addOn(ctx context.Context, w write[*addonv1alpha1.ManagedClusterAddOn]) (opinion, error) {
	going := w.before != nil && !w.before.DeletionTimestamp.IsZero()
	switch {
	case going && w.after != nil:
		return lostChangeOpinion(w.before), nil
	case going:
		return opinion{}, nil
	case w.after != nil:
		return a.spec(ctx, w)
	}
	names, err := read.DefinedOn(ctx, a.client, w.before.Name)
	if err != nil {
		return opinion{}, err
	}
	var dependents []string
	for _, name := range names {
		requires, err := a.requires(ctx, types.NamespacedName{Namespace: w.before.Namespace, Name: name}, w.before.Name)
		if err != nil {
			return opinion{}, err
		}
		if requires {
			dependents = append(dependents, name)
		}
	}
	return dependentsOpinion(dependents, " on "+w.before.Namespace, w.before.Name, ""), nil
}

// spec rejects what a write adds to an add-on that Tandem manages: a reserved install namespace of a plan-based one, and configs that its
// cluster must not use, or for addon-agent, those of other clusters.
func (a *admissions) spec(ctx context.Context, w write[*addonv1alpha1.ManagedClusterAddOn]) (opinion, error) {
	misplaced := install.AdmitInstallNamespace(w.before, w.after, a.reserved)
	names := install.ConfigNamespaces(nil, w.after)
	if misplaced == nil && len(names) == 0 {
		return opinion{}, nil
	}
	definition, err := read.Definition(ctx, a.client, w.after.Name)
	if err == nil && definition == nil { // it may have just been created
		definition, err = read.Definition(ctx, a.live, w.after.Name)
	}
	agent := w.after.Name == addonv1alpha1.AgentAddOn
	switch {
	case err != nil || !agent && !install.IsPlanManaged(definition):
		return opinion{}, err
	case misplaced != nil && !agent: // the agent's namespace is its own
		return opinion{refused: misplaced}, nil
	}
	namespaces, err := read.Namespaces(ctx, a.live, a.namespaces, names)
	namespaces.Lenient = agent // its delivery reads no config that administrators do not allow
	return opinion{refused: install.AdmitAddOn(definition, w.before, w.after, namespaces)}, err
}

// lostChangeOpinion warns about a change of an add-on that is being deleted.
func lostChangeOpinion(addOn *addonv1alpha1.ManagedClusterAddOn) opinion {
	return opinion{warnings: []string{fmt.Sprintf("%s is being removed from %s, so this change is lost: enable it again once it is gone "+
		"('kubectl addon enable' waits for that)", addOn.Name, addOn.Namespace)}}
}

// requires reports whether that add-on is installed, is not being deleted, and requires need.
func (a *admissions) requires(ctx context.Context, addOn types.NamespacedName, need string) (bool, error) {
	var installed addonv1alpha1.ManagedClusterAddOn
	switch err := a.client.Get(ctx, addOn, &installed); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading ManagedClusterAddOn %s: %w", addOn, err)
	case !installed.DeletionTimestamp.IsZero():
		return false, nil
	}
	return a.declares(ctx, addOn.Name, need, addOn.Namespace)
}
