package install

import (
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/facts"
)

// FactsOf returns the facts of the cluster that the spec of an Instance has to have: none if no template of its OperatorVersion uses them. While the
// OperatorVersion is missing, or the facts cannot be passed on, the existing ones stay.
func FactsOf(i Instance) *kudo.ClusterFacts {
	switch {
	case i.Unmanaged || i.asChosen().Version == nil || i.Cluster == nil:
		return i.Instance.Spec.Cluster
	case !facts.UseCluster(&i.Version.Spec):
		return nil
	case facts.Problem(i.Cluster) != "":
		return i.Instance.Spec.Cluster
	default:
		return i.Cluster
	}
}

// WindowsOf returns the maintenance windows of the cluster that the spec of an Instance has to have: none for a child, whose executions belong to those of
// its root.
func WindowsOf(i Instance) string {
	switch {
	case i.Unmanaged:
		return i.Instance.Spec.ClusterWindows
	case i.Instance.Parent() != nil:
		return ""
	default:
		return i.ClusterWindows
	}
}
