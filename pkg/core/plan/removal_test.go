package plan_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

func TestARemovalDeletesTheDefinitionsInItsInventoryUnlessTheyAreKept(t *testing.T) {
	definition := kudo.InventoryEntry{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "gadgets.example.com"}
	kept, other, namesake := definition, definition, definition
	kept.Keep, other.Name, namesake.Kind = true, "gizmos.example.com", "Gadget"
	for sentence, test := range map[string]struct {
		inventory []kudo.InventoryEntry
		want      bool
	}{
		"listed":                {[]kudo.InventoryEntry{other, definition}, true},
		"kept":                  {[]kudo.InventoryEntry{kept}, false},
		"another definition":    {[]kudo.InventoryEntry{other}, false},
		"an object of its name": {[]kudo.InventoryEntry{namesake}, false},
		"nothing":               {nil, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := plan.DeletesDefinition(test.inventory, "gadgets.example.com"); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestAnObjectThatCannotBeReadIsNotMissing(t *testing.T) {
	want := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": map[string]any{"namespace": "ns", "name": "g"},
	}}
	for unread, message := range map[string]string{
		"":                                 "Gadget ns/g: is missing",
		"its definition serves no version": "Gadget ns/g: its definition serves no version",
	} {
		ready := plan.Ready(plan.Owner{}, []plan.Object{{Want: want, Unread: unread}}, nil)
		if ready.Status != metav1.ConditionFalse || ready.Message != message {
			t.Errorf("got %s, %q, want %q", ready.Status, ready.Message, message)
		}
	}
}
