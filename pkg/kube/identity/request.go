package identity

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
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

// MinLifetime is the shortest certificate lifetime that API servers accept in a request.
const MinLifetime = 10 * time.Minute

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
			ExpirationSeconds: ptr.To(int32(max(lifetime, MinLifetime) / time.Second)),
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
	request := decode(csr.Spec.Request)
	if request == nil {
		return "it cannot be read"
	}
	users, asked, other := attributes(request.Subject)
	switch {
	case other:
		return "its subject has other attributes than a user and groups"
	case !slices.Equal(users, []string{user}):
		return "it names another user"
	case !slices.Equal(asked, slices.Sorted(slices.Values(groups))):
		return "it names other groups"
	case slices.ContainsFunc(request.DNSNames, func(n string) bool { return !slices.Contains(dnsNames, n) }):
		return "it has other names besides the user"
	case !namesOnly(request):
		return "it has other extensions than names of the user"
	}
	return ""
}

// decode returns the only request in PEM blocks; nil if there are others, or none that can be read.
func decode(blocks []byte) *x509.CertificateRequest {
	block, rest := pem.Decode(blocks)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(bytes.TrimSpace(rest)) > 0 {
		return nil
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil
	}
	return request
}

// The attributes of a subject that are the user and its groups, and the extension with further names.
var (
	commonName   = asn1.ObjectIdentifier{2, 5, 4, 3}
	organization = asn1.ObjectIdentifier{2, 5, 4, 10}
	subjectNames = asn1.ObjectIdentifier{2, 5, 29, 17}
)

// attributes returns all users, and the sorted groups, that a subject names as it is encoded: a signer may copy it as it is, and of several
// users, clients differ in which one counts. other reports whether it has more attributes.
func attributes(subject pkix.Name) (users, groups []string, other bool) {
	for _, attribute := range subject.Names {
		value, isText := attribute.Value.(string)
		switch {
		case isText && attribute.Type.Equal(commonName):
			users = append(users, value)
		case !isText || !attribute.Type.Equal(organization):
			other = true
		case value != authenticated:
			groups = append(groups, value)
		}
	}
	slices.Sort(groups)
	return users, groups, other
}

// namesOnly reports whether the extensions that are requested are at most one with exactly the DNS names of the request.
func namesOnly(request *x509.CertificateRequest) bool {
	if len(request.Extensions) == 0 {
		return true
	}
	names := make([]asn1.RawValue, 0, len(request.DNSNames))
	for _, name := range request.DNSNames {
		names = append(names, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 2, Bytes: []byte(name)})
	}
	encoded, err := asn1.Marshal(names)
	return err == nil && len(request.Extensions) == 1 && request.Extensions[0].Id.Equal(subjectNames) &&
		bytes.Equal(request.Extensions[0].Value, encoded)
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
