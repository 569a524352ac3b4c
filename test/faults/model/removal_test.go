package model

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/removal"
)

// removeObjects deletes objects of an Instance that is being removed, or whose ancestor is: what core/removal decides.
func (w *world) removeObjects(o plan.Observation) result {
	x := executionOf(o)
	x.Execution, x.version = removal.ExecutionOf(o)
	seen := removal.Observation{Observation: o, Inventory: x.inventory, Known: map[removal.Fact]bool{}}
	decision := removal.Decide(seen)
	for ; !decision.IsFinal(); decision = removal.Decide(seen) {
		if decision.Kind == removal.Gather {
			w.gatherRemoval(x, &seen, decision)
			continue
		}
		var left []plan.Object
		x.inventory = decision.Inventory
		if refused := try(func() { left = w.deleteListed(x, decision.Entries) }); refused != nil {
			seen.Err = refused
		}
		seen.Deleted, seen.Inventory = append(seen.Deleted, left), x.inventory
	}
	if decision.Kind == removal.Finish {
		w.checkRemoved(x)
	}
	return result{status: decision.Status, ready: decision.Ready, again: decision.Again}
}

// gatherRemoval adds the fact that a decision needs.
func (w *world) gatherRemoval(x *execution, seen *removal.Observation, decision removal.Decision) {
	switch decision.Need {
	case removal.FactTree:
		seen.Tree = w.tree(x.instance)
	case removal.FactRendered:
		seen.Rendered, seen.RenderErr = x.outlines()
	case removal.FactSearch:
		seen.Search = w.search(x, decision.Kinds)
	case removal.FactRemaining:
		seen.Remaining = decision.Objects
	}
	seen.Known[decision.Need] = true
}

// outlines returns the outlines of all objects of the version.
func (x *execution) outlines() (all []*unstructured.Unstructured, err error) {
	if x.version == nil {
		return nil, errors.New("the OperatorVersion no longer exists")
	}
	for _, placed := range plan.Everywhere(x.version) {
		_, wants, failed := x.asks(placed)
		err = errors.Join(err, failed)
		for _, want := range wants {
			all = append(all, plan.Outline(want))
		}
	}
	return all, err
}

// search finds the objects of an Instance of some kinds, or of all if kinds is nil. The inventory lists all except volume claims of
// StatefulSets, unless it was restored.
func (w *world) search(x *execution, kinds []schema.GroupKind) removal.Search {
	result := removal.Search{Reads: removal.Reads{Kinds: map[schema.GroupKind]error{}}}
	for _, entry := range slices.SortedFunc(maps.Keys(w.objects), byName) {
		kind, live := schema.GroupKind{Group: entry.Group, Kind: entry.Kind}, w.live(entry)
		if !x.owner.Owns(live) || kinds != nil && !slices.Contains(kinds, kind) {
			continue
		}
		if !plan.IsClaim(kind) && x.instance.Annotations[kudo.AnnotationInventoryRestored] == "" {
			w.t.Fatalf("%s is not in the inventory of Instance %s, which would lose it", plan.Describe(live), x.instance.Name)
		}
		result.Found = append(result.Found, plan.Object{Want: live, Live: live})
	}
	return result
}

// deleteListed deletes the objects of entries in the foreground, and returns those that still exist.
func (w *world) deleteListed(x *execution, entries []kudo.InventoryEntry) []plan.Object {
	var left []plan.Object
	for _, entry := range entries {
		object := w.liveOf(entry)
		if !x.owner.HasApplied(object) {
			x.inventory = plan.Forget(x.inventory, entry)
			continue
		}
		if !object.IsDeleted() {
			switch {
			case x.instance.IsRemoving():
				w.checkOrder(x, entry)
			case w.departure(x.instance).Stage != "":
				w.checkWithdrawal(x, entry)
			}
			w.write("delete "+plan.Describe(object.Live), func() {
				deleted := noonTime()
				w.objects[plan.Identity(entry)].SetDeletionTimestamp(&deleted)
			})
		}
		left = append(left, w.liveOf(entry))
	}
	return left
}

