package install

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Namespaces decide where the configs of an add-on may be. AddOnDeploymentConfigs may be in the cluster's own namespace, and in namespaces
// that an administrator of the hub shares with all clusters: the hub reads them with its own permissions, and shows their values to everyone
// who may read the cluster's namespace, and the authors of a namespace must not decide what runs on another cluster.
type Namespaces struct {
	// Packages is the namespace of the OperatorVersions for all clusters. Its AddOnDeploymentConfigs are shared, too.
	Packages string
	// Configs are further namespaces with shared AddOnDeploymentConfigs.
	Configs []string
	// Existing describes the existing namespaces among ConfigNamespaces.
	Existing map[string]Namespace
	// Lenient accepts every namespace that belongs to no cluster: for previews, which do not know what addon-manager shares, and for addon-agent,
	// whose configs administrators allow one by one.
	Lenient bool
}

// Namespace describes a namespace on the hub.
type Namespace struct {
	// Cluster is true if the namespace belongs to a managed cluster, which may be detached.
	Cluster bool
	// Shared is true if an administrator shares its AddOnDeploymentConfigs.
	Shared bool
}

// The labels of the namespaces of managed clusters, which remain when a cluster is detached. OCM and manifests/cluster set the first one, and
// Red Hat's distribution of OCM the second one.
const (
	labelCluster        = "open-cluster-management.io/cluster-name"
	labelManagedCluster = "cluster.open-cluster-management.io/managedCluster"
)

// NamespaceOf returns what the labels of a namespace say.
func NamespaceOf(labels map[string]string) Namespace {
	_, is := labels[labelCluster]
	_, was := labels[labelManagedCluster]
	return Namespace{Cluster: is || was, Shared: labels[kudo.LabelSharedConfigs] == "true"}
}

// NamespaceLabels returns the labels that NamespaceOf reads; nil if there are none.
func NamespaceLabels(labels map[string]string) map[string]string {
	var kept map[string]string
	for _, label := range []string{labelCluster, labelManagedCluster, kudo.LabelSharedConfigs} {
		if value, found := labels[label]; found {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[label] = value
		}
	}
	return kept
}

