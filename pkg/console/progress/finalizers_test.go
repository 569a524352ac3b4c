package progress_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/progress"
)

// setBy returns the entry of a field manager in managedFields.
func setBy(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}
}

const holdFields = `{"f:metadata":{"f:labels":{"f:a":{}},"f:finalizers":{".":{},"v:\"example.com/hold\"":{}}},"f:spec":{"f:installNamespace":{}}}`

func TestFinalizerList(t *testing.T) {
	status := setBy("status", holdFields)
	status.Subresource = "status"
	for sentence, test := range map[string]struct {
		finalizers []string
		fields     []metav1.ManagedFieldsEntry
		want       string
		others     bool
	}{
		"no finalizers":                          {nil, nil, "none", false},
		"a finalizer that no entry mentions":     {[]string{"example.com/hold"}, []metav1.ManagedFieldsEntry{setBy("a", `{"f:spec":{}}`)}, "example.com/hold", true},
		"a finalizer and its field manager":      {[]string{"example.com/hold"}, []metav1.ManagedFieldsEntry{setBy("guard", holdFields)}, "example.com/hold (set by field manager guard)", true},
		"a finalizer that two managers have set": {[]string{"example.com/hold"}, []metav1.ManagedFieldsEntry{setBy("b", holdFields), setBy("a", holdFields), setBy("a", holdFields)}, "example.com/hold (set by field manager a, b)", true},
		"addon-manager's own finalizers": {[]string{kudo.Finalizer, addonv1alpha1.FinalizerAgent}, []metav1.ManagedFieldsEntry{setBy("addon-manager-addon",
			`{"f:metadata":{"f:finalizers":{"v:\"kudo.dev/removal\"":{},"v:\"kudo.dev/agent\"":{}}}}`)}, "kudo.dev/removal, kudo.dev/agent", false},
		"its own and another one": {[]string{kudo.Finalizer, "example.com/hold"}, []metav1.ManagedFieldsEntry{setBy("guard", holdFields)}, "kudo.dev/removal, example.com/hold (set by field manager guard)", false},
		"entries that are malformed": {[]string{"example.com/hold"}, []metav1.ManagedFieldsEntry{{Manager: "a"}, setBy("b", `[]`), setBy("c", `{"f:metadata":{"f:finalizers":{"v:":{},"v:1":{},"v:x":{}}}}`), status},
			"example.com/hold", true},
		"a manager that looks like a part of the message": {[]string{"example.com/hold"}, []metav1.ManagedFieldsEntry{setBy("a) and b", holdFields)}, `example.com/hold (set by field manager "a) and b")`, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Finalizers: test.finalizers, ManagedFields: test.fields}}
			if diff := cmp.Diff(test.want, progress.FinalizerList(addOn)); diff != "" {
				t.Error(diff)
			}
			if got := progress.IsHeldByOthers(addOn); got != test.others {
				t.Errorf("held by others only: got %v", got)
			}
			addOn.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			progress.TrimManagedFields(addOn)
			if diff := cmp.Diff(test.want, progress.FinalizerList(addOn)); diff != "" {
				t.Errorf("with trimmed managed fields:\n%s", diff)
			}
		})
	}
}

func TestTrimManagedFields(t *testing.T) {
	of := func(deleted *metav1.Time) []metav1.ManagedFieldsEntry {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			DeletionTimestamp: deleted, ManagedFields: []metav1.ManagedFieldsEntry{setBy("writer", `{"f:spec":{"f:configs":{}}}`), setBy("guard", holdFields)},
		}}
		progress.TrimManagedFields(addOn)
		return addOn.ManagedFields
	}
	if kept := of(nil); kept != nil {
		t.Errorf("an object that is not being deleted keeps %v", kept)
	}
	want := []metav1.ManagedFieldsEntry{setBy("guard", `{"f:metadata":{"f:finalizers":{"v:\"example.com/hold\"":{}}}}`)}
	if diff := cmp.Diff(want, of(&metav1.Time{Time: time.Now()})); diff != "" {
		t.Error(diff)
	}
}
