package ocm

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// authenticated is a group that every user is in. OCM's older klusterlets request it by name.
const authenticated = "system:authenticated"

// agentDNSName is the name that OCM's klusterlet writes into every request for addon-agent. It is never resolved.
const agentDNSName = addonv1alpha1.AgentAddOn + ".addon.open-cluster-management.io"

// csrProblem returns why a certificate request was not made by the klusterlet of a managed cluster for its addon-agent; empty if it was. The
// user and the groups must match the agent's identity on the hub exactly: any other group, such as one of another cluster, would be an
// additional permission.
func csrProblem(csr *certificatesv1.CertificateSigningRequest, cluster, user string, groups []string) string {
	switch {
	case csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName:
		return "it is for another signer"
	case !isKlusterlet(csr.Spec.Username, cluster):
		return "it was not created by the cluster's klusterlet"
	case !clientOnly(csr.Spec.Usages):
		return "its usages exceed those of a client certificate"
	}
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return "it cannot be read"
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return "it cannot be read"
	}
	asked := slices.DeleteFunc(slices.Clone(request.Subject.Organization), func(g string) bool { return g == authenticated })
	slices.Sort(asked)
	switch {
	case request.Subject.CommonName != user:
		return "it names another user"
	case !slices.Equal(asked, slices.Sorted(slices.Values(groups))):
		return "it names other groups"
	case slices.ContainsFunc(request.DNSNames, func(n string) bool { return n != agentDNSName }),
		len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs) > 0:
		return "it has other names besides the user"
	}
	return ""
}

// isKlusterlet reports whether a user of the hub is the registration agent of that cluster: system:open-cluster-management:CLUSTER:AGENT.
// It rejects clusters whose name only shares a prefix, and the agents of add-ons, whatever the name of a cluster.
func isKlusterlet(user, cluster string) bool {
	agent, found := strings.CutPrefix(user, "system:open-cluster-management:"+cluster+":")
	return found && agent != "" && !strings.Contains(agent, ":")
}

// clientOnly reports whether usages are those of a client certificate.
func clientOnly(usages []certificatesv1.KeyUsage) bool {
	client := []certificatesv1.KeyUsage{
		certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment,
	}
	return slices.Contains(usages, certificatesv1.UsageClientAuth) &&
		!slices.ContainsFunc(usages, func(u certificatesv1.KeyUsage) bool { return !slices.Contains(client, u) })
}
