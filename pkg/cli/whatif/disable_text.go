package whatif

import (
	"fmt"
	"slices"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/whatif"
	"github.com/tandem-addons/tandem/pkg/text"
)

// disablingText returns a table of the affected add-ons, and the clusters; wide lists all clusters.
func disablingText(d whatif.Disabling, wide bool) string {
	shown := fmt.Sprintf("No add-on on these clusters depends on %s.\n", text.Word(d.AddOn))
	if len(d.Dependents) > 0 {
		rows := make([][]string, len(d.Dependents))
		for i, row := range d.Dependents {
			rows[i] = []string{row.AddOn, string(row.Type), fleet.ThroughText(row.Through), row.EffectText(), terminal.ClustersText(row.Clusters, wide)}
		}
		shown = terminal.Table([]string{"ADD-ON", "TYPE", "THROUGH", "EFFECT", "CLUSTERS"}, rows)
	}
	if len(d.Removed) > 0 {
		shown += fmt.Sprintf("\n%s would be removed from: %s\n", text.Word(d.AddOn), terminal.ClustersText(d.Removed, wide))
	}
	if len(d.Refused) > 0 {
		shown += fmt.Sprintf("\n%s would stay, because other add-ons protect it, on: %s\n", text.Word(d.AddOn), terminal.ClustersText(d.Refused, wide))
	}
	return shown
}

// disablingNames returns the object names of the affected definitions, each once.
func disablingNames(d whatif.Disabling) []string {
	var names []string
	for _, row := range d.Dependents {
		if name := text.ObjectName(addonv1alpha1.GroupVersion.Group, "ClusterManagementAddOn", row.AddOn); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
