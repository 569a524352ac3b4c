// Package ocm integrates with OCM on a hub that has it: it delivers addon-agent to managed clusters, keeps it there while it is needed, and
// reports the progress of plans to OCM's rollouts. It reads and writes the hub.
package ocm

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// Controllers are the controllers that only run on a hub with OCM: for the delivery of addon-agent, and for OCM's rollouts. The presence of
// OCM is checked at the start.
type Controllers struct {
	// DeliverAgents installs addon-agent on managed clusters.
	DeliverAgents bool
	// AgentArguments are further arguments of all agents that are delivered.
	AgentArguments []string
	// AgentConfigs are patterns of AddOnDeploymentConfigs that may configure agents, as returned by ParseConfigs.
	AgentConfigs []string
	AddOns       *read.AddOns
	// CheckLive returns a conflict if a cached object is stale, or if one that the cache lacks exists.
	CheckLive func(ctx context.Context, cached client.Object) error
	Recorder  events.EventRecorder
	Metrics   *Metrics
}

// SetUp adds the controllers to the manager if the hub has OCM.
func (o *Controllers) SetUp(mgr manager.Manager) error {
	for _, kind := range []schema.GroupVersionKind{
		manifestWorkKind,
		{Group: addonv1alpha1.GroupVersion.Group, Version: "v1beta1", Kind: "ManagedClusterAddOn"},
	} {
		_, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			if o.DeliverAgents {
				mgr.GetLogger().Info("addon-agent is not delivered because OCM is not installed on the hub", "missing", kind.String())
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("checking for OCM on the hub: %w", err)
		}
	}
	marks, err := newMarks(mgr)
	if err != nil {
		return fmt.Errorf("preparing the cache of marks: %w", err)
	}
	controllers := []controller.Runner{
		&configurationHashes{client: mgr.GetClient(), live: mgr.GetAPIReader()},
		&rollouts{
			client: mgr.GetClient(), addOns: o.AddOns, checkLive: o.CheckLive, marks: marks, unfinished: o.Metrics.unfinished,
			written: controller.NewWrites(), pace: controller.NewPace(time.Now),
		},
		&agents{client: mgr.GetClient(), live: mgr.GetAPIReader(), recorder: o.Recorder},
	}
	if o.DeliverAgents {
		controllers = append(controllers, newDelivery(mgr, o.Metrics.Certificates, o.AgentArguments, o.AgentConfigs))
	}
	for _, c := range controllers {
		if err := c.SetUp(mgr); err != nil {
			return err
		}
	}
	return nil
}
