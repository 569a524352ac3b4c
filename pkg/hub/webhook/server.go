package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/pkg/kube/endpoint"
)

// endpoints returns the handlers of the webhook server, by path. manifests/crds and manifests/admission configure the API server to call
// them.
func endpoints(mgr manager.Manager, namespaces install.Namespaces, reserved []string) (map[string]http.Handler, error) {
	admit, err := newAdmissions(mgr, namespaces, reserved)
	if err != nil {
		return nil, err
	}
	return map[string]http.Handler{
		conversionPath:                  http.HandlerFunc(convert),
		"/admit/clustermanagementaddon": reviewOf(admit, "clustermanagementaddons", admit.definition),
		"/admit/managedclusteraddon":    reviewOf(admit, "managedclusteraddons", admit.addOn),
		"/admit/operatorversion":        reviewOf(admit, "operatorversions", admit.version),
		"/admit/instance":               reviewOf(admit, "instances", admit.instance),
	}, nil
}

// How long requests wait to be served. Without a conversion the API server fails the request; after 3 s without an answer to an admission it
// continues without validation.
const (
	conversionQueueTimeout = 20 * time.Second
	admissionQueueTimeout  = 2 * time.Second
)

const conversionPath = "/convert"

// server serves the endpoints, on every replica, with the certificate in the Secret, which it reloads while it serves. If a handler panics,
// net/http closes that one connection and the process continues.
type server struct {
	client      client.Client
	address     string
	namespaces  install.Namespaces
	reserved    []string
	callers     Callers
	certificate atomic.Pointer[tls.Certificate]
	notAfter    prometheus.Gauge
}

func (s *server) SetUp(mgr manager.Manager) error {
	server, err := s.listener()
	if err != nil {
		return err
	}
	handlers, err := endpoints(mgr, s.namespaces, s.reserved)
	if err != nil {
		return fmt.Errorf("creating the endpoints of the webhook server: %w", err)
	}
	conversions := newQueue(conversionCost, maxConversionCost, conversionQueueTimeout)
	admissions := newQueue(admissionCost, maxAdmissionCost, admissionQueueTimeout)
	for path, handler := range handlers {
		if path == conversionPath {
			server.Register(path, conversions.through(handler))
		} else {
			server.Register(path, s.callers.authenticate(admissions.through(handler)))
		}
	}
	if s.notAfter, err = registerNotAfter(registry.Registry); err != nil {
		return err
	}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("adding the webhook server: %w", err)
	}
	if err := mgr.AddReadyzCheck("webhooks", s.ready(server.StartedChecker())); err != nil {
		return fmt.Errorf("adding the webhook server's readiness: %w", err)
	}
	mgr.GetLogger().Info("serving webhooks", "address", s.address, "paths", slices.Sorted(maps.Keys(handlers)))
	return controller.New(mgr, "serving-certificate", controller.Options{NeedLeaderElection: ptr.To(false)}).
		For(&corev1.Secret{}).
		Complete(s)
}

func (s *server) listener() (webhook.Server, error) {
	host, number, err := net.SplitHostPort(s.address)
	if err != nil {
		return nil, fmt.Errorf("reading the webhook server's address, HOST:PORT: %w", err)
	}
	port, err := strconv.ParseUint(number, 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("invalid address %q of the webhook server: the port must be from 1 to 65535", s.address)
	}
	// Over HTTP/2, the bodies of waiting requests would fill the window of the connection, and block those that are served.
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.present, NextProtos: []string{"http/1.1"}}
	s.callers.ask(config)
	return newPublicServer(net.JoinHostPort(host, strconv.FormatUint(port, 10)), config), nil
}

// The limits of connections. API servers open one for each request that they send at a time, and send headers of about a kilobyte.
const (
	maxConnections     = 1000
	maxPeerConnections = 400
	maxHeaderBytes     = 8 << 10
)

// publicServer is the webhook server of controller-runtime, with limits for clients that send headers or nothing.
type publicServer struct {
	webhook.Server
	public  endpoint.Public
	started atomic.Bool
}

func newPublicServer(address string, config *tls.Config) *publicServer {
	mux := http.NewServeMux()
	s := &publicServer{Server: webhook.NewServer(webhook.Options{WebhookMux: mux})} // never started: it counts requests
	s.public = endpoint.Public{
		Address: address, Handler: mux, TLS: config, MaxHeaderBytes: maxHeaderBytes, MaxConnections: maxConnections,
		MaxClientConnections: maxPeerConnections, Started: func() { s.started.Store(true) },
	}
	return s
}

// Start serves requests until the context ends.
func (s *publicServer) Start(ctx context.Context) error { return s.public.Start(ctx) }

// StartedChecker returns a check that succeeds once the server accepts connections.
func (s *publicServer) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if !s.started.Load() {
			return errors.New("the webhook server has not been started yet")
		}
		return nil
	}
}

// present returns the current certificate for a handshake.
func (s *server) present(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if certificate := s.certificate.Load(); certificate != nil {
		return certificate, nil
	}
	return nil, errors.New("there is no serving certificate yet")
}

// ready reports whether the server, checked by started, can complete a handshake.
func (s *server) ready(started healthz.Checker) healthz.Checker {
	return func(request *http.Request) error {
		if _, err := s.present(nil); err != nil {
			return err
		}
		return started(request)
	}
}

// Reconcile loads the certificate from the Secret. While it is unusable, the last one stays in use.
func (s *server) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var secret corev1.Secret
	if err := s.client.Get(ctx, request.NamespacedName, &secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("reading Secret %s: %w", request, err))
	}
	certificate, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		log.FromContext(ctx).Info("the serving certificate cannot be used, waiting for the leader to renew it", "reason", err.Error())
		return ctrl.Result{}, nil
	}
	previous := s.certificate.Swap(&certificate)
	s.notAfter.Set(float64(certificate.Leaf.NotAfter.Unix()))
	if previous == nil || !previous.Leaf.Equal(certificate.Leaf) {
		log.FromContext(ctx).Info("serving webhooks with another certificate", "notAfter", certificate.Leaf.NotAfter)
	}
	return ctrl.Result{}, nil
}

// registerNotAfter registers the metric of the certificate's expiry.
func registerNotAfter(to prometheus.Registerer) (prometheus.Gauge, error) {
	return controller.Register(to, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "addon_webhook_certificate_not_after_timestamp_seconds",
		Help: "Expiry of the webhook server's serving certificate, in seconds since the epoch.",
	}))
}
