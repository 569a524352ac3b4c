package health

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tandem-addons/tandem/pkg/text"
)

// StorageClass is a StorageClass of the cluster, as far as the health of volume claims depends on it.
type StorageClass struct {
	Name string

	// Default is true if claims that name no StorageClass get this one.
	Default bool

	// WaitsForConsumer is true if a claim is bound when the first pod uses it.
	WaitsForConsumer bool
}

// DependsOnStorageClass reports whether the health of an object depends on the cluster's StorageClasses: it is a volume claim that is not
// bound. A claim that names its volume, or an empty StorageClass, is only bound to existing volumes, in whatever StorageClass.
func DependsOnStorageClass(obj *unstructured.Unstructured) bool {
	if obj == nil || obj.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "PersistentVolumeClaim"}) || obj.GetDeletionTimestamp() != nil {
		return false
	}
	f := &fields{object: obj.Object}
	phase, class := f.text("status", "phase"), classOf(f)
	return f.problem == "" && phase != "Bound" && phase != "Lost" && f.text("spec", "volumeName") == "" && (class == nil || *class != "")
}

// OfClaim judges an object that depends on these StorageClasses of its cluster. Unlike Of, it considers a claim healthy that waits for its
// first consumer, and blocked if its StorageClass does not exist.
func OfClaim(claim *unstructured.Unstructured, classes []StorageClass) Result {
	v := unbound(&fields{object: claim.Object}, classes)
	return Result{Status: v.status, Message: text.OneLine(subject(claim) + ": " + v.message), Blocked: v.blocked}
}

func unbound(f *fields, classes []StorageClass) verdict {
	name := classOf(f)
	if name == nil {
		if !slices.ContainsFunc(classes, func(c StorageClass) bool { return c.Default }) {
			return blockedf("is not bound: it has no StorageClass, and the cluster has no default StorageClass")
		}
		return f.check(persistentVolumeClaim(f)) // Kubernetes is about to set the default
	}
	i := slices.IndexFunc(classes, func(c StorageClass) bool { return c.Name == *name })
	switch {
	case i < 0:
		return blockedf("is not bound: StorageClass %s does not exist", *name)
	case classes[i].WaitsForConsumer:
		return healthyf("waits for its first consumer (StorageClass %s)", *name)
	default:
		return f.check(persistentVolumeClaim(f))
	}
}
