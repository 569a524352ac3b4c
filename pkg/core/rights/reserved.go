package rights

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
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

// WrittenReserved returns the sorted reserved namespaces that permissions allow to write to, other than that of an Instance.
func WrittenReserved(permissions *kudo.Permissions) []string {
	if permissions == nil {
		return nil
	}
	reads := func(verb string) bool { return slices.Contains([]string{"get", "list", "watch"}, verb) }
	var written []string
	for _, in := range permissions.Namespaces {
		writes := slices.ContainsFunc(in.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !reads(verb) })
		})
		if writes && slices.Contains(ReservedNamespaces(AgentNamespace), in.Name) {
			written = append(written, in.Name)
		}
	}
	slices.Sort(written)
	return written
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
