package removal

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// Decide returns what the agent does next to remove an Instance, or to delete its custom resources because an ancestor is being removed.
func Decide(o Observation) Decision {
	switch {
	case o.Err != nil:
		return o.failed(o.Err)
	case o.Departure.Stage != "":
		return withdraw(o)
	case o.lacks(FactTree):
		return Decision{Kind: Gather, Need: FactTree}
	default:
		return remove(o)
	}
}

// withdraw deletes the custom resources of a descendant, and their definitions, once all cleanup plans of the tree are complete. What it
// waits for needs no record if the removal has just started.
func withdraw(o Observation) Decision {
	var custom [][]kudo.InventoryEntry
	if o.Departure.Stage == plan.StageWithdraw {
		custom, _ = plan.Teardown(o.Instance.Status.Inventory, o.Departure.Groups)
	}
	left, next, _ := walk(custom, o.Deleted)
	switch {
	case next != nil:
		return o.deletion(next, o.Inventory)
	case len(left) > 0:
		return o.waiting(left, "")
	}
	waiting := o.waiting(nil, o.Departure.WaitText())
	waiting.Again, waiting.MayDelay, waiting.Since = len(custom) > 0, len(custom) == 0, o.Departure.Since
	return waiting
}

// remove deletes the objects in the inventory, wave by wave, and volume claims last. Before the first object that is no custom resource, it
// waits until the descendants have none either, because any Instance of the tree may have their controller.
func remove(o Observation) Decision {
	if wait := o.Tree.CleanupWaitText(); wait != "" {
		return o.remaining(nil, wait)
	}
	switch {
	case len(o.Instance.Status.Tasks) > 0 && o.lacks(FactBefore):
		return Decision{Kind: Gather, Need: FactBefore}
	case o.BeforeWait != "":
		return o.remaining(nil, o.BeforeWait)
	}
	claims, others := claimsOf(o.deletable())
	custom, rest := plan.Teardown(others, o.Tree.Groups())
	left, next, held := walk(custom, o.Deleted)
	switch wait := o.Tree.WithdrawalWaitText(); {
	case next != nil:
		return o.deletion(next, o.Inventory)
	case held || wait != "":
		return o.remaining(left, wait)
	}
	last, next, _ := walk(rest, o.Deleted[len(custom):])
	switch left = append(left, last...); {
	case next != nil:
		return o.deletion(next, o.Inventory)
	case len(left) > 0:
		return o.remaining(left, "")
	default:
		return removeClaims(o, claims, o.Deleted[len(custom)+len(rest):])
	}
}

// walk returns the wave that is deleted next, given what remains of each wave before it; nil if there is none, and then all that remains.
// While a finalizer blocks an object of a wave, the next wave waits, because it may contain the controller that removes the finalizer:
// then held is true.
func walk(waves [][]kudo.InventoryEntry, deleted [][]plan.Object) (left []plan.Object, next []kudo.InventoryEntry, held bool) {
	for i, wave := range waves {
		if i >= len(deleted) {
			return nil, wave, false
		}
		if left = append(left, deleted[i]...); plan.HasHeldObject(deleted[i]) {
			return left, nil, true
		}
	}
	return left, nil, false
}

// claimsOf separates volume claims from the rest. Volumes count as claims, because Kubernetes keeps them until their claims are deleted.
func claimsOf(entries []kudo.InventoryEntry) (claims, others []kudo.InventoryEntry) {
	for _, entry := range entries {
		kind := schema.GroupKind{Group: entry.Group, Kind: entry.Kind}
		if plan.IsClaim(kind) || kind == (schema.GroupKind{Kind: "PersistentVolume"}) {
			claims = append(claims, entry)
		} else {
			others = append(others, entry)
		}
	}
	return claims, others
}

