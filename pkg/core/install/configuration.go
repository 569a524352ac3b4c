package install

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Configuration holds the configuration objects of an add-on on one cluster.
type Configuration struct {
	// OperatorVersion is the package version to run.
	OperatorVersion types.NamespacedName
	// DeploymentConfigs hold the parameters, in the order in which they are applied.
	DeploymentConfigs []types.NamespacedName
	// ConfigMaps hold parameters too, in the order in which they are applied, after the DeploymentConfigs.
	ConfigMaps []types.NamespacedName
	// Hashes are the hashes of the DeploymentConfigs and ConfigMaps that OCM currently requires on the cluster. Configs unknown to OCM are missing,
	// and those that the add-on itself names: OCM does not roll them out, and takes their hashes from Tandem.
	Hashes map[Reference]string
	// Problems are the reasons not to use this configuration.
	Problems []Problem
	// Doubts are the reasons why addon-manager may not use it, if Namespaces are lenient.
	Doubts []string
}

// IsPlanManaged reports whether Tandem runs the add-on: its supported configs include OperatorVersions. It returns false without a definition
// (nil).
func IsPlanManaged(definition *addonv1alpha1.ClusterManagementAddOn) bool {
	if definition == nil {
		return false
	}
	for _, config := range definition.Spec.SupportedConfigs {
		if config.ConfigGroupResource == operatorVersions {
			return true
		}
	}
	return false
}

// Configure resolves the add-on's configs. If OCM manages the add-on, OCM resolves them (rollout, placements) and Configure uses that
// result once it exists. Otherwise the configs of the ManagedClusterAddOn override the definition's defaults, separately for each resource.
// The OperatorVersion must be in the packages' namespace or in the cluster's own namespace, which agents may read; AddOnDeploymentConfigs
// must be in the cluster's own namespace or in a shared one, or be assigned by the definition, which must not assign those of a cluster. ConfigMaps
// must be in the packages' namespace or in the cluster's own one.
func Configure(
	definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn, namespaces Namespaces,
) Configuration {
	managed := isManagedByOCM(definition, addOn)
	if managed && !meta.IsStatusConditionTrue(addOn.Status.Conditions, addonv1alpha1.ConditionConfigured) {
		return Configuration{Problems: []Problem{{addonv1alpha1.ReasonWaitingForConfiguration, waitingText(addOn)}}}
	}
	find := func(resource upstream.ConfigGroupResource) []upstream.ConfigSpecHash {
		if managed {
			return resolvedByOCM(addOn, resource)
		}
		return resolvedHere(definition, addOn, resource)
	}

	c := Configuration{Hashes: map[Reference]string{}}
	c.takeVersion(find(operatorVersions), addOn.Namespace, namespaces)
	take := func(resource upstream.ConfigGroupResource) (names []types.NamespacedName) {
		for _, found := range find(resource) {
			name := types.NamespacedName(found.ConfigReferent)
			names = append(names, name)
			if found.SpecHash != "" && !namesItself(addOn, resource, found.ConfigReferent) {
				c.Hashes[Reference{resource.Resource, name}] = found.SpecHash
			}
			if name.Namespace == "" {
				c.invalid("%s %q is referenced without a namespace: add its namespace to the reference",
					kindOf(upstream.AddOnConfig{ConfigGroupResource: resource}), name.Name)
			} else if err := namespaces.check(definition, addOn, resource, name); err != nil {
				c.invalid("%v", err)
			} else if err := namespaces.strict().check(definition, addOn, resource, name); err != nil {
				c.Doubts = append(c.Doubts, err.Error())
			}
		}
		return names
	}
	c.DeploymentConfigs, c.ConfigMaps = take(deploymentConfigs), take(configMaps)
	return c
}

// reasonNotConfigured is OCM's reason of condition Configured on clusters that a rollout has not reached.
const reasonNotConfigured = "ConfigurationsNotConfigured"

// waitingText returns the message about an add-on that OCM has not configured.
func waitingText(addOn *addonv1alpha1.ManagedClusterAddOn) string {
	configured := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionConfigured)
	if configured != nil && configured.Reason == reasonNotConfigured {
		return fmt.Sprintf("the rollout of the last change waits for other clusters before it reaches this one: see status.installProgressions of "+
			"ClusterManagementAddOn %q", addOn.Name)
	}
	return "OCM's addon-manager has not resolved the add-on's configuration yet: see condition Configured"
}