// ConfigNamespaces returns the namespaces of all configs that the definition and the add-on (each may be nil) can resolve to, sorted,
// except for the add-on's own.
func ConfigNamespaces(definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn) []string {
	var namespaces []string
	for _, reference := range References(definition, addOn) {
		if reference.Namespace != "" && (addOn == nil || reference.Namespace != addOn.Namespace) {
			namespaces = append(namespaces, reference.Namespace)
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// ForeignConfigError reports an AddOnDeploymentConfig that add-ons of the cluster must not use. It is the same whether the config, its
// namespace or its cluster exists or not.
type ForeignConfigError struct {
	Config  types.NamespacedName
	Cluster string
}

func (e *ForeignConfigError) Error() string {
	return fmt.Sprintf("AddOnDeploymentConfig %s cannot be used on managed cluster %q: copy it to namespace %s, or ask an administrator of the hub "+
		"to share namespace %s (flag --config-namespaces of addon-manager, or label %s=true; namespaces of clusters cannot be shared)",
		e.Config, e.Cluster, e.Cluster, e.Config.Namespace, kudo.LabelSharedConfigs)
}

// CheckConfig returns a ForeignConfigError if the add-on must not use the AddOnDeploymentConfig. It may use a config that its definition, which
// may be nil, assigns to it: administrators of the hub write definitions.
func (n Namespaces) CheckConfig(
	definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn, config types.NamespacedName,
) error {
	if config.Namespace == addOn.Namespace || n.shares(config.Namespace) ||
		!n.Existing[config.Namespace].Cluster && (n.Lenient || isAssigned(definition, addOn, upstream.ConfigReferent(config))) {
		return nil
	}
	return &ForeignConfigError{Config: config, Cluster: addOn.Namespace}
}

// check returns an error if the add-on must not use the object of that resource.
func (n Namespaces) check(
	definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn, resource upstream.ConfigGroupResource,
	config types.NamespacedName,
) error {
	if resource == configMaps {
		return n.checkConfigMap(addOn.Namespace, config)
	}
	return n.CheckConfig(definition, addOn, config)
}

// checkConfigMap returns an error if add-ons of the cluster must not use the ConfigMap. A namespace is not enough to share it, as with
// AddOnDeploymentConfigs: many more users may write ConfigMaps.
func (n Namespaces) checkConfigMap(cluster string, config types.NamespacedName) error {
	if config.Namespace == cluster || !n.Existing[config.Namespace].Cluster && (n.Lenient || config.Namespace == n.Packages) {
		return nil
	}
	return fmt.Errorf("ConfigMap %s cannot be used on managed cluster %q: copy it to namespace %s, or to %s for all clusters",
		config, cluster, cluster, cmp.Or(n.Packages, "that of the packages"))
}

// strict returns the namespaces, not lenient.
func (n Namespaces) strict() Namespaces {
	n.Lenient = false
	return n
}

// shares reports whether the add-ons of all clusters may use the AddOnDeploymentConfigs in the namespace.
func (n Namespaces) shares(namespace string) bool {
	existing := n.Existing[namespace]
	return !existing.Cluster && (existing.Shared || namespace == n.Packages || slices.Contains(n.Configs, namespace))
}

// isAssigned reports whether the AddOnDeploymentConfig is the definition's default, or one of its Placements' that the add-on does not name
// itself: a config for some clusters is not for the others, which may name it.
func isAssigned(
	definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn, referent upstream.ConfigReferent,
) bool {
	if definition == nil {
		return false
	}
	for _, supported := range definition.Spec.SupportedConfigs {
		if supported.ConfigGroupResource == deploymentConfigs && supported.DefaultConfig != nil && *supported.DefaultConfig == referent {
			return true
		}
	}
	return !namesItself(addOn, deploymentConfigs, referent) && isPlaced(definition, referent)
}

// isPlaced reports whether the AddOnDeploymentConfig is for a Placement of the definition, or was before a rollout that OCM has not finished.
func isPlaced(definition *addonv1alpha1.ClusterManagementAddOn, referent upstream.ConfigReferent) bool {
	for _, placement := range definition.Spec.InstallStrategy.Placements {
		if slices.Contains(placement.Configs, upstream.AddOnConfig{ConfigGroupResource: deploymentConfigs, ConfigReferent: referent}) {
			return true
		}
	}
	for _, progression := range definition.Status.InstallProgressions {
		for _, r := range progression.ConfigReferences {
			configs := []*upstream.ConfigSpecHash{r.DesiredConfig, r.LastKnownGoodConfig, r.LastAppliedConfig}
			if r.ConfigGroupResource == deploymentConfigs && slices.ContainsFunc(configs, func(c *upstream.ConfigSpecHash) bool {
				return c != nil && c.ConfigReferent == referent
			}) {
				return true
			}
		}
	}
	return false
}

// checkVersion returns an error if agents of the cluster may not read OperatorVersions in the namespace.
func (n Namespaces) checkVersion(cluster string, version upstream.ConfigReferent) error {
	if MayRead(cluster, version.Namespace, n.Packages) {
		return nil
	}
	return fmt.Errorf("OperatorVersion %q is in namespace %q, which agents are not allowed to read: push it to %s, or to %s for this cluster only",
		version.Name, version.Namespace, n.Packages, cluster)
}

// AdmitAddOn returns why a write of a ManagedClusterAddOn is rejected: it adds a config that the cluster must not use. before is nil on
// create, definition if there is none. Existing references pass: condition Resolved reports them, and every other change of the add-on must
// be possible.
func AdmitAddOn(
	definition *addonv1alpha1.ClusterManagementAddOn, before, after *addonv1alpha1.ManagedClusterAddOn, namespaces Namespaces,
) error {
	var existing []upstream.AddOnConfig
	if before != nil {
		existing = before.Spec.Configs
	}
	var problems []string
	for _, config := range addedConfigs(existing, after.Spec.Configs) {
		var err error
		switch {
		case config.Namespace == "": // condition Resolved reports it
		case config.ConfigGroupResource == operatorVersions:
			err = namespaces.checkVersion(after.Namespace, config.ConfigReferent)
		default:
			err = namespaces.check(definition, after, config.ConfigGroupResource, types.NamespacedName(config.ConfigReferent))
		}
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("ManagedClusterAddOn %s/%s: spec.configs: %s", after.Namespace, after.Name,
		strings.Join(text.Limit(problems, problemLimit, "more problems"), "; "))
}

// AdmitInstallNamespace returns why a write of a ManagedClusterAddOn is rejected: it sets a reserved install namespace. before is nil on create.
func AdmitInstallNamespace(before, after *addonv1alpha1.ManagedClusterAddOn, namespaces []string) error {
	namespace := after.Spec.InstallNamespace
	if !slices.Contains(namespaces, namespace) || before != nil && before.Spec.InstallNamespace == namespace {
		return nil
	}
	return fmt.Errorf("ManagedClusterAddOn %s/%s: spec.installNamespace: %s", after.Namespace, after.Name, reservedProblem(namespace, "use another one").Message)
}

// AdmitDefinition returns warnings about configs in the namespaces of clusters that a write of a ClusterManagementAddOn adds, as defaults
// or for a Placement. It rejects none: the cluster itself may use them, and every other one reports them in condition Resolved. before is
// nil on create.
func AdmitDefinition(before, after *addonv1alpha1.ClusterManagementAddOn, namespaces Namespaces) []string {
	var existing []upstream.AddOnConfig
	if before != nil {
		existing = configsOfDefinition(before)
	}
	var warnings []string
	for _, config := range addedConfigs(existing, configsOfDefinition(after)) {
		if namespaces.Existing[config.Namespace].Cluster {
			warnings = append(warnings, fmt.Sprintf("%s %s belongs to managed cluster %q, and the add-on is invalid on every other cluster "+
				"that gets it: move it to a namespace that belongs to no cluster",
				kindOf(config), types.NamespacedName(config.ConfigReferent), config.Namespace))
		}
	}
	return warnings
}

// addedConfigs returns the configs in after that Tandem reads and before lacks, without duplicates.
func addedConfigs(before, after []upstream.AddOnConfig) []upstream.AddOnConfig {
	var found []upstream.AddOnConfig
	for _, config := range after {
		if kindOf(config) != "" && !slices.Contains(before, config) && !slices.Contains(found, config) {
			found = append(found, config)
		}
	}
	return found
}
