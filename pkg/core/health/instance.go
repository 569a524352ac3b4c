package health

import (
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var instanceKind = schema.GroupKind{Group: kudo.GroupVersion.Group, Kind: "Instance"}

// instance judges a child by its condition Ready. The generations in an Instance's status refer to the hub. A mirror carries the hub's
// generation in an annotation.
func instance(f *fields) verdict {
	generation, ok := hubGeneration(f)
	if !ok {
		return unknownf("annotation %s is not a number", kudo.AnnotationHubGeneration)
	}
	c := f.condition(kudo.ConditionReady)
	observed := f.integer(0, "status", "observedGeneration")
	switch {
	case c.status == "":
		return progressingf("no plan has run yet")
	case observed < generation:
		return progressingf("generation %d has not been observed yet", generation)
	case c.isTrue():
		return healthyf("is ready")
	case c.isFalse() && c.reason == kudo.ReasonPlanFailed:
		return failedf("%s", c.why())
	default:
		return progressingf("is not ready: %s", c.why())
	}
}

// hubGeneration returns the generation of the Instance on the hub.
func hubGeneration(f *fields) (int64, bool) {
	annotation := f.text("metadata", "annotations", kudo.AnnotationHubGeneration)
	if annotation == "" {
		return f.integer(0, "metadata", "generation"), true
	}
	generation, err := strconv.ParseInt(annotation, 10, 64)
	return generation, err == nil
}
