package read

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Dependents reads the dependents of addOn and their clusters. If addOn is unknown, the error lists the existing add-ons.
func Dependents(ctx context.Context, c client.Reader, addOn string) (fleet.DependentsView, error) {
	view := fleet.DependentsView{AddOn: addOn}
	definitions, err := Definitions(ctx, c)
	if err != nil {
		return view, err
	}
	needs := make(map[string][]addonv1alpha1.AddonDependency, len(definitions))
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		needs[name] = definitions[name].Needs
		if problem := definitions[name].Malformed; problem != nil {
			view.Malformed = append(view.Malformed, problem)
		}
	}
	view.Needs, view.Direct = needs, dependency.Direct(needs)
	if _, defined := definitions[addOn]; !defined && len(view.Direct[addOn]) == 0 {
		return view, fmt.Errorf("ClusterManagementAddOn %q not found, and no other one depends on it; ClusterManagementAddOns: %s",
			addOn, text.ListOrNone(slices.Sorted(maps.Keys(definitions))))
	}
	affected := dependency.Dependents(addOn, view.Direct, nil, nil)
	if len(affected) == 0 {
		return view, nil
	}
	if view.There, err = places(ctx, c, withReplacements(addOn, affected, needs)); err != nil {
		return view, err
	}
	if anyNeed(definitions, selectsClusters) {
		view.Selected, err = allSelected(ctx, c)
	}
	return view, err
}

// withReplacements returns the names of an add-on, of those that it may affect, and of those that could replace them.
func withReplacements(addOn string, affected []dependency.Dependent, needs map[string][]addonv1alpha1.AddonDependency) map[string]bool {
	names := map[string]bool{addOn: true}
	for _, d := range affected {
		names[d.Name] = true
		for _, candidate := range dependency.CandidatesOf(needs[d.Name]) {
			names[candidate] = true
		}
	}
	return names
}

// places reads the clusters of the add-ons.
func places(ctx context.Context, c client.Reader, names map[string]bool) (map[string]map[string]bool, error) {
	there := map[string]map[string]bool{}
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"))
	for {
		if err := c.List(ctx, page, client.Limit(PageSize), client.Continue(page.Continue)); err != nil {
			return nil, fmt.Errorf("listing the add-ons of all clusters: %w", err)
		}
		for i := range page.Items {
			cluster, name := page.Items[i].Namespace, page.Items[i].Name
			if !names[name] {
				continue
			}
			if there[cluster] == nil {
				there[cluster] = map[string]bool{}
			}
			there[cluster][name] = true
		}
		if page.Continue == "" {
			return there, nil
		}
	}
}
