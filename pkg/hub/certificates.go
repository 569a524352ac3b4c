package hub

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	librarycrypto "github.com/openshift/library-go/pkg/crypto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// certificatesName names the Secret with the keys of the webhook server, and the ConfigMap with what they are trusted by.
const certificatesName = "addon-manager-webhooks"

// The entries of that Secret and that ConfigMap.
const (
	authorityCertificateKey = "ca.crt"
	authorityPrivateKey     = "ca.key"
	trustKey                = "ca-bundle.crt"
)

// certificates makes and renews what the webhook server proves itself with: an authority of its own and, signed by it, the
// serving certificate. An authority that was replaced is trusted until it expires, and one that is new signs nothing before
// everybody can have learnt of it; so no moment of a renewal leaves a certificate in use that is not trusted. Only the leader does
// this.
//
// The Secret and the ConfigMap hold the only state there is. They are read from the API server itself: from a cache that lags
// behind its own write, an authority would be replaced twice.
type certificates struct {
	client    client.Client
	live      client.Reader
	namespace string
	terms     certificateTerms
}

// certificateTerms say for whom certificates are made, and for how long.
type certificateTerms struct {
	hosts              []string
	authority, serving time.Duration
}

// check says what is wrong with the terms.
func (t certificateTerms) check() error {
	switch {
	case len(t.hosts) == 0 || slices.Contains(t.hosts, ""):
		return errors.New("a serving certificate needs the DNS names and IPs that it is for")
	case t.serving <= 0:
		return fmt.Errorf("a serving certificate cannot be valid for %s", t.serving)
	case t.authority < 3*t.serving: // the last that it signs is signed at two thirds of its life
		return fmt.Errorf("the authority has to be valid three times as long as the certificates that it signs, not %s to their %s",
			t.authority, t.serving)
	default:
		return nil
	}
}

func (c *certificates) setUp(mgr manager.Manager) error {
	if c.namespace == "" {
		return errors.New("the webhook server's certificates need a namespace to be kept in")
	}
	if err := c.terms.check(); err != nil {
		return err
	}
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{NamespacedName: c.key()}) // where neither object exists, nothing else would wake it
		return nil
	})
	return ctrl.NewControllerManagedBy(mgr).Named("certificates").
		For(&corev1.Secret{}).
		Watches(&corev1.ConfigMap{}, &handler.EnqueueRequestForObject{}).
		WatchesRawSource(start).
		Complete(c)
}

func (c *certificates) key() types.NamespacedName {
	return types.NamespacedName{Namespace: c.namespace, Name: certificatesName}
}

// Reconcile renews what is due, and comes back when something is due next.
func (c *certificates) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var secret corev1.Secret
	if err := c.live.Get(ctx, c.key(), &secret); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("reading Secret %s: %w", c.key(), err)
	}
	var trust corev1.ConfigMap
	if err := c.live.Get(ctx, c.key(), &trust); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("reading ConfigMap %s: %w", c.key(), err)
	}
	now := time.Now()
	held := readKeyring(secret.Data, trust.Data[trustKey], now)
	renewed, err := held.renew(c.terms, now)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("renewing the certificates of the webhook server: %w", err)
	}
	if err := c.commit(ctx, &secret, &trust, renewed); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: renewed.due().Sub(now)}, nil
}

// commit writes what differs. Trust goes first: whoever sees the new keys can find out that they are trusted.
func (c *certificates) commit(ctx context.Context, secret *corev1.Secret, trust *corev1.ConfigMap, renewed keyring) error {
	options := []client.ApplyOption{client.FieldOwner(ManagerCertificates), client.ForceOwnership}
	if bundle := string(encodeCertificates(renewed.trusted)); trust.Data[trustKey] != bundle {
		desired := applycorev1.ConfigMap(certificatesName, c.namespace).WithData(map[string]string{trustKey: bundle})
		desired.ResourceVersion = precondition(trust)
		if err := c.client.Apply(ctx, desired, options...); err != nil {
			return fmt.Errorf("writing ConfigMap %s: %w", c.key(), err)
		}
	}
	data, err := renewed.encode()
	if err != nil {
		return fmt.Errorf("encoding the keys of the webhook server: %w", err)
	}
	current := maps.Clone(secret.Data)
	maps.DeleteFunc(current, func(key string, _ []byte) bool { return data[key] == nil })
	if maps.EqualFunc(current, data, bytes.Equal) {
		return nil
	}
	desired := applycorev1.Secret(certificatesName, c.namespace).WithData(data)
	desired.ResourceVersion = precondition(secret)
	if err := c.client.Apply(ctx, desired, options...); err != nil {
		return fmt.Errorf("writing Secret %s: %w", c.key(), err)
	}
	log.FromContext(ctx).Info("renewed the certificates of the webhook server", "hosts", c.terms.hosts,
		"notAfter", renewed.serving.certificate().NotAfter, "authorityNotAfter", renewed.authority.certificate().NotAfter)
	return nil
}

