package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tandem-addons/tandem/pkg/console/fleet"
)

// Disabling is the output of `what-if disable`: what the removal of an add-on does on a fleet.
type Disabling struct {
	AddOn string `json:"addOn"`
	// Removed lists the clusters from which the add-on would be removed, and Refused those from which it would not, because dependents protect it.
	Removed []string `json:"removedFrom"`
	Refused []string `json:"refusedOn"`
	// Dependents lists the affected add-ons, the worst effect first.
	Dependents []AffectedRow `json:"dependents"`
}

// AffectedRow is an add-on with one kind of effect, and the clusters with that effect.
type AffectedRow struct {
	fleet.DependentRow
	// Protects is set if the add-on does not allow the removal on these clusters.
	Protects bool `json:"protects,omitempty"`
}

// DisablingOf returns what the removal of an add-on does on each cluster that has it and does not remove it already.
func DisablingOf(addOn string, clusters map[string]fleet.Cluster) Disabling {
	data := Disabling{AddOn: addOn, Removed: []string{}, Refused: []string{}, Dependents: []AffectedRow{}}
	rows := map[string]*AffectedRow{}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		view := clusters[name]
		if installed := view.AddOns[addOn]; installed == nil || !installed.DeletionTimestamp.IsZero() {
			continue
		}
		refused := false
		for _, d := range view.Dependents(addOn) {
			refused = refused || d.Protects
			key := fmt.Sprintf("%s %s %t %q", d.Name, d.Type, d.Protects, d.Through)
			if rows[key] == nil {
				rows[key] = &AffectedRow{DependentRow: fleet.DependentRow{AddOn: d.Name, Type: d.Type, Through: d.Through}, Protects: d.Protects}
			}
			rows[key].Clusters = append(rows[key].Clusters, name)
		}
		if refused {
			data.Refused = append(data.Refused, name)
		} else {
			data.Removed = append(data.Removed, name)
		}
	}
	for _, row := range rows {
		data.Dependents = append(data.Dependents, *row)
	}
	slices.SortFunc(data.Dependents, func(a, b AffectedRow) int {
		return cmp.Or(
			-cmp.Compare(a.Type, b.Type), // Required before Optional
			cmp.Compare(len(a.Through), len(b.Through)),
			cmp.Compare(a.AddOn, b.AddOn),
			slices.Compare(a.Through, b.Through),
			slices.Compare(a.Clusters, b.Clusters),
		)
	})
	return data
}

// EffectText returns the effect on the add-on, and whether it prevents the removal.
func (r AffectedRow) EffectText() string {
	if r.Protects {
		return "protects it: the removal is refused"
	}
	return fleet.EffectText(r.Type)
}
