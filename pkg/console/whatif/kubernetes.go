package whatif

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tandem-addons/tandem/pkg/core/compatibility"
)

// Kubernetes is the output of `what-if kubernetes`: what an upgrade of clusters to a version of Kubernetes would break or release.
type Kubernetes struct {
	Version string `json:"kubernetesVersion"`
	// Clusters lists the clusters that were looked at, and Current those that have the version or a higher one.
	Clusters []string `json:"clusters"`
	Current  []string `json:"current,omitempty"`
	// Effects lists the affected add-ons and Instances, the worst effect first.
	Effects []KubernetesRow `json:"effects"`
	// Unknown states what could not be looked at.
	Unknown []UnknownRow `json:"unknown,omitempty"`
}

// UnknownRow is what could not be looked at on clusters.
type UnknownRow struct {
	Reason   string   `json:"reason"`
	Clusters []string `json:"clusters"`
}

// KubernetesOf returns what an upgrade of clusters to a version of Kubernetes does, as compatibility.ParseCluster returns it.
func KubernetesOf(version string, clusters map[string]Cluster) Kubernetes {
	data := Kubernetes{Version: version, Clusters: []string{}, Effects: []KubernetesRow{}}
	rows, unknown := map[string]*KubernetesRow{}, map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		before := clusters[name]
		if reached, known := compatibility.IsReached(versionOf(before), version); known && reached {
			data.Current = append(data.Current, name)
			continue
		}
		data.Clusters = append(data.Clusters, name)
		upgrade := newKubernetesUpgrade(before, version)
		upgrade.judge()
		for _, row := range upgrade.rows {
			key := fmt.Sprintf("%q", []any{row.AddOn, row.Instance, row.Effect, row.OperatorVersion, row.DependsOn, row.Type, row.Reason})
			if rows[key] == nil {
				rows[key] = &row
			}
			rows[key].Clusters = append(rows[key].Clusters, name)
		}
		for _, reason := range upgrade.unknown {
			unknown[reason] = append(unknown[reason], name)
		}
	}
	for _, row := range rows {
		data.Effects = append(data.Effects, *row)
	}
	slices.SortFunc(data.Effects, compareRows)
	for _, reason := range slices.Sorted(maps.Keys(unknown)) {
		data.Unknown = append(data.Unknown, UnknownRow{Reason: reason, Clusters: slices.Compact(unknown[reason])})
	}
	return data
}
