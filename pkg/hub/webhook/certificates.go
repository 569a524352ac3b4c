package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/openshift/library-go/pkg/crypto"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// ManagerCertificates is the field manager of the Secret and the ConfigMap of the webhook server, and of the caBundle in its callers.
const ManagerCertificates = "addon-manager-certificates"

// certificatesName is the name of the Secret with the keys of the webhook server, and of the ConfigMap with the trusted authorities.
const certificatesName = addonv1alpha1.ManagerConfigMap

// The entries of the Secret and the ConfigMap.
const (
	authorityCertificateKey = "ca.crt"
	authorityPrivateKey     = "ca.key"
	trustKey                = "ca-bundle.crt"
)

// certificates creates and renews the keys of the webhook server: its own certificate authority and a serving certificate signed by it. A
// replaced authority is trusted until it expires, and a new one signs nothing until all clients have had time to learn about it. So no
// certificate in use is untrusted at any point of a renewal. Only the leader does this.
//
// The Secret and the ConfigMap hold the only state. They are read from the API server: with a stale cache, an authority would be replaced
// twice. library-go's certrotation reads from a cache, relies on annotations instead of the certificates, and fails permanently on a
// corrupt key or bundle; so only library-go's cryptography is used.
type certificates struct {
	client    client.Client
	live      client.Reader
	namespace string
	version   string // of this program, also recorded in the ConfigMap
	terms     certificateTerms
}

// certificateTerms are the hosts and the validity of certificates.
type certificateTerms struct {
	hosts              []string
	authority, serving time.Duration
}

// check returns an error if the terms are invalid.
func (t certificateTerms) check() error {
	switch {
	case len(t.hosts) == 0:
		return errors.New("the serving certificate requires at least one DNS name or IP")
	case slices.ContainsFunc(t.hosts, isNoHost):
		return fmt.Errorf("invalid hosts %q of the serving certificate: each must be a DNS name or an IP", t.hosts)
	case t.serving <= 0:
		return fmt.Errorf("invalid validity %s of the serving certificate: must be greater than 0", t.serving)
	case t.authority < 3*t.serving: // it signs its last certificate at two thirds of its validity
		return fmt.Errorf("the validity of the authority must be at least three times the validity of the certificates that it signs: %s and %s",
			t.authority, t.serving)
	default:
		return nil
	}
}

func isNoHost(name string) bool {
	return net.ParseIP(name) == nil && len(validation.IsDNS1123Subdomain(name)) > 0
}

func (c *certificates) SetUp(mgr manager.Manager) error {
	if c.namespace == "" {
		return errors.New("a namespace is required for the webhook server's certificates")
	}
	if err := c.terms.check(); err != nil {
		return err
	}
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{NamespacedName: c.key()}) // if neither object exists, there is no other event
		return nil
	})
	return controller.New(mgr, "certificates", controller.Options{}).
		For(&corev1.Secret{}).
		Watches(&corev1.ConfigMap{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(isNamed(c.key()))).
		WatchesRawSource(start).
		Complete(c)
}

// isNamed admits only the object of that name. The cache has other ConfigMaps, too, and passes for several names would run at the same time: without a Secret,
// each would create an authority.
func isNamed(key types.NamespacedName) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return client.ObjectKeyFromObject(o) == key })
}

func (c *certificates) key() types.NamespacedName {
	return types.NamespacedName{Namespace: c.namespace, Name: certificatesName}
}

// Reconcile renews the certificates that are due.
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
	switch err := c.commit(ctx, &secret, &trust, renewed); {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: controller.ConflictDelay}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: renewed.pause(now)}, nil
}

