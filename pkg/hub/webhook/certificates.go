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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/controller"
)

// ManagerCertificates is the field manager of the Secret and the ConfigMap of the webhook server, and of the caBundle in what calls it.
const ManagerCertificates = "addon-manager-certificates"

// certificatesName names the Secret with the keys of the webhook server, and the ConfigMap with what they are trusted by.
const certificatesName = addonv1alpha1.ManagerConfigMap

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
// behind its own write, an authority would be replaced twice. library-go's certrotation does so, goes by annotations instead of by the
// certificates, and fails for good where a key or the bundle is corrupt; so no more of library-go than its cryptography is used.
type certificates struct {
	client    client.Client
	live      client.Reader
	namespace string
	version   string // of this program, which the ConfigMap says as well
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
	case len(t.hosts) == 0:
		return errors.New("a serving certificate needs the DNS names and IPs that it is for")
	case slices.ContainsFunc(t.hosts, isNoHost):
		return fmt.Errorf("a serving certificate is for DNS names and IPs: one of %q is neither", t.hosts)
	case t.serving <= 0:
		return fmt.Errorf("a serving certificate cannot be valid for %s", t.serving)
	case t.authority < 3*t.serving: // the last that it signs is signed at two thirds of its life
		return fmt.Errorf("the authority has to be valid three times as long as the certificates that it signs, not %s to their %s",
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
		return errors.New("the webhook server's certificates need a namespace to be kept in")
	}
	if err := c.terms.check(); err != nil {
		return err
	}
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{NamespacedName: c.key()}) // where neither object exists, nothing else would wake it
		return nil
	})
	return controller.New(mgr, "certificates", controller.Options{}).
		For(&corev1.Secret{}).
		Watches(&corev1.ConfigMap{}, &handler.EnqueueRequestForObject{}).
		WatchesRawSource(start).
		Complete(c)
}

func (c *certificates) key() types.NamespacedName {
	return types.NamespacedName{Namespace: c.namespace, Name: certificatesName}
}

// Reconcile renews what is due.
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
		return ctrl.Result{RequeueAfter: controller.ConflictPause}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: renewed.pause(now)}, nil
}

// commit writes what differs. The Secret goes first: where it cannot be written, no pass adds another authority to those that are
// trusted. It never holds a serving certificate that is not trusted before, unless there was none to go on with.
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

// precondition lets a write of an object that was read succeed only while nobody else has written it; nil where there was none.
func precondition(object metav1.Object) *string {
	if version := object.GetResourceVersion(); version != "" {
		return &version
	}
	return nil
}

// keyring is what of the Secret and the ConfigMap can be used. What cannot (it is missing, corrupt or expired) is nil.
type keyring struct {
	authority, serving *crypto.TLSCertificateConfig // each certificate followed by that of whoever signed it
	trusted            []*x509.Certificate
}

func readKeyring(secret map[string][]byte, bundle string, now time.Time) keyring {
	k := keyring{
		authority: readKeyPair(secret[authorityCertificateKey], secret[authorityPrivateKey]),
		serving:   readKeyPair(secret[corev1.TLSCertKey], secret[corev1.TLSPrivateKeyKey]),
	}
	k.trusted, _ = crypto.CertsFromPEM([]byte(bundle)) // as far as they can be read
	if k.authority != nil && !authorizes(k.authority.Certs[0], now) {
		k.authority = nil
	}
	if k.serving != nil { // whoever signed it stays trusted where the ConfigMap is lost
		k.trusted = append(k.trusted, k.serving.Certs[1:]...)
	}
	return k.trusting(now)
}

// readKeyPair is nil where there is none that can be used.
func readKeyPair(certificate, key []byte) *crypto.TLSCertificateConfig {
	pair, err := crypto.GetTLSCertificateConfigFromBytes(certificate, key)
	if err == nil {
		_, err = crypto.EncodeKey(pair.Key) // a key of a kind that cannot be written again is none
	}
	if err != nil {
		return nil
	}
	return pair
}

