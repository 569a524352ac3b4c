package progress

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// RemainingText states which add-ons and Instances are removed before an add-on, which may be nil; empty if there are none.
func RemainingText(addOn *addonv1alpha1.ManagedClusterAddOn) string {
	if addOn == nil {
		return ""
	}
	remaining := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAddOnsRemaining)
	if remaining == nil || remaining.Status != metav1.ConditionTrue {
		return ""
	}
	return remaining.Message
}

// FinalizersText lists the finalizers of an object that is being deleted.
func FinalizersText(kind string, object metav1.Object) string {
	return fmt.Sprintf("%s %s is held by finalizers: %s", kind, text.Word(object.GetName()), text.ListOrNone(object.GetFinalizers()))
}
