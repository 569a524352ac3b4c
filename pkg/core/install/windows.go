package install

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/window"
)

// AnnotatedWindows returns the maintenance windows in the annotation of a ManagedCluster or an AddOnDeploymentConfig; empty if it has none.
func AnnotatedWindows(of metav1.Object) string {
	source, annotated := of.GetAnnotations()[kudo.AnnotationWindows]
	if !annotated {
		return ""
	}
	return window.Bound(source)
}

// WindowsProblem returns why maintenance windows are malformed; empty if they are not, or if there are none.
func WindowsProblem(source string) string {
	if source == "" {
		return ""
	}
	if _, err := window.Parse(source); err != nil {
		return err.Error()
	}
	return ""
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

// windowsRule requires that the maintenance windows of the cluster can be passed on.
func windowsRule(i Instance) []Problem {
	if !i.WindowsDropped {
		return nil
	}
	return []Problem{{kudo.ReasonFieldNotStored, fmt.Sprintf("CustomResourceDefinition instances.kudo.dev on the hub has no field spec.clusterWindows, and "+
		"ManagedCluster %q has annotation %s: apply crds/ of the version of addon-manager on the hub", i.Instance.Namespace, kudo.AnnotationWindows)}}
}

// windows returns the maintenance windows of the add-on: those of the last AddOnDeploymentConfig that has any.
func (a AddOn) windows() string {
	for _, name := range slices.Backward(a.Configuration.DeploymentConfigs) {
		if config := a.DeploymentConfigs[name]; config != nil {
			if source := AnnotatedWindows(config); source != "" {
				return source
			}
		}
	}
	return ""
}
