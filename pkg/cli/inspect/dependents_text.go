package inspect

import (
	"fmt"
	"slices"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/text"
)

// dependentsText returns a table; wide lists all clusters.
func dependentsText(d fleet.Dependents, wide bool) string {
	shown := fmt.Sprintf("No add-on depends on %s.\n", text.Word(d.AddOn))
	if len(d.Dependents) > 0 {
		rows := make([][]string, len(d.Dependents))
		for i, row := range d.Dependents {
			rows[i] = []string{row.AddOn, string(row.Type), fleet.ThroughText(row.Through), fleet.EffectText(row.Type), terminal.ClustersText(row.Clusters, wide)}
		}
		shown = terminal.Table([]string{"ADD-ON", "TYPE", "THROUGH", "EFFECT", "CLUSTERS"}, rows)
	}
	if len(d.MissingOn) > 0 {
		shown += fmt.Sprintf("\n%s is not installed on clusters where other add-ons depend on it: %s\n",
			text.Word(d.AddOn), terminal.ClustersText(d.MissingOn, wide))
	}
	for _, problem := range d.Malformed {
		shown += fmt.Sprintf("\nIgnored because the dependencies are malformed: %s\n", problem)
	}
	return shown
}

// dependentsNames returns the object names of the definitions, each once.
func dependentsNames(d fleet.Dependents) []string {
	var names []string
	for _, row := range d.Dependents {
		if name := text.ObjectName(addonv1alpha1.GroupVersion.Group, "ClusterManagementAddOn", row.AddOn); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
