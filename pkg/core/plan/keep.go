package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Keeps reports whether a rendered object is to stay when its Instance is removed, and when a version no longer renders it. Annotation
// kudo.dev/keep takes precedence over Helm's, whose value is read as Helm reads it. The annotations of a live object prove nothing: others
// may have written them.
func Keeps(rendered *unstructured.Unstructured) bool {
	switch annotations := rendered.GetAnnotations(); annotations[kudo.AnnotationKeep] {
	case "true":
		return true
	case "false":
		return false
	default:
		return isHelmKeep(annotations[kudo.AnnotationHelmPolicy])
	}
}

// KeepsAsHelm reports whether a rendered object has Helm's annotation for objects to keep, and is kept.
func KeepsAsHelm(rendered *unstructured.Unstructured) bool {
	return isHelmKeep(rendered.GetAnnotations()[kudo.AnnotationHelmPolicy]) && Keeps(rendered)
}

// isHelmKeep reports whether Helm keeps an object with that policy.
func isHelmKeep(policy string) bool { return strings.EqualFold(strings.TrimSpace(policy), "keep") }

// KeepProblem returns why an annotation of a rendered object keeps nothing, and the way out; empty if it keeps the object, or is not set.
func KeepProblem(rendered *unstructured.Unstructured) (annotation, problem string) {
	annotations := rendered.GetAnnotations()
	if value, set := annotations[kudo.AnnotationKeep]; set && value != "true" && value != "false" {
		return kudo.AnnotationKeep, keepProblem(kudo.AnnotationKeep, value, `"true" or "false"`)
	}
	if value, set := annotations[kudo.AnnotationHelmPolicy]; set && !isHelmKeep(value) {
		return kudo.AnnotationHelmPolicy, keepProblem(kudo.AnnotationHelmPolicy, value, `"keep"`)
	}
	return "", ""
}

func keepProblem(annotation, value, valid string) string {
	return fmt.Sprintf("annotation %s is %s, which has no effect: set it to %s, or remove it", annotation, text.Quote(value), valid)
}
