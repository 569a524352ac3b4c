// Package sweep deletes what addon-agent stores on the managed cluster for Instances that no longer exist. It touches hub and managed cluster.
package sweep

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Store stores something for Instances, by their uids on the hub.
type Store struct {
	// Content is what it stores, in the plural.
	Content string
	// UIDs returns the uids of the Instances for which something is stored.
	UIDs func(ctx context.Context) ([]types.UID, error)
	// Remove deletes what is stored for an Instance.
	Remove func(ctx context.Context, uid types.UID) error
}

// Options configure a sweep.
type Options struct {
	// Cluster is the namespace of the cluster on the hub.
	Cluster  string
	Interval time.Duration
	Stores   []Store
}

// Add adds a sweep of what no Instance needs any more to the manager of the hub.
func Add(o Options, hub, local ctrl.Manager) error {
	cached, live := sides{hub.GetClient(), local.GetClient()}, sides{hub.GetAPIReader(), local.GetAPIReader()}
	all := func(ctx context.Context) {
		for _, store := range o.Stores {
			if err := sweep(ctx, o.Cluster, store, cached, live); err != nil && ctx.Err() == nil {
				hub.GetLogger().Error(err, "failed to delete what no Instance needs", "content", store.Content)
			}
		}
	}
	err := hub.Add(manager.RunnableFunc(func(ctx context.Context) error {
		wait.UntilWithContext(ctx, all, o.Interval)
		return nil
	}))
	if err != nil {
		return fmt.Errorf("adding the deletion of what no Instance needs: %w", err)
	}
	return nil
}

// sweep deletes what is stored for Instances that exist on neither cluster, or were released while they were being removed: none of them continues
// its last execution. It reads the API servers only if the caches lack some Instances.
func sweep(ctx context.Context, cluster string, store Store, cached, live sides) error {
	surplus, err := store.UIDs(ctx)
	if err != nil {
		return err
	}
	for _, from := range []sides{cached, live} {
		if len(surplus) == 0 {
			return nil
		}
		needed, err := from.neededUIDs(ctx, cluster)
		if err != nil {
			return err
		}
		surplus = slices.DeleteFunc(surplus, func(uid types.UID) bool { return needed[uid] })
	}
	for _, uid := range surplus {
		if err := store.Remove(ctx, uid); err != nil {
			return err
		}
		ctrl.LoggerFrom(ctx).Info("deleted what was stored for an Instance that no longer exists", "content", store.Content, "uid", uid)
	}
	return nil
}

// sides read the Instances on the hub and their mirrors on the managed cluster.
type sides struct{ hub, local client.Reader }

// neededUIDs reads the Instances on both sides, and returns the uids on the hub of those that need what is stored.
func (from sides) neededUIDs(ctx context.Context, cluster string) (map[types.UID]bool, error) {
	onHub, mirrors := &kudo.InstanceList{}, &kudo.InstanceList{}
	if err := from.hub.List(ctx, onHub, client.InNamespace(cluster), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Instances on the hub: %w", err)
	}
	if err := from.local.List(ctx, mirrors, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing mirrored Instances: %w", err)
	}
	return neededUIDs(onHub.Items, mirrors.Items), nil
}

// neededUIDs returns the uids on the hub of the Instances that may continue their last execution: those on the hub, whose mirrors may be lost, and
// those with a mirror, which the hub may have lost. A mirror that is orphaned during its removal starts from the beginning if its Instance
// reappears; if that is being deleted again, its cleanup plan needs the Secrets themselves.
func neededUIDs(onHub, mirrors []kudo.Instance) map[types.UID]bool {
	needed := map[types.UID]bool{}
	for i := range onHub {
		needed[onHub[i].UID] = true
	}
	for i := range mirrors {
		mirror := &mirrors[i]
		_, deleted := mirror.Annotations[kudo.AnnotationHubDeleted]
		if released := deleted && !mirror.IsRemoving(); !released {
			needed[mirror.HubUID()] = true
		}
	}
	return needed
}
