package availability

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/availability"
)

// leaseManager is the field manager of leases.
const leaseManager = "addon-agent-lease"

// leaseJitter spreads the renewals of a fleet whose agents started together.
const leaseJitter = 0.04

// heartbeat keeps a lease of the agent's own, by which others know that it is alive.
type heartbeat struct {
	client  client.Client
	name    types.NamespacedName
	version string
	period  time.Duration
	clock   func() time.Time
	log     logr.Logger
	failing bool
}

// LeaseOptions say how the agent's own leases are kept.
type LeaseOptions struct {
	// Version of the program, for the hub to know.
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

// AddLease keeps a lease in the cluster's namespace on the hub, for the hub to look at: renewed once a period where no OCM klusterlet does
// so, and without a time where one does.
func AddLease(o LeaseOptions, cluster string, standalone bool, hub ctrl.Manager) error {
	h := newHeartbeat(o, types.NamespacedName{Namespace: cluster, Name: addonv1alpha1.AgentLease}, hub)
	beat := h.declare
	if standalone {
		beat = h.renew
	}
	if err := hub.Add(manager.RunnableFunc(beat)); err != nil {
		return fmt.Errorf("adding the lease: %w", err)
	}
	return nil
}

// AddLocalLease keeps a lease in a namespace of the managed cluster, for OCM's klusterlet to look at, as it does of every add-on; none if
// the namespace is empty.
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

// renew renews the lease until ctx ends. An attempt that takes long is followed by the next in time: a period counts from its start.
func (h *heartbeat) renew(ctx context.Context) error {
	const sliding = false
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) { h.attempt(ctx, h.write) }, h.period, leaseJitter, sliding)
	return nil
}

// declare writes, once, a lease that has no time and so is nobody's heartbeat, whatever was left from a time without a klusterlet. It goes
// with the add-on by which OCM has brought the agent.
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

// owners are none where OCM has not brought the agent.
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

// attempt does something that must not outlast a period, and logs when it begins to fail and when it works again.
func (h *heartbeat) attempt(ctx context.Context, do func(context.Context) error) bool {
	limited, cancel := context.WithTimeout(ctx, h.period)
	defer cancel()
	err := do(limited)
	switch {
	case ctx.Err() != nil: // whatever failed, it is the end
	case err != nil && !h.failing:
		h.log.Error(err, "the agent's lease cannot be kept; trying again once a period", "period", h.period)
	case err == nil && h.failing:
		h.log.Info("the agent's lease is kept again")
	}
	h.failing = err != nil
	return err == nil
}

// write renews the lease.
func (h *heartbeat) write(ctx context.Context) error {
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

// keep makes the lease say so by one request, whatever stands there; it is made where it is missing.
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
		return fmt.Errorf("keeping the agent's lease: %w", err)
	}
	return nil
}

func (h *heartbeat) lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: h.name.Namespace, Name: h.name.Name}}
}
