package plan_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

func TestWhatARemovalMustHaveRead(t *testing.T) {
	claims, widgets := schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Group: "example.com", Kind: "Widget"}
	refused, dead := errors.New("refused"), errors.New("dead")
	rendered := []*unstructured.Unstructured{object("Widget", "w", version("example.com/v1beta1"))}
	listed := entries{{Group: widgets.Group, Kind: widgets.Kind, Name: "w"}}
	for name, test := range map[string]struct {
		reads     plan.Reads
		inventory entries
		rendered  []*unstructured.Unstructured
		want      error
	}{
		"nothing failed": {reads: plan.Reads{Kinds: map[schema.GroupKind]error{claims: nil, widgets: nil}}, rendered: rendered},
		"volume claims, whatever the package has": {
			reads: plan.Reads{Kinds: map[schema.GroupKind]error{claims: refused}}, want: refused},
		"volume claims if their whole group failed": {
			reads: plan.Reads{Groups: map[string]error{"": dead}}, want: dead},
		"a kind that the version renders, in whatever API version": {
			reads: plan.Reads{Kinds: map[schema.GroupKind]error{claims: nil, widgets: refused}}, rendered: rendered, want: refused},
		"a kind in the inventory": {
			reads: plan.Reads{Kinds: map[schema.GroupKind]error{claims: nil, widgets: refused}}, inventory: listed, want: refused},
		"a kind of a group that could not be discovered": {
			reads: plan.Reads{Groups: map[string]error{widgets.Group: dead}}, rendered: rendered, want: dead},
		"not a kind that was read in another version of such a group": {
			reads: plan.Reads{Kinds: map[schema.GroupKind]error{widgets: nil}, Groups: map[string]error{widgets.Group: dead}}, rendered: rendered},
		"no other kind": {
			reads: plan.Reads{Kinds: map[schema.GroupKind]error{widgets: refused}, Groups: map[string]error{"other.example.com": dead}}},
		"no kind that the cluster does not have": {rendered: rendered, inventory: listed},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.reads.CheckRequired(test.inventory, test.rendered); !errors.Is(got, test.want) {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
}

func TestWhatARemovalCouldNotReadIsDescribed(t *testing.T) {
	widgets := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	reads := plan.Reads{
		Kinds:  map[schema.GroupKind]error{widgets: errors.New("listing Widget: refused"), {Kind: "ConfigMap"}: nil},
		Groups: map[string]error{"dead.example.com": errors.New("dead")},
	}
	if got := reads.Unread(); got != "dead; listing Widget: refused" {
		t.Errorf("got %q", got)
	}
	inventory := entries{{Group: widgets.Group, Kind: widgets.Kind, Name: "w"}, {Kind: "ConfigMap", Name: "c"}, {Group: "dead.example.com", Kind: "X"}}
	want := []kudo.InventoryEntry{inventory[0], inventory[2]}
	if diff := cmp.Diff(want, reads.UnsearchedEntries(inventory)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (plan.Reads{}).Unread(); got != "" {
		t.Errorf("nothing failed, and it says %q", got)
	}
}

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
