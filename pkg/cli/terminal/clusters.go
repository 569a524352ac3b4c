package terminal

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ClustersShown is the number of clusters listed unless all are shown.
const ClustersShown = 3

// ClustersText returns the number of clusters and their names: all of them if wide, else the first ones.
func ClustersText(clusters []string, wide bool) string {
	if len(clusters) == 0 {
		return "0"
	}
	shown, rest := clusters, ""
	if !wide && len(clusters) > ClustersShown {
		shown, rest = clusters[:ClustersShown], ", …"
	}
	return fmt.Sprintf("%d (%s%s)", len(clusters), strings.Join(shown, ", "), rest)
}

// ClustersTitle returns the name of a single cluster, or the number of clusters and their names, at the beginning of a line.
func ClustersTitle(clusters []string, wide bool) string {
	if len(clusters) == 1 {
		return "Cluster " + clusters[0]
	}
	return strings.Replace(ClustersText(clusters, wide), " (", " clusters (", 1)
}

// ClusterTexts groups clusters by text, apart from their names in it.
type ClusterTexts map[string][]string

// anyCluster replaces the name of the cluster in a text.
const anyCluster = "\x00"

// Add adds a text about a cluster.
func (t ClusterTexts) Add(cluster, text string) {
	text = strings.ReplaceAll(text, cluster, anyCluster)
	t[text] = append(t[text], cluster)
}

// Texts returns each text once, as it is about the first of its clusters, and preceded by all of them.
func (t ClusterTexts) Texts() []string {
	var texts []string
	for _, text := range slices.Sorted(maps.Keys(t)) {
		texts = append(texts, fmt.Sprintf("on %s: %s", OnClusters(t[text]), strings.ReplaceAll(text, anyCluster, t[text][0])))
	}
	return texts
}

// OnClusters returns the name of a single cluster, or the number of clusters and the first one.
func OnClusters(clusters []string) string {
	if len(clusters) == 1 {
		return "cluster " + clusters[0]
	}
	return strings.Replace(ClustersText(clusters, false), " (", " clusters (", 1)
}
