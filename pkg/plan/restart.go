package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// restartable are the kinds with a pod template whose change restarts pods. That of a Job cannot be changed.
var restartable = []schema.GroupKind{
	{Group: "apps", Kind: "Deployment"},
	{Group: "apps", Kind: "StatefulSet"},
	{Group: "apps", Kind: "DaemonSet"},
	{Group: "apps", Kind: "ReplicaSet"},
	{Group: "batch", Kind: "CronJob"},
}

func isRestartable(e kudo.InventoryEntry) bool {
	return slices.Contains(restartable, schema.GroupKind{Group: e.Group, Kind: e.Kind})
}

// MarkRestart returns the inventory after an execution has started whose changes require a restart of pods (KEP-27): its uid is required in
// the pod templates of all rendered workloads, and of those that a task has applied which cannot be rendered. A mark is only replaced by
// a later one, so that no other plan loses it.
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
		if isRestartable(entry) && which(entry) {
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
