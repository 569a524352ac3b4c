package hub

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"

	"github.com/tandem-addons/tandem/pkg/controller"
)

// besideOCM is what runs only on a hub that has OCM: who delivers addon-agent, and who takes part in OCM's rollouts. Whether it has is
// looked up at the start.
type besideOCM struct {
	options  Options
	addOns   *addOns
	recorder *controller.Recorder
	metrics  *metrics
}

func (o *besideOCM) SetUp(mgr manager.Manager) error {
	for _, kind := range []schema.GroupVersionKind{
		manifestWorkKind,
		{Group: addonv1alpha1.GroupVersion.Group, Version: "v1beta1", Kind: "ManagedClusterAddOn"},
	} {
		_, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			if o.options.DeliverAgents {
				mgr.GetLogger().Info("addon-agent is not delivered, for the hub has no OCM that could", "missing", kind.String())
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("looking for OCM on the hub: %w", err)
		}
	}
	marks, err := newMarks(mgr)
	if err != nil {
		return fmt.Errorf("preparing the cache of marks: %w", err)
	}
	controllers := []controller.Runner{
		&configurationHashes{client: mgr.GetClient()},
		&rollouts{client: mgr.GetClient(), addOns: o.addOns, marks: marks, unfinished: o.metrics.unfinished, written: controller.NewWrites()},
		&agents{client: mgr.GetClient(), live: mgr.GetAPIReader(), recorder: o.recorder},
	}
	if o.options.DeliverAgents {
		controllers = append(controllers, newDelivery(mgr, o.metrics.certificates))
	}
	for _, c := range controllers {
		if err := c.SetUp(mgr); err != nil {
			return err
		}
	}
	return nil
}
