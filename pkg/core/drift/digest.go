package drift

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// digestSubresource marks the entry of managedFields that holds a digest. No subresource has that name.
const digestSubresource = "kudo.dev:digest"

// Digest returns a digest of the fields that a manager has applied and owns: it differs once another writer changes one of them. It is empty if there
// are none. The object may be one that Trim has changed.
func Digest(o *unstructured.Unstructured, manager string) string {
	entries, _, _ := unstructured.NestedFieldNoCopy(o.Object, "metadata", "managedFields")
	list, _ := entries.([]any)
	for _, item := range list {
		entry, _ := item.(map[string]any)
		if entry["manager"] != manager || entry["operation"] != string(metav1.ManagedFieldsOperationApply) {
			continue
		}
		fields, _ := entry["fieldsV1"].(map[string]any)
		switch entry["subresource"] {
		case nil, "":
			return digestOf(fields)
		case digestSubresource:
			kept, _ := fields["digest"].(string)
			return kept
		}
	}
	return ""
}

func digestOf(fields map[string]any) string {
	encoded, _ := json.Marshal(fields) // it was decoded from JSON
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8])
}

// Trim replaces the managed fields of an object by the digest of those of a manager, which is much smaller.
func Trim(o *unstructured.Unstructured, manager string) {
	digest := Digest(o, manager)
	unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
	if digest == "" {
		return
	}
	_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{ // metadata is a map: RemoveNestedField has just read it
		"manager": manager, "operation": string(metav1.ManagedFieldsOperationApply), "subresource": digestSubresource,
		"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"digest": digest},
	}}, "metadata", "managedFields")
}
