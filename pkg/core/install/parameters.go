package install

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// OwnConfig returns the name of the AddOnDeploymentConfig in which commands store the parameters of an add-on.
func OwnConfig(cluster, addOn string) types.NamespacedName {
	return types.NamespacedName{Namespace: cluster, Name: addOn + "-parameters"}
}

// ForeignConfig returns the AddOnDeploymentConfig that an add-on takes its parameters from if that is not its own one, which commands change: the
// last one in its spec, or one that a Placement provides. ok is false if commands can change the parameters.
func ForeignConfig(definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn) (name types.NamespacedName, ok bool) {
	last, named := LastConfig(addOn)
	if named {
		return last, last != OwnConfig(addOn.Namespace, addOn.Name)
	}
	if config, _, rolledOut := RolledOutConfig(definition, addOn, deploymentConfigs); rolledOut {
		return types.NamespacedName(config), true
	}
	return types.NamespacedName{}, false
}

// LastConfig returns the last AddOnDeploymentConfig that the spec of an add-on names: it takes precedence.
func LastConfig(addOn *addonv1alpha1.ManagedClusterAddOn) (name types.NamespacedName, ok bool) {
	for _, config := range addOn.Spec.Configs {
		if config.ConfigGroupResource == deploymentConfigs {
			name, ok = types.NamespacedName(config.ConfigReferent), true
		}
	}
	return name, ok
}

// RolledOutConfig returns the config of a resource that a Placement provides for an add-on, as OCM has resolved it. ok is false if the spec of the
// add-on names one, which overrides it.
func RolledOutConfig(
	definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn, resource upstream.ConfigGroupResource,
) (config upstream.ConfigReferent, placement types.NamespacedName, ok bool) {
	ofResource := func(c upstream.AddOnConfig) bool { return c.ConfigGroupResource == resource }
	if definition == nil || slices.ContainsFunc(addOn.Spec.Configs, ofResource) {
		return config, placement, false
	}
	for _, p := range definition.Spec.InstallStrategy.Placements {
		i := slices.IndexFunc(p.Configs, ofResource)
		if i >= 0 && isResolved(addOn, p.Configs[i]) {
			return p.Configs[i].ConfigReferent, types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, true
		}
	}
	return config, placement, false
}

// RolledOutVersion returns the OperatorVersion that a Placement provides for an add-on, as RolledOutConfig does.
func RolledOutVersion(
	definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn,
) (version upstream.ConfigReferent, placement types.NamespacedName, ok bool) {
	return RolledOutConfig(definition, addOn, operatorVersions)
}

// PlacedVersion is the OperatorVersion that a Placement of a definition provides; its name is empty if there is none.
type PlacedVersion struct {
	Placement types.NamespacedName
	Version   upstream.ConfigReferent
}

// PlacedVersions returns the OperatorVersion of each Placement that enables an add-on. The definition may be nil.
func PlacedVersions(definition *addonv1alpha1.ClusterManagementAddOn) []PlacedVersion {
	if definition == nil || definition.Spec.InstallStrategy.Type != upstream.AddonInstallStrategyPlacements {
		return nil
	}
	var placed []PlacedVersion
	for _, p := range definition.Spec.InstallStrategy.Placements {
		found := PlacedVersion{Placement: types.NamespacedName{Namespace: p.Namespace, Name: p.Name}}
		for _, config := range p.Configs {
			if config.ConfigGroupResource == operatorVersions {
				found.Version = config.ConfigReferent
			}
		}
		placed = append(placed, found)
	}
	return placed
}

// isResolved reports whether OCM has resolved the config for the add-on.
func isResolved(addOn *addonv1alpha1.ManagedClusterAddOn, config upstream.AddOnConfig) bool {
	return slices.ContainsFunc(addOn.Status.ConfigReferences, func(r upstream.ConfigReference) bool {
		return r.ConfigGroupResource == config.ConfigGroupResource && r.DesiredConfig != nil && r.DesiredConfig.ConfigReferent == config.ConfigReferent
	})
}

// ConfigMapOf returns the last ConfigMap that an add-on takes parameters from: it takes precedence over AddOnDeploymentConfigs.
func ConfigMapOf(definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn) (name types.NamespacedName, ok bool) {
	if definition == nil {
		return name, false
	}
	find := resolvedHere(definition, addOn, configMaps)
	if isManagedByOCM(definition, addOn) {
		find = resolvedByOCM(addOn, configMaps)
	}
	if len(find) == 0 {
		return name, false
	}
	return types.NamespacedName(find[len(find)-1].ConfigReferent), true
}
