package environment

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// often is the backoff of conflicting writes: short delays, for about four seconds.
var often = wait.Backoff{Steps: 14, Duration: 10 * time.Millisecond, Factor: 1.5, Jitter: 0.1}

// Object is an object of Go type T.
type Object[T any] interface {
	*T
	client.Object
}

// Edit reads an object, changes it and updates it, and retries on a conflict with another writer. The object is set to the stored state;
// errors are the API server's.
func Edit[T any, O Object[T]](ctx context.Context, c client.Client, o O, change func(O), options ...client.UpdateOption) error {
	return edit(ctx, c, o, change, func(changed O) error { return c.Update(ctx, changed, options...) })
}

// EditStatus is like Edit for an object's status.
func EditStatus[T any, O Object[T]](ctx context.Context, c client.Client, o O, change func(O)) error {
	return edit(ctx, c, o, change, func(changed O) error { return c.Status().Update(ctx, changed) })
}

func edit[T any, O Object[T]](ctx context.Context, c client.Client, o O, change func(O), write func(O) error) error {
	return retry.RetryOnConflict(often, func() error {
		current := O(new(T))
		current.GetObjectKind().SetGroupVersionKind(o.GetObjectKind().GroupVersionKind()) // for objects without a Go type of their own
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), current); err != nil {
			return err
		}
		change(current)
		if err := write(current); err != nil {
			return err
		}
		*o = *current
		return nil
	})
}
