// Package mirror decides how an Instance on the hub is copied to the managed cluster: which writes update, release or delete its copy there
// (the mirror), and in which order. It touches no cluster.
package mirror

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// VersionName returns the name of a mirrored OperatorVersion on the managed cluster. It contains the uid, because an OperatorVersion that
// was replaced on the hub is a different object there.
func VersionName(onHub corev1.ObjectReference) string {
	short, _, _ := strings.Cut(string(onHub.UID), "-")
	return onHub.Name + "-" + short
}

// HubReference returns the namespace, name and uid on the hub of a mirrored OperatorVersion.
func HubReference(mirrored *kudo.OperatorVersion) corev1.ObjectReference {
	namespace, name, _ := strings.Cut(mirrored.Annotations[kudo.AnnotationHubOperatorVersion], string(types.Separator))
	return corev1.ObjectReference{Namespace: namespace, Name: name, UID: types.UID(mirrored.Annotations[kudo.AnnotationHubUID])}
}

// TargetOf returns the namespace and name of an Instance's mirror on the managed cluster.
func TargetOf(wanted *kudo.Instance) types.NamespacedName {
	return types.NamespacedName{Namespace: wanted.TargetNamespace(), Name: wanted.Name}
}

// Mirrors reports whether a mirror was copied from exactly this Instance on the hub, and not from another one of that name.
func Mirrors(existing, wanted *kudo.Instance) bool {
	return existing.Annotations[kudo.AnnotationHubUID] == string(wanted.UID)
}

// HandedOver reports whether the mirror controller has completed its writes to the Instance and still manages it. A mirror that is being
// removed always counts as handed over.
func HandedOver(instance *kudo.Instance) bool {
	_, copied := instance.Annotations[kudo.AnnotationHubGeneration]
	return copied && !instance.IsOrphaned() || instance.IsRemoving()
}

// IsResolved reports whether the hub has resolved this generation.
func IsResolved(i *kudo.Instance) bool {
	condition := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionResolved)
	return condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == i.Generation
}

// IsJudged reports whether the hub has judged the current generation of an Instance, whatever the result: it has undone edits of the fields that only it
// sets. A hub that cannot store them has not.
func IsJudged(i *kudo.Instance) bool {
	condition := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionResolved)
	return condition != nil && condition.ObservedGeneration == i.Generation && condition.Reason != kudo.ReasonFieldNotStored
}

// IsReleased reports whether the children of an Instance on the hub do not wait for its removal, or no longer do.
func IsReleased(parent *kudo.Instance) bool { return parent.IsRemoved() || parent.IsForceReleased() }

// Acknowledgements returns status.children in a comparable form.
func Acknowledgements(i *kudo.Instance) string {
	if len(i.Status.Children) == 0 {
		return ""
	}
	return fmt.Sprint(i.Status.Children)
}

// NeedsLive reports whether an Instance must be read live on the hub, because the cache has an older generation than the mirror, or may
// lack the removal or the release. After a start, the cache may contain an older state. Then a plan would delete what a newer plan has
// created, a removal would be cancelled, a removed mirror would be created again, or the objects of a force-released Instance would be
// removed. A hub that was restored also has an older generation. Both arguments may be nil.
func NeedsLive(wanted, existing *kudo.Instance) bool {
	return isStale(wanted, existing) || mayLackRemoval(wanted, existing)
}

// isStale reports whether an Instance, as read from the cache of the hub, is older than its mirror. The mirror of the same generation may have a
// request to cancel a plan, which is mirrored before the rest of the next generation.
func isStale(wanted, existing *kudo.Instance) bool {
	if wanted == nil || existing == nil || !Mirrors(existing, wanted) {
		return false
	}
	request, known := existing.Spec.PlanExecution, existing.HubGeneration()
	return wanted.Generation < known || wanted.Generation == known && request.Cancel && request != wanted.Spec.PlanExecution
}

// mayLackRemoval reports whether an Instance may have been removed or released on the hub without the cache showing it: its mirror no
// longer exists, is orphaned, or is being removed, although the Instance in the cache is not being deleted.
func mayLackRemoval(wanted, existing *kudo.Instance) bool {
	switch {
	case wanted == nil:
		return false
	case existing == nil:
		return wanted.Status.Execution != nil
	case !Mirrors(existing, wanted):
		return false
	default:
		return existing.IsOrphaned() && !wanted.IsForceReleased() || existing.IsRemoving() && wanted.DeletionTimestamp == nil
	}
}
