package mirror

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// keep updates the mirror of an Instance that is not being deleted.
func keep(o Observation) Decision {
	if d := respectNamespace(o); d.Need != "" || d.Err != nil {
		return d
	}
	switch {
	case IsResolved(o.Wanted):
		return copyOf(o)
	case o.Mirror != nil:
		return Decision{Writes: acknowledge(o.Wanted, o.Mirror)}
	default:
		return Decision{}
	}
}

// copyOf updates the mirror to the generation on the hub: first the OperatorVersion with its content, then the Instance, and last the mark that lets the
// engine proceed.
func copyOf(o Observation) Decision {
	if o.Mirror != nil && o.Mirror.Namespace != o.Wanted.TargetNamespace() {
		return Decision{Err: fmt.Errorf("its workloads run in namespace %q: set spec.installNamespace to that namespace, or delete Instance %q there first",
			o.Mirror.Namespace, o.Mirror.Name)}
	}
	if err := refuses(o); err != nil {
		return Decision{Err: err}
	}
	for _, fact := range []Fact{FactVersion, FactContent} {
		if o.lacks(fact) {
			return Decision{Need: fact}
		}
	}
	var writes []Write
	existing := o.Mirror
	if existing == nil {
		existing, o.Proof = newMirror(o.Wanted, o.Version), Proof{}
		writes = append(writes, Write{Kind: Create, Mirror: existing})
	}
	prepared, writesOfStatus := takeUp(o, existing)
	writes = append(writes, writesOfStatus...)
	changed := overwrite(o, existing, prepared)
	if !o.Proof.Signed || !isCopied(existing.Spec, changed.Spec) || !equality.Semantic.DeepEqual(existing.ObjectMeta, changed.ObjectMeta) {
		writes = append(writes, Write{Kind: Update, Mirror: changed})
	}
	return Decision{Writes: append(writes, acknowledge(o.Wanted, changed)...)}
}

// isCopied reports whether the spec of a mirror is as desired. It may lack authors: an API server with an earlier resource definition drops them. A change of
// them on the hub has another generation, which the mirror has, too.
func isCopied(existing, want kudo.InstanceSpec) bool {
	if existing.ChangedBy == nil {
		existing.ChangedBy = want.ChangedBy
	}
	if existing.RequestedBy == nil {
		existing.RequestedBy = want.RequestedBy
	}
	return equality.Semantic.DeepEqual(existing, want)
}

// refuses returns a *rights.Refused if an Instance would be installed in a reserved namespace. An Instance that is already installed there
// stays, and its spec is still applied: a change of the agent's flags or release does not uninstall it.
func refuses(o Observation) error {
	if o.Wanted.Status.Execution != nil || o.Mirror != nil && Mirrors(o.Mirror, o.Wanted) {
		return nil
	}
	return o.Rights.CheckInstall(o.Wanted.TargetNamespace())
}

// overwrite returns the mirror with the spec and the marks of the Instance on the hub.
func overwrite(o Observation, existing, prepared *kudo.Instance) *kudo.Instance {
	changed := prepared.DeepCopy()
	changed.Spec = specOf(o.Wanted, o.Version)
	addFinalizer(changed)
	marks := marksOf(o.Wanted)
	confirmed := (o.Proof.Signed || o.Proof.Former) && maps.Equal(existing.Annotations, prepared.Annotations) // it proves what was read
	if parent, exists := prepared.Annotations[kudo.AnnotationParent]; exists && marks[kudo.AnnotationParent] == "" && confirmed {
		marks[kudo.AnnotationParent] = parent // the parent may be gone before its child, which keeps its permissions
	}
	mark(changed, marks)
	return changed
}

