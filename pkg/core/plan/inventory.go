package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// MaxObjects is the maximum number of objects of an Instance: the limit of its inventory.
const MaxObjects = 10000

// maxBytes is the maximum size of an Instance's inventory together with its parameters, which the spec and the status hold. It leaves room
// below etcd's limit of 1.5 MiB for an object.
const maxBytes = 1300000

// CheckSize returns an error if an Instance cannot be stored with that inventory and those parameters. Hooks of charts are counted three times: the record
// of their task has one of each event at which they have run, and an execution has two.
func CheckSize(inventory []kudo.InventoryEntry, parameters map[string]string) error {
	if len(inventory) > MaxObjects {
		return fmt.Errorf("an Instance can have at most %d objects, and this one would have %d: divide the package", MaxObjects, len(inventory))
	}
	hooks := only(inventory, func(e kudo.InventoryEntry) bool { return e.Hook })
	listed, given := sizeOf(inventory)+2*sizeOf(hooks), 2*sizeOf(parameters)
	if listed+given <= maxBytes {
		return nil
	}
	return fmt.Errorf("an Instance can have at most %d bytes of inventory and parameters, and this one would have %d: %d for %d objects, "+
		"%d for parameters (twice): shorten names or parameters, or divide the package",
		maxBytes, listed+given, listed, len(inventory), given)
}

// sizeOf returns the size of a value as JSON, in bytes.
func sizeOf(value any) int {
	encoded, err := json.Marshal(value)
	if err != nil {
		return 0 // it consists of strings
	}
	return len(encoded)
}

// Entry returns the inventory entry of an object that a task applies.
func Entry(o *unstructured.Unstructured, task string) kudo.InventoryEntry {
	return kudo.InventoryEntry{
		Group: o.GroupVersionKind().Group, Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), Task: task,
	}
}

// Identity returns the entry with only the identity of its object, which has one entry in an inventory.
func Identity(entry kudo.InventoryEntry) kudo.InventoryEntry {
	return kudo.InventoryEntry{Group: entry.Group, Kind: entry.Kind, Namespace: entry.Namespace, Name: entry.Name}
}

// IsDefinition reports whether an entry is of a CustomResourceDefinition, whose deletion deletes all objects of its kind.
func IsDefinition(entry kudo.InventoryEntry) bool {
	return entry.Group == "apiextensions.k8s.io" && entry.Kind == "CustomResourceDefinition"
}

// ServedVersions returns the versions of API groups that applied APIServices serve.
func ServedVersions(inventory []kudo.InventoryEntry) []schema.GroupVersion {
	var served []schema.GroupVersion
	for _, entry := range inventory {
		if version := servedVersion(entry); !version.Empty() && !entry.Pending {
			served = append(served, version)
		}
	}
	return served
}

// Serving returns the entries of APIServices that serve one of the API versions (GROUP/VERSION).
func Serving(inventory []kudo.InventoryEntry, versions []string) []kudo.InventoryEntry {
	return slices.DeleteFunc(slices.Clone(inventory), func(entry kudo.InventoryEntry) bool {
		version := servedVersion(entry)
		return version.Empty() || !slices.Contains(versions, version.String())
	})
}

// servedVersion returns the version that an APIService serves: that of name VERSION.GROUP serves VERSION of GROUP. It is empty for other objects.
func servedVersion(entry kudo.InventoryEntry) schema.GroupVersion {
	version, group, found := strings.Cut(entry.Name, ".")
	if !found || entry.Group != "apiregistration.k8s.io" || entry.Kind != "APIService" {
		return schema.GroupVersion{}
	}
	return schema.GroupVersion{Group: group, Version: version}
}

