package secret

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// sides read the Instances on the hub and their mirrors on the managed cluster.
type sides struct{ hub, local client.Reader }

// AddSweep adds the deletion of copies that no Instance needs any more to the manager of the hub. cluster is its namespace there.
func (s *Store) AddSweep(cluster string, period time.Duration, hub ctrl.Manager) error {
	cached, live := sides{hub.GetClient(), s.client}, sides{hub.GetAPIReader(), s.live}
	sweep := func(ctx context.Context) {
		if err := s.sweep(ctx, cluster, cached, live); err != nil && ctx.Err() == nil {
			hub.GetLogger().Error(err, "failed to delete copies of sensitive values that no Instance needs")
		}
	}
	err := hub.Add(manager.RunnableFunc(func(ctx context.Context) error {
		wait.UntilWithContext(ctx, sweep, period)
		return nil
	}))
	if err != nil {
		return fmt.Errorf("adding the deletion of copies of sensitive values: %w", err)
	}
	return nil
}

// sweep deletes the copies of Instances that exist on neither cluster, or were released while they were being removed: none of them continues
// with the values of its last execution. It reads the API servers only if the caches lack the Instances of some copies.
func (s *Store) sweep(ctx context.Context, cluster string, cached, live sides) error {
	surplus := s.uids()
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
		if err := s.remove(ctx, uid); err != nil {
			return err
		}
		ctrl.LoggerFrom(ctx).Info("deleted the copy of sensitive values of an Instance that no longer exists", "uid", uid)
	}
	return nil
}

// uids returns the uids on the hub of the Instances with copies.
func (s *Store) uids() []types.UID {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(s.copies)), func(uid types.UID) bool { return len(s.copies[uid]) == 0 })
}

// neededUIDs returns the uids on the hub of the Instances that may continue with the values of their last execution: those on the hub,
// whose mirrors may be lost, and those with a mirror, which the hub may have lost. A mirror that is orphaned during its removal starts from
// the beginning if its Instance reappears; if that is being deleted again, its cleanup plan needs the Secrets themselves.
func (from sides) neededUIDs(ctx context.Context, cluster string) (map[types.UID]bool, error) {
	onHub, mirrors := &kudo.InstanceList{}, &kudo.InstanceList{}
	if err := from.hub.List(ctx, onHub, client.InNamespace(cluster), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Instances on the hub: %w", err)
	}
	if err := from.local.List(ctx, mirrors, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing mirrored Instances: %w", err)
	}
	needed := map[types.UID]bool{}
	for i := range onHub.Items {
		needed[onHub.Items[i].UID] = true
	}
	for i := range mirrors.Items {
		mirror := &mirrors.Items[i]
		_, deleted := mirror.Annotations[kudo.AnnotationHubDeleted]
		if released := deleted && !mirror.IsRemoving(); !released {
			needed[hubUID(mirror)] = true
		}
	}
	return needed, nil
}