// removeClaims deletes volume claims except for those that the package requests to keep. deleted holds what remains of them; empty before.
func removeClaims(o Observation, claims []kudo.InventoryEntry, deleted [][]plan.Object) Decision {
	switch {
	case len(claims) == 0:
		return search(o)
	case o.lacks(FactRendered):
		return Decision{Kind: Gather, Need: FactRendered}
	case len(deleted) == 0:
		deletable := plan.WithoutRetained(claims, o.retains())
		return o.deletion(deletable, plan.List(plan.Forget(o.Inventory, claims...), deletable...))
	case len(deleted[0]) > 0:
		return o.remaining(deleted[0], "")
	default:
		return search(o)
	}
}

// search looks for unlisted objects once the inventory is empty: volume claims of StatefulSets, and objects missing from an inventory
// restored from the hub.
func search(o Observation) Decision {
	switch {
	case !IsUntouched(o.Instance) && o.lacks(FactRendered):
		return Decision{Kind: Gather, Need: FactRendered}
	case o.lacks(FactSearch):
		return Decision{Kind: Gather, Need: FactSearch, Kinds: o.kindsToSearch()}
	case o.Search.Running:
		return Decision{Kind: Postpone}
	case slices.ContainsFunc(o.Search.Found, isClaim) && o.lacks(FactRendered):
		return Decision{Kind: Gather, Need: FactRendered}
	default:
		return conclude(o)
	}
}

// conclude lists the objects that the search has found, except for volume claims that the package requests to keep: they are deleted in
// the next pass. The Instance is removed if there are none, and every kind that Reads.CheckRequired names was searched.
func conclude(o Observation) Decision {
	var found []plan.Object
	for _, object := range o.Search.Found {
		if !o.isHook(object) && (!isClaim(object) || !o.retains()(object.Live.GetName())) {
			found = append(found, object)
			o.Inventory = plan.List(o.Inventory, plan.Entry(object.Live, ""))
		}
	}
	reads, recorded := o.Search.Reads, o.Instance.Status.Inventory
	o.Inventory = plan.List(o.Inventory, reads.UnsearchedEntries(recorded)...) // their kinds must be readable in the next pass, too
	rendered, _ := o.rendered()
	switch err := reads.CheckRequired(recorded, rendered); {
	case err != nil:
		return o.failed(err)
	case len(found) > 0:
		return o.remaining(found, "")
	case len(o.Instance.Status.Tasks) > 0:
		return runAfter(o)
	default:
		removed := o.FinishRemoval()
		return Decision{Kind: Finish, Status: removed.Status, Ready: removed.Ready, Unsearched: reads.Unread()}
	}
}

// runAfter runs the hooks of charts that follow the deletion. Once they have succeeded, nothing is recorded of the charts, and the hooks are deleted
// like other objects.
func runAfter(o Observation) Decision {
	if o.lacks(FactAfter) {
		return Decision{Kind: Gather, Need: FactAfter}
	}
	d := o.remaining(nil, o.AfterWait)
	d.Again = d.Again || o.AfterWait == ""
	return d
}

// kindsToSearch returns the kinds of which unlisted objects may exist; nil means all kinds. The inventory lists every object that the
// Instance has applied, unless it was restored from the hub: then only the search through all kinds finds the rest.
func (o Observation) kindsToSearch() []schema.GroupKind {
	rendered, err := o.rendered()
	if err != nil || isRestored(o.Instance) {
		return nil
	}
	return requiredKinds(o.Instance.Status.Inventory, rendered)
}

// remaining records what the removal of the Instance waits for. That needs no record if the removal has just started, and nothing was
// found.
func (o Observation) remaining(left []plan.Object, wait string) Decision {
	d := o.waiting(left, wait)
	if d.Kind == Record {
		// the agent has written and signed it
		d.Since, _ = time.Parse(time.RFC3339, o.Instance.Annotations[kudo.AnnotationHubDeleted])
		d.Again = o.hasListed()
		d.MayDelay = !d.Again
	}
	return d
}
