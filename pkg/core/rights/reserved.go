package rights

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// SystemNamespace is the namespace of the cluster's own components, and AgentNamespace that of addon-agent in its manifests.
const (
	SystemNamespace = "kube-system"
	AgentNamespace  = "tandem-system"
)

// ReservedNamespaces returns the namespaces that Kubernetes and OCM create for their own components, and that of the agent. Unless they are
// allowed, Instances are not installed there, packages apply no objects to them, and Instances name none of their service accounts and
// Secrets.
func ReservedNamespaces(agent string) []string {
	return []string{SystemNamespace, "kube-public", "kube-node-lease", "open-cluster-management-agent", "open-cluster-management-hub", agent}
}

// ReservedExcept returns the namespaces that are reserved on clusters whose agents are in AgentNamespace, without the allowed ones.
func ReservedExcept(allowed []string) []string {
	return slices.DeleteFunc(ReservedNamespaces(AgentNamespace), func(namespace string) bool { return slices.Contains(allowed, namespace) })
}

// ParseNamespaces parses a comma-separated list of namespaces.
func ParseNamespaces(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return nil, fmt.Errorf("%q is not the name of a namespace", name)
		}
		names = append(names, name)
	}
	return names, nil
}
