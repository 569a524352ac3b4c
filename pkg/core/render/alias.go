package render

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// secret is the kind of Secrets.
var secret = schema.GroupKind{Kind: "Secret"}

// replaceAliases sets the fields into which the API server copies others: with the others alone, a change or a removal would leave the copies as
// they are.
func replaceAliases(obj *unstructured.Unstructured) error {
	kind := obj.GroupVersionKind().GroupKind()
	if kind == secret {
		return replaceStringData(obj.Object)
	}
	if path, hasPods := podSpecPath(kind); hasPods {
		if spec, _ := walk(obj.Object, path); spec != nil { // the API server rejects another type
			setServiceAccount(spec)
		}
	}
	return nil
}

// replaceStringData replaces stringData of a Secret, which is never returned and wins over data, by data.
func replaceStringData(object map[string]any) error {
	written := object["stringData"]
	delete(object, "stringData")
	texts, isMap := written.(map[string]any)
	if written != nil && !isMap {
		return fmt.Errorf("stringData must be an object, with a string for each key")
	}
	if len(texts) == 0 {
		return nil
	}
	data, err := child(object, "data", "data")
	if err != nil {
		return fmt.Errorf("data must be an object, with a string for each key") // without a value, which may be secret
	}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		text, isText := texts[key].(string)
		if !isText && texts[key] != nil {
			return fmt.Errorf("stringData: the value of %q must be a string: quote it", key)
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	return nil
}

// setServiceAccount sets both names of a field, serviceAccountName and serviceAccount: the API server sets one from the other, and prefers the
// former. Applied alone, one would stay when the other is removed.
func setServiceAccount(spec map[string]any) {
	account := spec["serviceAccountName"]
	if isBlank(account) {
		account = spec["serviceAccount"]
	}
	delete(spec, "serviceAccountName")
	delete(spec, "serviceAccount")
	if !isBlank(account) {
		spec["serviceAccountName"], spec["serviceAccount"] = account, account
	}
}

// TakeOver returns want with the data that manager has applied to the live Secret as stringData and that want lacks; nil if there is none.
// After it is applied, the data belongs to manager, so that applying want removes it. Earlier releases applied stringData.
func TakeOver(want, live *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	if live == nil || want.GroupVersionKind().GroupKind() != secret {
		return nil
	}
	stored, _, _ := unstructured.NestedMap(live.Object, "data")
	wanted, _, _ := unstructured.NestedMap(want.Object, "data")
	missing := map[string]any{}
	for _, key := range stringDataOf(live, manager) {
		if value, exists := stored[key]; exists && wanted[key] == nil {
			missing[key] = value
		}
	}
	if len(missing) == 0 {
		return nil
	}
	all := want.DeepCopy()
	maps.Copy(missing, wanted)
	all.Object["data"] = missing
	return all
}

// stringDataOf returns the keys of a Secret that manager has applied as stringData.
func stringDataOf(live *unstructured.Unstructured, manager string) []string {
	var keys []string
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != manager || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			StringData map[string]any `json:"f:stringData"`
		}
		_ = json.Unmarshal(entry.FieldsV1.Raw, &fields) // the API server has written it
		for field := range fields.StringData {
			if len(field) > 2 && field[:2] == "f:" {
				keys = append(keys, field[2:])
			}
		}
	}
	return keys
}
