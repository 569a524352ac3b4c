package ocm

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
)

func TestCSRFault(t *testing.T) {
	const user = "system:open-cluster-management:cluster:cluster1:addon:tandem:agent:addon-agent"
	groups := []string{"system:open-cluster-management:cluster:cluster1:addon:tandem", "system:open-cluster-management:addon:tandem"}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	asking := func(subject pkix.Name, names ...string) []byte {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject, DNSNames: names}, key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	}
	named := func(name string, in ...string) func(*certificatesv1.CertificateSigningRequest) {
		return func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Request = asking(pkix.Name{CommonName: name, Organization: in})
		}
	}
	from := func(name string) func(*certificatesv1.CertificateSigningRequest) {
		return func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Username = name }
	}
	with := func(more string) []string { return append([]string{more}, groups...) }

	for name, test := range map[string]struct {
		change func(*certificatesv1.CertificateSigningRequest)
		want   string
	}{
		"the klusterlet's for its agent":            {func(*certificatesv1.CertificateSigningRequest) {}, ""},
		"an older klusterlet's":                     {named(user, with("system:authenticated")...), ""},
		"another cluster's whose name begins alike": {from("system:open-cluster-management:cluster10:agent"), "it was not created by the cluster's klusterlet"},
		"an add-on's agent's":                       {from(user), "it was not created by the cluster's klusterlet"},
		"a user's of the cluster's name alone":      {from("system:open-cluster-management:cluster1"), "it was not created by the cluster's klusterlet"},
		"a klusterlet's without a name":             {from("system:open-cluster-management:cluster1:"), "it was not created by the cluster's klusterlet"},
		"for another user":                          {named("kubernetes-admin", groups...), "it names another user"},
		"for administrators":                        {named(user, with("system:masters")...), "it names other groups"},
		"for another cluster's agents beside its own": {
			named(user, with("system:open-cluster-management:cluster:cluster2:addon:tandem")...), "it names other groups"},
		"for no groups":  {named(user), "it names other groups"},
		"for one group":  {named(user, groups[0]), "it names other groups"},
		"that is broken": {func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Request = []byte("x") }, "it cannot be read"},
		"that is no request": {func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")})
		}, "it cannot be read"},
		"for another signer": {func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.SignerName = certificatesv1.KubeletServingSignerName
		}, "it is for another signer"},
		"for a server": {func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
		}, "its usages exceed those of a client certificate"},
		"for nothing": {func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Usages = nil }, "its usages exceed those of a client certificate"},
		"with the name that OCM gives it": {func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Request = asking(pkix.Name{CommonName: user, Organization: groups}, "tandem.addon.open-cluster-management.io")
		}, ""},
		"with names of hosts": {func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Request = asking(pkix.Name{CommonName: user, Organization: groups}, "hub.example")
		}, "it has other names besides the user"},
	} {
		t.Run(name, func(t *testing.T) {
			request := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: certificatesv1.KubeAPIServerClientSignerName,
				Username:   "system:open-cluster-management:cluster1:2x7hw",
				Usages: []certificatesv1.KeyUsage{
					certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth,
				},
				Request: asking(pkix.Name{CommonName: user, Organization: groups}),
			}}
			test.change(request)
			if got := csrProblem(request, "cluster1", user, groups); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
