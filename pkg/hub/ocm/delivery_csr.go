package ocm

import (
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/identity"
)

// agentDNSName is the name that OCM's klusterlet writes into every request for addon-agent. It is never resolved.
const agentDNSName = addonv1alpha1.AgentAddOn + ".addon.open-cluster-management.io"

// csrProblem returns why a certificate request was not made by the klusterlet of a managed cluster for its addon-agent; empty if it was. The
// user and the groups must match the agent's identity on the hub exactly.
func csrProblem(csr *certificatesv1.CertificateSigningRequest, cluster, user string, groups []string) string {
	if !isKlusterlet(csr.Spec.Username, cluster) {
		return "it was not created by the cluster's klusterlet"
	}
	return identity.Problem(csr, user, groups, agentDNSName)
}

// isKlusterlet reports whether a user of the hub is the registration agent of that cluster: system:open-cluster-management:CLUSTER:AGENT.
// It rejects clusters whose name only shares a prefix, and the agents of add-ons, whatever the name of a cluster.
func isKlusterlet(user, cluster string) bool {
	agent, found := strings.CutPrefix(user, "system:open-cluster-management:"+cluster+":")
	return found && agent != "" && !strings.Contains(agent, ":")
}