// workloads is one pass of the managed cluster's own controllers: workloads progress, volume claims are created,
// and deleted objects disappear once they have no finalizer. It reports changes.
func (w *world) workloads() (changed bool) {
	for _, entry := range slices.SortedFunc(maps.Keys(w.objects), byName) {
		o := w.objects[entry]
		switch {
		case o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) > 0: // its controller runs
			o.SetFinalizers(nil)
			changed = true
		case o.GetDeletionTimestamp() != nil:
			delete(w.objects, entry)
			delete(w.due, entry)
			changed = true
		case o.GetKind() == "CustomResourceDefinition":
			status := map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
			changed = changed || !equality.Semantic.DeepEqual(o.Object["status"], status)
			o.Object["status"] = status
		case o.GetKind() == "StatefulSet":
			status := map[string]any{"observedGeneration": o.GetGeneration(), "replicas": int64(1), "readyReplicas": int64(1), "updatedReplicas": int64(1)}
			changed = w.createClaims(o) || changed || !equality.Semantic.DeepEqual(o.Object["status"], status)
			o.Object["status"] = status
		case o.GetKind() == "Deployment":
			replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
			if _, given, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas"); !given {
				replicas = 1
			}
			status := map[string]any{
				"observedGeneration": o.GetGeneration(), "replicas": replicas, "updatedReplicas": replicas, "availableReplicas": replicas,
			}
			changed = changed || !equality.Semantic.DeepEqual(o.Object["status"], status)
			o.Object["status"] = status
		}
	}
	return changed
}

// createClaims creates the volume claims of a StatefulSet, which have its labels, and reports whether there were any to create.
func (w *world) createClaims(set *unstructured.Unstructured) (created bool) {
	templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	for _, template := range templates {
		name, _, _ := unstructured.NestedString(template.(map[string]any), "metadata", "name")
		claim := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim"}}
		claim.SetNamespace(set.GetNamespace())
		claim.SetName(fmt.Sprintf("%s-%s-0", name, set.GetName()))
		claim.SetLabels(set.GetLabels())
		if entry := plan.Entry(claim, ""); w.objects[entry] == nil {
			w.objects[entry], created = claim, true
			w.counted["volume claim"]++
		}
	}
	return created
}

// isRetained reports whether an object is a volume claim that its StatefulSet requests to keep.
func isRetained(entry kudo.InventoryEntry) bool {
	return entry.Kind == "PersistentVolumeClaim" && strings.HasPrefix(entry.Name, "archive-")
}

// checkOrder checks that an object may be deleted during a removal: the controllers of custom resources may be any workload of the
// Instance or of its ancestors, workloads may use volume claims, and some claims stay.
func (w *world) checkOrder(x *execution, deleted kudo.InventoryEntry) {
	isCustom := deleted.Group == "history.test" || plan.IsDefinition(deleted)
	isVolumeClaim := deleted.Kind == "PersistentVolumeClaim"
	if isRetained(deleted) {
		w.t.Fatalf("%s is deleted, which its StatefulSet requests to keep", deleted)
	}
	for entry, o := range w.objects {
		label := o.GetLabels()[kudo.LabelInstance]
		isBelow := label == x.owner.Name || strings.HasPrefix(label, x.owner.Name+"-")
		if entry.Group == "history.test" && isBelow && !isCustom && (o.GetDeletionTimestamp() == nil || len(o.GetFinalizers()) > 0) {
			w.t.Fatalf("%s would outlive %s of Instance %s\n%s", plan.Describe(o), deleted, x.instance.Name, w.describe())
		}
		if isVolumeClaim && label == x.owner.Name && entry.Kind != "PersistentVolumeClaim" {
			w.t.Fatalf("%s is deleted before %s, which may use it", deleted, plan.Describe(o))
		}
	}
}

// checkWithdrawal checks that an object of a descendant may be deleted during the removal of an ancestor: it is a custom resource, and the
// cleanup plans of all Instances above it are complete.
func (w *world) checkWithdrawal(x *execution, deleted kudo.InventoryEntry) {
	if deleted.Group != "history.test" && !plan.IsDefinition(deleted) {
		w.t.Fatalf("%s of Instance %s is deleted, and only its ancestor is being removed", deleted, x.instance.Name)
	}
	for above := x.instance; !above.IsRemoving(); {
		above = w.mirrors.get(above.Annotations[kudo.AnnotationParent])
		last := above.Status.Execution
		if _, cleans := w.versionOf(last.OperatorVersion).Spec.Plans[kudo.CleanupPlan]; cleans && above.Status.PlanStatus[kudo.CleanupPlan].Status != kudo.Complete {
			w.t.Fatalf("%s is deleted before the cleanup plan of Instance %s is complete", deleted, above.Name)
		}
	}
}

// checkRemoved checks that no object is left of an Instance that counts as removed, except for volume claims to keep.
func (w *world) checkRemoved(x *execution) {
	for entry, o := range w.objects {
		if x.owner.Owns(o) && !isRetained(entry) {
			w.t.Fatalf("Instance %s counts as removed, and %s is left", x.instance.Name, plan.Describe(o))
		}
	}
}
