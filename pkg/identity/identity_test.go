package identity_test

import (
	"crypto/x509"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/tandem-addons/tandem/pkg/identity"
)

func TestClusterOf(t *testing.T) {
	for user, want := range map[string]string{
		identity.User("cluster1"): "cluster1",
		"system:open-cluster-management:cluster:c.1:addon:tandem:agent:addon-agent":        "c.1",
		"system:open-cluster-management:cluster::addon:tandem:agent:addon-agent":           "",
		"system:open-cluster-management:cluster:a:b:addon:tandem:agent:addon-agent":        "",
		"system:open-cluster-management:cluster:cluster1:addon:other:agent:addon-agent":    "",
		"system:open-cluster-management:cluster:cluster1:addon:tandem:agent:another-agent": "",
		"system:open-cluster-management:cluster1:agent":                                    "",
		"kubernetes-admin": "",
	} {
		cluster, isAgent := identity.ClusterOf(user)
		if isAgent != (want != "") || isAgent && cluster != want {
			t.Errorf("%s is the agent of %q: %t, want %q", user, cluster, isAgent, want)
		}
	}
}

func TestARequestHasExactlyTheIdentityOfItsCluster(t *testing.T) {
	_, request, err := identity.NewRequest("cluster1", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if got := *request.Spec.ExpirationSeconds; got != 600 {
		t.Errorf("it requests %d s, want the shortest lifetime that is accepted", got)
	}
	for name, test := range map[string]struct {
		change func(*certificatesv1.CertificateSigningRequest)
		groups []string
		user   string
		want   string
	}{
		"its own":        {user: identity.User("cluster1"), groups: identity.Groups("cluster1")},
		"another user":   {user: identity.User("cluster2"), groups: identity.Groups("cluster1"), want: "it names another user"},
		"other groups":   {user: identity.User("cluster1"), groups: identity.Groups("cluster2"), want: "it names other groups"},
		"another signer": {func(r *certificatesv1.CertificateSigningRequest) { r.Spec.SignerName = "example.com/any" }, nil, "", "it is for another signer"},
		"a server's": {func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
		}, nil, "", "its usages exceed those of a client certificate"},
		"none": {func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Request = []byte("x") }, nil, "", "it cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := request.DeepCopy()
			if test.change != nil {
				test.change(changed)
			}
			if got := identity.Problem(changed, test.user, test.groups); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestACertificateIsRenewedAfterTwoThirdsOfItsLife(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	got := identity.RenewAt(&x509.Certificate{NotBefore: noon, NotAfter: noon.Add(90 * time.Minute)})
	if want := noon.Add(time.Hour); !got.Equal(want) {
		t.Errorf("it is renewed at %s, want %s", got, want)
	}
}
