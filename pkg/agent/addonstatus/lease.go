package addonstatus

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/availability"
)

// leaseManager is the field manager of leases.
const leaseManager = "addon-agent-lease"

// leaseJitter is the maximum random delay of a renewal, as a fraction of the period.
const leaseJitter = 0.04

// heartbeat renews a lease of the agent, which shows that it is alive.
type heartbeat struct {
	client client.Client
	// serves returns an error if the API server that the agent works on does not answer; nil if that is the one with the lease.
	serves  func(context.Context) error
	name    types.NamespacedName
	version string
	period  time.Duration
	clock   func() time.Time
	log     logr.Logger
	failing bool
}

// LeaseOptions configure the agent's own leases.
type LeaseOptions struct {
	// Version of the program, reported to the hub.
	Version string

	// Period is how often a lease is renewed; one minute if zero.
	Period time.Duration
}

func newHeartbeat(o LeaseOptions, name types.NamespacedName, on ctrl.Manager) *heartbeat {
	return &heartbeat{
		client: on.GetClient(), name: name, version: addonv1alpha1.VersionLabel(o.Version), period: cmp.Or(o.Period, availability.DefaultPeriod), clock: time.Now,
		log: on.GetLogger().WithName("lease").WithValues("lease", name),
	}
}

// AddLease maintains a lease in the cluster's namespace on the hub: renewed once a period if no OCM klusterlet renews one, and without a
// renewal time otherwise. It is not renewed while the API server of the managed cluster does not answer: the agent lives, and the cluster does not.
func AddLease(o LeaseOptions, cluster string, standalone bool, hub, local ctrl.Manager) error {
	h := newHeartbeat(o, types.NamespacedName{Namespace: cluster, Name: addonv1alpha1.AgentLease}, hub)
	managed, err := discovery.NewDiscoveryClientForConfigAndClient(local.GetConfig(), local.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("connecting to the managed cluster: %w", err)
	}
	h.serves = func(ctx context.Context) error { return isReady(ctx, managed.RESTClient()) }
	beat := h.declare
	if standalone {
		beat = h.renew
	}
	if err := hub.Add(manager.RunnableFunc(beat)); err != nil {
		return fmt.Errorf("adding the lease: %w", err)
	}
	return nil
}

// AddLocalLease renews a lease in a namespace of the managed cluster, by which OCM's klusterlet judges the agent like any add-on; no lease
// if the namespace is empty.
func AddLocalLease(o LeaseOptions, namespace string, local ctrl.Manager) error {
	if namespace == "" {
		return nil
	}
	h := newHeartbeat(o, types.NamespacedName{Namespace: namespace, Name: addonv1alpha1.AgentAddOn}, local)
	if err := local.Add(manager.RunnableFunc(h.renew)); err != nil {
		return fmt.Errorf("adding the lease on the managed cluster: %w", err)
	}
	return nil
}

// renew renews the lease until ctx ends.
func (h *heartbeat) renew(ctx context.Context) error {
	periodically(ctx, h.period, func(ctx context.Context) { h.attempt(ctx, h.write) })
	return nil
}

// periodically calls do at once, and then once a period until ctx ends, first after a random part of a period: agents that start or
// reconnect at the same time do not renew their leases at the same time ever after. A slow call does not delay the next one: a period
// counts from its start.
func periodically(ctx context.Context, period time.Duration, do func(context.Context)) {
	const sliding = false
	do(ctx)
	select {
	case <-ctx.Done():
		return
	case <-time.After(rand.N(period)):
	}
	wait.JitterUntilWithContext(ctx, do, period, leaseJitter, sliding)
}

// declare writes once a lease without a renewal time, which is no heartbeat, in place of any lease from a time without a klusterlet. It is
// deleted with the add-on by which OCM has installed the agent.
func (h *heartbeat) declare(ctx context.Context) error {
	_ = wait.PollUntilContextCancel(ctx, h.period, true, func(ctx context.Context) (bool, error) {
		return h.attempt(ctx, func(ctx context.Context) error {
			owners, err := h.owners(ctx)
			if err != nil {
				return err
			}
			return h.keep(ctx, map[string]any{
				"metadata": map[string]any{"labels": h.labels(), "ownerReferences": owners},
				"spec":     map[string]any{"holderIdentity": addonv1alpha1.AgentLease, "renewTime": nil, "leaseDurationSeconds": nil},
			})
		}), nil
	})
	return nil
}

// owners returns the owner references of the lease; none if OCM has not installed the agent.
func (h *heartbeat) owners(ctx context.Context) ([]metav1.OwnerReference, error) {
	var agent addonv1alpha1.ManagedClusterAddOn
	err := h.client.Get(ctx, client.ObjectKey{Namespace: h.name.Namespace, Name: addonv1alpha1.AgentAddOn}, &agent)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the agent's add-on: %w", err)
	}
	return []metav1.OwnerReference{{
		APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn", Name: agent.Name, UID: agent.UID,
	}}, nil
}

// attempt runs do with the timeout of one period, and logs the first failure and the recovery.
func (h *heartbeat) attempt(ctx context.Context, do func(context.Context) error) bool {
	limited, cancel := context.WithTimeout(ctx, h.period)
	defer cancel()
	err := do(limited)
	switch {
	case ctx.Err() != nil: // the agent is shutting down
	case err != nil && !h.failing:
		h.log.Error(err, "failed to renew the agent's lease; retrying every period", "period", h.period)
	case err == nil && h.failing:
		h.log.Info("renewed the agent's lease again")
	}
	h.failing = err != nil
	return err == nil
}

// isReady returns an error if an API server does not answer, or answers that it is not ready. One that refuses the question answers.
func isReady(ctx context.Context, server rest.Interface) error {
	err := server.Get().AbsPath("/readyz").Do(ctx).Error()
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// write renews the lease.
func (h *heartbeat) write(ctx context.Context) error {
	if h.serves != nil {
		if err := h.serves(ctx); err != nil {
			return fmt.Errorf("the API server of the managed cluster does not answer, or is not ready: %w", err)
		}
	}
	return h.keep(ctx, map[string]any{
		"metadata": map[string]any{"labels": h.labels()},
		"spec": coordinationv1.LeaseSpec{
			HolderIdentity:       ptr.To(addonv1alpha1.AgentLease),
			LeaseDurationSeconds: ptr.To(int32(math.Ceil(h.period.Seconds()))),
			RenewTime:            ptr.To(metav1.NewMicroTime(h.clock())),
		},
	})
}

func (h *heartbeat) labels() map[string]string {
	return map[string]string{addonv1alpha1.LabelVersion: h.version}
}

// keep applies the content to the lease with one request, and creates the lease if it is missing.
func (h *heartbeat) keep(ctx context.Context, content map[string]any) error {
	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encoding the agent's lease: %w", err)
	}
	err = h.client.Patch(ctx, h.lease(), client.RawPatch(types.MergePatchType, body), client.FieldOwner(leaseManager))
	if apierrors.IsNotFound(err) {
		made := h.lease()
		if err = json.Unmarshal(body, made); err == nil {
			made.Namespace, made.Name = h.name.Namespace, h.name.Name
			err = h.client.Create(ctx, made, client.FieldOwner(leaseManager))
		}
	}
	if err != nil {
		return fmt.Errorf("renewing the agent's lease: %w", err)
	}
	return nil
}

func (h *heartbeat) lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: h.name.Namespace, Name: h.name.Name}}
}
