package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/author"
)

// liveReads check that cached objects are not stale. The caches of different kinds are filled independently: if a watch hangs, a process
// that has just become the leader may see what the previous one derived from an object, but an older version of that object. Live reads are
// shared, because thousands of add-ons may use the same configuration. They are safe for concurrent use.
type liveReads struct {
	client client.Client
	live   client.Reader
	reads  *lru.Cache // by uid
	lists  *lru.Cache // by namespace
}

// liveRead is the last live read of an object.
type liveRead struct {
	version string
	writers author.Writers
	at      time.Time
}

// versionList holds the uids of the OperatorVersions in a namespace at the last live read.
type versionList struct {
	uids sets.Set[types.UID]
	at   time.Time
}

const (
	// liveReadPeriod is how long a live read is trusted: less than the time it takes to restore an API server from a backup.
	liveReadPeriod = 2 * time.Second
	// liveReadLimit is the number of objects whose last read is remembered. It only limits memory.
	liveReadLimit = 1024
)

func newLiveReads(cached client.Client, live client.Reader) *liveReads {
	return &liveReads{client: cached, live: live, reads: lru.New(liveReadLimit), lists: lru.New(liveReadLimit)}
}

// check returns a conflict unless the cached object has the version that the API server has. An object without a version, which the cache
// lacks, is confirmed if it does not exist.
func (c *liveReads) check(ctx context.Context, cached client.Object) error {
	gvk, err := c.client.GroupVersionKindFor(cached)
	if err != nil {
		return fmt.Errorf("determining the kind of a cached object: %w", err)
	}
	version, known := c.findVersion(cached)
	if !known {
		current := &metav1.PartialObjectMetadata{}
		current.SetGroupVersionKind(gvk)
		began := time.Now()
		err := c.live.Get(ctx, client.ObjectKeyFromObject(cached), current)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(cached), err)
		}
		version = current.ResourceVersion // empty if the object does not exist
		if cached.GetUID() != "" {
			c.reads.Add(cached.GetUID(), liveRead{version, author.WritersOf(gvk.Kind, current), began})
		}
	}
	if version != cached.GetResourceVersion() {
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		return apierrors.NewConflict(resource.GroupResource(), cached.GetName(), errors.New("it has changed since it was cached"))
	}
	return nil
}

// writersOf returns the last writers of a cached object, which has no managed fields. It returns a conflict like check.
func (c *liveReads) writersOf(ctx context.Context, cached client.Object) (author.Writers, error) {
	if err := c.check(ctx, cached); err != nil {
		return author.Writers{}, err
	}
	last, found := c.reads.Get(cached.GetUID())
	if !found {
		return author.Writers{}, nil
	}
	return last.(liveRead).writers, nil
}

// findVersion returns the version of the last live read of the object, unless that is too old, or the cache has a newer version.
func (c *liveReads) findVersion(cached client.Object) (version string, known bool) {
	last, found := c.reads.Get(cached.GetUID())
	if !found || time.Since(last.(liveRead).at) > liveReadPeriod {
		return "", false
	}
	version = last.(liveRead).version
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), version)
	return version, err == nil && order <= 0
}

// checkAddOns returns a conflict if the cache lacks a ManagedClusterAddOn that the cluster has: the owner of one of its Instances, or one of the names.
func (c *liveReads) checkAddOns(ctx context.Context, cluster string, instances []kudo.Instance, names []string) error {
	cached := &addonv1alpha1.ManagedClusterAddOnList{}
	if err := c.client.List(ctx, cached, client.InNamespace(cluster), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ManagedClusterAddOns in %q: %w", cluster, err)
	}
	has, missing := sets.New[types.UID](), sets.New(names...)
	for i := range cached.Items {
		has.Insert(cached.Items[i].UID)
		missing.Delete(cached.Items[i].Name)
	}
	for i := range instances {
		owner := metav1.GetControllerOfNoCopy(&instances[i])
		if owner != nil && owner.Kind == "ManagedClusterAddOn" && !has.Has(owner.UID) {
			missing.Insert(owner.Name)
		}
	}
	for _, name := range sets.List(missing) {
		current := &metav1.PartialObjectMetadata{}
		current.SetGroupVersionKind(addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"))
		err := c.live.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, current)
		switch {
		case apierrors.IsNotFound(err): // its Instance remains
		case err != nil:
			return fmt.Errorf("reading ManagedClusterAddOn %s/%s: %w", cluster, name, err)
		case !has.Has(current.UID):
			resource := addonv1alpha1.GroupVersion.WithResource("managedclusteraddons").GroupResource()
			return apierrors.NewConflict(resource, name, errors.New("it is not cached yet"))
		}
	}
	return nil
}

// checkVersions returns a conflict unless the cache has exactly the OperatorVersions that the namespace has on the API server. Their specs
// are immutable. The list is read again unless it is recent and the cache has the OperatorVersion that runs, which may be newer than the
// list.
func (c *liveReads) checkVersions(ctx context.Context, namespace string, running types.UID) error {
	var cached kudo.OperatorVersionList
	if err := c.client.List(ctx, &cached, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing OperatorVersions in %q: %w", namespace, err)
	}
	has := sets.New[types.UID]()
	for i := range cached.Items {
		has.Insert(cached.Items[i].UID)
	}
	last, found := c.lists.Get(namespace)
	if found && has.Has(running) && last.(versionList).uids.Equal(has) && time.Since(last.(versionList).at) <= liveReadPeriod {
		return nil
	}
	current := versionList{uids: sets.New[types.UID](), at: time.Now()}
	live := &metav1.PartialObjectMetadataList{}
	live.SetGroupVersionKind(kudo.GroupVersion.WithKind("OperatorVersionList"))
	if err := c.live.List(ctx, live, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing OperatorVersions in %q: %w", namespace, err)
	}
	for i := range live.Items {
		current.uids.Insert(live.Items[i].UID)
	}
	c.lists.Add(namespace, current)
	if !current.uids.Equal(has) {
		resource := kudo.GroupVersion.WithResource(addonv1alpha1.ResourceOperatorVersions).GroupResource()
		return apierrors.NewConflict(resource, "", fmt.Errorf("those of namespace %q have changed since they were cached", namespace))
	}
	return nil
}
