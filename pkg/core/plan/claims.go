package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Claim is a volume claim that the controller of a StatefulSet creates.
type Claim struct {
	Name string
	// Size is the requested storage; empty if it is not known.
	Size string
	// Kept is true if the claim stays when the StatefulSet is removed with its Instance.
	Kept bool
}

// MaxClaims limits the volume claims that ClaimsOfSet returns.
const MaxClaims = 64

// ClaimsOfSet returns the volume claims of the replicas of a StatefulSet, at most MaxClaims, and the number of all of them. Claims that former
// replicas have left exist on the cluster only.
func ClaimsOfSet(set *unstructured.Unstructured) (claims []Claim, all int64) {
	deleted, retained := claimsOf(set)
	replicas, found, err := unstructured.NestedInt64(set.Object, "spec", "replicas")
	if !found || err != nil {
		replicas = 1
	}
	first, _, _ := unstructured.NestedInt64(set.Object, "spec", "ordinals", "start")
	templates := append(deleted, retained...)
	for ordinal := first; ordinal < first+replicas; ordinal++ {
		for i, name := range templates {
			if len(claims) == MaxClaims {
				return claims, replicas * int64(len(templates))
			}
			claims = append(claims, Claim{
				Name: fmt.Sprintf("%s-%s-%d", name, set.GetName(), ordinal), Size: templateSize(set, name), Kept: i >= len(deleted),
			})
		}
	}
	return claims, int64(len(claims))
}

// templateSize returns the storage that a claim template of a StatefulSet requests; empty if it names none.
func templateSize(set *unstructured.Unstructured, name string) string {
	templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	for _, t := range templates {
		template, _ := t.(map[string]any)
		if named, _, _ := unstructured.NestedString(template, "metadata", "name"); named == name {
			return ClaimSize(template)
		}
	}
	return ""
}

// ClaimSize returns the storage that a volume claim, or a template of claims, requests; empty if it requests none.
func ClaimSize(claim map[string]any) string {
	given, found, err := unstructured.NestedFieldNoCopy(claim, "spec", "resources", "requests", "storage")
	if !found || err != nil {
		return ""
	}
	size, err := resource.ParseQuantity(fmt.Sprint(given))
	if err != nil {
		return ""
	}
	return size.String()
}
