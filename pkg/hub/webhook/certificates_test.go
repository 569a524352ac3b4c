package webhook

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

var (
	begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	terms = certificateTerms{
		hosts:     []string{"127.0.0.1", "addon-manager.tandem-system.svc"},
		authority: 90 * 24 * time.Hour, serving: 30 * 24 * time.Hour,
	}
)

// stored is the content of the Secret and the ConfigMap.
type stored struct {
	secret map[string][]byte
	bundle string
}

// pass runs one pass of the controller at that time.
func (s stored) pass(t *testing.T, terms certificateTerms, now time.Time) (stored, keyring) {
	t.Helper()
	renewed, err := readKeyring(s.secret, s.bundle, now).renew(terms, now)
	if err != nil {
		t.Fatal(err)
	}
	secret, bundle, err := renewed.encode()
	if err != nil {
		t.Fatal(err)
	}
	return stored{secret: secret, bundle: bundle}, renewed
}

// verifyServing reports whether a client that trusts the bundle accepts the serving certificate in the Secret.
func verifyServing(t *testing.T, bundle string, secret map[string][]byte, now time.Time) error {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(bundle)) {
		t.Fatalf("no certificates in bundle %q", bundle)
	}
	leaf := readKeyPair(secret[corev1.TLSCertKey], secret[corev1.TLSPrivateKeyKey]).Certs[0]
	for _, host := range terms.hosts {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: host}); err != nil {
			return err
		}
	}
	return nil
}

// The whole life of a hub. No client ever gets a certificate that the previous bundle does not cover: neither an API server that has not
// learnt the new bundle yet, nor a client of a replica that still serves with the old keys.
func TestCertificatesAreRenewedWithoutAGap(t *testing.T) {
	current, _ := stored{}.pass(t, terms, begin)
	authorities, servings, maxTrusted := 1, 1, 1
	for now := begin; now.Before(begin.Add(2 * terms.authority)); now = now.AddDate(0, 0, 1) {
		next, renewed := current.pass(t, terms, now)
		if err := verifyServing(t, current.bundle, next.secret, now); err != nil {
			t.Errorf("at %s the new certificate is not accepted by the bundle before: %v", now, err)
		}
		if err := verifyServing(t, next.bundle, current.secret, now); err != nil {
			t.Errorf("at %s the certificate before is not accepted by the new bundle: %v", now, err)
		}
		if !bytes.Equal(next.secret[authorityCertificateKey], current.secret[authorityCertificateKey]) {
			authorities++
		}
		if !bytes.Equal(next.secret[corev1.TLSCertKey], current.secret[corev1.TLSCertKey]) {
			servings++
		}
		maxTrusted = max(maxTrusted, len(renewed.trusted))
		current = next
	}
	// Every 60 of 180 days, and every 20.
	if authorities < 3 || authorities > 4 || servings < 8 || servings > 11 {
		t.Errorf("%d authorities and %d serving certificates were made", authorities, servings)
	}
	if maxTrusted != 2 {
		t.Errorf("up to %d authorities are trusted at a time, want the one that signs and the one before", maxTrusted)
	}
}

// A new authority first has to reach all clients. The certificate of the previous one is valid for long enough.
func TestCertificatesWaitForANewAuthority(t *testing.T) {
	for name, serving := range map[string]time.Duration{"a month": terms.serving, "a minute": time.Minute} {
		t.Run(name, func(t *testing.T) {
			terms := terms
			terms.serving = serving
			current, made := stored{}.pass(t, terms, begin)
			due := refresh(made.serving.Certs[0])
			delete(current.secret, authorityPrivateKey)
			current, _ = current.pass(t, terms, due.Add(-time.Second))
			held, _ := current.pass(t, terms, due)
			if !bytes.Equal(held.secret[corev1.TLSCertKey], current.secret[corev1.TLSCertKey]) {
				t.Error("the serving certificate is renewed a second after its authority")
			}
			renewed, made := current.pass(t, terms, due.Add(serving/8))
			if bytes.Equal(renewed.secret[corev1.TLSCertKey], current.secret[corev1.TLSCertKey]) {
				t.Error("the serving certificate is not renewed when its authority has settled")
			}
			if err := made.serving.Certs[0].CheckSignatureFrom(made.authority.Certs[0]); err != nil {
				t.Errorf("the new authority did not sign: %v", err)
			}
		})
	}
}

