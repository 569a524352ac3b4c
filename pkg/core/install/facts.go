package install

import (
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
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

// WindowsOf returns the maintenance windows of the cluster that the spec of an Instance has to have. A child has them, too, although its executions belong to
// those of its root: anyone who may create Instances may make one a child by an owner reference.
func WindowsOf(i Instance) string {
	if i.Unmanaged {
		return i.Instance.Spec.ClusterWindows
	}
	return i.ClusterWindows
}

// SuspendedByOf returns the objects on the hub that suspend an Instance, as its spec has to name them. A child has those of the add-on of its root.
func SuspendedByOf(i Instance) string {
	if i.Unmanaged {
		return i.Instance.Spec.SuspendedBy
	}
	return suspension.Describe(i.Suspensions)
}
