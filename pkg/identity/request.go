package identity

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/ptr"
)

// Shortest is the shortest certificate lifetime that API servers accept in a request.
const Shortest = 10 * time.Minute

// BootstrapLifetime is the requested lifetime of the certificate that an agent starts with after its cluster has joined.
const BootstrapLifetime = 24 * time.Hour

// RequestedLifetime is the key that marks the Secret of a bootstrap certificate. Its value is the requested lifetime of the certificate that
// replaces it, for a key that the agent generates.
const RequestedLifetime = "requested-lifetime"

// NewRequest returns a new private key (PEM), and the request for a certificate of the cluster's agent with that lifetime.
func NewRequest(cluster string, lifetime time.Duration) (key []byte, request *certificatesv1.CertificateSigningRequest, err error) {
	if key, err = keyutil.MakeEllipticPrivateKeyPEM(); err != nil {
		return nil, nil, fmt.Errorf("generating a key: %w", err)
	}
	signer, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		return nil, nil, fmt.Errorf("generating a key: %w", err)
	}
	encoded, err := certutil.MakeCSR(signer, &pkix.Name{CommonName: User(cluster), Organization: Groups(cluster)}, nil, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("requesting a certificate: %w", err)
	}
	return key, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "tandem-" + cluster + "-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:           encoded,
			SignerName:        certificatesv1.KubeAPIServerClientSignerName,
			ExpirationSeconds: ptr.To(int32(max(lifetime, Shortest) / time.Second)),
			Usages:            []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, nil
}

// Problem returns why a request asks for more, or for something else, than a client certificate of exactly that user and those groups; empty
// if it does not. Any other group, such as one of another cluster, would be an additional permission. The DNS names, which are never resolved,
// are permitted in addition.
func Problem(csr *certificatesv1.CertificateSigningRequest, user string, groups []string, dnsNames ...string) string {
	switch {
	case csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName:
		return "it is for another signer"
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
	case slices.ContainsFunc(request.DNSNames, func(n string) bool { return !slices.Contains(dnsNames, n) }),
		len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs) > 0:
		return "it has other names besides the user"
	}
	return ""
}

// authenticated is a group that every user is in. OCM's older klusterlets request it by name.
const authenticated = "system:authenticated"

// clientOnly reports whether usages are those of a client certificate.
func clientOnly(usages []certificatesv1.KeyUsage) bool {
	client := []certificatesv1.KeyUsage{
		certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment,
	}
	return slices.Contains(usages, certificatesv1.UsageClientAuth) &&
		!slices.ContainsFunc(usages, func(u certificatesv1.KeyUsage) bool { return !slices.Contains(client, u) })
}

// RenewAt returns when a certificate is to be renewed: after two thirds of its life.
func RenewAt(certificate *x509.Certificate) time.Time {
	return certificate.NotBefore.Add(certificate.NotAfter.Sub(certificate.NotBefore) / 3 * 2)
}
