package install

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

var (
	operatorVersions  = upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions}
	deploymentConfigs = upstream.ConfigGroupResource{
		Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs,
	}
	configMaps = upstream.ConfigGroupResource{Resource: addonv1alpha1.ResourceConfigMaps}
)

// kindOf returns the kind of a config that Tandem reads; empty for other configs.
func kindOf(config upstream.AddOnConfig) string {
	switch config.ConfigGroupResource {
	case operatorVersions:
		return "OperatorVersion"
	case deploymentConfigs:
		return "AddOnDeploymentConfig"
	case configMaps:
		return "ConfigMap"
	default:
		return ""
	}
}

// Reference names a configuration object.
type Reference struct {
	Resource string
	types.NamespacedName
}

// Describe returns the kind and the name of an object with parameters.
func (r Reference) Describe() string {
	if r.Resource == configMaps.Resource {
		return "ConfigMap " + r.String()
	}
	return "AddOnDeploymentConfig " + r.String()
}

// MayExist reports whether an object can have the name. API servers fail requests with others, such as "a/b", which references and statuses
// may contain.
func MayExist(name types.NamespacedName) bool {
	return name.Name != "" && len(path.IsValidPathSegmentName(name.Name))+len(path.IsValidPathSegmentName(name.Namespace)) == 0
}

// References lists every configuration object that the configs of the definition and the add-on (each may be nil) can resolve to, by OCM or
// by Tandem: the objects to watch for the add-on.
func References(definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn) []Reference {
	var named []Reference
	add := func(resource upstream.ConfigGroupResource, referent upstream.ConfigReferent) {
		named = append(named, Reference{Resource: resource.Resource, NamespacedName: types.NamespacedName(referent)})
	}
	if definition != nil {
		for _, config := range configsOfDefinition(definition) {
			add(config.ConfigGroupResource, config.ConfigReferent)
		}
	}
	if addOn != nil {
		named = append(named, ReferencesInSpec(addOn)...)
		for _, reference := range addOn.Status.ConfigReferences {
			if reference.DesiredConfig != nil {
				add(reference.ConfigGroupResource, reference.DesiredConfig.ConfigReferent)
			}
		}
	}
	return named
}

// ReferencesInSpec lists the configuration objects that the spec of the add-on names.
func ReferencesInSpec(addOn *addonv1alpha1.ManagedClusterAddOn) []Reference {
	named := make([]Reference, 0, len(addOn.Spec.Configs))
	for _, config := range addOn.Spec.Configs {
		named = append(named, Reference{Resource: config.Resource, NamespacedName: types.NamespacedName(config.ConfigReferent)})
	}
	return named
}

// configsOfDefinition lists the defaults of a definition and the configs of its Placements.
func configsOfDefinition(definition *addonv1alpha1.ClusterManagementAddOn) []upstream.AddOnConfig {
	var configs []upstream.AddOnConfig
	for _, supported := range definition.Spec.SupportedConfigs {
		if supported.DefaultConfig != nil {
			configs = append(configs, upstream.AddOnConfig{
				ConfigGroupResource: supported.ConfigGroupResource, ConfigReferent: *supported.DefaultConfig,
			})
		}
	}
	for _, placement := range definition.Spec.InstallStrategy.Placements {
		configs = append(configs, placement.Configs...)
	}
	return configs
}

// namesItself reports whether the add-on's own configs include the referenced object.
func namesItself(addOn *addonv1alpha1.ManagedClusterAddOn, resource upstream.ConfigGroupResource, referent upstream.ConfigReferent) bool {
	return slices.Contains(addOn.Spec.Configs, upstream.AddOnConfig{ConfigGroupResource: resource, ConfigReferent: referent})
}
