package preview

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/pkg/text"
)

// kindProblems returns why no cluster has a kind: Kubernetes does not have it, and nothing else adds kinds to its API group, whose name has no
// dot, or Kubernetes has removed its version. It is empty for any other kind.
func kindProblems(gvk schema.GroupVersionKind) []string {
	if advice := render.RemovalAdvice(gvk); advice != "" {
		return []string{advice}
	}
	known, _ := rights.IsBuiltIn(gvk.GroupKind())
	if known || strings.Contains(gvk.Group, ".") {
		return nil
	}
	return []string{fmt.Sprintf("Kubernetes has no kind %s in %s%s", text.Quote(gvk.Kind), gvk.GroupVersion(),
		text.DidYouMean(gvk.Kind, rights.KindsOf(gvk.Group)))}
}

// metadataProblems lists the name and the labels of an object that are not valid, and the keys of annotations.
func metadataProblems(o *unstructured.Unstructured) []string {
	var found []string
	invalid := func(path, value string, problems []string) {
		if len(problems) > 0 && !strings.Contains(value, render.Hidden) {
			found = append(found, fmt.Sprintf("%s: invalid value %s: %s", path, text.Quote(value), problems[0]))
		}
	}
	invalid("metadata.name", o.GetName(), nameProblems(o.GroupVersionKind().GroupKind(), o.GetName()))
	for _, path := range [][]string{{"metadata", "labels"}, {"spec", "template", "metadata", "labels"}} {
		labels, _, _ := unstructured.NestedStringMap(o.Object, path...)
		field := strings.Join(path, ".")
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			invalid(field, key, validation.IsQualifiedName(key))
			invalid(field+"."+key, labels[key], validation.IsValidLabelValue(labels[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(o.GetAnnotations())) {
		invalid("metadata.annotations", key, validation.IsQualifiedName(strings.ToLower(key)))
	}
	return found
}

// nameProblems returns what is wrong with the name of an object of a kind whose rule for names is known.
func nameProblems(kind schema.GroupKind, name string) []string {
	known, _ := rights.IsBuiltIn(kind)
	switch {
	case kind == schema.GroupKind{Kind: "Namespace"}, kind == schema.GroupKind{Kind: "Service"}:
		return validation.IsDNS1123Label(name)
	case known && slices.Contains([]string{"", "apps", "autoscaling", "batch", "policy"}, kind.Group):
		return validation.IsDNS1123Subdomain(name)
	default:
		return nil
	}
}
