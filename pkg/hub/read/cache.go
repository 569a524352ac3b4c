package read

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/install"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// Trim drops fields that the hub never reads and that make up most of an object before it is cached: managed fields, kubectl's last-applied
// configuration, the progress of plans except for what children need, inventories, and the status of add-ons except for their conditions.
func Trim(object any) (any, error) {
	if o, ok := object.(client.Object); ok {
		o.SetManagedFields(nil)
		delete(o.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	switch o := object.(type) {
	case *kudo.Instance:
		o.Status = plan.Current(o.Status, nil) // while all plan states are there
		o.Status.PlanStatus, o.Status.Inventory = install.Progress(o.Status), nil
	case *addonv1alpha1.ManagedClusterAddOn:
		o.Status.RelatedObjects, o.Status.Registrations = nil, nil
	}
	return object, nil
}
