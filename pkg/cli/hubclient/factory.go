package hubclient

import (
	"cmp"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// AgentNamespace is the default namespace of addon-agent on managed clusters and of addon-manager on the hub.
const AgentNamespace = "tandem-system"

// Factory holds the inputs of every command: the streams, the connection flags for the hub, and the plugin's version.
type Factory struct {
	genericiooptions.IOStreams
	Flags   *genericclioptions.ConfigFlags
	Version string
}

// Hub connects to the hub.
func (f *Factory) Hub() (Hub, error) { return connect(f.Flags, f.ErrOut) }

// ManagerNamespace returns the namespace of addon-manager.
func (f *Factory) ManagerNamespace() string { return cmp.Or(*f.Flags.Namespace, AgentNamespace) }
