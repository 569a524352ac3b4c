package progress

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// RemainingText states which add-ons and Instances are removed before an add-on, which may be nil; empty if there are none.
func RemainingText(addOn *addonv1alpha1.ManagedClusterAddOn) string {
	if addOn == nil {
		return ""
	}
	remaining := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAddOnsRemaining)
	if remaining == nil || remaining.Status != metav1.ConditionTrue {
		return ""
	}
	return remaining.Message
}

// HeldText states which finalizers keep an add-on that is being deleted. If all of them belong to other controllers, it names the command that
// explains what to do.
func HeldText(addOn *addonv1alpha1.ManagedClusterAddOn) string {
	held := FinalizersText("ManagedClusterAddOn", addOn)
	if IsHeldByOthers(addOn) {
		held += ": run '" + text.Command("kubectl addon why %s --cluster %s", addOn.Name, addOn.Namespace) + "'"
	}
	return held
}

// FinalizersText lists the finalizers of an object that is being deleted.
func FinalizersText(kind string, object metav1.Object) string {
	return fmt.Sprintf("%s %s is held by finalizers: %s", kind, text.Word(object.GetName()), FinalizerList(object))
}

// FinalizerList lists the finalizers of an object, those of other controllers with the field managers that have set them, if that is recorded.
func FinalizerList(object metav1.Object) string {
	managers := map[string][]string{}
	for _, entry := range object.GetManagedFields() {
		for _, finalizer := range finalizersOf(entry) {
			if manager := text.Word(entry.Manager); entry.Manager != "" && !slices.Contains(managers[finalizer], manager) {
				managers[finalizer] = append(managers[finalizer], manager)
			}
		}
	}
	var finalizers []string
	for _, finalizer := range object.GetFinalizers() {
		name := text.Word(finalizer)
		if by := managers[finalizer]; len(by) > 0 && !isOwnFinalizer(finalizer) {
			slices.Sort(by)
			name += " (set by field manager " + text.ListOrNone(by) + ")"
		}
		finalizers = append(finalizers, name)
	}
	return text.ListOrNone(finalizers)
}

// IsHeldByOthers reports whether an object has finalizers, and all of them belong to other controllers.
func IsHeldByOthers(object metav1.Object) bool {
	return len(object.GetFinalizers()) > 0 && !slices.ContainsFunc(object.GetFinalizers(), isOwnFinalizer)
}

// isOwnFinalizer reports whether addon-manager sets and removes a finalizer.
func isOwnFinalizer(finalizer string) bool {
	return finalizer == kudo.Finalizer || finalizer == addonv1alpha1.FinalizerAgent
}

// TrimManagedFields drops the managed fields of an object, except which field managers have set its finalizers while it is being deleted.
func TrimManagedFields(object metav1.Object) {
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range object.GetManagedFields() {
		if finalizers := finalizersOf(entry); len(finalizers) > 0 && object.GetDeletionTimestamp() != nil {
			entry.FieldsV1 = newFinalizerFields(finalizers)
			kept = append(kept, entry)
		}
	}
	object.SetManagedFields(kept)
}

// finalizerFields is the part of an entry in managedFields that is about finalizers. A set has its values as keys: `v:"example.com/hold"`.
type finalizerFields struct {
	Metadata struct {
		Finalizers map[string]struct{} `json:"f:finalizers"`
	} `json:"f:metadata"`
}

// finalizersOf returns the sorted finalizers that a field manager has set.
func finalizersOf(entry metav1.ManagedFieldsEntry) []string {
	fields := finalizerFields{}
	if entry.FieldsV1 == nil || entry.Subresource != "" || json.Unmarshal(entry.FieldsV1.Raw, &fields) != nil {
		return nil
	}
	var finalizers []string
	for key := range fields.Metadata.Finalizers {
		finalizer := ""
		if len(key) > 2 && key[:2] == "v:" && json.Unmarshal([]byte(key[2:]), &finalizer) == nil {
			finalizers = append(finalizers, finalizer)
		}
	}
	slices.Sort(finalizers)
	return finalizers
}

// newFinalizerFields returns the fields of an entry in managedFields that is only about these finalizers.
func newFinalizerFields(finalizers []string) *metav1.FieldsV1 {
	fields := finalizerFields{}
	fields.Metadata.Finalizers = map[string]struct{}{}
	for _, finalizer := range finalizers {
		if value, err := json.Marshal(finalizer); err == nil {
			fields.Metadata.Finalizers["v:"+string(value)] = struct{}{}
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil // strings can be encoded
	}
	return &metav1.FieldsV1{Raw: raw}
}