func TestCertificatesRest(t *testing.T) {
	first, renewed := stored{}.pass(t, terms, begin)
	for _, now := range []time.Time{begin, begin.Add(time.Hour), refresh(renewed.serving.Certs[0]).Add(-time.Second)} {
		again, _ := first.pass(t, terms, now)
		if again.bundle != first.bundle || !maps.EqualFunc(again.secret, first.secret, bytes.Equal) {
			t.Errorf("%s after the start something was created again", now.Sub(begin))
		}
	}
}

// Setting the clock or suspending the machine does not move a timer.
func TestCertificatesAreLookedAtOften(t *testing.T) {
	_, made := stored{}.pass(t, terms, begin)
	end := made.serving.Certs[0].NotAfter
	for name, test := range map[string]struct {
		now      time.Time
		maxPause time.Duration
	}{
		"a new certificate":            {begin, time.Minute},
		"one that expires immediately": {end.Add(-time.Second), time.Second / 2},
	} {
		if pause := made.pause(test.now); pause <= 0 || pause > test.maxPause {
			t.Errorf("%s is looked at again after %s, want %s at most", name, pause, test.maxPause)
		}
	}
}

// Certificates that were created with a wrong clock do not count once the clock is right.
func TestCertificatesFollowTheClock(t *testing.T) {
	for name, wrong := range map[string]time.Time{"ahead": begin.AddDate(2, 0, 0), "behind": time.Unix(0, 0)} {
		t.Run(name, func(t *testing.T) {
			made, _ := stored{}.pass(t, terms, wrong)
			repaired, renewed := made.pass(t, terms, begin)
			if err := verifyServing(t, repaired.bundle, repaired.secret, begin); err != nil {
				t.Error(err)
			}
			if len(renewed.trusted) != 1 {
				t.Errorf("%d authorities are trusted", len(renewed.trusted))
			}
		})
	}
}

// If another writer replaces the authority, there is a usable certificate afterwards, and no further change.
func TestCertificatesDoNotRelyOnAForeignAuthority(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sound, made := stored{}.pass(t, terms, begin)
	due := refresh(made.serving.Certs[0])
	for name, test := range map[string]struct {
		key    crypto.Signer
		change func(*x509.Certificate)
	}{
		"with an elliptic key":  {ecKey, func(*x509.Certificate) {}},
		"with an Edwards key":   {edKey, func(*x509.Certificate) {}},
		"for other names":       {rsaKey, func(c *x509.Certificate) { c.PermittedDNSDomains = []string{"example.com"} }},
		"for clients":           {rsaKey, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }},
		"that may sign nothing": {rsaKey, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature }},
		"that expires soon":     {rsaKey, func(c *x509.Certificate) { c.NotAfter = begin.AddDate(0, 0, 20) }},
		"that is not valid yet": {rsaKey, func(c *x509.Certificate) { c.NotBefore = begin.AddDate(1, 0, 0) }},
	} {
		t.Run(name, func(t *testing.T) {
			foreign := &x509.Certificate{
				SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "foreign"},
				NotBefore: begin.Add(-time.Hour), NotAfter: begin.AddDate(10, 0, 0),
				BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
			}
			test.change(foreign)
			raw, err := x509.CreateCertificate(rand.Reader, foreign, foreign, test.key.Public(), test.key)
			if err != nil {
				t.Fatal(err)
			}
			key, err := x509.MarshalPKCS8PrivateKey(test.key)
			if err != nil {
				t.Fatal(err)
			}
			planted := stored{secret: maps.Clone(sound.secret), bundle: sound.bundle}
			planted.secret[authorityCertificateKey] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
			planted.secret[authorityPrivateKey] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
			repaired, _ := planted.pass(t, terms, begin)
			repaired, _ = repaired.pass(t, terms, due)
			if err := verifyServing(t, repaired.bundle, repaired.secret, due); err != nil {
				t.Error(err)
			}
			repaired, _ = repaired.pass(t, terms, due) // with the current authority
			again, _ := repaired.pass(t, terms, due)
			if again.bundle != repaired.bundle || !maps.EqualFunc(again.secret, repaired.secret, bytes.Equal) {
				t.Error("it does not come to rest")
			}
		})
	}
}

