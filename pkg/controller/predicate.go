package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Changed lets an update pass only where what view shows of the object differs; creation and deletion always pass. It keeps the
// status writes of others from waking a controller that they do not concern.
func Changed[O client.Object, V comparable](view func(O) V) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, known := e.ObjectOld.(O)
		after, alike := e.ObjectNew.(O)
		return !known || !alike || view(before) != view(after)
	}}
}

// TypedChanged is Changed for a source of objects of one type.
func TypedChanged[O client.Object, V comparable](view func(O) V) predicate.TypedPredicate[O] {
	return predicate.TypedFuncs[O]{UpdateFunc: func(e event.TypedUpdateEvent[O]) bool {
		return view(e.ObjectOld) != view(e.ObjectNew)
	}}
}

// AfterStart lets everything pass but what is there at the start already.
func AfterStart() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}
}

// Existence lets creation and deletion pass only.
func Existence() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// DeletionBegun lets creation and deletion pass, and the beginning of a deletion.
func DeletionBegun() predicate.Predicate {
	return Changed(func(o client.Object) bool { return o.GetDeletionTimestamp() != nil })
}

// Deletion lets deletions pass only.
func Deletion() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

// Mapped makes a handler of a function that may fail: its cache can only fail while it shuts down, and then the requests are moot.
func Mapped(to func(context.Context, client.Object) ([]reconcile.Request, error)) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		requests, err := to(ctx, o)
		if err != nil {
			log.FromContext(ctx).Error(err, "finding what a change concerns", "object", client.ObjectKeyFromObject(o))
		}
		return requests
	})
}

// ConditionView is what matters of a condition to a reader of its meaning.
type ConditionView struct {
	status             metav1.ConditionStatus
	reason, message    string
	observedGeneration int64
}

// ViewCondition is that of the condition of a type; the zero one where there is none.
func ViewCondition(conditions []metav1.Condition, conditionType string) ConditionView {
	c := meta.FindStatusCondition(conditions, conditionType)
	if c == nil {
		return ConditionView{}
	}
	return ConditionView{status: c.Status, reason: c.Reason, message: c.Message, observedGeneration: c.ObservedGeneration}
}