// trusting is the keyring with exactly the authorities in its trust that are valid, each once, its own among them.
func (k keyring) trusting(now time.Time) keyring {
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

// renew is the keyring with new keys in place of those that are due. k stays as it is.
func (k keyring) renew(terms certificateTerms, now time.Time) (keyring, error) {
	renewed, err := k.replace(terms, now)
	switch {
	case err == nil && renewed.proves(terms.hosts, now):
		return renewed, nil
	case k.authority != nil: // somebody else's, that cannot sign for these hosts
		k.authority = nil
		return k.renew(terms, now)
	default:
		return keyring{}, cmp.Or(err, fmt.Errorf("no certificate can be made for %q", terms.hosts))
	}
}

// replace makes the new keys.
func (k keyring) replace(terms certificateTerms, now time.Time) (keyring, error) {
	replaced := k
	var err error
	if k.authority == nil || !now.Before(refresh(k.authority.Certs[0])) {
		if replaced.authority, err = newAuthority(terms, now); err != nil {
			return keyring{}, fmt.Errorf("making an authority: %w", err)
		}
	}
	if !k.proves(terms.hosts, now) || k.authority != nil && !now.Before(k.servingDue()) {
		signer := cmp.Or(k.authority, replaced.authority) // the one before has been trusted for longer
		if replaced.serving, err = newServing(signer, terms, now); err != nil {
			return keyring{}, fmt.Errorf("making a serving certificate: %w", err)
		}
	}
	return replaced.trusting(now), nil
}

// proves reports whether whoever trusts the bundle accepts the serving certificate for every host.
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

// servingDue is when the serving certificate is to be renewed: at two thirds of its life, and no sooner than an authority that is
// new has been trusted for a tenth of that life.
func (k keyring) servingDue() time.Time {
	leaf := k.serving.Certs[0]
	settled := k.authority.Certs[0].NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 10)
	return slices.MaxFunc([]time.Time{refresh(leaf), settled}, time.Time.Compare)
}

// pause is how long to wait until looking again. It is not until something is due: a timer does not notice that the clock was set, or
// that the machine slept.
func (k keyring) pause(now time.Time) time.Duration {
	return min(time.Minute, k.serving.Certs[0].NotAfter.Sub(now)/20)
}

// encode is the keyring as it stands in the Secret and in the ConfigMap.
func (k keyring) encode() (secret map[string][]byte, bundle string, err error) {
	authority, authorityKey, authorityErr := k.authority.GetPEMBytes()
	serving, servingKey, servingErr := k.serving.GetPEMBytes()
	trusted, trustedErr := crypto.EncodeCertificates(k.trusted...)
	return map[string][]byte{
		authorityCertificateKey: authority, authorityPrivateKey: authorityKey,
		corev1.TLSCertKey: serving, corev1.TLSPrivateKeyKey: servingKey,
	}, string(trusted), errors.Join(authorityErr, servingErr, trustedErr)
}

// refresh is when a certificate is to be renewed: at two thirds of its life.
func refresh(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 3 * 2)
}

// skew is how much earlier certificates are valid than they are made, for API servers whose clocks are behind: less than a new
// authority waits until it signs.
func skew(serving time.Duration) time.Duration { return min(5*time.Minute, serving/20) }

// newAuthority is named by the time, so that no two have the same name. library-go calls the function unsafe for the time that
// it is given.
func newAuthority(terms certificateTerms, now time.Time) (*crypto.TLSCertificateConfig, error) {
	early := skew(terms.serving)
	return crypto.UnsafeMakeSelfSignedCAConfigForDurationAtTime(fmt.Sprintf("%s@%d", certificatesName, now.Unix()),
		func() time.Time { return now.Add(-early) }, terms.authority+early)
}

// newServing ends with its signer at the latest.
func newServing(signer *crypto.TLSCertificateConfig, terms certificateTerms, now time.Time) (*crypto.TLSCertificateConfig, error) {
	authority := crypto.CA{Config: signer, SerialGenerator: &crypto.RandomSerialGenerator{}}
	return authority.MakeServerCertForDuration(sets.New(terms.hosts...), terms.serving, func(template *x509.Certificate) error {
		template.NotBefore = now.Add(-skew(terms.serving))
		template.NotAfter = slices.MinFunc([]time.Time{now.Add(terms.serving), signer.Certs[0].NotAfter}, time.Time.Compare)
		return nil
	})
}
