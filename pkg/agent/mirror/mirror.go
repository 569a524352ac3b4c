// Package mirror copies Instances and their OperatorVersions from the hub to the managed cluster, and defines how a mirror is
// named, found and handed over. It touches both clusters.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tandem-addons/tandem/pkg/controller"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// mirror copies Instances and their OperatorVersions from the hub to the managed cluster. A generation is copied once the hub
// has resolved it, so that whatever stands here may be carried out, with or without the hub.
type mirror struct {
	cluster            string
	hub, local         client.Client
	hubLive, localLive client.Reader
	statuses           *Statuses
	clock              func() time.Time

	// needs is held by whoever mirrors an OperatorVersion and then the Instance that needs it, and alone by whoever drops those that
	// nothing needs.
	needs sync.RWMutex
}

// Add adds the mirror of a cluster to the manager of the hub. It keeps in statuses what the report cannot see in a mirror.
func Add(cluster string, statuses *Statuses, hub, local ctrl.Manager) error {
	m := &mirror{
		cluster:   cluster,
		hub:       hub.GetClient(),
		local:     local.GetClient(),
		hubLive:   hub.GetAPIReader(),
		localLive: local.GetAPIReader(),
		statuses:  statuses,
		clock:     time.Now,
	}
	err := controller.New(hub, "mirror", controller.Options{MaxConcurrentReconciles: Workers}).
		For(&kudo.Instance{}, builder.WithPredicates(onHubChanged())).
		Watches(&kudo.Instance{}, handler.EnqueueRequestsFromMapFunc(m.childrenOf), builder.WithPredicates(controller.Changed(hasLetGo))).
		WatchesRawSource(Source(cluster, local, mirrorChanged())).
		WatchesRawSource(source.Kind(local.GetCache(), &kudo.OperatorVersion{}, handler.TypedEnqueueRequestsFromMapFunc(m.usersOf))).
		Complete(m)
	if err != nil {
		return fmt.Errorf("adding the mirror: %w", err)
	}
	return nil
}

// Reconcile makes the mirror of one Instance what the hub says, or marks it when the hub says nothing any more.
func (m *mirror) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	wanted := &kudo.Instance{}
	err := m.hub.Get(ctx, request.NamespacedName, wanted)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading Instance %q on the hub: %w", request.Name, err)
	}
	if apierrors.IsNotFound(err) {
		wanted = nil
		m.statuses.Forget(request.Name)
	}
	standing, err := m.find(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	m.needs.RLock()
	err = m.follow(ctx, wanted, standing)
	m.needs.RUnlock()
	if apierrors.IsConflict(err) { // the cache lags behind: the next look is at what is there now
		return reconcile.Result{RequeueAfter: StaleCachePause}, nil
	}
	if wanted != nil {
		m.statuses.SetFault(wanted, faultOf(err))
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, m.dropVersions(ctx)
}

// faultOf is what a user should know of an error: nothing of those that pass by themselves.
func faultOf(err error) string {
	var network *url.Error
	switch {
	case err == nil, errors.As(err, &network), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ""
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err), apierrors.IsInternalError(err),
		apierrors.IsServiceUnavailable(err):
		return ""
	default:
		return err.Error()
	}
}

// follow does what the state of the Instance on the hub asks for; wanted is nil where it is missing.
func (m *mirror) follow(ctx context.Context, wanted, standing *kudo.Instance) error {
	switch {
	case standing != nil && standing.Removing() && standing.Removed() && !isOf(standing, wanted):
		return m.drop(ctx, standing)
	case wanted == nil, wanted.ForceReleased():
		return m.orphan(ctx, standing)
	case wanted.DeletionTimestamp != nil:
		return m.remove(ctx, wanted, standing)
	case standing != nil && standing.Removing(): // that of one that the hub has let go of, or has deleted in a past that was undone
		return m.orphan(ctx, standing)
	case resolved(wanted):
		return m.copy(ctx, wanted, standing)
	case standing != nil:
		return m.acknowledge(ctx, wanted, standing)
	}
	return nil
}

// isOf reports whether a mirror is that of exactly this Instance on the hub, which has not let go of it.
func isOf(standing, wanted *kudo.Instance) bool {
	return wanted != nil && !wanted.ForceReleased() && standing.Annotations[kudo.AnnotationHubUID] == string(wanted.UID)
}

// find reads a mirror. That there is none is asked of the API server: one that the cache has not seen yet must not be taken for one that
// is gone. One that has changed since the cache saw it is not written to, for that is a conflict.
func (m *mirror) find(ctx context.Context, name string) (*kudo.Instance, error) {
	if standing, err := Find(ctx, m.local, name); err != nil || standing != nil {
		return standing, err
	}
	return Find(ctx, m.localLive, name)
}
