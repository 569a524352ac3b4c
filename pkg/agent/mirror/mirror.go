// Package mirror copies Instances and their OperatorVersions from the hub to the managed cluster, as pkg/core/mirror decides. It touches both
// clusters.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/keymutex"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/mirror"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/pkg/kube/content"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// reconciler copies Instances and their OperatorVersions from the hub to the managed cluster. It copies a generation once the hub has resolved
// it, so that every mirrored generation can run, with or without the hub.
type reconciler struct {
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

	// dropped holds the uids of mirrored Instances and OperatorVersions that were deleted last: the cache may still have them.
	dropped *lru.Cache

	// creations are those of OperatorVersions that are under way; created holds the names of those that the cache may lack, and whether they have
	// content, until it reports their first change.
	creations singleflight.Group
	created   sync.Map

	// contents verifies the content of mirrored OperatorVersions; fetches holds, by their names, when missing content is fetched.
	contents *content.Verifier
	fetches  sync.Map
}

// namespaceInterval is how often to check whether a deleted install namespace exists again, because namespaces are not watched.
const namespaceInterval = 10 * time.Second

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
	m := &reconciler{
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
		contents:    content.NewVerifier(local.GetClient(), local.GetAPIReader()),
	}
	err := controller.New(hub, "mirror", controller.Options{MaxConcurrentReconciles: Workers}).
		For(&kudo.Instance{}, builder.WithPredicates(m.resolutions.recordLosses(), m.sightings.record(), onHubChanged())).
		Watches(&kudo.Instance{}, handler.EnqueueRequestsFromMapFunc(m.childrenOf), builder.WithPredicates(controller.ChangeIn(isReleased))).
		WatchesRawSource(Source(o.Cluster, local, mirrorChanged())).
		WatchesRawSource(controller.Source(local, &kudo.OperatorVersion{}, m.usersOf)).
		WatchesRawSource(controller.Source(local, content.Metadata(), m.contentUsers, isDeleted)).
		Complete(m)
	if err != nil {
		return fmt.Errorf("adding the mirror: %w", err)
	}
	return nil
}

// Reconcile updates the mirror of one Instance to the state on the hub, or marks it if the hub no longer has the Instance.
func (m *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
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
	found, err := m.find(ctx, request.Name, wanted)
	if err != nil {
		return reconcile.Result{}, err
	}
	if found.Instance != nil && m.writes.StaleFor(found.Instance) > 0 { // it is older than the agent's last write
		return reconcile.Result{RequeueAfter: StaleCacheDelay}, nil
	}
	if wanted, err = m.readFresh(ctx, wanted, found.Instance); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err) // the deletion is another event
	}
	m.needs.RLock()
	err = m.follow(ctx, mirror.Observation{Wanted: wanted, Mirror: found.Instance, Proof: found.Proof, Rights: m.rights, Known: map[mirror.Fact]bool{}})
	m.needs.RUnlock()
	if wait := delayOf(err); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if wanted != nil {
		m.statuses.SetProblem(wanted, mirror.ProblemOf(wanted, err))
	}
	return m.resultOf(ctx, err)
}

// delayOf returns when to reconcile again after an error that is no problem; 0 for other errors.
func delayOf(err error) time.Duration {
	var postponed *controller.PostponedError
	switch {
	case apierrors.IsConflict(err): // the cache is stale: the next reconciliation uses the current state
		return StaleCacheDelay
	case errors.As(err, &postponed):
		return postponed.For
	default:
		return 0
	}
}

// resultOf returns the result of a reconciliation after the mirror was followed, with that error.
func (m *reconciler) resultOf(ctx context.Context, err error) (reconcile.Result, error) {
	switch {
	case errors.As(err, new(*rights.Refused)): // only a change of the Instance, or of the agent's flags, ends that
		return reconcile.Result{}, nil
	case errors.As(err, new(*mirror.NamespaceError)):
		return reconcile.Result{RequeueAfter: namespaceInterval}, nil
	case err != nil:
		return reconcile.Result{}, err
	default:
		return reconcile.Result{}, m.dropVersions(ctx)
	}
}

// follow updates the mirror to the Instance on the hub.
func (m *reconciler) follow(ctx context.Context, o mirror.Observation) error {
	for {
		o.Now = m.clock()
		decision := mirror.Decide(o)
		if decision.Need == "" {
			return m.execute(ctx, o.Wanted, decision)
		}
		if err := m.gather(ctx, &o, decision.Need); err != nil {
			return err
		}
		o.Known[decision.Need] = true
	}
}

// readFresh returns the Instance on the hub, read live if the cache may lack a change of it that the mirror shows.
func (m *reconciler) readFresh(ctx context.Context, wanted, existing *kudo.Instance) (*kudo.Instance, error) {
	if !mirror.NeedsLive(wanted, existing) {
		return wanted, nil
	}
	current := &kudo.Instance{}
	if err := m.hubLive.Get(ctx, client.ObjectKeyFromObject(wanted), current); err != nil {
		return nil, fmt.Errorf("reading Instance %q on the hub: %w", wanted.Name, err)
	}
	return current, nil
}

// find reads the mirror of an Instance from the cache, which may lack one that was just created or have an older one: creating or updating it
// is then a conflict. A missing mirror of an Instance that is being deleted is confirmed with a live read, because its removal would be
// complete, and so is one whose last write has not reached the cache for long, as with a watch that hangs.
func (m *reconciler) find(ctx context.Context, name string, wanted *kudo.Instance) (mirror.Candidate, error) {
	found, err := m.signer.find(ctx, m.local, name, wanted)
	if err != nil {
		return mirror.Candidate{}, err
	}
	live := found.Instance == nil && wanted != nil && wanted.DeletionTimestamp != nil
	if found.Instance != nil && m.writes.StaleFor(found.Instance) == 0 {
		upToDate, _ := m.writes.UpToDate(found.Instance)
		live = !upToDate
	}
	if live {
		return m.signer.find(ctx, m.localLive, name, wanted)
	}
	return found, nil
}
