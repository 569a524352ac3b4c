package engine

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/controller"
	"github.com/tandem-addons/tandem/pkg/health"
	"github.com/tandem-addons/tandem/pkg/render"
)

// specChanged admits all changes of an Instance except for the engine's own status writes.
func specChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deletionChanged(), acknowledged())
}

// judgedChanged admits changes of an applied object that affect tasks or condition Ready. Many objects change all the time in irrelevant
// ways: leader elections, counters and timestamps in a status.
func judgedChanged() predicate.TypedPredicate[client.Object] {
	type view struct {
		uid      types.UID
		health   health.Result
		metadata string
	}
	return controller.Changed(func(o client.Object) view {
		live := o.(*unstructured.Unstructured)
		v := view{uid: live.GetUID(), health: health.Of(live)}
		annotations := live.GetAnnotations()
		v.metadata = fmt.Sprint(live.GetDeletionTimestamp() != nil, live.GetFinalizers(), live.GetLabels(),
			annotations[kudo.AnnotationExecution], annotations[kudo.AnnotationInstanceNamespace])
		if live.GroupVersionKind() == storageClass {
			v.metadata += fmt.Sprint(isDefaultClass(live))
		}
		if _, ofPipe := annotations[kudo.AnnotationPipe]; ofPipe { // its containers matter beyond its health
			v.metadata += live.GetResourceVersion()
		}
		return v
	})
}

func deletionChanged() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetDeletionTimestamp() != nil })
}

// acknowledged admits changes of the hub's status of KudoOperator tasks.
func acknowledged() predicate.Predicate {
	return controller.Changed(func(o client.Object) string { return mirror.Acknowledgements(o.(*kudo.Instance)) })
}

// viewChild returns the state that a parent depends on: the generation of the child, and its condition.
func viewChild(o client.Object) string {
	i := o.(*kudo.Instance)
	ready := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionReady)
	if ready == nil {
		return fmt.Sprint(i.Annotations)
	}
	return fmt.Sprint(i.Annotations, i.Status.ObservedGeneration, ready.Status, ready.Reason, ready.Message)
}

// ownersOf maps an applied object to its Instance.
func (e *engine) ownersOf(ctx context.Context, o client.Object) []reconcile.Request {
	namespace, marked := o.GetAnnotations()[kudo.AnnotationInstanceNamespace]
	if !marked {
		namespace = o.GetNamespace()
	}
	return e.requestsFor(ctx, namespace, func(i *kudo.Instance) bool {
		return render.InstanceName(i.Name) == o.GetLabels()[kudo.LabelInstance]
	})
}

// affectedBy maps an object of any kind to the Instances to reconcile when it changes: its owner, and for a StorageClass all Instances with
// volume claims.
func (e *engine) affectedBy(kind schema.GroupVersionKind) func(context.Context, client.Object) []reconcile.Request {
	if kind != storageClass {
		return e.ownersOf
	}
	return func(ctx context.Context, class client.Object) []reconcile.Request {
		return append(e.ownersOf(ctx, class), e.requestsFor(ctx, "", func(i *kudo.Instance) bool {
			return slices.ContainsFunc(i.Status.Inventory, func(entry kudo.InventoryEntry) bool {
				return entry.Group == "" && entry.Kind == "PersistentVolumeClaim"
			})
		})...)
	}
}

// usersOf maps an OperatorVersion to the Instances that refer to it.
func (e *engine) usersOf(ctx context.Context, version client.Object) []reconcile.Request {
	return e.requestsFor(ctx, version.GetNamespace(), func(i *kudo.Instance) bool {
		return i.Spec.OperatorVersion.Name == version.GetName()
	})
}

// parentsOf maps an Instance to the parents that wait for it, or include its health.
func (e *engine) parentsOf(ctx context.Context, child client.Object) []reconcile.Request {
	return e.requestsFor(ctx, child.GetNamespace(), func(i *kudo.Instance) bool {
		return slices.ContainsFunc(i.Status.Children, func(c kudo.ChildStatus) bool {
			return c.Instance == child.GetName() || slices.Contains(c.Former, child.GetName())
		})
	})
}

// requestsFor returns requests for the affected Instances of a namespace.
func (e *engine) requestsFor(ctx context.Context, namespace string, concerned func(*kudo.Instance) bool) []reconcile.Request {
	list := &kudo.InstanceList{}
	if err := e.client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "failed to list Instances", "namespace", namespace)
		return nil
	}
	return requestsOf(list.Items, concerned)
}

// requestsOf returns requests for the affected Instances.
func requestsOf(instances []kudo.Instance, concerned func(*kudo.Instance) bool) []reconcile.Request {
	var requests []reconcile.Request
	for i := range instances {
		if concerned(&instances[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&instances[i])})
		}
	}
	return requests
}
