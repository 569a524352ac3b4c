package terminal

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ClustersShown is how many clusters are named where not all are.
const ClustersShown = 3

// ClustersText is how many clusters there are, and which: all of them if wide, else the first ones.
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

// ClusterTexts are texts that say the same of several clusters, and of which.
type ClusterTexts map[string][]string

func (t ClusterTexts) Add(cluster, text string) { t[text] = append(t[text], cluster) }

func (t ClusterTexts) Texts() []string {
	var texts []string
	for _, text := range slices.Sorted(maps.Keys(t)) {
		texts = append(texts, fmt.Sprintf("on %s: %s", OnClusters(t[text]), text))
	}
	return texts
}

// OnClusters names clusters: the one that there is, else how many and the first.
func OnClusters(clusters []string) string {
	if len(clusters) == 1 {
		return "cluster " + clusters[0]
	}
	return strings.Replace(ClustersText(clusters, false), " (", " clusters (", 1)
}
