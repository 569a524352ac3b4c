package change

import (
	"context"
	"fmt"

	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/text"
)

// EffectsOnDependents describes what happens to the dependents of an add-on that is removed, and reports whether one of them requires it.
func EffectsOnDependents(addOn string, dependents []dependency.Dependent) (texts []string, required bool) {
	for _, dependent := range dependents {
		text := fmt.Sprintf("without %s, add-on %s %s", text.Word(addOn), text.Word(dependent.Name), fleet.EffectText(dependent.Type))
		if len(dependent.Through) > 0 {
			text += " (through " + fleet.ThroughText(dependent.Through) + ")"
		}
		if dependent.Protects {
			text += "; it protects the add-on from removal"
		}
		required = required || dependent.Type == addonv1alpha1.DependencyTypeRequired
		texts = append(texts, text)
	}
	return texts, required
}

// NotEnabledError returns the error about an add-on that does not exist on a cluster.
func NotEnabledError(view fleet.Cluster, addOn string) error {
	return fmt.Errorf("add-on %q is not enabled on cluster %s; enabled add-ons: %s", addOn, view.Name, text.ListOrNone(view.AddOnNames()))
}

// CheckRecreation returns an error if OCM would re-create the add-on after its removal; where names the clusters.
func CheckRecreation(definition *addonv1alpha1.ClusterManagementAddOn, where string) error {
	return CheckNotPlaced(definition, "change them so that they no longer select "+where)
}

// CheckNotPlaced returns an error for an add-on that OCM enables and disables by Placements; way states how to change those.
func CheckNotPlaced(definition *addonv1alpha1.ClusterManagementAddOn, way string) error {
	if definition == nil || definition.Spec.InstallStrategy.Type != upstream.AddonInstallStrategyPlacements {
		return nil
	}
	return fmt.Errorf("OCM enables add-on %q only on clusters that these Placements select: %s; %s, or set "+
		"spec.installStrategy.type of the ClusterManagementAddOn to %s",
		definition.Name, placements(definition), way, upstream.AddonInstallStrategyManual)
}

func placements(definition *addonv1alpha1.ClusterManagementAddOn) string {
	var names []string
	for _, placement := range definition.Spec.InstallStrategy.Placements {
		names = append(names, placement.Namespace+"/"+placement.Name)
	}
	return text.ListOrNone(names)
}

// ForceDeletion makes Delete delete an add-on that others protect.
const ForceDeletion = client.GracePeriodSeconds(0)

// Delete deletes an object unless it is being deleted. An object re-created under the same name is not affected.
func Delete(ctx context.Context, c client.Client, object client.Object, options ...client.DeleteOption) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	return client.IgnoreNotFound(c.Delete(ctx, object, append(options, client.Preconditions{UID: new(object.GetUID())})...))
}
