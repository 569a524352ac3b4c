package change

import (
	"fmt"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Suspend returns the Instance's spec with or without a suspension, and whether that changes it. An Instance that is being removed cannot be suspended.
func Suspend(instance *kudo.Instance, suspend bool) (kudo.InstanceSpec, bool, error) {
	if suspend && !instance.DeletionTimestamp.IsZero() {
		return kudo.InstanceSpec{}, false, fmt.Errorf("cluster %s: Instance %q is being removed: a removal cannot be suspended", instance.Namespace, instance.Name)
	}
	wanted := *instance.Spec.DeepCopy()
	wanted.Suspend = suspend
	return wanted, instance.Spec.Suspend != suspend, nil
}
