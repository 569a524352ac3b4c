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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/tandem-addons/tandem/pkg/controller"
	"github.com/tandem-addons/tandem/pkg/ui"
)

// uiSettings holds the values of the flags of `addon-manager ui`.
type uiSettings struct {
	address, probes string
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
	fs.StringVar(&s.probes, "health-probe-bind-address", "0", "Address (HOST:PORT) that serves /healthz, or 0 to disable it.")
	fs.BoolVar(&s.version, "version", false, "Print the version and exit.")
	s.limit.Bind(fs, "kube-api", "hub")
	s.logging.BindFlags(fs)
	return fs
}

func (s *uiSettings) check() error {
	if (s.certificate == "") != (s.key == "") {
		return errors.New("--tls-cert-file and --tls-private-key-file must be set together")
	}
	return s.limit.Check()
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
		Hub: hub, Gate: ui.NewTokens(hub, s.secure || s.certificate != ""), Hosts: s.hosts, Version: version, ReadOnly: s.readOnly,
	})
	if err != nil {
		return err
	}
	return s.serve(ctx, server)
}

// serve listens on the addresses and serves until the context ends.
func (s *uiSettings) serve(ctx context.Context, server *ui.Server) error {
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
		listener = tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: watched.GetCertificate, NextProtos: []string{"http/1.1"}})
	}
	if s.probes != "0" {
		probes := &http.Server{Addr: s.probes, Handler: http.HandlerFunc(server.Health), ReadHeaderTimeout: 10 * time.Second}
		go func() { stop(fmt.Errorf("serving --health-probe-bind-address: %w", probes.ListenAndServe())) }()
		defer probes.Close()
	}
	err = server.Serve(ctx, listener)
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}
