package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/pkg/kube/monitoring"
	"github.com/tandem-addons/tandem/pkg/ui"
)

// uiSettings holds the values of the flags of `addon-manager ui`.
type uiSettings struct {
	address, probes string
	metricsAddress  string
	metrics         monitoring.Access
	limits          ui.Limits
	hosts           []string
	certificate     string
	key             string
	secure, version bool
	readOnly        bool
	limit           controller.Limit
	logging         zap.Options
}

func (s *uiSettings) flags(errors io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet("addon-manager ui", flag.ContinueOnError)
	fs.SetOutput(errors)
	config.RegisterFlags(fs) // --kubeconfig
	s.hosts = []string{"localhost", "127.0.0.1"}
	fs.StringVar(&s.address, "bind-address", "127.0.0.1:8080", "Address (HOST:PORT) that serves the dashboard.")
	fs.Var((*names)(&s.hosts), "hosts", "Comma-separated DNS names and IPs at which browsers reach the dashboard. Requests for other hosts are refused.")
	fs.StringVar(&s.certificate, "tls-cert-file", "", "File with the serving certificate. It is read again when it changes. Without it, HTTP is served.")
	fs.StringVar(&s.key, "tls-private-key-file", "", "File with the private key of --tls-cert-file.")
	fs.BoolVar(&s.secure, "secure-cookies", false,
		"Let browsers send the session cookie over HTTPS only. Set this if a proxy serves HTTPS. Implied by --tls-cert-file.")
	fs.BoolVar(&s.readOnly, "read-only", false, "Omit all actions. Without it, the server must be allowed to impersonate its users.")
	fs.Var(&s.limits.Proxies, "trusted-proxies", "Comma-separated IPs and CIDRs of proxies in front of the dashboard. Their header X-Forwarded-For is "+
		"believed, and their\nconnections are not limited by --max-client-connections. By default, no proxy is trusted.")
	fs.IntVar(&s.limits.MaxClientConnections, "max-client-connections", ui.DefaultMaxClientConnections,
		"Maximum number of connections from one address, and of live pages of one client of a trusted proxy.")
	fs.IntVar(&s.limits.MaxLivePages, "max-live-pages", ui.DefaultMaxLivePages, "Maximum number of pages that are kept up to date at a time.")
	fs.IntVar(&s.limits.MaxUserLivePages, "max-user-live-pages", ui.DefaultMaxUserLivePages,
		"Maximum number of pages of one user that are kept up to date at a time.")
	fs.StringVar(&s.probes, "health-probe-bind-address", "0", "Address (HOST:PORT) that serves /healthz, or 0 to disable it.")
	fs.StringVar(&s.metricsAddress, "metrics-bind-address", "0", "Address (HOST:PORT) that serves metrics over HTTPS, or 0 to disable it.")
	s.metrics.Bind(fs)
	fs.BoolVar(&s.version, "version", false, "Print the version and exit.")
	s.limit.Bind(fs, "kube-api", "hub")
	s.logging.BindFlags(fs)
	return fs
}

func (s *uiSettings) check() error {
	if (s.certificate == "") != (s.key == "") {
		return errors.New("--tls-cert-file and --tls-private-key-file must be set together")
	}
	for flag, value := range map[string]int{
		"max-client-connections": s.limits.MaxClientConnections, "max-live-pages": s.limits.MaxLivePages, "max-user-live-pages": s.limits.MaxUserLivePages,
	} {
		if value <= 0 {
			return fmt.Errorf("--%s must be greater than 0, got %d", flag, value)
		}
	}
	return errors.Join(s.metrics.Check(s.metricsAddress), s.limit.Check())
}

// runUI serves the dashboard to the users of the hub.
func runUI(ctx context.Context, arguments []string, out, errOut io.Writer) error {
	var s uiSettings
	fs := s.flags(errOut)
	if done, err := parse(fs, arguments, &s.version, "addon-manager ui takes flags only", out); done || err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	cfg, err := connection(&s.limit)
	if err != nil {
		return err
	}
	cfg.UserAgent = "addon-manager-ui/" + version
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&s.logging)))
	hub, err := ui.NewHub(ctx, cfg, nil)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; grant the permissions of deploy/ui", err)
	}
	if err != nil {
		return err
	}
	server, err := ui.New(ui.Options{
		Hub: hub, Gate: ui.NewTokens(hub, s.secure || s.certificate != "", s.limits.Proxies), Hosts: s.hosts, Version: version, ReadOnly: s.readOnly,
		Limits: s.limits,
	})
	if err != nil {
		return err
	}
	for _, collector := range server.Collectors() {
		if err := registry.Registry.Register(collector); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	return s.serve(ctx, cfg, server)
}

// serve listens on the addresses and serves until the context ends.
func (s *uiSettings) serve(ctx context.Context, cfg *rest.Config, server *ui.Server) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("listening on --bind-address: %w", err)
	}
	if s.certificate != "" {
		watched, err := certwatcher.New(s.certificate, s.key)
		if err != nil {
			return fmt.Errorf("reading --tls-cert-file: %w", err)
		}
		go func() { stop(watched.Start(ctx)) }()
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: watched.GetCertificate, NextProtos: []string{"http/1.1"}}
	}
	if s.probes != "0" {
		probes := monitoring.Probes(s.probes, http.HandlerFunc(server.Health))
		go func() {
			if err := probes.Start(ctx); err != nil {
				stop(fmt.Errorf("serving --health-probe-bind-address: %w", err))
			}
		}()
	}
	go func() {
		if err := s.metrics.Serve(ctx, s.metricsAddress, cfg); err != nil {
			stop(fmt.Errorf("serving --metrics-bind-address: %w", err))
		}
	}()
	err = server.Serve(ctx, listener)
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}
