package install

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/soak"
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

// healthyFor returns how long the cluster has to be healthy after a plan of the add-on, according to the last AddOnDeploymentConfig that says so, or the
// definition; nil if none does. If that is malformed, it returns the annotated object, and the problem.
func (a AddOn) healthyFor() (required *metav1.Duration, annotated, problem string) {
	for _, name := range slices.Backward(a.Configuration.DeploymentConfigs) {
		if config := a.DeploymentConfigs[name]; config != nil {
			if source, is := config.Annotations[kudo.AnnotationHealthyFor]; is {
				return parseHealthyFor(source, "AddOnDeploymentConfig "+name.String())
			}
		}
	}
	if source, is := a.Definition.GetAnnotations()[kudo.AnnotationHealthyFor]; is {
		return parseHealthyFor(source, fmt.Sprintf("ClusterManagementAddOn %q", a.Definition.Name))
	}
	return nil, "", ""
}

func parseHealthyFor(source, of string) (*metav1.Duration, string, string) {
	parsed, err := soak.Parse(source)
	switch {
	case err != nil:
		return nil, of, err.Error()
	case parsed == 0:
		return nil, "", ""
	default:
		return &metav1.Duration{Duration: parsed}, "", ""
	}
}

// healthyForProblem returns the message about a malformed annotation of the add-on; empty if there is none.
func (a AddOn) healthyForProblem() string {
	_, annotated, problem := a.healthyFor()
	if problem == "" {
		return ""
	}
	return fmt.Sprintf("annotation %s of %s is malformed, and no rollout counts a cluster as done: %s; write a time such as 10m, or remove the annotation",
		kudo.AnnotationHealthyFor, annotated, problem)
}

// isSameTime reports whether two times are equal; nil is zero.
func isSameTime(a, b *metav1.Duration) bool { return timeOrZero(a) == timeOrZero(b) }

func timeOrZero(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}
