// Command addon-manager runs the hub's controllers: flags in, hub.Run. `addon-manager ui` serves the dashboard.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/pkg/hub/ocm"
	"github.com/tandem-addons/tandem/pkg/hub/webhook"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/pkg/kube/monitoring"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "addon-manager:", err)
		os.Exit(1)
	}
}

// settings holds the values of the flags.
type settings struct {
	options hub.Options
	limit   controller.Limit
	logging zap.Options

	uninstall, version bool
	agentArguments     string
	agentConfigs       string
	allowed, configs   string
}

func (s *settings) flags(errOut io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet("addon-manager", flag.ContinueOnError)
	fs.SetOutput(errOut)
	config.RegisterFlags(fs) // --kubeconfig
	o := &s.options
	o.WebhookHosts = []string{"addon-manager.tandem-system.svc"}
	fs.StringVar(&o.PackagesNamespace, "packages-namespace", kudo.DefaultPackagesNamespace,
		"Namespace of the OperatorVersions and AddOnDeploymentConfigs that all clusters may use.")
	fs.StringVar(&s.configs, "config-namespaces", "",
		"Comma-separated namespaces whose AddOnDeploymentConfigs all clusters may use, in addition to that of --packages-namespace and to those\n"+
			"with the label kudo.dev/shared-configs=true.")
	fs.StringVar(&s.allowed, "allow-namespaces", "",
		"Comma-separated namespaces of managed clusters in which Instances may be installed although they are reserved: kube-system,\n"+
			"kube-public, kube-node-lease, open-cluster-management-agent, open-cluster-management-hub and tandem-system. Agents need their\n"+
			"own flag of this name. That of --agent-args counts here as well.")
	fs.BoolVar(&o.LeaderElection, "leader-elect", false,
		"Run the controllers only while holding a Lease, so that further replicas can be on standby.")
	fs.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "",
		"Namespace of the leader election Lease. Defaults to the namespace of the pod.")
	fs.StringVar(&o.MetricsBindAddress, "metrics-bind-address", "0", "Address (HOST:PORT) that serves metrics over HTTPS, or 0 to disable it.")
	o.Metrics.Bind(fs)
	fs.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", "0",
		"Address (HOST:PORT) that serves /healthz and /readyz, or 0 to disable it.")
	fs.StringVar(&o.PprofBindAddress, "pprof-bind-address", "0",
		"Address (HOST:PORT) that serves profiles over HTTP, or 0 to disable it. The host must be a loopback address.")
	fs.StringVar(&o.WebhookBindAddress, "webhook-bind-address", "0",
		"Address (HOST:PORT) that serves conversion and admission webhooks, or 0 to disable it.")
	fs.Var((*names)(&o.WebhookHosts), "webhook-hosts", "Comma-separated DNS names and IPs at which API servers call the webhooks.")
	fs.StringVar(&o.WebhookCallers.CAFile, "webhook-client-ca-file", "",
		"File with the certificate authorities of the clients that may call the admission webhooks. API servers need a client certificate\n"+
			"in their AdmissionConfiguration. By default, clients are not authenticated.")
	fs.Var((*names)(&o.WebhookCallers.Names), "webhook-client-names",
		"Comma-separated common names of the client certificates that may call the admission webhooks. By default, all names of the authorities.")
	fs.DurationVar(&o.WebhookCertificateValidity, "webhook-certificate-validity", webhook.DefaultCertificateValidity,
		"Validity of the webhooks' serving certificate. It is renewed after two thirds of this time.")
	fs.DurationVar(&o.WebhookAuthorityValidity, "webhook-authority-validity", webhook.DefaultAuthorityValidity,
		"Validity of the certificate authority that signs the webhooks' serving certificate.")
	fs.StringVar(&o.Namespace, "namespace", "tandem-system", "Namespace that stores the webhooks' certificates, and the ConfigMap of --package-keys.")
	fs.BoolVar(&o.DeliverAgents, "deliver-agents", false,
		"Deliver addon-agent to managed clusters as OCM's add-on tandem (manifests/ocm), if OCM is installed on the hub.")
	fs.StringVar(&s.agentArguments, "agent-args", "",
		"Further arguments of all agents that are delivered, separated by spaces, such as --rights=declared. Variables of an agent's\n"+
			"AddOnDeploymentConfig can restrict the permissions of plans further.")
	fs.StringVar(&s.agentConfigs, "agent-configs", "",
		"Comma-separated AddOnDeploymentConfigs (NAMESPACE/NAME, with * as a wildcard) that may configure delivered agents. Anyone who may\n"+
			"write one of them can replace the agent. Those that ClusterManagementAddOn tandem names are always allowed, except for those in\n"+
			"the namespace of a cluster.")
	fs.BoolVar(&o.RequireSignedPackages, "require-signed-packages", false,
		"Resolve only Instances whose OperatorVersions are signed with a key or by an identity in the ConfigMap of --package-keys.")
	fs.StringVar(&o.PackageKeys, "package-keys", hub.DefaultPackageKeys,
		"Name of the ConfigMap in --namespace whose entries are the public keys of --require-signed-packages: PEM, ECDSA on P-256, as cosign's.\n"+
			"Entries trusted_root.json and identities.yaml hold the trust root of Sigstore, and the identities that may sign without a key.")
	fs.IntVar(&o.Concurrency, "concurrency", 10, "Number of objects that each controller reconciles in parallel.")
	s.limit.Bind(fs, "kube-api", "hub")
	fs.BoolVar(&s.uninstall, "uninstall", false,
		"Remove Tandem's policies, webhooks and conditions from the hub, and exit. It can be repeated.")
	fs.BoolVar(&s.version, "version", false, "Print the version and exit.")
	s.logging.BindFlags(fs)
	return fs
}

