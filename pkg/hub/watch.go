package hub

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

// changed lets an update pass only where what view shows of the object differs; creation and deletion always pass. It keeps the
// status writes of others from waking a controller that they do not concern.
func changed[O client.Object, V comparable](view func(O) V) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, known := e.ObjectOld.(O)
		after, alike := e.ObjectNew.(O)
		return !known || !alike || view(before) != view(after)
	}}
}

// afterStart lets everything pass but what is there at the start already.
func afterStart() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}
}

// existence lets creation and deletion pass only.
func existence() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// mapped makes a handler of a function that may fail: its cache can only fail while it shuts down, and then the requests are moot.
func mapped(to func(context.Context, client.Object) ([]reconcile.Request, error)) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		requests, err := to(ctx, o)
		if err != nil {
			log.FromContext(ctx).Error(err, "finding what a change concerns", "object", client.ObjectKeyFromObject(o))
		}
		return requests
	})
}

// conditionView is what matters of a condition to a reader of its meaning.
type conditionView struct {
	status             metav1.ConditionStatus
	reason, message    string
	observedGeneration int64
}

func viewCondition(conditions []metav1.Condition, conditionType string) conditionView {
	c := meta.FindStatusCondition(conditions, conditionType)
	if c == nil {
		return conditionView{}
	}
	return conditionView{status: c.Status, reason: c.Reason, message: c.Message, observedGeneration: c.ObservedGeneration}
}
