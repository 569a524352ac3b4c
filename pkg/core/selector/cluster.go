package selector

import (
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/tandem-addons/tandem/pkg/core/facts"
)

// Cluster is what selectors read of a ManagedCluster.
type Cluster struct {
	Name              string
	Labels, Claims    map[string]string
	KubernetesVersion string
}

// ClusterOf returns what selectors read of a ManagedCluster. The labels with which OCM shows the state of add-ons are missing: a dependency that
// depends on them would depend on its own verdict.
func ClusterOf(cluster *clusterv1.ManagedCluster) Cluster {
	found := Cluster{
		Name: cluster.Name, Labels: facts.LabelsOf(cluster.Labels), KubernetesVersion: cluster.Status.Version.Kubernetes,
		Claims: make(map[string]string, len(cluster.Status.ClusterClaims)),
	}
	for _, claim := range cluster.Status.ClusterClaims {
		found.Claims[claim.Name] = claim.Value
	}
	return found
}