// VersionInUse returns the OperatorVersion that the add-on has on its cluster: the configured one or, until OCM has rolled that out to the
// cluster, the one before. It is empty if there is none.
func VersionInUse(definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn) types.NamespacedName {
	var found []upstream.ConfigSpecHash
	if isManagedByOCM(definition, addOn) {
		found = resolvedByOCM(addOn, operatorVersions)
	} else {
		found = resolvedHere(definition, addOn, operatorVersions)
	}
	if len(found) != 1 {
		return types.NamespacedName{}
	}
	return types.NamespacedName(found[0].ConfigReferent)
}

// takeVersion takes the single OperatorVersion from the found references.
func (c *Configuration) takeVersion(found []upstream.ConfigSpecHash, cluster string, namespaces Namespaces) {
	switch {
	case len(found) == 0:
		c.invalid("no OperatorVersion is configured: reference one (group %s, resource %s) in the ManagedClusterAddOn's spec.configs, or as "+
			"the ClusterManagementAddOn's default config", operatorVersions.Group, operatorVersions.Resource)
		return
	case len(found) > 1:
		c.invalid("two OperatorVersions are configured, %s and %s: keep one of them",
			types.NamespacedName(found[0].ConfigReferent), types.NamespacedName(found[1].ConfigReferent))
		return
	}
	c.OperatorVersion = types.NamespacedName(found[0].ConfigReferent)
	if err := namespaces.checkVersion(cluster, found[0].ConfigReferent); err != nil {
		c.invalid("%v", err)
	}
}

// invalid adds an problem: the configuration is invalid.
func (c *Configuration) invalid(format string, args ...any) {
	c.Problems = append(c.Problems, Problem{addonv1alpha1.ReasonConfigurationInvalid, fmt.Sprintf(format, args...)})
}

// isManagedByOCM reports whether OCM's addon-manager manages the add-on's configs, as its marks on one of the objects show.
func isManagedByOCM(definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	return len(addOn.Status.ConfigReferences) > 0 ||
		meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionConfigured) != nil ||
		len(definition.Status.DefaultConfigReferences) > 0 ||
		len(definition.Status.InstallProgressions) > 0
}

// resolvedByOCM returns the configs that OCM has resolved, in its order, with their desired hashes.
func resolvedByOCM(addOn *addonv1alpha1.ManagedClusterAddOn, resource upstream.ConfigGroupResource) []upstream.ConfigSpecHash {
	var found []upstream.ConfigSpecHash
	for _, reference := range addOn.Status.ConfigReferences {
		if reference.ConfigGroupResource == resource && reference.DesiredConfig != nil {
			found = append(found, *reference.DesiredConfig)
		}
	}
	return found
}

// resolvedHere returns the ManagedClusterAddOn's configs of that resource, else the definition's default.
func resolvedHere(
	definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn, resource upstream.ConfigGroupResource,
) []upstream.ConfigSpecHash {
	var found []upstream.ConfigSpecHash
	for _, config := range addOn.Spec.Configs {
		if config.ConfigGroupResource == resource {
			found = append(found, upstream.ConfigSpecHash{ConfigReferent: config.ConfigReferent})
		}
	}
	if len(found) > 0 {
		return found
	}
	for _, config := range definition.Spec.SupportedConfigs {
		if config.ConfigGroupResource == resource && config.DefaultConfig != nil {
			found = append(found, upstream.ConfigSpecHash{ConfigReferent: *config.DefaultConfig})
		}
	}
	return found
}

// DeploymentConfigHash returns the hash of an AddOnDeploymentConfig's spec, by which OCM detects changes.
func DeploymentConfigHash(config *addonv1alpha1.AddOnDeploymentConfig) string {
	spec, _ := json.Marshal(config.Spec) // plain data always encodes
	return fmt.Sprintf("%x", sha256.Sum256(spec))
}

// ConfigMapHash returns the hash of what a ConfigMap holds.
func ConfigMapHash(config *corev1.ConfigMap) string {
	held, _ := json.Marshal([]any{config.Labels[kudo.LabelConfiguration], config.Data, config.BinaryData}) // plain data always encodes
	return fmt.Sprintf("%x", sha256.Sum256(held))
}

// VersionHash returns the hash of an OperatorVersion. Its spec never changes, but a version that is deleted and pushed again has another
// hash.
func VersionHash(version *kudo.OperatorVersion) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(version.UID)))
}
