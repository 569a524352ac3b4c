package hub

import (
	"context"
	"fmt"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/dependency"
)

// definition judges a write of a ClusterManagementAddOn by its dependencies: malformed ones and circles are refused.
//
// The other definitions are read past the cache: a circle is often made by two writes in a row, of which the cache may not have
// seen the first. Dependencies change rarely, and there is one definition for each add-on, not for each cluster.
func (a *admissions) definition(ctx context.Context, w write[*addonv1alpha1.ClusterManagementAddOn]) (opinion, error) {
	if !w.after.DeletionTimestamp.IsZero() {
		return opinion{}, nil
	}
	var definitions addonv1alpha1.ClusterManagementAddOnList
	if err := a.live.List(ctx, &definitions); err != nil {
		return opinion{}, fmt.Errorf("listing ClusterManagementAddOns: %w", err)
	}
	needs := make(map[string][]addonv1alpha1.AddonDependency, len(definitions.Items))
	for i := range definitions.Items {
		needs[definitions.Items[i].Name] = dependency.Needs(&definitions.Items[i])
	}
	warnings, refused := dependency.Admit(w.before, w.after, func(name string) []addonv1alpha1.AddonDependency { return needs[name] })
	return opinion{warnings: warnings, refused: refused}, nil
}