// commit writes the changes. It writes the Secret first: if that fails, no pass adds another trusted authority. The Secret never holds a
// serving certificate that is not trusted yet, unless there was no usable one.
func (c *certificates) commit(ctx context.Context, secret *corev1.Secret, trust *corev1.ConfigMap, renewed keyring) error {
	options := []client.ApplyOption{client.FieldOwner(ManagerCertificates), client.ForceOwnership}
	data, bundle, err := renewed.encode()
	if err != nil {
		return fmt.Errorf("encoding the keys of the webhook server: %w", err)
	}
	current := maps.Clone(secret.Data)
	maps.DeleteFunc(current, func(key string, _ []byte) bool { return data[key] == nil })
	if !maps.EqualFunc(current, data, bytes.Equal) {
		desired := applycorev1.Secret(certificatesName, c.namespace).WithData(data)
		desired.ResourceVersion = precondition(secret)
		if err := c.client.Apply(ctx, desired, options...); err != nil {
			return fmt.Errorf("writing Secret %s: %w", c.key(), err)
		}
		log.FromContext(ctx).Info("renewed the certificates of the webhook server", "hosts", c.terms.hosts,
			"notAfter", renewed.serving.Certs[0].NotAfter, "authorityNotAfter", renewed.authority.Certs[0].NotAfter)
	}
	version := map[string]string{addonv1alpha1.LabelVersion: addonv1alpha1.VersionLabel(c.version)}
	if trust.Data[trustKey] != bundle || trust.Labels[addonv1alpha1.LabelVersion] != version[addonv1alpha1.LabelVersion] {
		desired := applycorev1.ConfigMap(certificatesName, c.namespace).WithLabels(version).WithData(map[string]string{trustKey: bundle})
		desired.ResourceVersion = precondition(trust)
		if err := c.client.Apply(ctx, desired, options...); err != nil {
			return fmt.Errorf("writing ConfigMap %s: %w", c.key(), err)
		}
	}
	return nil
}

// precondition makes a write fail if the object changed since it was read; nil if it did not exist.
func precondition(object metav1.Object) *string {
	if version := object.GetResourceVersion(); version != "" {
		return &version
	}
	return nil
}

// keyring holds the usable content of the Secret and the ConfigMap. Unusable parts (missing, corrupt or expired) are nil.
type keyring struct {
	authority, serving *crypto.TLSCertificateConfig // each certificate is followed by its signer's
	trusted            []*x509.Certificate
}

func readKeyring(secret map[string][]byte, bundle string, now time.Time) keyring {
	k := keyring{
		authority: readKeyPair(secret[authorityCertificateKey], secret[authorityPrivateKey]),
		serving:   readKeyPair(secret[corev1.TLSCertKey], secret[corev1.TLSPrivateKeyKey]),
	}
	k.trusted, _ = crypto.CertsFromPEM([]byte(bundle)) // as many as can be parsed
	if k.authority != nil && !authorizes(k.authority.Certs[0], now) {
		k.authority = nil
	}
	if k.serving != nil { // the signer stays trusted if the ConfigMap is lost
		k.trusted = append(k.trusted, k.serving.Certs[1:]...)
	}
	return k.withValidTrust(now)
}

// readKeyPair returns nil if the key pair is unusable.
func readKeyPair(certificate, key []byte) *crypto.TLSCertificateConfig {
	pair, err := crypto.GetTLSCertificateConfigFromBytes(certificate, key)
	if err == nil {
		_, err = crypto.EncodeKey(pair.Key) // a key of a kind that cannot be encoded is unusable
	}
	if err != nil {
		return nil
	}
	return pair
}