// precondition lets a write of an object that was read succeed only while nobody else has written it; nil where there was none.
func precondition(object metav1.Object) *string {
	if version := object.GetResourceVersion(); version != "" {
		return &version
	}
	return nil
}

// keyring is what of the Secret and the ConfigMap can be used. What cannot (it is missing, corrupt or expired) is nil.
type keyring struct {
	authority, serving *keyPair
	trusted            []*x509.Certificate
}

func readKeyring(secret map[string][]byte, bundle string, now time.Time) keyring {
	k := keyring{
		authority: readKeyPair(secret[authorityCertificateKey], secret[authorityPrivateKey]),
		serving:   readKeyPair(secret[corev1.TLSCertKey], secret[corev1.TLSPrivateKeyKey]),
		trusted:   readCertificates([]byte(bundle)),
	}
	if k.authority != nil && !authorizes(k.authority.certificate(), now) {
		k.authority = nil
	}
	if k.serving != nil { // whoever signed it stays trusted where the ConfigMap is lost
		k.trusted = append(k.trusted, k.serving.chain[1:]...)
	}
	return k.trusting(now)
}

// trusting is the keyring with exactly the authorities in its trust that are valid, each once, its own among them.
func (k keyring) trusting(now time.Time) keyring {
	candidates := slices.Clone(k.trusted)
	if k.authority != nil {
		candidates = append(candidates, k.authority.certificate())
	}
	k.trusted = nil
	for _, candidate := range candidates {
		if authorizes(candidate, now) && !slices.ContainsFunc(k.trusted, candidate.Equal) {
			k.trusted = append(k.trusted, candidate)
		}
	}
	return k
}

func authorizes(c *x509.Certificate, now time.Time) bool {
	return c.IsCA && c.KeyUsage&x509.KeyUsageCertSign != 0 && !now.Before(c.NotBefore) && now.Before(c.NotAfter)
}

// renew is the keyring with new keys in place of those that are due. k stays as it is.
func (k keyring) renew(terms certificateTerms, now time.Time) (keyring, error) {
	renewed := k
	var err error
	if k.authority == nil || !now.Before(refresh(k.authority.certificate())) {
		if renewed.authority, err = newAuthority(terms, now); err != nil {
			return keyring{}, fmt.Errorf("making an authority: %w", err)
		}
	}
	if !k.proves(terms.hosts, now) || k.authority != nil && !now.Before(k.servingDue()) {
		signer := k.authority // which has been trusted for longer than a new one
		if signer == nil {
			signer = renewed.authority
		}
		if renewed.serving, err = newServing(signer, terms, now); err != nil {
			return keyring{}, fmt.Errorf("making a serving certificate: %w", err)
		}
	}
	return renewed.trusting(now), nil
}

// proves says whether whoever trusts the bundle accepts the serving certificate for every host.
func (k keyring) proves(hosts []string, now time.Time) bool {
	if k.serving == nil {
		return false
	}
	roots := x509.NewCertPool()
	for _, authority := range k.trusted {
		roots.AddCert(authority)
	}
	return !slices.ContainsFunc(hosts, func(host string) bool {
		_, err := k.serving.certificate().Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: host})
		return err != nil
	})
}