// check rejects values that defaults of other libraries would silently replace.
func (s *settings) check() error {
	if s.options.Concurrency <= 0 {
		return fmt.Errorf("--concurrency must be greater than 0, got %d", s.options.Concurrency)
	}
	s.options.AgentArguments = strings.Fields(s.agentArguments)
	for _, argument := range s.options.AgentArguments {
		if name, _, found := strings.Cut(argument, "="); !found || !strings.HasPrefix(name, "--") {
			return fmt.Errorf(`invalid argument %q for "--agent-args" flag: must be flags of addon-agent, as --NAME=VALUE`, argument)
		}
	}
	if s.options.RequireSignedPackages && s.options.PackageKeys == "" {
		return errors.New("--package-keys must not be empty with --require-signed-packages")
	}
	var err error
	if s.options.AgentConfigs, err = ocm.ParseConfigs(s.agentConfigs); err != nil {
		return fmt.Errorf(`invalid argument %q for "--agent-configs" flag: %w`, s.agentConfigs, err)
	}
	if s.options.AllowedNamespaces, err = s.allowedNamespaces(); err != nil {
		return err
	}
	if s.options.ConfigNamespaces, err = rights.ParseNamespaces(s.configs); err != nil {
		return fmt.Errorf(`invalid argument %q for "--config-namespaces" flag: %w`, s.configs, err)
	}
	return errors.Join(s.options.Metrics.Check(s.options.MetricsBindAddress), monitoring.CheckProfiles(s.options.PprofBindAddress), s.limit.Check(),
		s.options.WebhookCallers.Check())
}

// allowedNamespaces returns the reserved namespaces that are allowed, here or for all agents that are delivered.
func (s *settings) allowedNamespaces() ([]string, error) {
	const flag = "--allow-namespaces="
	var all []string
	for _, argument := range append([]string{flag + s.allowed}, s.options.AgentArguments...) {
		list, is := strings.CutPrefix(argument, flag)
		if !is {
			continue
		}
		names, err := rights.ParseNamespaces(list)
		if err != nil {
			return nil, fmt.Errorf(`invalid argument %q for "--allow-namespaces" flag: %w`, list, err)
		}
		all = append(all, names...)
	}
	return all, nil
}

func run(ctx context.Context, arguments []string, out, errOut io.Writer) error {
	if len(arguments) > 0 && arguments[0] == "ui" {
		return runUI(ctx, arguments[1:], out, errOut)
	}
	var s settings
	fs := s.flags(errOut)
	if done, err := parse(fs, arguments, &s.version, "addon-manager accepts flags, or the command ui", out); done || err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	cfg, err := connection(&s.limit)
	if err != nil {
		return err
	}
	cfg.UserAgent = "addon-manager/" + version
	s.options.Version = version
	s.options.Logger = zap.New(zap.UseFlagOptions(&s.logging))
	ctrl.SetLogger(s.options.Logger)
	if s.uninstall {
		return hub.Uninstall(ctx, cfg, s.options, out)
	}
	return hub.Run(ctx, cfg, s.options)
}
