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

// ChangeIn admits an update only if view differs between the old and the new object; it always admits creation and deletion. It filters out
// status writes of other controllers that are irrelevant to this one.
func ChangeIn[O client.Object, V comparable](view func(O) V) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, known := e.ObjectOld.(O)
		after, alike := e.ObjectNew.(O)
		return !known || !alike || view(before) != view(after)
	}}
}

// TypedChangeIn is ChangeIn for a source of objects of one type.
func TypedChangeIn[O client.Object, V comparable](view func(O) V) predicate.TypedPredicate[O] {
	return predicate.TypedFuncs[O]{UpdateFunc: func(e event.TypedUpdateEvent[O]) bool {
		return view(e.ObjectOld) != view(e.ObjectNew)
	}}
}

// AfterStart admits all events except those for objects that exist at the start.
func AfterStart() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}
}

// Existence admits only creation and deletion.
func Existence() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// DeletionStart admits creation, deletion, and the setting of the deletion timestamp.
func DeletionStart() predicate.Predicate {
	return ChangeIn(func(o client.Object) bool { return o.GetDeletionTimestamp() != nil })
}

// Deletion admits only deletion.
func Deletion() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

// toMapFunc returns the function without its error, which is logged.
func toMapFunc(to func(context.Context, client.Object) ([]reconcile.Request, error)) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		requests, err := to(ctx, o)
		if err != nil {
			log.FromContext(ctx).Error(err, "failed to find the objects that a change affects", "object", client.ObjectKeyFromObject(o))
		}
		return requests
	}
}

// ConditionView holds the fields of a condition that matter to its readers.
type ConditionView struct {
	status             metav1.ConditionStatus
	reason, message    string
	observedGeneration int64
}

// ViewCondition returns the view of the condition of a type; the zero value if there is none.
func ViewCondition(conditions []metav1.Condition, conditionType string) ConditionView {
	c := meta.FindStatusCondition(conditions, conditionType)
	if c == nil {
		return ConditionView{}
	}
	return ConditionView{status: c.Status, reason: c.Reason, message: c.Message, observedGeneration: c.ObservedGeneration}
}
