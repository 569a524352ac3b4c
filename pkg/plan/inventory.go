package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// MostObjects is the maximum number of objects of an Instance: the limit of its inventory.
const MostObjects = 10000

// Entry returns the inventory entry of an object that a task applies.
func Entry(o *unstructured.Unstructured, task string) kudo.InventoryEntry {
	return kudo.InventoryEntry{
		Group: o.GroupVersionKind().Group, Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), Task: task,
	}
}

// identity returns an entry without its task: an object has one entry, for the task that applied it last.
func identity(entry kudo.InventoryEntry) kudo.InventoryEntry {
	entry.Task = ""
	return entry
}

// Track adds the objects that a task is about to apply. Entries of another task move to this one.
func Track(inventory []kudo.InventoryEntry, task string, wants []*unstructured.Unstructured) []kudo.InventoryEntry {
	entries := make([]kudo.InventoryEntry, 0, len(wants))
	for _, want := range wants {
		entries = append(entries, Entry(want, task))
	}
	return List(inventory, entries...)
}

// List adds entries to the inventory, replacing existing entries of the same objects.
func List(inventory []kudo.InventoryEntry, entries ...kudo.InventoryEntry) []kudo.InventoryEntry {
	listed := slices.Clone(inventory)
	places := make(map[kudo.InventoryEntry]int, len(listed))
	for i, entry := range listed {
		places[identity(entry)] = i
	}
	for _, entry := range entries {
		if i, known := places[identity(entry)]; known {
			listed[i] = entry
			continue
		}
		places[identity(entry)] = len(listed)
		listed = append(listed, entry)
	}
	return listed
}

// Forget removes objects from the inventory, regardless of their tasks.
func Forget(inventory []kudo.InventoryEntry, gone ...kudo.InventoryEntry) []kudo.InventoryEntry {
	struck := identities(gone)
	return only(inventory, func(e kudo.InventoryEntry) bool { return !struck[identity(e)] })
}

// Applied returns the entries of objects that tasks have applied, without those that a removal has only found.
func Applied(inventory []kudo.InventoryEntry) []kudo.InventoryEntry {
	return only(inventory, func(e kudo.InventoryEntry) bool { return e.Task != "" })
}

// Unlisted returns the wants that the inventory lacks. They must not be applied before they are listed.
func Unlisted(inventory []kudo.InventoryEntry, wants []*unstructured.Unstructured) []*unstructured.Unstructured {
	listed := identities(inventory)
	var unlisted []*unstructured.Unstructured
	for _, want := range wants {
		if !listed[Entry(want, "")] {
			unlisted = append(unlisted, want)
		}
	}
	return unlisted
}

// Surplus returns the entries of a task for objects that it no longer renders.
func Surplus(inventory []kudo.InventoryEntry, task string, wants []*unstructured.Unstructured) []kudo.InventoryEntry {
	wanted := map[kudo.InventoryEntry]bool{}
	for _, want := range wants {
		wanted[Entry(want, "")] = true
	}
	return only(inventory, func(e kudo.InventoryEntry) bool { return e.Task == task && !wanted[identity(e)] })
}

// wholePlans are the plans that apply a whole version.
var wholePlans = []string{kudo.UpgradePlan, kudo.UpdatePlan, kudo.DeployPlan}

// BringsAll reports whether the plan of that name applies a whole version.
func BringsAll(name string) bool { return slices.Contains(wholePlans, name) }

// IsWhole reports whether a plan that applies the whole version is complete. Before that, replacements for the objects of the previous
// version may be missing.
func IsWhole(statuses map[string]kudo.PlanStatus) bool {
	return slices.ContainsFunc(wholePlans, func(name string) bool { return statuses[name].Status == kudo.Complete })
}

// Vanished returns the entries of tasks that the version does not have, without those that a removal has only found. It returns none before IsWhole is true for the version.
func Vanished(
	inventory []kudo.InventoryEntry, version *kudo.OperatorVersionSpec, statuses map[string]kudo.PlanStatus,
) []kudo.InventoryEntry {
	if !IsWhole(statuses) {
		return nil
	}
	tasks := map[string]bool{}
	for _, task := range version.Tasks {
		tasks[task.Name] = true
	}
	return only(inventory, func(e kudo.InventoryEntry) bool { return e.Task != "" && !tasks[e.Task] })
}

// Unfinished returns the entries of the tasks that are next, or were when the execution ended. Their objects may or may not have been
// applied.
func Unfinished(inventory []kudo.InventoryEntry, spec kudo.Plan, status kudo.PlanStatus) []kudo.InventoryEntry {
	status.Status = kudo.InProgress
	unfinished := map[string]bool{}
	for _, at := range Next(spec, status) {
		unfinished[status.Phases[at.Phase].Steps[at.Step].Tasks[at.Task].Name] = true
	}
	return only(inventory, func(e kudo.InventoryEntry) bool { return unfinished[e.Task] })
}

// Inherit splits entries into objects that are applied elsewhere, as listed there, and the rest.
func Inherit(entries, elsewhere []kudo.InventoryEntry) (inherited, rest []kudo.InventoryEntry) {
	heirs := map[kudo.InventoryEntry]kudo.InventoryEntry{}
	for _, entry := range elsewhere {
		heirs[identity(entry)] = entry
	}
	for _, entry := range entries {
		if heir, found := heirs[identity(entry)]; found {
			inherited = append(inherited, heir)
			continue
		}
		rest = append(rest, entry)
	}
	return inherited, rest
}

// Upcoming lists the next tasks that have not begun yet.
func Upcoming(spec kudo.Plan, status kudo.PlanStatus) []Task {
	return slices.DeleteFunc(Next(spec, status), func(at Task) bool {
		return status.Phases[at.Phase].Steps[at.Step].Tasks[at.Task].Status != kudo.Pending
	})
}

func identities(entries []kudo.InventoryEntry) map[kudo.InventoryEntry]bool {
	set := make(map[kudo.InventoryEntry]bool, len(entries))
	for _, entry := range entries {
		set[identity(entry)] = true
	}
	return set
}

func only(entries []kudo.InventoryEntry, which func(kudo.InventoryEntry) bool) []kudo.InventoryEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e kudo.InventoryEntry) bool { return !which(e) })
}
