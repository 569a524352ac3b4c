package hubclient

import (
	"cmp"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// AgentNamespace is where addon-agent runs on managed clusters, and addon-manager on the hub, unless --namespace says otherwise.
const AgentNamespace = "tandem-system"

// Factory is what every command is made with: where it reads and prints, the flags that lead to the hub, and the plugin's version.
type Factory struct {
	genericiooptions.IOStreams
	Flags   *genericclioptions.ConfigFlags
	Version string
}

// Hub connects to the hub.
func (f *Factory) Hub() (Hub, error) { return connect(f.Flags, f.ErrOut) }

// ManagerNamespace is where addon-manager is, unless --namespace says otherwise.
func (f *Factory) ManagerNamespace() string { return cmp.Or(*f.Flags.Namespace, AgentNamespace) }
