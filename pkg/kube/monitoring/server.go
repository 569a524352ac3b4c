package monitoring

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tandem-addons/tandem/pkg/kube/endpoint"
)

// Limits for clients of metrics, whose headers contain a bearer token.
const (
	maxMetricsHeaderBytes       = 16 << 10
	maxMetricsConnections       = 200
	maxMetricsClientConnections = 50
)

// AddTo adds a server of metrics at an address to a manager; none if the address is "0". It serves before there is a leader, and before caches are
// filled.
func (a Access) AddTo(mgr manager.Manager, address string) error {
	if isOff(address) {
		return nil
	}
	public, certificate, err := a.server(address, mgr.GetConfig())
	if err != nil {
		return err
	}
	if certificate != nil {
		if err := mgr.Add(certificate); err != nil {
			return fmt.Errorf("watching the certificate of metrics: %w", err)
		}
	}
	return add(mgr, "metrics", public)
}

// Serve serves metrics at an address until the context ends, for a program without a manager.
func (a Access) Serve(ctx context.Context, address string, config *rest.Config) error {
	if isOff(address) {
		return nil
	}
	public, certificate, err := a.server(address, config)
	if err != nil {
		return err
	}
	if certificate == nil {
		return public.Start(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _ = certificate.Start(ctx) }() // it logs its error
	return public.Start(ctx)
}

// watched is a certificate that is read again when its files change.
type watched struct{ *certwatcher.CertWatcher }

// Start watches the files. If that is impossible, the certificate stays in use.
func (w *watched) Start(ctx context.Context) error {
	if err := w.CertWatcher.Start(ctx); err != nil {
		ctrl.Log.WithName("metrics").Error(err, "failed to watch --metrics-cert-dir: its certificate is not read again")
	}
	return nil
}

// isOff reports whether an address disables its server.
func isOff(address string) bool { return address == "" || address == "0" }

// server returns the server of metrics, and its certificate if that is read from files.
func (a Access) server(address string, config *rest.Config) (*endpoint.Public, *watched, error) {
	metrics := promhttp.HandlerFor(registry.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
	mux := http.NewServeMux()
	public := &endpoint.Public{
		Address: address, Handler: mux, MaxHeaderBytes: maxMetricsHeaderBytes, MaxConnections: maxMetricsConnections,
		MaxClientConnections: maxMetricsClientConnections,
	}
	if a.Insecure {
		mux.Handle("/metrics", prompt(metrics))
		return public, nil, nil
	}
	handler, err := authenticated(config, metrics)
	if err != nil {
		return nil, nil, err
	}
	mux.Handle("/metrics", prompt(handler))
	public.TLS = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if a.CertificateFolder == "" {
		public.TLS.Certificates, err = selfSigned()
		return public, nil, err
	}
	certificate, err := certwatcher.New(filepath.Join(a.CertificateFolder, "tls.crt"), filepath.Join(a.CertificateFolder, "tls.key"))
	if err != nil {
		return nil, nil, fmt.Errorf("reading --metrics-cert-dir: %w", err)
	}
	public.TLS.GetCertificate = certificate.GetCertificate
	return public, &watched{certificate}, nil
}

// selfSigned returns a self-signed certificate: it encrypts, and does not authenticate.
func selfSigned() ([]tls.Certificate, error) {
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, fmt.Errorf("creating the certificate of metrics: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("creating the certificate of metrics: %w", err)
	}
	return []tls.Certificate{pair}, nil
}

// add adds a server to a manager, which starts it first.
func add(mgr manager.Manager, name string, public *endpoint.Public) error {
	server, listener, err := public.Listen(context.Background())
	if err != nil {
		return fmt.Errorf("serving %s: %w", name, err)
	}
	err = mgr.Add(&manager.Server{Name: name, Server: server, Listener: listener, ShutdownTimeout: ptr.To(endpoint.ShutdownTimeout)})
	if err != nil {
		return errors.Join(fmt.Errorf("serving %s: %w", name, err), listener.Close())
	}
	return nil
}
