package selector

import (
	"maps"
	"slices"

	"github.com/tandem-addons/tandem/pkg/core/expression"
)

// language is CEL over a ManagedCluster: each expression is evaluated for every cluster, and again on changes.
var language = expression.Over("managedCluster")

// holds reports whether an expression is true for a cluster. An expression that fails, such as one that reads a label that the cluster does not have,
// is not.
func holds(text string, object map[string]any) bool {
	result, err := language.Holds(text, object)
	return err == nil && result
}

// objectOf returns the parts of a ManagedCluster that expressions read, under the names of the API.
func objectOf(cluster Cluster) map[string]any {
	claims := make([]any, 0, len(cluster.Claims))
	for _, name := range slices.Sorted(maps.Keys(cluster.Claims)) {
		claims = append(claims, map[string]any{"name": name, "value": cluster.Claims[name]})
	}
	labels := make(map[string]any, len(cluster.Labels))
	for name, value := range cluster.Labels {
		labels[name] = value
	}
	return map[string]any{
		"metadata": map[string]any{"name": cluster.Name, "labels": labels},
		"status":   map[string]any{"clusterClaims": claims, "version": map[string]any{"kubernetes": cluster.KubernetesVersion}},
	}
}
