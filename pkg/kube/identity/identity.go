// Package identity defines who the agent of a managed cluster is on the hub: its user and groups, which are those of OCM's add-on agents, and
// the requests for its certificate. Only Sign does I/O.
package identity

import "strings"

// The parts of an agent's user and groups. RBAC, flow schemas and admission policies name them, too.
const (
	prefix = "system:open-cluster-management:"
	suffix = ":addon:tandem"
	agent  = ":agent:addon-agent"
)

// User returns the agent's user on the hub.
func User(cluster string) string { return group(cluster) + agent }

// Groups returns the agent's groups on the hub: that of the agents of its cluster, and that of the agents of all clusters.
func Groups(cluster string) []string { return []string{group(cluster), prefix + "addon:tandem"} }

// ClusterOf returns the cluster whose agent the user is.
func ClusterOf(user string) (cluster string, isAgent bool) {
	cluster, found := strings.CutPrefix(user, prefix+"cluster:")
	cluster, isAgent = strings.CutSuffix(cluster, suffix+agent)
	return cluster, found && isAgent && cluster != "" && !strings.Contains(cluster, ":")
}

func group(cluster string) string { return prefix + "cluster:" + cluster + suffix }