// servingDue is when the serving certificate is to be renewed: at two thirds of its life, and no sooner than an authority that is
// new has been trusted for a tenth of that life.
func (k keyring) servingDue() time.Time {
	leaf := k.serving.certificate()
	settled := k.authority.certificate().NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 10)
	return slices.MaxFunc([]time.Time{refresh(leaf), settled}, time.Time.Compare)
}

// due is when something of the keyring, which is complete, is to be renewed or no longer trusted.
func (k keyring) due() time.Time {
	due := []time.Time{refresh(k.authority.certificate()), k.servingDue()}
	for _, authority := range k.trusted {
		due = append(due, authority.NotAfter)
	}
	return slices.MinFunc(due, time.Time.Compare)
}

// encode is the keyring as it stands in the Secret.
func (k keyring) encode() (map[string][]byte, error) {
	authorityKey, err := x509.MarshalPKCS8PrivateKey(k.authority.key)
	if err != nil {
		return nil, err
	}
	servingKey, err := x509.MarshalPKCS8PrivateKey(k.serving.key)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		authorityCertificateKey: encodeCertificates(k.authority.chain), authorityPrivateKey: encodeKey(authorityKey),
		corev1.TLSCertKey: encodeCertificates(k.serving.chain), corev1.TLSPrivateKeyKey: encodeKey(servingKey),
	}, nil
}

// refresh is when a certificate is to be renewed: at two thirds of its life.
func refresh(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 3 * 2)
}

// skew is how much earlier a certificate is valid than it is made, for API servers whose clocks are behind.
func skew(validity time.Duration) time.Duration { return min(5*time.Minute, validity/20) }

// keyPair is a certificate, followed by that of whoever signed it unless it did itself, and its key.
type keyPair struct {
	chain []*x509.Certificate
	key   crypto.Signer
}

func (p *keyPair) certificate() *x509.Certificate { return p.chain[0] }

// readKeyPair is nil where there is none that can be used.
func readKeyPair(certificate, key []byte) *keyPair {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil
	}
	chain := readCertificates(certificate)
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || len(chain) != len(pair.Certificate) {
		return nil
	}
	return &keyPair{chain: chain, key: signer}
}

// readCertificates reads all that can be read.
func readCertificates(encoded []byte) []*x509.Certificate {
	var read []*x509.Certificate
	for block, rest := pem.Decode(encoded); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			read = append(read, certificate)
		}
	}
	return read
}

func encodeCertificates(certificates []*x509.Certificate) []byte {
	var encoded []byte
	for _, certificate := range certificates {
		encoded = append(encoded, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})...)
	}
	return encoded
}

func encodeKey(pkcs8 []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// newAuthority is named by the time, so that no two have the same name. library-go calls the function unsafe for the time that
// it is given.
func newAuthority(terms certificateTerms, now time.Time) (*keyPair, error) {
	begin := now.Add(-skew(terms.authority))
	made, err := librarycrypto.UnsafeMakeSelfSignedCAConfigForDurationAtTime(fmt.Sprintf("%s@%d", certificatesName, now.Unix()),
		func() time.Time { return begin }, terms.authority+skew(terms.authority))
	if err != nil {
		return nil, err
	}
	return newKeyPair(made)
}

// newServing ends with its signer at the latest.
func newServing(signer *keyPair, terms certificateTerms, now time.Time) (*keyPair, error) {
	authority := librarycrypto.CA{
		Config:          &librarycrypto.TLSCertificateConfig{Certs: signer.chain, Key: signer.key},
		SerialGenerator: &librarycrypto.RandomSerialGenerator{},
	}
	made, err := authority.MakeServerCertForDuration(sets.New(terms.hosts...), terms.serving, func(template *x509.Certificate) error {
		template.NotBefore = now.Add(-skew(terms.serving))
		template.NotAfter = slices.MinFunc([]time.Time{now.Add(terms.serving), signer.certificate().NotAfter}, time.Time.Compare)
		template.SignatureAlgorithm = x509.UnknownSignatureAlgorithm // what suits the signer's key
		return nil
	})
	if err != nil {
		return nil, err
	}
	return newKeyPair(made)
}

func newKeyPair(made *librarycrypto.TLSCertificateConfig) (*keyPair, error) {
	key, ok := made.Key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", made.Key)
	}
	return &keyPair{chain: made.Certs, key: key}, nil
}
