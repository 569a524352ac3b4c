package install

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Namespaces decide where the configs of an add-on may be. AddOnDeploymentConfigs may be in the cluster's own namespace, and in namespaces
// that belong to no other cluster: the hub reads them with its own permissions, and shows their values to everyone who may read the
// cluster's namespace, and the authors of a namespace must not decide what runs on another cluster.
type Namespaces struct {
	// Packages is the namespace of the OperatorVersions for all clusters.
	Packages string
	// Clusters are the namespaces among ConfigNamespaces that belong to a managed cluster.
	Clusters map[string]bool
}

// ConfigNamespaces returns the namespaces of all configs that the definition and the add-on (each may be nil) can resolve to, sorted,
// except for the add-on's own.
func ConfigNamespaces(definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn) []string {
	var namespaces []string
	for _, reference := range Named(definition, addOn) {
		if reference.Namespace != "" && (addOn == nil || reference.Namespace != addOn.Namespace) {
			namespaces = append(namespaces, reference.Namespace)
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// ForeignConfigError reports a config that is in the namespace of another cluster than the one that is to use it.
type ForeignConfigError struct {
	Kind    string
	Config  types.NamespacedName
	Cluster string
}

func (e *ForeignConfigError) Error() string {
	return fmt.Sprintf("%s %s belongs to managed cluster %q and cannot be used on another cluster: copy it to namespace %s, or to one that "+
		"belongs to no cluster", e.Kind, e.Config, e.Config.Namespace, e.Cluster)
}

// CheckNamespace returns a ForeignConfigError if an AddOnDeploymentConfig is in the namespace of another of the clusters.
func CheckNamespace(cluster string, config types.NamespacedName, clusters map[string]bool) error {
	return checkNamespace(cluster, clusters, upstream.AddOnConfig{
		ConfigGroupResource: deploymentConfigs, ConfigReferent: upstream.ConfigReferent(config),
	})
}

func checkNamespace(cluster string, clusters map[string]bool, config upstream.AddOnConfig) error {
	if config.Namespace == cluster || !clusters[config.Namespace] {
		return nil
	}
	return &ForeignConfigError{Kind: kindOf(config), Config: types.NamespacedName(config.ConfigReferent), Cluster: cluster}
}

// AdmitAddOn returns why a write of a ManagedClusterAddOn is rejected: it adds a config in the namespace of another cluster. before is nil
// on create. Existing references pass: condition Resolved reports them, and every other change of the add-on must be possible.
func AdmitAddOn(before, after *addonv1alpha1.ManagedClusterAddOn, clusters map[string]bool) error {
	var existing []upstream.AddOnConfig
	if before != nil {
		existing = before.Spec.Configs
	}
	var problems []string
	for _, config := range added(existing, after.Spec.Configs) {
		if err := checkNamespace(after.Namespace, clusters, config); err != nil {
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
	return fmt.Errorf("ManagedClusterAddOn %s/%s: spec.installNamespace: %s", after.Namespace, after.Name, reserved(namespace, "use another one").Message)
}

// AdmitDefinition returns warnings about configs in the namespaces of clusters that a write of a ClusterManagementAddOn adds, as defaults
// or for a Placement. It rejects none: the cluster itself may use them, and every other one reports them in condition Resolved. before is
// nil on create.
func AdmitDefinition(before, after *addonv1alpha1.ClusterManagementAddOn, clusters map[string]bool) []string {
	var existing []upstream.AddOnConfig
	if before != nil {
		existing = configsOfDefinition(before)
	}
	var warnings []string
	for _, config := range added(existing, configsOfDefinition(after)) {
		if clusters[config.Namespace] {
			warnings = append(warnings, fmt.Sprintf("%s %s belongs to managed cluster %q, and the add-on is invalid on every other cluster "+
				"that gets it: move it to a namespace that belongs to no cluster",
				kindOf(config), types.NamespacedName(config.ConfigReferent), config.Namespace))
		}
	}
	return warnings
}

// added returns the configs in after that Tandem reads and before lacks, without duplicates.
func added(before, after []upstream.AddOnConfig) []upstream.AddOnConfig {
	var found []upstream.AddOnConfig
	for _, config := range after {
		if kindOf(config) != "" && !slices.Contains(before, config) && !slices.Contains(found, config) {
			found = append(found, config)
		}
	}
	return found
}
