package read

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/install"
)

// Trim drops, before an object is cached, what the hub never reads and what makes up most of it: managed fields, what kubectl
// applied last, the progress of plans but for what children wait for, what they have applied, and what others say of an add-on beside
// its conditions.
func Trim(object any) (any, error) {
	if o, ok := object.(client.Object); ok {
		o.SetManagedFields(nil)
		delete(o.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	switch o := object.(type) {
	case *kudo.Instance:
		o.Status.PlanStatus, o.Status.Inventory = install.Progress(o.Status), nil
	case *addonv1alpha1.ManagedClusterAddOn:
		o.Status.RelatedObjects, o.Status.Registrations = nil, nil
	}
	return object, nil
}
