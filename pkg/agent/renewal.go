package agent

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/pkg/kube/identity"
)

// checkInterval is how often the stored certificate is read, because it may be replaced. A failed renewal is retried after firstRetryDelay
// at first, and after checkInterval at most.
const (
	checkInterval   = time.Hour
	firstRetryDelay = 30 * time.Second
)

// renewal replaces the bootstrap certificate of an agent whose managed cluster has joined the hub without OCM, and renews the agent's own.
// The first three fields are required.
type renewal struct {
	cluster string                       // the managed cluster's name on the hub
	secret  types.NamespacedName         // stores the certificate and its key on the managed cluster
	hub     func() (*rest.Config, error) // connects to the hub with the current certificate
	read    client.Reader
	write   client.Client
	retry   wait.Backoff
	expires prometheus.Gauge // when the stored certificate expires, in seconds since the epoch
}

// addTo adds the renewal to the manager of the managed cluster. Only the leader renews.
func (r *renewal) addTo(local ctrl.Manager) error {
	expires, err := controller.Register(registry.Registry, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "addon_agent_hub_certificate_not_after_timestamp_seconds",
		Help: "When the agent's certificate for the hub expires, in seconds since 1970; 0 if the agent does not renew it.",
	}))
	if err != nil {
		return fmt.Errorf("adding the renewal of the certificate: %w", err)
	}
	r.read, r.write, r.expires = local.GetAPIReader(), local.GetClient(), expires
	r.resetBackoff()
	if err := local.Add(manager.RunnableFunc(r.run)); err != nil {
		return fmt.Errorf("adding the renewal of the certificate: %w", err)
	}
	return nil
}

func (r *renewal) resetBackoff() {
	r.retry = wait.Backoff{Duration: firstRetryDelay, Factor: 2, Jitter: 0.2, Steps: 10, Cap: checkInterval}
}

// run renews the certificate whenever it is due, until ctx ends.
func (r *renewal) run(ctx context.Context) error {
	for {
		pause, err := r.renewIfDue(ctx)
		if err != nil && ctx.Err() == nil {
			pause = r.retry.Step()
			ctrl.LoggerFrom(ctx).Error(err, "failed to renew the agent's certificate for the hub", "secret", r.secret, "retryAfter", pause)
		} else {
			r.resetBackoff()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// renewIfDue renews the stored certificate after two thirds of its life, or at once if it is a bootstrap certificate. It returns when to look
// again.
func (r *renewal) renewIfDue(ctx context.Context) (time.Duration, error) {
	stored := &corev1.Secret{}
	if err := r.read.Get(ctx, r.secret, stored); err != nil {
		return 0, fmt.Errorf("reading the Secret of the certificate: %w", err)
	}
	current, err := r.parse(stored)
	if err != nil || current == nil {
		return checkInterval, err
	}
	lifetime, bootstrap, err := lifetimeOf(stored, current)
	if err != nil {
		return 0, err
	}
	if wait := time.Until(identity.RenewAt(current)); wait > 0 && !bootstrap {
		return min(wait, checkInterval), nil
	}
	if err := r.renew(ctx, stored, current, lifetime); err != nil {
		return 0, err
	}
	return time.Second, nil
}

// lifetimeOf returns the lifetime of the next certificate: the one that was requested when the cluster joined if the current one is a bootstrap
// certificate, and that of the current one otherwise.
func lifetimeOf(stored *corev1.Secret, current *x509.Certificate) (lifetime time.Duration, bootstrap bool, err error) {
	requested, bootstrap := stored.Data[identity.RequestedLifetime]
	if !bootstrap {
		return current.NotAfter.Sub(current.NotBefore), false, nil
	}
	if lifetime, err = time.ParseDuration(string(requested)); err != nil {
		return 0, true, fmt.Errorf("reading the lifetime in %s, which must be a duration such as 8760h: %w", identity.RequestedLifetime, err)
	}
	return lifetime, true, nil
}

// parse returns the certificate in the Secret; nil if the connection to the hub uses none.
func (r *renewal) parse(stored *corev1.Secret) (*x509.Certificate, error) {
	if len(stored.Data[corev1.TLSCertKey]) == 0 {
		return nil, nil
	}
	certificates, err := certutil.ParseCertsPEM(stored.Data[corev1.TLSCertKey])
	if err != nil {
		return nil, fmt.Errorf("reading the certificate in %s: %w", corev1.TLSCertKey, err)
	}
	r.expires.Set(float64(certificates[0].NotAfter.Unix()))
	return certificates[0], nil
}

// renew requests a certificate of the same identity for a new key, and stores both, unless the Secret has changed meanwhile.
func (r *renewal) renew(ctx context.Context, stored *corev1.Secret, current *x509.Certificate, lifetime time.Duration) error {
	if user := identity.User(r.cluster); current.Subject.CommonName != user {
		return fmt.Errorf("the certificate belongs to %q: the hub renews only certificates of %q", current.Subject.CommonName, user)
	}
	hub, err := r.connect()
	if err != nil {
		return fmt.Errorf("connecting to the hub: %w", err)
	}
	key, request, err := identity.NewRequest(r.cluster, lifetime)
	if err != nil {
		return err
	}
	if err := hub.Create(ctx, request); err != nil {
		return advise(fmt.Errorf("requesting a certificate: %w", err), r.cluster)
	}
	certificate, err := identity.Sign(ctx, hub, request)
	if err != nil {
		return err
	}
	renewed := stored.DeepCopy()
	renewed.Data[corev1.TLSCertKey], renewed.Data[corev1.TLSPrivateKeyKey] = certificate, key
	delete(renewed.Data, identity.RequestedLifetime)
	if err := r.write.Patch(ctx, renewed, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("storing the renewed certificate: %w", err)
	}
	ctrl.LoggerFrom(ctx).Info("renewed the agent's certificate for the hub", "secret", r.secret, "request", request.Name)
	return nil
}

// advise adds the way out to an error of an agent that the hub no longer knows.
func advise(err error, cluster string) error {
	if apierrors.IsUnauthorized(err) {
		return errors.Join(err, fmt.Errorf("the certificate has expired or was issued by another hub: run 'kubectl addon join %s' again", cluster))
	}
	return err
}

func (r *renewal) connect() (client.Client, error) {
	config, err := r.hub()
	if err != nil {
		return nil, err
	}
	scheme, err := controller.Scheme()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}