// Track adds the objects that a task is going to apply; manual is true if its plan is requested manually and not owed. Entries of another
// task move to this one. New entries are pending.
func Track(inventory []kudo.InventoryEntry, task string, manual bool, wants []*unstructured.Unstructured) []kudo.InventoryEntry {
	entries := make([]kudo.InventoryEntry, 0, len(wants))
	for _, want := range wants {
		entry := Entry(want, task)
		entry.Manual, entry.Pending, entry.Keep, entry.Hook = manual, true, Keeps(want), want.GetAnnotations()[kudo.AnnotationHook] != ""
		entries = append(entries, entry)
	}
	return List(inventory, entries...)
}

// List adds entries to the inventory, replacing existing entries of the same objects and their marks as surplus. A required restart of pods
// stays, an applied object stays so, and so do a workload that has to stay available and an entry that a plan which was not requested manually
// has applied. An object that the package keeps stays so until it is applied without that (MarkApplied).
func List(inventory []kudo.InventoryEntry, entries ...kudo.InventoryEntry) []kudo.InventoryEntry {
	listed := slices.Clone(inventory)
	places := make(map[kudo.InventoryEntry]int, len(listed))
	for i, entry := range listed {
		places[Identity(entry)] = i
	}
	for _, entry := range entries {
		if i, known := places[Identity(entry)]; known {
			entry.Restart = cmp.Or(entry.Restart, listed[i].Restart)
			entry.Manual = entry.Manual && listed[i].Manual
			entry.Pending = entry.Pending && listed[i].Pending
			entry.Available = entry.Available || listed[i].Available
			entry.Keep = entry.Keep || listed[i].Keep
			entry.Fields = cmp.Or(entry.Fields, listed[i].Fields)
			listed[i] = entry
			continue
		}
		places[Identity(entry)] = len(listed)
		listed = append(listed, entry)
	}
	return listed
}

// MarkApplied returns the inventory after an object was applied, with the digest of its fields if that is known; keep is whether it was applied as one to
// keep.
func MarkApplied(inventory []kudo.InventoryEntry, object kudo.InventoryEntry, keep bool) []kudo.InventoryEntry {
	i := slices.IndexFunc(inventory, func(e kudo.InventoryEntry) bool { return Identity(e) == Identity(object) })
	if i < 0 {
		return inventory
	}
	fields := cmp.Or(object.Fields, inventory[i].Fields)
	if !inventory[i].Pending && inventory[i].Keep == keep && inventory[i].Fields == fields {
		return inventory
	}
	marked := slices.Clone(inventory)
	marked[i].Pending, marked[i].Keep, marked[i].Fields = false, keep, fields
	return marked
}

// PendingExcept returns the pending entries of objects that are not among the expected ones.
func PendingExcept(inventory, expected []kudo.InventoryEntry) []kudo.InventoryEntry {
	known := identities(expected)
	return only(inventory, func(e kudo.InventoryEntry) bool { return e.Pending && !known[Identity(e)] })
}

// Forget removes objects from the inventory, regardless of their tasks.
func Forget(inventory []kudo.InventoryEntry, gone ...kudo.InventoryEntry) []kudo.InventoryEntry {
	struck := identities(gone)
	return only(inventory, func(e kudo.InventoryEntry) bool { return !struck[Identity(e)] })
}

// AppliedEntries returns the entries of objects that tasks have applied, without those that a removal has only found.
func AppliedEntries(inventory []kudo.InventoryEntry) []kudo.InventoryEntry {
	return only(inventory, func(e kudo.InventoryEntry) bool { return e.Task != "" })
}

// UnlistedObjects returns the wants that the inventory lacks. They must not be applied before they are listed.
func UnlistedObjects(inventory []kudo.InventoryEntry, wants []*unstructured.Unstructured) []*unstructured.Unstructured {
	listed := identities(inventory)
	var unlisted []*unstructured.Unstructured
	for _, want := range wants {
		if !listed[Entry(want, "")] {
			unlisted = append(unlisted, want)
		}
	}
	return unlisted
}

