package identity_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/tandem-addons/tandem/pkg/kube/identity"
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

func TestARequestIsReadAsItIsEncoded(t *testing.T) {
	const name = "tandem.addon.open-cluster-management.io"
	user, groups := identity.User("cluster1"), identity.Groups("cluster1")
	attribute := func(number int, value any) pkix.AttributeTypeAndValue {
		return pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, number}, Value: value}
	}
	subject := func(more ...pkix.AttributeTypeAndValue) pkix.RDNSequence {
		sequence := pkix.RDNSequence{{attribute(10, groups[0]), attribute(10, groups[1])}, {attribute(3, user)}}
		for _, a := range more {
			sequence = append(sequence, pkix.RelativeDistinguishedNameSET{a})
		}
		return sequence
	}
	names := func(values ...asn1.RawValue) []pkix.Extension {
		encoded, err := asn1.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		return []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: encoded}}
	}
	dns := asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 2, Bytes: []byte(name)}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		subject    pkix.RDNSequence
		extensions []pkix.Extension
		after      string
		want       string
	}{
		"as the agent makes it":       {subject: subject()},
		"with groups one by one":      {subject: pkix.RDNSequence{{attribute(10, groups[0])}, {attribute(3, user)}, {attribute(10, groups[1])}}},
		"with the group of all users": {subject: subject(attribute(10, "system:authenticated"))},
		"as the klusterlet makes it":  {subject: subject(), extensions: names(dns)},
		"with two users": {subject: append(pkix.RDNSequence{{attribute(3, identity.User("cluster2"))}}, subject()...),
			want: "it names another user"},
		"with the same user twice": {subject: subject(attribute(3, user)), want: "it names another user"},
		"with a group twice":       {subject: subject(attribute(10, groups[0])), want: "it names other groups"},
		"with the users' group and masters": {subject: subject(attribute(10, "system:masters")),
			want: "it names other groups"},
		"with a unit": {subject: subject(attribute(11, "system:masters")), want: "its subject has other attributes than a user and groups"},
		"with a user that is a number": {subject: pkix.RDNSequence{{attribute(10, groups[0]), attribute(10, groups[1])}, {attribute(3, 1)}},
			want: "its subject has other attributes than a user and groups"},
		"of a CA": {subject: subject(), extensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true,
			Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}}}, want: "it has other extensions than names of the user"},
		"with a name of a directory": {subject: subject(), extensions: names(dns, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 4, IsCompound: true,
			Bytes: []byte{0x30, 0x00}}), want: "it has other extensions than names of the user"},
		"with an address": {subject: subject(), extensions: names(dns, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 7, Bytes: []byte{10, 0, 0, 1}}),
			want: "it has other extensions than names of the user"},
		"with another DNS name": {subject: subject(), extensions: names(asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 2, Bytes: []byte("hub")}),
			want: "it has other names besides the user"},
		"with a second request": {subject: subject(), after: "-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n", want: "it cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := asn1.Marshal(test.subject)
			if err != nil {
				t.Fatal(err)
			}
			encoded, err := x509.CreateCertificateRequest(nil, &x509.CertificateRequest{RawSubject: raw, ExtraExtensions: test.extensions}, key)
			if err != nil {
				t.Fatal(err)
			}
			_, request, err := identity.NewRequest("cluster1", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			request.Spec.Request = append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: encoded}), test.after...)
			if got := identity.Problem(request, user, groups, "tandem.addon.open-cluster-management.io"); got != test.want {
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
