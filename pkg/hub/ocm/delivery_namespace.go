package ocm

import (
	"cmp"

	upstreamv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// The namespace in the manifests, where addon-agent runs unless an AddOnDeploymentConfig sets another one; and OCM's CRD default, which
// cannot be distinguished from an explicit value.
const (
	agentNamespace      = "tandem-system"
	ocmInstallNamespace = "open-cluster-management-agent-addon"
)

// installNamespaceOf returns the namespace of addon-agent on a managed cluster.
func installNamespaceOf(config upstreamv1beta1.AddOnDeploymentConfigSpec) string {
	if config.AgentInstallNamespace == ocmInstallNamespace {
		return agentNamespace
	}
	return cmp.Or(config.AgentInstallNamespace, agentNamespace)
}
