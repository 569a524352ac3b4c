package hubclient

import (
	"cmp"

	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// AgentNamespace is where addon-agent runs on managed clusters, and addon-manager on the hub, unless --namespace says otherwise.
const AgentNamespace = "tandem-system"

// ManagerNamespace is where addon-manager is, unless --namespace says otherwise.
func ManagerNamespace(flags *genericclioptions.ConfigFlags) string {
	return cmp.Or(*flags.Namespace, AgentNamespace)
}
