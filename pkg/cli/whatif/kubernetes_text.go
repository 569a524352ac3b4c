package whatif

import (
	"fmt"
	"strings"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/whatif"
	"github.com/tandem-addons/tandem/pkg/text"
)

// kubernetesText returns a table of the affected add-ons, and the clusters; wide lists all clusters.
func kubernetesText(d whatif.Kubernetes, wide bool) string {
	var b strings.Builder
	switch {
	case len(d.Clusters) == 0:
	case len(d.Effects) == 0 && len(d.Unknown) == 0:
		fmt.Fprintf(&b, "No add-on on these clusters is affected by Kubernetes %s.\n", d.Version)
	case len(d.Effects) == 0:
		fmt.Fprintf(&b, "No add-on on these clusters is known to be affected by Kubernetes %s.\n", d.Version)
	default:
		rows := make([][]string, len(d.Effects))
		for i, row := range d.Effects {
			rows[i] = []string{subjectText(row), row.Effect.Text(), row.Reason, terminal.ClustersText(row.Clusters, wide)}
		}
		b.WriteString(terminal.Table([]string{"ADD-ON", "EFFECT", "REASON", "CLUSTERS"}, rows))
	}
	for _, row := range d.Unknown {
		fmt.Fprintf(&b, "\nUnknown for %s: %s\n", clustersText(row.Clusters, wide), row.Reason)
	}
	if len(d.Clusters) > 0 {
		fmt.Fprintf(&b, "\nClusters that would be upgraded to %s: %s\n", d.Version, terminal.ClustersText(d.Clusters, wide))
	}
	if len(d.Current) > 0 {
		fmt.Fprintf(&b, "\nClusters that already run %s or a higher version: %s\n", d.Version, terminal.ClustersText(d.Current, wide))
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// clustersText returns the number of clusters and their names, in a sentence.
func clustersText(clusters []string, wide bool) string {
	noun := " clusters ("
	if len(clusters) == 1 {
		noun = " cluster ("
	}
	return strings.Replace(terminal.ClustersText(clusters, wide), " (", noun, 1)
}

// subjectText names the add-on, or the Instance.
func subjectText(row whatif.KubernetesRow) string {
	switch {
	case row.AddOn == "":
		return fmt.Sprintf("Instance %s", text.Word(row.Instance))
	case row.Instance != "":
		return fmt.Sprintf("%s (child %s)", text.Word(row.AddOn), text.Word(row.Instance))
	default:
		return row.AddOn
	}
}
