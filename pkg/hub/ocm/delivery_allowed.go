package ocm

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/install"
)

// isAllowed reports whether an AddOnDeploymentConfig may configure the agent of a cluster, and so choose the program that is an administrator of
// the cluster: the definition names it (nil if there is none), and it is not in the cluster's own namespace, where tenants write; or a
// pattern matches its NAMESPACE/NAME.
func isAllowed(cluster string, config types.NamespacedName, definition *addonv1alpha1.ClusterManagementAddOn, patterns []string) bool {
	matches := func(pattern string) bool {
		is, err := path.Match(pattern, config.String())
		return is && err == nil
	}
	named := install.Reference{Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs, NamespacedName: config}
	return slices.ContainsFunc(patterns, matches) ||
		config.Namespace != cluster && slices.Contains(install.References(definition, nil), named)
}

// refusedConfigError reports an AddOnDeploymentConfig that no administrator allows to configure the agent.
type refusedConfigError struct{ config types.NamespacedName }

func (e *refusedConfigError) Error() string {
	return fmt.Sprintf("AddOnDeploymentConfig %[1]s may not configure addon-agent, which stays as it is: remove it from spec.configs of the "+
		"add-on, or ask an administrator to allow it with addon-manager --agent-configs=%[1]s, or to name a copy that is in no cluster's "+
		"namespace in ClusterManagementAddOn %[2]s", e.config, addonv1alpha1.AgentAddOn)
}

// ParseConfigs returns the patterns in a comma-separated list of NAMESPACE/NAME, in both of which * matches any text.
func ParseConfigs(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	var patterns []string
	for pattern := range strings.SplitSeq(list, ",") {
		pattern = strings.TrimSpace(pattern)
		namespace, name, _ := strings.Cut(pattern, "/")
		if _, err := path.Match(pattern, ""); err != nil || namespace == "" || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("%q is not the NAMESPACE/NAME of an AddOnDeploymentConfig, or a pattern of it, such as tandem-system/*", pattern)
		}
		patterns = append(patterns, pattern)
	}
	return patterns, nil
}
