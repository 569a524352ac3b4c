package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// IsNamespace reports whether an entry is of a Namespace, whose deletion deletes everything in it.
func IsNamespace(entry kudo.InventoryEntry) bool {
	return entry.Group == "" && entry.Kind == "Namespace"
}

// NamespaceKeptReason returns why a Namespace that a version no longer renders stays; empty if it is deleted with everything in it, which only the
// package can request, in an annotation of the Namespace. install is the Instance's namespace, and applied are the objects that the version
// applies.
func NamespaceKeptReason(namespace *unstructured.Unstructured, install string, applied []kudo.InventoryEntry) string {
	name := namespace.GetName()
	inside := only(applied, func(e kudo.InventoryEntry) bool { return e.Namespace == name })
	switch {
	case name == install:
		return "the Instance is installed in it"
	case len(inside) > 0:
		return fmt.Sprintf("the version applies %s in it, such as %s", text.Plural(len(inside), "object"), inside[0])
	case namespace.GetAnnotations()[kudo.AnnotationPrune] != "true":
		return "its deletion would delete everything in it, and it lacks annotation " + kudo.AnnotationPrune + "=true"
	default:
		return ""
	}
}

// SplitNamespaces separates entries of Namespaces from the rest.
func SplitNamespaces(entries []kudo.InventoryEntry) (namespaces, others []kudo.InventoryEntry) {
	return only(entries, IsNamespace), slices.DeleteFunc(slices.Clone(entries), IsNamespace)
}