// withValidTrust returns the keyring with exactly the valid authorities as trusted, each once, including its own.
func (k keyring) withValidTrust(now time.Time) keyring {
	candidates := slices.Clone(k.trusted)
	if k.authority != nil {
		candidates = append(candidates, k.authority.Certs[0])
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

// renew returns the keyring with new keys in place of those that are due. It does not modify k.
func (k keyring) renew(terms certificateTerms, now time.Time) (keyring, error) {
	renewed, err := k.replace(terms, now)
	switch {
	case err == nil && renewed.proves(terms.hosts, now):
		return renewed, nil
	case k.authority != nil: // another writer's, which cannot sign for these hosts
		k.authority = nil
		return k.renew(terms, now)
	default:
		return keyring{}, cmp.Or(err, fmt.Errorf("no certificate can be created for %q", terms.hosts))
	}
}

// replace creates the new keys.
func (k keyring) replace(terms certificateTerms, now time.Time) (keyring, error) {
	replaced := k
	var err error
	if k.authority == nil || !now.Before(refresh(k.authority.Certs[0])) {
		if replaced.authority, err = newAuthority(terms, now); err != nil {
			return keyring{}, fmt.Errorf("creating an authority: %w", err)
		}
	}
	if !k.proves(terms.hosts, now) || k.authority != nil && !now.Before(k.servingDue()) {
		signer := cmp.Or(k.authority, replaced.authority) // the previous one has been trusted for longer
		if replaced.serving, err = newServing(signer, terms, now); err != nil {
			return keyring{}, fmt.Errorf("creating a serving certificate: %w", err)
		}
	}
	return replaced.withValidTrust(now), nil
}

// proves reports whether clients that trust the bundle accept the serving certificate for every host.
func (k keyring) proves(hosts []string, now time.Time) bool {
	if k.serving == nil {
		return false
	}
	roots := x509.NewCertPool()
	for _, authority := range k.trusted {
		roots.AddCert(authority)
	}
	return !slices.ContainsFunc(hosts, func(host string) bool {
		_, err := k.serving.Certs[0].Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: host})
		return err != nil
	})
}

// servingDue returns when the serving certificate is to be renewed: at two thirds of its validity, and not before a new authority has been
// trusted for a tenth of that validity.
func (k keyring) servingDue() time.Time {
	leaf := k.serving.Certs[0]
	settled := k.authority.Certs[0].NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 10)
	return slices.MaxFunc([]time.Time{refresh(leaf), settled}, time.Time.Compare)
}

// pause returns how long to wait until the next check. It is shorter than the time until something is due: a timer does not notice that the
// clock was set, or that the machine slept.
func (k keyring) pause(now time.Time) time.Duration {
	return min(time.Minute, k.serving.Certs[0].NotAfter.Sub(now)/20)
}

// encode returns the content of the Secret and of the ConfigMap.
func (k keyring) encode() (secret map[string][]byte, bundle string, err error) {
	authority, authorityKey, authorityErr := k.authority.GetPEMBytes()
	serving, servingKey, servingErr := k.serving.GetPEMBytes()
	trusted, trustedErr := crypto.EncodeCertificates(k.trusted...)
	return map[string][]byte{
		authorityCertificateKey: authority, authorityPrivateKey: authorityKey,
		corev1.TLSCertKey: serving, corev1.TLSPrivateKeyKey: servingKey,
	}, string(trusted), errors.Join(authorityErr, servingErr, trustedErr)
}

// refresh returns when a certificate is to be renewed: at two thirds of its validity.
func refresh(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 3 * 2)
}

// skew returns the time by which certificates are backdated, for API servers with slow clocks. It is less than the time that a new authority waits
// before it signs.
func skew(serving time.Duration) time.Duration { return min(5*time.Minute, serving/20) }

// newAuthority creates an authority with the time in its name, so that no two have the same name. library-go calls the function unsafe
// because of its time argument.
func newAuthority(terms certificateTerms, now time.Time) (*crypto.TLSCertificateConfig, error) {
	early := skew(terms.serving)
	return crypto.UnsafeMakeSelfSignedCAConfigForDurationAtTime(fmt.Sprintf("%s@%d", certificatesName, now.Unix()),
		func() time.Time { return now.Add(-early) }, terms.authority+early)
}

// newServing creates a serving certificate that expires no later than its signer.
func newServing(signer *crypto.TLSCertificateConfig, terms certificateTerms, now time.Time) (*crypto.TLSCertificateConfig, error) {
	authority := crypto.CA{Config: signer, SerialGenerator: &crypto.RandomSerialGenerator{}}
	return authority.MakeServerCertForDuration(sets.New(terms.hosts...), terms.serving, func(template *x509.Certificate) error {
		template.NotBefore = now.Add(-skew(terms.serving))
		template.NotAfter = slices.MinFunc([]time.Time{now.Add(terms.serving), signer.Certs[0].NotAfter}, time.Time.Compare)
		return nil
	})
}
