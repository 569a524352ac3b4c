package install

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/soak"
	"github.com/tandem-addons/tandem/pkg/core/window"
	"github.com/tandem-addons/tandem/pkg/text"
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
	source, of := a.annotation(kudo.AnnotationHealthyFor)
	if of == "" {
		return nil, "", ""
	}
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

// annotation returns the value of an annotation of the last AddOnDeploymentConfig that has it, or of the definition, and a description of that object; empty
// if none has it.
func (a AddOn) annotation(key string) (value, of string) {
	for _, name := range slices.Backward(a.Configuration.DeploymentConfigs) {
		if config := a.DeploymentConfigs[name]; config != nil {
			if value, is := config.Annotations[key]; is {
				return value, "AddOnDeploymentConfig " + name.String()
			}
		}
	}
	if value, is := a.Definition.GetAnnotations()[key]; is {
		return value, fmt.Sprintf("ClusterManagementAddOn %q", a.Definition.Name)
	}
	return "", ""
}

// onFailure returns what the agent does if a plan for another version fails, and why the annotation that says so is malformed; empty if it is not, or if there
// is none.
func (a AddOn) onFailure() (policy kudo.FailurePolicy, problem string) {
	value, of := a.annotation(kudo.AnnotationOnFailure)
	switch policy = kudo.FailurePolicy(value); policy {
	case "", kudo.FailureStop, kudo.FailureReturn:
		return policy, ""
	default:
		return "", fmt.Sprintf("annotation %s of %s is %s, and an upgrade that fails stops: set it to Stop or Return, or remove it",
			kudo.AnnotationOnFailure, of, text.Quote(value))
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
