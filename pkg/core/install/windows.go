package install

import (
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