// Adds reports whether an inventory lists an object that it did not list before.
func Adds(before, inventory []kudo.InventoryEntry) bool {
	listed := identities(before)
	return slices.ContainsFunc(inventory, func(e kudo.InventoryEntry) bool { return !listed[Identity(e)] })
}

// Surplus returns the entries of a task for objects that it no longer renders, without hooks: those stay until their policy deletes them, or a
// removal.
func Surplus(inventory []kudo.InventoryEntry, task string, wants []*unstructured.Unstructured) []kudo.InventoryEntry {
	wanted := map[kudo.InventoryEntry]bool{}
	for _, want := range wants {
		wanted[Entry(want, "")] = true
	}
	return only(inventory, func(e kudo.InventoryEntry) bool { return e.Task == task && !e.Hook && !wanted[Identity(e)] })
}

// EntriesOf returns the entries of a task, the last one first: the order in which they are deleted.
func EntriesOf(inventory []kudo.InventoryEntry, task string) []kudo.InventoryEntry {
	own := only(inventory, func(e kudo.InventoryEntry) bool { return e.Task == task })
	slices.Reverse(own)
	return own
}

// UnrenderedHooks returns the entries of hooks of charts that are not among the rendered objects.
func UnrenderedHooks(entries []kudo.InventoryEntry, rendered []*unstructured.Unstructured) []kudo.InventoryEntry {
	wanted := map[kudo.InventoryEntry]bool{}
	for _, want := range rendered {
		wanted[Entry(want, "")] = true
	}
	return only(entries, func(e kudo.InventoryEntry) bool { return e.Hook && !wanted[Identity(e)] })
}

// WithoutHooks returns the entries that are not of hooks of charts.
func WithoutHooks(entries []kudo.InventoryEntry) []kudo.InventoryEntry {
	return only(entries, func(e kudo.InventoryEntry) bool { return !e.Hook })
}

// MarkSurplus returns the inventory with those entries marked: their task no longer renders the objects. They stay until no plan is owed,
// because pods of a workload may use them until its rollout has ended.
func MarkSurplus(inventory []kudo.InventoryEntry, surplus ...kudo.InventoryEntry) []kudo.InventoryEntry {
	chosen := identities(surplus)
	marked := slices.Clone(inventory)
	for i := range marked {
		marked[i].Surplus = marked[i].Surplus || chosen[Identity(marked[i])]
	}
	return marked
}

// VanishedEntries returns the entries of tasks that the version does not have, without objects that a removal has only found. If the version is
// lost (nil), no task is known to have vanished.
func VanishedEntries(inventory []kudo.InventoryEntry, version *kudo.OperatorVersionSpec) []kudo.InventoryEntry {
	if version == nil {
		return nil
	}
	tasks := map[string]bool{}
	for _, task := range version.Tasks {
		tasks[task.Name] = true
	}
	return only(inventory, func(e kudo.InventoryEntry) bool { return e.Task != "" && !tasks[e.Task] })
}

// Inherit splits entries into objects that are applied elsewhere, as listed there, and the rest.
func Inherit(entries, elsewhere []kudo.InventoryEntry) (inherited, rest []kudo.InventoryEntry) {
	byIdentity := map[kudo.InventoryEntry]kudo.InventoryEntry{}
	for _, entry := range elsewhere {
		byIdentity[Identity(entry)] = entry
	}
	for _, entry := range entries {
		if current, found := byIdentity[Identity(entry)]; found {
			entry.Task, entry.Surplus = current.Task, false
			inherited = append(inherited, entry)
			continue
		}
		rest = append(rest, entry)
	}
	return inherited, rest
}

func identities(entries []kudo.InventoryEntry) map[kudo.InventoryEntry]bool {
	set := make(map[kudo.InventoryEntry]bool, len(entries))
	for _, entry := range entries {
		set[Identity(entry)] = true
	}
	return set
}

func only(entries []kudo.InventoryEntry, which func(kudo.InventoryEntry) bool) []kudo.InventoryEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e kudo.InventoryEntry) bool { return !which(e) })
}
