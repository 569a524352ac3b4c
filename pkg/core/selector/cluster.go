package selector

import (
	"maps"
	"slices"
	"strings"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Cluster is what selectors read of a ManagedCluster.
type Cluster struct {
	Name              string
	Labels, Claims    map[string]string
	KubernetesVersion string
}

// ClusterOf returns what selectors read of a ManagedCluster. The labels with which OCM shows the state of add-ons are missing: a dependency that
// depends on them would depend on its own verdict. So are labels and claims beyond the limits of facts, the last ones by name: the cluster writes its
// claims.
func ClusterOf(cluster *clusterv1.ManagedCluster) Cluster {
	found := facts.Bound(FactsOf(cluster))
	return Cluster{Name: cluster.Name, Labels: first(found.Labels), Claims: first(found.Claims), KubernetesVersion: versionOf(cluster)}
}

// first returns as many entries as are read, the first by name.
func first(entries map[string]string) map[string]string {
	if len(entries) <= facts.MaxEntries {
		return entries
	}
	kept := make(map[string]string, facts.MaxEntries)
	for _, name := range slices.Sorted(maps.Keys(entries))[:facts.MaxEntries] {
		kept[name] = entries[name]
	}
	return kept
}

// FactsOf returns the labels and claims of a ManagedCluster, apart from the labels with which OCM shows the state of add-ons.
func FactsOf(cluster *clusterv1.ManagedCluster) *kudo.ClusterFacts {
	found := &kudo.ClusterFacts{Name: cluster.Name, Labels: facts.LabelsOf(cluster.Labels)}
	for _, claim := range cluster.Status.ClusterClaims {
		if found.Claims == nil {
			found.Claims = make(map[string]string, len(cluster.Status.ClusterClaims))
		}
		found.Claims[claim.Name] = claim.Value
	}
	return found
}

// maxVersion limits what is read of the version that a cluster reports, in bytes.
const maxVersion = 64

func versionOf(cluster *clusterv1.ManagedCluster) string {
	return strings.Clone(text.Truncate(cluster.Status.Version.Kubernetes, maxVersion))
}

// Trim drops the spec and the status of a ManagedCluster in a cache, except its version and its claims. Of claims that are too many or too large, it keeps
// as much as shows that.
func Trim(cluster *clusterv1.ManagedCluster) {
	kept := facts.Bound(&kudo.ClusterFacts{Claims: FactsOf(cluster).Claims})
	cluster.Spec = clusterv1.ManagedClusterSpec{}
	cluster.Status = clusterv1.ManagedClusterStatus{Version: clusterv1.ManagedClusterVersion{Kubernetes: versionOf(cluster)}}
	for _, name := range slices.Sorted(maps.Keys(kept.Claims)) {
		cluster.Status.ClusterClaims = append(cluster.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: name, Value: kept.Claims[name]})
	}
}