func TestCertificatesAreMended(t *testing.T) {
	sound, _ := stored{}.pass(t, terms, begin)
	stranger, _ := stored{}.pass(t, terms, begin.Add(time.Second))
	for name, test := range map[string]struct {
		damage             func(*stored)
		authority, serving bool // are re-created
		trusts             int  // authorities
	}{
		"everything is lost":                            {func(s *stored) { *s = stored{} }, true, true, 1},
		"the Secret is lost":                            {func(s *stored) { s.secret = nil }, true, true, 2},
		"the ConfigMap is lost":                         {func(s *stored) { s.bundle = "" }, false, false, 1},
		"the ConfigMap is lost between two authorities": {func(s *stored) { copyAuthority(s, stranger); s.bundle = "" }, false, false, 2},
		"the bundle is no PEM":                          {func(s *stored) { s.bundle = "gone" }, false, false, 1},
		"the bundle has other blocks":                   {func(s *stored) { s.bundle = string(s.secret[authorityPrivateKey]) + s.bundle }, false, false, 1},
		"the bundle has no authority":                   {func(s *stored) { s.bundle += string(s.secret[corev1.TLSCertKey]) }, false, false, 1},
		"the serving key is corrupt":                    {func(s *stored) { s.secret[corev1.TLSPrivateKeyKey] = []byte("?") }, false, true, 1},
		"the serving key is another's":                  {func(s *stored) { s.secret[corev1.TLSPrivateKeyKey] = stranger.secret[corev1.TLSPrivateKeyKey] }, false, true, 1},
		"the serving certificate is lost":               {func(s *stored) { delete(s.secret, corev1.TLSCertKey) }, false, true, 1},
		"the authority is corrupt":                      {func(s *stored) { s.secret[authorityCertificateKey] = []byte("?") }, true, false, 2},
		"the authority's key is another's":              {func(s *stored) { s.secret[authorityPrivateKey] = stranger.secret[authorityPrivateKey] }, true, false, 2},
		"the authority is another":                      {func(s *stored) { copyAuthority(s, stranger) }, false, false, 2},
		"the authority is no authority":                 {func(s *stored) { serveAsAuthority(s) }, true, false, 2},
		"what signed is found nowhere":                  {func(s *stored) { copyAuthority(s, stranger); s.bundle = ""; cutChain(s) }, false, true, 1},
		"an old replica trusts another, too":            {func(s *stored) { s.bundle += stranger.bundle }, false, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			damaged := stored{secret: maps.Clone(sound.secret), bundle: sound.bundle}
			test.damage(&damaged)
			repaired, renewed := damaged.pass(t, terms, begin.Add(time.Hour))
			if err := verifyServing(t, repaired.bundle, repaired.secret, begin.Add(time.Hour)); err != nil {
				t.Errorf("the serving certificate is not accepted: %v", err)
			}
			if made := !bytes.Equal(repaired.secret[authorityCertificateKey], damaged.secret[authorityCertificateKey]); made != test.authority {
				t.Errorf("the authority is created again: %t, want %t", made, test.authority)
			}
			if made := !bytes.Equal(repaired.secret[corev1.TLSCertKey], damaged.secret[corev1.TLSCertKey]); made != test.serving {
				t.Errorf("the serving certificate is created again: %t, want %t", made, test.serving)
			}
			if len(renewed.trusted) != test.trusts {
				t.Errorf("%d authorities are trusted, want %d", len(renewed.trusted), test.trusts)
			}
			again, _ := repaired.pass(t, terms, begin.Add(time.Hour))
			if again.bundle != repaired.bundle || !maps.EqualFunc(again.secret, repaired.secret, bytes.Equal) {
				t.Error("a second pass created something again")
			}
		})
	}
}

func copyAuthority(s *stored, from stored) {
	s.secret[authorityCertificateKey] = from.secret[authorityCertificateKey]
	s.secret[authorityPrivateKey] = from.secret[authorityPrivateKey]
}

func serveAsAuthority(s *stored) {
	s.secret[authorityCertificateKey] = s.secret[corev1.TLSCertKey]
	s.secret[authorityPrivateKey] = s.secret[corev1.TLSPrivateKeyKey]
}

func cutChain(s *stored) {
	leaf, _ := pem.Decode(s.secret[corev1.TLSCertKey])
	s.secret[corev1.TLSCertKey] = pem.EncodeToMemory(leaf)
}

