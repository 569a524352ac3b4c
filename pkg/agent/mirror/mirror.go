// Package mirror copies Instances and their OperatorVersions from the hub to the managed cluster, and defines how a mirror is named, found
// and handed over. It touches both clusters.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/keymutex"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tandem-addons/tandem/pkg/kube/controller"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/rights"
)

// mirror copies Instances and their OperatorVersions from the hub to the managed cluster. It copies a generation once the hub has resolved
// it, so that every mirrored generation can run, with or without the hub.
type mirror struct {
	cluster            string
	hub, local         client.Client
	hubLive, localLive client.Reader
	signer             *Signer
	statuses           *Statuses
	writes             *controller.Writes
	rights             rights.Policy
	resolutions        *resolutions
	sightings          *sightings
	clock              func() time.Time

	// needs is read-locked while an OperatorVersion and then its Instance are mirrored, and write-locked while unneeded OperatorVersions
	// are deleted.
	needs sync.RWMutex

	// versions are the uids of OperatorVersions on the hub; attached are reads of the cluster's namespace on the hub that found it in place.
	versions reads[types.NamespacedName, types.UID]
	attached reads[string, struct{}]

	// slots are locked while a mirror is created in one.
	slots keymutex.KeyMutex

	// dropped holds the uids of mirrors that were deleted last.
	dropped *lru.Cache

	// creations are those of OperatorVersions that are under way; created holds the names of those that the cache may lack, until it reports
	// their first change.
	creations singleflight.Group
	created   sync.Map
}

// Options configure the mirror.
type Options struct {
	// Cluster is the name of the managed cluster, which is its namespace on the hub.
	Cluster string
	// Signer signs mirrors.
	Signer *Signer
	// Statuses receives what a mirror does not show to the reporter.
	Statuses *Statuses
	// Writes receives all writes of mirrored Instances.
	Writes *controller.Writes
	// Rights has the namespaces in which nothing is installed.
	Rights rights.Policy
}

// Add adds the mirror of a cluster to the manager of the hub.
func Add(o Options, hub, local ctrl.Manager) error {
	m := &mirror{
		cluster:   o.Cluster,
		hub:       hub.GetClient(),
		local:     local.GetClient(),
		hubLive:   hub.GetAPIReader(),
		localLive: local.GetAPIReader(),
		signer:    o.Signer,
		statuses:  o.Statuses,
		writes:    o.Writes,
		rights:    o.Rights,
		clock:     time.Now,

		resolutions: newResolutions(),
		sightings:   newSightings(time.Now),
		versions:    newReads[types.NamespacedName, types.UID](),
		attached:    newReads[string, struct{}](),
		slots:       keymutex.NewHashed(Workers),
		dropped:     lru.New(maxWrites),
	}
	err := controller.New(hub, "mirror", controller.Options{MaxConcurrentReconciles: Workers}).
		For(&kudo.Instance{}, builder.WithPredicates(m.resolutions.recordLosses(), m.sightings.record(), onHubChanged())).
		Watches(&kudo.Instance{}, handler.EnqueueRequestsFromMapFunc(m.childrenOf), builder.WithPredicates(controller.ChangeIn(isReleased))).
		WatchesRawSource(Source(o.Cluster, local, mirrorChanged())).
		WatchesRawSource(controller.Source(local, &kudo.OperatorVersion{}, m.usersOf)).
		Complete(m)
	if err != nil {
		return fmt.Errorf("adding the mirror: %w", err)
	}
	return nil
}

// Reconcile updates the mirror of one Instance to the state on the hub, or marks it if the hub no longer has the Instance.
func (m *mirror) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	wanted := &kudo.Instance{}
	err := m.hub.Get(ctx, request.NamespacedName, wanted)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading Instance %q on the hub: %w", request.Name, err)
	}
	if apierrors.IsNotFound(err) {
		wanted = nil
		m.statuses.Forget(request.Name)
		m.resolutions.forget(request.Name)
		m.sightings.forget(request.Name)
	}
	existing, err := m.find(ctx, request.Name, wanted)
	if err != nil {
		return reconcile.Result{}, err
	}
	if existing != nil && m.writes.StaleFor(existing) > 0 { // it is older than the agent's last write
		return reconcile.Result{RequeueAfter: StaleCacheDelay}, nil
	}
	if wanted, err = m.readFresh(ctx, wanted, existing); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err) // the deletion is another event
	}
	m.needs.RLock()
	err = m.follow(ctx, wanted, existing)
	m.needs.RUnlock()
	if apierrors.IsConflict(err) { // the cache is stale: the next reconciliation uses the current state
		return reconcile.Result{RequeueAfter: StaleCacheDelay}, nil
	}
	if wanted != nil {
		m.statuses.SetProblem(wanted, problemOf(wanted, err))
	}
	return m.resultOf(ctx, err)
}

