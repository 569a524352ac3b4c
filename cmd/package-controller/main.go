// Command package-controller follows the PackageSources on a hub: flags in, source.Run. It is the only program in a cluster that reaches other servers than API
// servers, and is not installed by default.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/pkg/source"
)

// version is set by the linker (see the Makefile).
var version = "devel"

func main() {
	chart.ServeChild()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "package-controller:", err)
		os.Exit(1)
	}
}

// settings holds the values of the flags.
type settings struct {
	options    source.Options
	limit      controller.Limit
	logging    zap.Options
	namespaces string
	version    bool
}

func (s *settings) flags(errOut io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet("package-controller", flag.ContinueOnError)
	fs.SetOutput(errOut)
	config.RegisterFlags(fs) // --kubeconfig
	o := &s.options
	fs.StringVar(&s.namespaces, "namespaces", kudo.DefaultPackagesNamespace,
		"Comma-separated namespaces whose PackageSources are followed. Their Secrets and ConfigMaps are read, and packages are stored in them.")
	fs.Var((*hosts)(&o.Network.AllowHosts), "allow-hosts",
		"Comma-separated hosts, as HOST:PORT, that may have any address. All others must not have an address of this machine, of its links, or of\n"+
			"the metadata service of a cloud.")
	fs.Var((*hosts)(&o.Network.PlainHTTP), "plain-http", "Comma-separated hosts of registries and repositories, as HOST:PORT, to connect to without TLS.")
	fs.StringVar(&o.Network.CAFile, "ca-file", "", "File with certificate authorities of registries and repositories, in addition to those of the system.")
	fs.BoolVar(&o.LeaderElection, "leader-elect", false, "Run the controller only while holding a Lease, so that further replicas can be on standby.")
	fs.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "",
		"Namespace of the leader election Lease. Defaults to the namespace of the pod.")
	fs.StringVar(&o.MetricsBindAddress, "metrics-bind-address", "0", "Address (HOST:PORT) that serves metrics over HTTPS, or 0 to disable it.")
	o.Metrics.Bind(fs)
	fs.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", "0",
		"Address (HOST:PORT) that serves /healthz and /readyz, or 0 to disable it.")
	fs.IntVar(&o.Concurrency, "concurrency", 2, "Number of PackageSources that are attempted in parallel.")
	s.limit.Bind(fs, "kube-api", "hub")
	fs.BoolVar(&s.version, "version", false, "Print the version and exit.")
	s.logging.BindFlags(fs)
	return fs
}

// hosts is a flag value: a comma-separated list of HOST:PORT.
type hosts []string

func (h *hosts) String() string { return strings.Join(*h, ",") }

func (h *hosts) Set(value string) error {
	*h = nil
	for host := range strings.SplitSeq(value, ",") {
		host = strings.ToLower(strings.TrimSpace(host))
		if name, port, err := net.SplitHostPort(host); err != nil || name == "" || port == "" {
			return fmt.Errorf("%q is not HOST:PORT", host)
		}
		*h = append(*h, host)
	}
	return nil
}

// check rejects values that defaults of other libraries would silently replace.
func (s *settings) check() error {
	if s.options.Concurrency <= 0 {
		return fmt.Errorf("--concurrency must be greater than 0, got %d", s.options.Concurrency)
	}
	var err error
	if s.options.Namespaces, err = rights.ParseNamespaces(s.namespaces); err != nil {
		return fmt.Errorf(`invalid argument %q for "--namespaces" flag: %w`, s.namespaces, err)
	}
	if len(s.options.Namespaces) == 0 {
		return errors.New("--namespaces must not be empty: the controller has no permissions in all namespaces")
	}
	return errors.Join(s.options.Network.Check(), s.options.Metrics.Check(s.options.MetricsBindAddress), s.limit.Check())
}

func run(ctx context.Context, arguments []string, out, errOut io.Writer) error {
	var s settings
	fs := s.flags(errOut)
	switch err := fs.Parse(arguments); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: package-controller accepts flags", fs.Arg(0))
	case s.version:
		_, err := fmt.Fprintln(out, "package-controller", version)
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	cfg, err := config.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the hub (set its kubeconfig with --kubeconfig): %w", err)
	}
	s.limit.ApplyTo(cfg)
	cfg.UserAgent = "package-controller/" + version
	s.options.Logger = zap.New(zap.UseFlagOptions(&s.logging))
	ctrl.SetLogger(s.options.Logger)
	return source.Run(ctx, cfg, s.options)
}
