package ocm

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// authenticated is a group that everybody is in; OCM's older klusterlets ask for it by name.
const authenticated = "system:authenticated"

// agentDNSName is what OCM's klusterlet writes into every request for addon-agent; nothing is reached by that name.
const agentDNSName = addonv1alpha1.AgentAddOn + ".addon.open-cluster-management.io"

// csrFault says why a request for a certificate is not that of the klusterlet of a managed cluster for its addon-agent; empty if it is.
// The user and the groups are what the agent is to be on the hub, exactly: any other group, such as that of another cluster, would be a
// right that nobody has given it.
func csrFault(csr *certificatesv1.CertificateSigningRequest, cluster, user string, groups []string) string {
	switch {
	case csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName:
		return "it is for another signer"
	case !isKlusterlet(csr.Spec.Username, cluster):
		return "it comes from somebody else than the cluster's klusterlet"
	case !clientOnly(csr.Spec.Usages):
		return "it is for more than a client"
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
		return "it has names beside the user"
	}
	return ""
}

// isKlusterlet reports whether a user of the hub is the registration agent of that cluster: system:open-cluster-management:CLUSTER:AGENT.
// One whose cluster's name only begins alike is not, nor is an add-on's agent, whatever a cluster may be called.
func isKlusterlet(user, cluster string) bool {
	agent, found := strings.CutPrefix(user, "system:open-cluster-management:"+cluster+":")
	return found && agent != "" && !strings.Contains(agent, ":")
}

// clientOnly reports whether usages are those of a client's certificate.
func clientOnly(usages []certificatesv1.KeyUsage) bool {
	client := []certificatesv1.KeyUsage{
		certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment,
	}
	return slices.Contains(usages, certificatesv1.UsageClientAuth) &&
		!slices.ContainsFunc(usages, func(u certificatesv1.KeyUsage) bool { return !slices.Contains(client, u) })
}
