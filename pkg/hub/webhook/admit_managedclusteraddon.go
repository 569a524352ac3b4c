package webhook

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/hub/read"
)

// addOn warns about the deletion of a ManagedClusterAddOn that others on the cluster require. It never rejects it: the dependents are
// Degraded, and all of them may have to be removed.
func (a *admissions) addOn(ctx context.Context, w write[*addonv1alpha1.ManagedClusterAddOn]) (opinion, error) {
	if w.after != nil || !w.before.DeletionTimestamp.IsZero() {
		return opinion{}, nil
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
	return losing(dependents, " on "+w.before.Namespace, w.before.Name, ""), nil
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
	return a.declares(ctx, addOn.Name, need)
}
