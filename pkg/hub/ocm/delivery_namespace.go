package ocm

import (
	"cmp"

	upstreamv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// The namespace that the manifests name, and where addon-agent runs unless an AddOnDeploymentConfig says otherwise; and what OCM's resource
// definition fills in where that names none, which nobody can tell from a choice.
const (
	agentNamespace      = "tandem-system"
	ocmInstallNamespace = "open-cluster-management-agent-addon"
)

// installNamespaceOf is where addon-agent runs on a managed cluster.
func installNamespaceOf(config upstreamv1beta1.AddOnDeploymentConfigSpec) string {
	if config.AgentInstallNamespace == ocmInstallNamespace {
		return agentNamespace
	}
	return cmp.Or(config.AgentInstallNamespace, agentNamespace)
}
