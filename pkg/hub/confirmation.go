package hub

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// confirmations check with live reads that cached objects are not outdated, once for each object: a cache that was current after the start
// shows everything on which earlier processes have acted, and never goes back. They are safe for concurrent use.
type confirmations struct {
	client client.Client
	live   client.Reader
	uids   *lru.Cache // of the confirmed objects
}

// confirmationLimit is the number of most recently confirmed objects that need no further read. It only limits memory.
const confirmationLimit = 100_000

func newConfirmations(cached client.Client, live client.Reader) *confirmations {
	return &confirmations{client: cached, live: live, uids: lru.New(confirmationLimit)}
}

// confirm returns a conflict if the API server has changed a cached object since, unless the object has been confirmed before.
func (c *confirmations) confirm(ctx context.Context, cached client.Object) error {
	if _, known := c.uids.Get(cached.GetUID()); known {
		return nil
	}
	gvk, err := c.client.GroupVersionKindFor(cached)
	if err != nil {
		return fmt.Errorf("confirming the cache: %w", err)
	}
	current := &metav1.PartialObjectMetadata{}
	current.SetGroupVersionKind(gvk)
	err = c.live.Get(ctx, client.ObjectKeyFromObject(cached), current)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(cached), err)
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), current.ResourceVersion)
	if current.UID != cached.GetUID() || err != nil || order < 0 { // the version of a missing object cannot be compared
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		return apierrors.NewConflict(resource.GroupResource(), cached.GetName(), errors.New("it has changed, but not in the cache yet"))
	}
	c.uids.Add(cached.GetUID(), nil)
	return nil
}
