package sandbox

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestClientCertificateNamesUserAndGroups(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ca, err := newAuthority("cluster1", now)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.client(identity{User: "jane", Groups: []string{"readers", "writers"}}, now)
	if err != nil {
		t.Fatal(err)
	}
	leaf := parseLeaf(t, pair)
	got := identity{User: leaf.Subject.CommonName, Groups: leaf.Subject.Organization}
	if diff := cmp.Diff(identity{User: "jane", Groups: []string{"readers", "writers"}}, got); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
	verify(t, ca, leaf, x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, CurrentTime: now})
}

func TestServingCertificateIsGoodForLoopbackOnly(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ca, err := newAuthority("cluster1", now)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.server("kube-apiserver", now)
	if err != nil {
		t.Fatal(err)
	}
	leaf := parseLeaf(t, pair)
	verify(t, ca, leaf, x509.VerifyOptions{DNSName: "127.0.0.1", CurrentTime: now})
	if err := leaf.VerifyHostname("192.0.2.1"); err == nil {
		t.Error("the certificate is good for another address")
	}
}

func TestCertificateOfAnotherAuthorityIsRefused(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ours, err := newAuthority("cluster1", now)
	if err != nil {
		t.Fatal(err)
	}
	others, err := newAuthority("cluster1", now)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := others.client(identity{User: "jane"}, now)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ours.certificate)
	options := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}, CurrentTime: now}
	if _, err := parseLeaf(t, pair).Verify(options); err == nil {
		t.Error("a certificate of another authority was accepted")
	}
}

func FuzzParseAuthority(f *testing.F) {
	ca, err := newAuthority("cluster1", time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ca.Certificate, ca.Key)
	f.Add(ca.Key, ca.Certificate)
	f.Add([]byte(nil), []byte("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, certificate, key []byte) {
		parsed, err := parseAuthority(keyPair{Certificate: certificate, Key: key})
		if (err == nil) != (parsed != nil) {
			t.Errorf("authority %v with error %v", parsed, err)
		}
	})
}

func parseLeaf(t *testing.T, pair keyPair) *x509.Certificate {
	t.Helper()
	leaf, err := parsePEM(pair.Certificate, "CERTIFICATE", x509.ParseCertificate)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func verify(t *testing.T, ca *authority, leaf *x509.Certificate, options x509.VerifyOptions) {
	t.Helper()
	options.Roots = x509.NewCertPool()
	options.Roots.AddCert(ca.certificate)
	if _, err := leaf.Verify(options); err != nil {
		t.Error(err)
	}
}
