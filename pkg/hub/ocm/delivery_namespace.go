package ocm

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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

// namespaceOf returns the namespace of the agent in manifests; empty if they are none.
func namespaceOf(manifests []runtime.Object) string {
	for _, m := range manifests {
		if object, is := m.(*unstructured.Unstructured); is && object.GetKind() == "Deployment" {
			return object.GetNamespace()
		}
	}
	return ""
}
