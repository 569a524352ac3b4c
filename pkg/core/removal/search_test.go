package removal

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestWhatARemovalMustHaveRead(t *testing.T) {
	claims, widgets := schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Group: "example.com", Kind: "Widget"}
	refused, dead := errors.New("refused"), errors.New("dead")
	rendered := []*unstructured.Unstructured{newObject("example.com/v1beta1", "Widget", "w")}
	listed := []kudo.InventoryEntry{{Group: widgets.Group, Kind: widgets.Kind, Name: "w"}}
	for name, test := range map[string]struct {
		reads     Reads
		inventory []kudo.InventoryEntry
		rendered  []*unstructured.Unstructured
		want      error
	}{
		"nothing failed": {reads: Reads{Kinds: map[schema.GroupKind]error{claims: nil, widgets: nil}}, rendered: rendered},
		"volume claims, whatever the package has": {
			reads: Reads{Kinds: map[schema.GroupKind]error{claims: refused}}, want: refused},
		"volume claims if their whole group failed": {
			reads: Reads{Groups: map[string]error{"": dead}}, want: dead},
		"a kind that the version renders, in whatever API version": {
			reads: Reads{Kinds: map[schema.GroupKind]error{claims: nil, widgets: refused}}, rendered: rendered, want: refused},
		"a kind in the inventory": {
			reads: Reads{Kinds: map[schema.GroupKind]error{claims: nil, widgets: refused}}, inventory: listed, want: refused},
		"a kind of a group that could not be discovered": {
			reads: Reads{Groups: map[string]error{widgets.Group: dead}}, rendered: rendered, want: dead},
		"not a kind that was read in another version of such a group": {
			reads: Reads{Kinds: map[schema.GroupKind]error{widgets: nil}, Groups: map[string]error{widgets.Group: dead}}, rendered: rendered},
		"no other kind": {
			reads: Reads{Kinds: map[schema.GroupKind]error{widgets: refused}, Groups: map[string]error{"other.example.com": dead}}},
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
	reads := Reads{
		Kinds:  map[schema.GroupKind]error{widgets: errors.New("listing Widget: refused"), {Kind: "ConfigMap"}: nil},
		Groups: map[string]error{"dead.example.com": errors.New("dead")},
	}
	if got := reads.Unread(); got != "dead; listing Widget: refused" {
		t.Errorf("got %q", got)
	}
	inventory := []kudo.InventoryEntry{{Group: widgets.Group, Kind: widgets.Kind, Name: "w"}, {Kind: "ConfigMap", Name: "c"}, {Group: "dead.example.com", Kind: "X"}}
	want := []kudo.InventoryEntry{inventory[0], inventory[2]}
	if diff := cmp.Diff(want, reads.UnsearchedEntries(inventory)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (Reads{}).Unread(); got != "" {
		t.Errorf("nothing failed, and it says %q", got)
	}
}