func TestCertificatesFollowTheHosts(t *testing.T) {
	first, _ := stored{}.pass(t, terms, begin)
	for name, test := range map[string]struct {
		hosts []string
		anew  bool
	}{
		"another name":              {[]string{"addon-manager.elsewhere.svc"}, true},
		"another IP":                {append([]string{"10.0.0.1"}, terms.hosts...), true},
		"the same in another order": {[]string{terms.hosts[1], terms.hosts[0]}, false},
	} {
		t.Run(name, func(t *testing.T) {
			changed := terms
			changed.hosts = test.hosts
			next, renewed := first.pass(t, changed, begin.Add(time.Hour))
			if anew := !bytes.Equal(next.secret[corev1.TLSCertKey], first.secret[corev1.TLSCertKey]); anew != test.anew {
				t.Errorf("the certificate is made anew: %t, want %t", anew, test.anew)
			}
			for _, host := range test.hosts {
				if err := renewed.serving.Certs[0].VerifyHostname(host); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// After a long downtime, a hub replaces certificates that have all expired.
func TestCertificatesThatHaveExpiredAreReplaced(t *testing.T) {
	first, _ := stored{}.pass(t, terms, begin)
	for name, away := range map[string]time.Duration{
		"the serving certificate has expired":                            terms.serving,
		"the serving certificate has expired, its authority is about to": terms.authority - time.Hour,
		"both have":          terms.authority,
		"both have long ago": 10 * terms.authority,
	} {
		t.Run(name, func(t *testing.T) {
			now := begin.Add(away)
			next, renewed := first.pass(t, terms, now)
			if err := verifyServing(t, next.bundle, next.secret, now); err != nil {
				t.Errorf("the serving certificate is not accepted: %v", err)
			}
			if end := renewed.serving.Certs[0].NotAfter; end.After(renewed.serving.Certs[1].NotAfter) {
				t.Errorf("the certificate is valid until %s, its authority until %s", end, renewed.serving.Certs[1].NotAfter)
			}
			if away >= terms.authority {
				if len(renewed.trusted) != 1 {
					t.Errorf("%d authorities are trusted, one of which has expired", len(renewed.trusted))
				}
			} else if err := verifyServing(t, first.bundle, next.secret, now); err != nil {
				t.Errorf("the serving certificate is not accepted by who knows the authority before: %v", err)
			}
		})
	}
}

// Certificates are slightly backdated, but never valid for longer than requested.
func TestCertificatesTolerateSlowClocks(t *testing.T) {
	_, made := stored{}.pass(t, terms, begin)
	for name, c := range map[string]*x509.Certificate{"authority": made.authority.Certs[0], "serving": made.serving.Certs[0]} {
		if backdated := begin.Sub(c.NotBefore).Truncate(time.Minute); backdated != 5*time.Minute {
			t.Errorf("the %s certificate is valid from %s, %s before it is made", name, c.NotBefore, backdated)
		}
	}
	if end := made.serving.Certs[0].NotAfter; !end.Equal(begin.Add(terms.serving)) {
		t.Errorf("the serving certificate is valid until %s", end)
	}
}

func TestCertificateTerms(t *testing.T) {
	day := 24 * time.Hour
	for name, test := range map[string]struct {
		terms   certificateTerms
		problem string
	}{
		"the defaults": {certificateTerms{[]string{"a"}, DefaultAuthorityValidity, DefaultCertificateValidity}, ""},
		"three times":  {certificateTerms{[]string{"a"}, 3 * day, day}, ""},
		"less":         {certificateTerms{[]string{"a"}, 2 * day, day}, "at least three times the validity"},
		"never":        {certificateTerms{[]string{"a"}, day, -day}, "invalid validity -24h"},
		"no host":      {certificateTerms{nil, 3 * day, day}, "requires at least one DNS name or IP"},
		"a lost host":  {certificateTerms{[]string{"a", ""}, 3 * day, day}, "each must be a DNS name or an IP"},
		"an address":   {certificateTerms{[]string{"a:9443"}, 3 * day, day}, "each must be a DNS name or an IP"},
		"brackets":     {certificateTerms{[]string{"[::1]"}, 3 * day, day}, "each must be a DNS name or an IP"},
		"a dot":        {certificateTerms{[]string{"."}, 3 * day, day}, "each must be a DNS name or an IP"},
		"all kinds":    {certificateTerms{[]string{"a.b.svc", "127.0.0.1", "::1"}, 3 * day, day}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.terms.check()
			if test.problem == "" && err != nil || test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("the error is %v, want %q", err, test.problem)
			}
		})
	}
}
