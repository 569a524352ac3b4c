package mirror

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/mirror"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// onHubView holds the fields of an Instance on the hub that the mirror depends on, without those that the agent itself reports.
type onHubView struct {
	uid        types.UID
	generation int64
	deleting   bool
	forced     bool
	uncleaned  bool
	diagnose   string
	resolved   metav1.Time
	judged     bool
	executed   bool
	children   string
}

func onHubChanged() predicate.Predicate {
	return controller.ChangeIn(func(o client.Object) onHubView {
		i := o.(*kudo.Instance)
		view := onHubView{
			uid: i.UID, generation: i.Generation, deleting: i.DeletionTimestamp != nil, forced: i.IsForceReleased(), uncleaned: i.SkipsCleanup(),
			diagnose: i.Annotations[kudo.AnnotationDiagnose],
			executed: i.Status.Execution != nil, children: mirror.Acknowledgements(i), judged: mirror.IsJudged(i),
		}
		if mirror.IsResolved(i) {
			view.resolved = meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionResolved).LastTransitionTime
		}
		return view
	})
}

// isReleased reports whether the children of an Instance on the hub do not wait for its removal, or no longer do.
func isReleased(parent client.Object) bool { return mirror.IsReleased(parent.(*kudo.Instance)) }

// childrenOf maps an Instance on the hub that is being deleted to its children there.
func (m *reconciler) childrenOf(ctx context.Context, parent client.Object) []reconcile.Request {
	if parent.GetDeletionTimestamp() == nil {
		return nil
	}
	list := &kudo.InstanceList{}
	if err := m.hub.List(ctx, list, client.InNamespace(parent.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "failed to list Instances on the hub", "namespace", parent.GetNamespace())
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if owner := list.Items[i].Parent(); owner != nil && owner.UID == parent.GetUID() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// mirrorChanged admits the changes of a mirror that the mirror controller depends on: all except for the engine's status, of which only the
// OperatorVersions and the completed removal matter.
func mirrorChanged() predicate.TypedPredicate[*kudo.Instance] {
	type view struct {
		metadata string
		spec     int64
		runs     corev1.ObjectReference
		upgrades bool
		returns  bool
		removed  bool
	}
	return controller.TypedChangeIn(func(i *kudo.Instance) view {
		v := view{
			metadata: fmt.Sprint(i.UID, i.Annotations, i.Finalizers, i.DeletionTimestamp != nil),
			spec:     i.Generation,
			removed:  i.IsRemoved(),
		}
		if i.Status.Execution != nil {
			v.runs = i.Status.Execution.OperatorVersion
		}
		v.returns = i.Status.Former != nil
		v.upgrades = i.Status.Whole != nil && i.Status.Whole.OperatorVersion != v.runs
		return v
	})
}

// usersOf maps a mirrored OperatorVersion to the Instances in its namespace: a lost one is mirrored again.
func (m *reconciler) usersOf(ctx context.Context, version *kudo.OperatorVersion) []reconcile.Request {
	_, own := m.created.LoadAndDelete(client.ObjectKeyFromObject(version))
	requests := m.usersIn(ctx, version.Namespace)
	if len(requests) == 0 && !own { // the agent may have stopped before it deleted it; any request makes it do so
		requests = []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: m.cluster, Name: version.Name}}}
	}
	return requests
}

// usersIn returns the Instances in a namespace of the managed cluster.
func (m *reconciler) usersIn(ctx context.Context, namespace string) []reconcile.Request {
	list := &kudo.InstanceList{}
	if err := m.local.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "failed to list Instances", "namespace", namespace)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: m.cluster, Name: list.Items[i].Name}})
	}
	return requests
}

// isDeleted admits only deletions.
var isDeleted = predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
	CreateFunc: func(event.TypedCreateEvent[*metav1.PartialObjectMetadata]) bool { return false },
	UpdateFunc: func(event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool { return false },
}
