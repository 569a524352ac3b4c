package rights

// SystemNamespace is the namespace of the cluster's own components, and AgentNamespace that of addon-agent in its manifests. By default,
// agents apply nothing to either.
const (
	SystemNamespace = "kube-system"
	AgentNamespace  = "tandem-system"
)