// takeUp prepares the status of a mirror that was not handed over yet, that another writer has created, such as a backup program, or whose
// partial removal was cancelled. After a cancelled removal, everything is deployed again, the inventory lists what else may exist, and
// handled requests stay handled. Objects that only the removal has found are not pruned by a later plan. The history continues.
func takeUp(o Observation, existing *kudo.Instance) (*kudo.Instance, []Write) {
	switch _, copied := existing.Annotations[kudo.AnnotationHubGeneration]; {
	case existing.Annotations[kudo.AnnotationHubDeleted] != "" && (existing.Status.Execution != nil || len(existing.Status.Inventory) > 0):
		prepared := existing.DeepCopy()
		prepared.Status = kudo.InstanceStatus{
			Inventory: plan.AppliedEntries(existing.Status.Inventory), HandledRequests: plan.MigrateStatus(existing.Status, nil).HandledRequests,
			History: existing.Status.History,
		}
		return prepared, []Write{{Kind: UpdateStatus, Mirror: prepared}}
	case !copied, !o.Proof.Signed:
		return restore(o.Wanted, existing)
	}
	return existing, nil
}

// restore gives a re-created mirror the status on the hub, so that nothing runs again. A status on the mirror itself is never older.
func restore(wanted, existing *kudo.Instance) (*kudo.Instance, []Write) {
	last := wanted.Status.Execution
	if last == nil || existing.Status.Execution != nil {
		return existing, nil
	}
	restored := existing.DeepCopy()
	restored.Status = *wanted.Status.DeepCopy()
	meta.RemoveStatusCondition(&restored.Status.Conditions, kudo.ConditionResolved)
	annotate(restored, map[string]string{kudo.AnnotationInventoryRestored: "true"}) // written with the signature
	versionOf := func(used corev1.ObjectReference, isOptional bool) Write {
		version := corev1.ObjectReference{Namespace: used.Namespace, Name: used.Name}
		return Write{Kind: RestoreVersion, Mirror: restored, Version: version, Optional: isOptional}
	}
	writes := []Write{versionOf(last.OperatorVersion, false)}
	if former := restored.Status.Former; former != nil {
		writes = append(writes, versionOf(former.OperatorVersion, true))
	}
	return restored, append(writes, Write{Kind: UpdateStatus, Mirror: restored})
}

// acknowledge copies the hub's status of KudoOperator tasks, requests to cancel the running execution and for a diagnosis, whether it is suspended and by
// what, its maintenance windows if it has any, and what is done about drift and failures. A running plan needs these even if the hub has not resolved the
// current spec.
func acknowledge(wanted, existing *kudo.Instance) []Write {
	if !Mirrors(existing, wanted) {
		return nil
	}
	changed := existing.DeepCopy()
	if request := wanted.Spec.PlanExecution; request.Cancel {
		changed.Spec.PlanExecution = request // it starts nothing, and must reach a running plan even if the change cannot be mirrored
	}
	changed.Spec.Suspend, changed.Spec.Drift = wanted.Spec.Suspend, wanted.Spec.Drift.DeepCopy()
	if wanted.Spec.Windows != "" { // a user may have removed what the hub restores before it resolves the Instance
		changed.Spec.Windows = wanted.Spec.Windows
	}
	if wanted.Spec.ClusterWindows != "" {
		changed.Spec.ClusterWindows = wanted.Spec.ClusterWindows
	}
	if IsJudged(wanted) { // else addon-manager may still undo what a user has set
		changed.Spec.OnFailure = wanted.Spec.OnFailure
	}
	if wanted.Spec.SuspendedBy != "" || IsJudged(wanted) {
		changed.Spec.SuspendedBy = wanted.Spec.SuspendedBy
	}
	changed.Spec.IgnoreWindowsUntil = wanted.Spec.IgnoreWindowsUntil.DeepCopy()
	copyRequest(changed, wanted)
	if !equality.Semantic.DeepEqual(existing.Spec, changed.Spec) || !maps.Equal(existing.Annotations, changed.Annotations) {
		return []Write{{Kind: Update, Mirror: changed}}
	}
	if equality.Semantic.DeepEqual(existing.Status.Children, wanted.Status.Children) {
		return nil
	}
	changed.Status.Children = wanted.DeepCopy().Status.Children
	return []Write{{Kind: UpdateStatus, Mirror: changed}}
}
