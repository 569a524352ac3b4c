package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/render"
)

// MarkRestart returns the inventory after an execution has started whose changes require a restart of pods (KEP-27): the pod templates of all
// rendered workloads, and of all workloads of tasks that cannot be rendered, must have its uid. A mark is only replaced by a later one, so
// no other plan loses it.
func MarkRestart(
	inventory []kudo.InventoryEntry, rendered []kudo.InventoryEntry, unrenderable map[string]bool, execution types.UID,
) []kudo.InventoryEntry {
	concerned := identities(rendered)
	return mark(inventory, execution, func(e kudo.InventoryEntry) bool { return concerned[Identity(e)] || unrenderable[e.Task] })
}

// markAll requires a restart of all workloads in the inventory.
func markAll(inventory []kudo.InventoryEntry, execution types.UID) []kudo.InventoryEntry {
	return mark(inventory, execution, func(kudo.InventoryEntry) bool { return true })
}

func mark(inventory []kudo.InventoryEntry, execution types.UID, which func(kudo.InventoryEntry) bool) []kudo.InventoryEntry {
	marked := slices.Clone(inventory)
	for i, entry := range marked {
		if render.HasPodTemplate(schema.GroupKind{Group: entry.Group, Kind: entry.Kind}) && which(entry) {
			marked[i].Restart = execution
		}
	}
	return marked
}

// RequiredRestart returns the uid that the pod template of an object must have, as listed in the inventory; empty if there is none.
func RequiredRestart(inventory []kudo.InventoryEntry, object kudo.InventoryEntry) types.UID {
	if i := slices.IndexFunc(inventory, func(e kudo.InventoryEntry) bool { return Identity(e) == Identity(object) }); i >= 0 {
		return inventory[i].Restart
	}
	return ""
}