// resultOf returns the result of a reconciliation after the mirror was followed, with that error.
func (m *mirror) resultOf(ctx context.Context, err error) (reconcile.Result, error) {
	switch {
	case errors.As(err, new(*rights.Refused)): // only a change of the Instance, or of the agent's flags, ends that
		return reconcile.Result{}, nil
	case errors.As(err, new(*namespaceError)):
		return reconcile.Result{RequeueAfter: namespaceInterval}, nil
	case err != nil:
		return reconcile.Result{}, err
	default:
		return reconcile.Result{}, m.dropVersions(ctx)
	}
}

// readFresh returns the Instance on the hub. It reads the Instance live if the cache has an older generation than the mirror, or may lack
// the removal or the release. After a start, the cache may be filled with an older state, because of which a plan would delete what a newer
// plan has created, a removal would be cancelled, a removed mirror would be created again, or the objects of a released Instance would be
// removed. A hub that was restored also has an older generation.
func (m *mirror) readFresh(ctx context.Context, wanted, existing *kudo.Instance) (*kudo.Instance, error) {
	if !IsStale(wanted, existing) && !mayLackRemoval(wanted, existing) {
		return wanted, nil
	}
	current := &kudo.Instance{}
	if err := m.hubLive.Get(ctx, client.ObjectKeyFromObject(wanted), current); err != nil {
		return nil, fmt.Errorf("reading Instance %q on the hub: %w", wanted.Name, err)
	}
	return current, nil
}

// mayLackRemoval reports whether an Instance in the cache of the hub may have been removed or released since: its mirror no longer exists, is
// orphaned, or is in removal, although the Instance is not being deleted.
func mayLackRemoval(wanted, existing *kudo.Instance) bool {
	switch {
	case wanted == nil:
		return false
	case existing == nil:
		return wanted.Status.Execution != nil
	case !mirrors(existing, wanted):
		return false
	default:
		return existing.IsOrphaned() && !wanted.IsForceReleased() || existing.IsRemoving() && wanted.DeletionTimestamp == nil
	}
}

// problemOf returns the part of an error about an Instance to report to the user; empty for temporary errors.
func problemOf(wanted *kudo.Instance, err error) string {
	var network *url.Error
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return terminatingText(wanted.TargetNamespace()) + "; the plans run once it is gone"
	case err == nil, errors.As(err, &network), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ""
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err), apierrors.IsInternalError(err),
		apierrors.IsServiceUnavailable(err):
		return ""
	default:
		return err.Error()
	}
}

// follow updates the mirror to the Instance on the hub; wanted is nil if that does not exist. An object that only claims to be the mirror counts
// as missing.
func (m *mirror) follow(ctx context.Context, wanted, existing *kudo.Instance) error {
	existing, err := m.authenticate(ctx, wanted, existing)
	if err != nil {
		return err
	}
	return m.sync(ctx, wanted, existing)
}

// sync updates an authentic mirror.
func (m *mirror) sync(ctx context.Context, wanted, existing *kudo.Instance) error {
	switch {
	case existing != nil && existing.IsRemoving() && existing.IsRemoved() && !isOf(existing, wanted):
		return m.drop(ctx, existing)
	case wanted == nil, wanted.IsForceReleased():
		return m.orphan(ctx, existing)
	case wanted.DeletionTimestamp != nil:
		return m.remove(ctx, wanted, existing)
	case existing != nil && existing.IsRemoving(): // the hub has released the Instance, or its deletion was undone by a restore
		return m.orphan(ctx, existing)
	default:
		return m.keep(ctx, wanted, existing)
	}
}

// keep keeps the mirror of an Instance that is not being deleted up to date.
func (m *mirror) keep(ctx context.Context, wanted, existing *kudo.Instance) error {
	err := m.respectNamespace(ctx, wanted, existing)
	switch {
	case err != nil:
		return err
	case isResolved(wanted):
		return m.copy(ctx, wanted, existing)
	case existing != nil:
		return m.acknowledge(ctx, wanted, existing)
	default:
		return nil
	}
}

// isOf reports whether a mirror belongs to exactly this Instance on the hub, which has not released it.
func isOf(existing, wanted *kudo.Instance) bool {
	return wanted != nil && !wanted.IsForceReleased() && mirrors(existing, wanted)
}

// find reads the mirror of an Instance from the cache, which may lack one that was just created or have an older one: creating or updating it
// is then a conflict. A missing mirror of an Instance that is being deleted is confirmed with a live read, because its removal would be
// complete, and so is one whose last write has not reached the cache for long, as with a watch that hangs.
func (m *mirror) find(ctx context.Context, name string, wanted *kudo.Instance) (*kudo.Instance, error) {
	read := func(local client.Reader) (*kudo.Instance, error) {
		candidates, err := listMirrors(ctx, local, name)
		return m.signer.choose(candidates, wanted), err
	}
	existing, err := read(m.local)
	if err != nil {
		return nil, err
	}
	live := existing == nil && wanted != nil && wanted.DeletionTimestamp != nil
	if existing != nil && m.writes.StaleFor(existing) == 0 {
		upToDate, _ := m.writes.UpToDate(existing)
		live = !upToDate
	}
	if live {
		return read(m.localLive)
	}
	return existing, nil
}
