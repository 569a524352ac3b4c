package mirror

import (
	"time"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// remove hands the mirror over to the engine for removal, unless the Instance has no objects. Deleting the cluster's whole namespace is not
// a removal. A mirror of another Instance of that name, for example after a restore of the hub, is orphaned: nothing on the cluster belongs
// to the Instance that is being deleted.
func remove(o Observation) Decision {
	switch nothing, need := hasNothing(o); {
	case need != "":
		return Decision{Need: need}
	case nothing:
		return Decision{Removed: true}
	case o.Mirror != nil && o.Mirror.IsRemoving():
		return skipCleanup(o)
	case o.Mirror != nil && !Mirrors(o.Mirror, o.Wanted):
		return Decision{Removed: true, Writes: orphan(o)}
	default:
		return removeNow(o)
	}
}

// removeNow hands the mirror over to the engine, unless its parent is removed first or the cluster is being detached.
func removeNow(o Observation) Decision {
	switch {
	case o.Wanted.Parent() != nil && o.lacks(FactParent):
		return Decision{Need: FactParent}
	case waitsForParent(o):
		return Decision{}
	case o.lacks(FactDetached):
		return Decision{Need: FactDetached}
	case o.Detached:
		return Decision{Writes: orphan(o)}
	default:
		return handOver(o)
	}
}

// hasNothing reports whether an Instance without a mirror never had objects, or has none any more.
func hasNothing(o Observation) (nothing bool, need Fact) {
	switch {
	case o.Mirror != nil:
		return false, ""
	case o.Wanted.Status.Execution != nil && !o.Wanted.IsRemoved():
		return hasVanished(o)
	default:
		return true, ""
	}
}

// waitsForParent reports whether a child that is being deleted waits until everything else of its parent is removed, because the parent's
// cleanup plan may need the child. The hub deletes them in that order; Kubernetes' garbage collector and a user who deletes all Instances
// together do not.
func waitsForParent(o Observation) bool {
	owner := o.Wanted.Parent()
	return owner != nil && o.Parent != nil && o.Parent.UID == owner.UID && o.Parent.DeletionTimestamp != nil && !IsReleased(o.Parent)
}

// handOver marks the mirror so that the engine may delete its objects. A lost mirror is re-created first, because its workloads still
// exist.
func handOver(o Observation) Decision {
	skips, need := skipsCleanup(o)
	if need != "" {
		return Decision{Need: need}
	}
	var writes []Write
	existing := o.Mirror
	if existing == nil {
		existing = newMirror(o.Wanted, o.Wanted.Spec.OperatorVersion)
		writes = append(writes, Write{Kind: Create, Mirror: existing})
	}
	restored, writesOfStatus := restore(o.Wanted, existing)
	changed := restored.DeepCopy()
	delete(changed.Annotations, kudo.AnnotationOrphaned)
	addFinalizer(changed)
	annotate(changed, map[string]string{kudo.AnnotationHubDeleted: o.Now.UTC().Format(time.RFC3339)})
	if skips {
		annotate(changed, map[string]string{kudo.AnnotationSkipCleanup: "true"})
	}
	return Decision{Writes: append(append(writes, writesOfStatus...), Write{Kind: Update, Mirror: changed})}
}

// skipCleanup copies the request to remove everything without the cleanup plan. It cannot be withdrawn: objects that the plan needs may be
// removed already.
func skipCleanup(o Observation) Decision {
	if o.Mirror.SkipsCleanup() {
		return Decision{}
	}
	skips, need := skipsCleanup(o)
	if need != "" || !skips {
		return Decision{Need: need}
	}
	changed := o.Mirror.DeepCopy()
	annotate(changed, map[string]string{kudo.AnnotationSkipCleanup: "true"})
	return Decision{Writes: []Write{{Kind: Update, Mirror: changed}}}
}

// orphan marks a mirror whose Instance does not exist on the hub or was force-released: its objects stay, and a removal in progress is
// cancelled. It removes the finalizer, so that the mirror does not block the deletion of its namespace. A mirror of an earlier release,
// which the hub does not confirm, is not signed.
func orphan(o Observation) []Write {
	if o.Mirror == nil || o.Mirror.IsRemoving() && o.Mirror.DeletionTimestamp != nil {
		return nil
	}
	changed := o.Mirror.DeepCopy()
	if released := removeFinalizer(changed); o.Mirror.IsOrphaned() && !released {
		return nil
	}
	annotate(changed, map[string]string{kudo.AnnotationOrphaned: "true"})
	return []Write{{Kind: Orphan, Mirror: changed, Unsigned: o.Proof.Older && !o.Proof.Signed}}
}
