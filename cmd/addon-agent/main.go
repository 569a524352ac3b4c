// Command addon-agent runs the controllers of a managed cluster: it executes the plans that the hub requests and reports their status.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/tandem-addons/tandem/pkg/agent"
	"github.com/tandem-addons/tandem/pkg/agent/engine"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/availability"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// systemAuthorities is the path of the public certificate authorities in the image of addon-agent, the same as on most systems.
const systemAuthorities = "/etc/ssl/certs/ca-certificates.crt"

// version is set by the linker (see the Makefile).
var version = "devel"

func main() {
	chart.ServeChild()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "addon-agent:", err)
		os.Exit(1)
	}
}

// settings holds the values of the flags.
type settings struct {
	options                   agent.Options
	hubKubeconfig, kubeconfig string
	hubAuthority, hubSecret   string
	hub, local                controller.Limit
	permissions               permissions
	logging                   zap.Options
	version                   bool
}

func (s *settings) flags() *flag.FlagSet {
	flags := flag.NewFlagSet("addon-agent", flag.ExitOnError)
	o := &s.options
	flags.StringVar(&s.hubKubeconfig, "hub-kubeconfig", "", "Path to the kubeconfig of the hub, with the agent's identity. Required.")
	flags.StringVar(&s.hubAuthority, "hub-certificate-authority", "",
		"Path to CA certificates that verify the hub, or a proxy in front of it, in addition to those in the hub's kubeconfig.")
	flags.StringVar(&s.hubSecret, "hub-kubeconfig-secret", "",
		"Secret (NAMESPACE/NAME) on the managed cluster with the files of --hub-kubeconfig, in which the agent renews its certificate after two\n"+
			"thirds of its lifetime. If empty, the agent does not renew it: OCM's klusterlet does, or you do.")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "",
		"Path to the kubeconfig of the managed cluster. If empty, the in-cluster configuration is used.")
	flags.StringVar(&o.ClusterName, "cluster-name", "",
		"Name of the managed cluster on the hub. If empty, it is read from the file cluster-name that OCM writes next to the hub's kubeconfig.")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8443", "Address (HOST:PORT) that serves metrics over HTTPS, or 0 to disable it.")
	o.Metrics.Bind(flags)
	flags.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081",
		"Address (HOST:PORT) of the health probe endpoint, or 0 to disable it.")
	flags.BoolVar(&o.LeaderElection, "leader-elect", true,
		"Run the controllers only while holding a Lease, so that one agent at a time is active.")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "",
		"Namespace of the leader election Lease. Defaults to the namespace of the pod.")
	flags.StringVar(&o.Namespace, "namespace", "",
		"Namespace of the agent on the managed cluster. The agent stores copies of sensitive parameter values in it, and packages apply no\n"+
			"objects to it (see --allow-namespaces). Defaults to the namespace of the pod, or "+agent.DefaultNamespace+" outside of the cluster.")
	flags.BoolVar(&o.Standalone, "standalone", false,
		"Run without an OCM klusterlet on this cluster: determine the availability of add-ons from their leases, and renew a lease on the hub.")
	flags.StringVar(&o.LeaseNamespace, "lease-namespace", "",
		"Namespace of the lease on the managed cluster by which OCM's klusterlet monitors the agent. If empty, no such lease is renewed.")
	flags.DurationVar(&o.LeasePeriod, "lease-period", availability.DefaultPeriod,
		"Interval between renewals of the agent's leases, including the one on the hub with --standalone; from 1s to 24h.")
	flags.DurationVar(&o.ReportInterval, "report-interval", 0, "Minimum interval between two reports of one Instance to the hub; 1s if zero.")
	flags.DurationVar(&o.DriftInterval, "drift-interval", engine.DriftInterval,
		"Interval at which all applied objects are compared with what exists; at least 10s. Changes of fields that the agent has applied are\n"+
			"compared immediately.")
	flags.StringVar(&o.PipeImage, "pipe-image", pipe.DefaultImage,
		"Image of the container that provides the files of Pipe tasks to the agent. It must contain sleep and head.")
	s.permissions.bind(flags)
	s.hub.Bind(flags, "hub-api", "hub")
	s.local.Bind(flags, "kube-api", "managed cluster")
	flags.BoolVar(&s.version, "version", false, "Print the version and exit.")
	s.logging.BindFlags(flags)
	return flags
}

func run() error {
	var s settings
	if err := s.flags().Parse(os.Args[1:]); err != nil {
		return err
	}
	if s.version {
		fmt.Println(version)
		return nil
	}
	if err := s.complete(); err != nil {
		return err
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&s.logging)))
	s.options.Hub, s.options.Version = s.toHub, version
	if _, err := s.toHub(); err != nil {
		return err
	}
	var err error
	if s.options.Local, err = clientcmd.BuildConfigFromFlags("", s.kubeconfig); err != nil { // if empty, the in-cluster configuration
		return fmt.Errorf("reading --kubeconfig: %w", err)
	}
	s.local.ApplyTo(s.options.Local)
	return agent.Run(ctrl.SetupSignalHandler(), s.options)
}

// podNamespace is the file with the namespace of the pod.
const podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// complete sets defaults and rejects invalid combinations of flags.
func (s *settings) complete() error {
	if s.hubKubeconfig == "" {
		return fmt.Errorf("--hub-kubeconfig is required")
	}
	if s.options.ClusterName == "" {
		name, err := os.ReadFile(filepath.Join(filepath.Dir(s.hubKubeconfig), "cluster-name"))
		if err != nil {
			return fmt.Errorf("finding the name of the cluster (set it with --cluster-name): %w", err)
		}
		if s.options.ClusterName = strings.TrimSpace(string(name)); s.options.ClusterName == "" {
			return fmt.Errorf("the file cluster-name next to the hub's kubeconfig is empty: set the name with --cluster-name")
		}
	}
	if s.options.Namespace == "" {
		own, _ := os.ReadFile(podNamespace) // outside of the cluster there is none
		s.options.Namespace = cmp.Or(strings.TrimSpace(string(own)), agent.DefaultNamespace)
	}
	if s.options.DriftInterval < 10*time.Second {
		return fmt.Errorf("--drift-interval is %v: it must be at least 10s; set spec.drift.mode: Off on an Instance whose objects must not be compared", s.options.DriftInterval)
	}
	if period := s.options.LeasePeriod; period < time.Second || period > availability.MaxPeriod {
		return fmt.Errorf(`invalid argument "%v" for "--lease-period" flag: must be from 1s to %v`, period, availability.MaxPeriod)
	}
	var err error
	s.options.Rights, err = s.permissions.policy(s.options.Namespace)
	return errors.Join(err, s.findSecret(), s.options.Metrics.Check(s.options.MetricsAddress), s.hub.Check(), s.local.Check())
}

// findSecret parses the Secret of the agent's certificate, if one is given.
func (s *settings) findSecret() error {
	namespace, name, found := strings.Cut(s.hubSecret, "/")
	if s.hubSecret != "" && (!found || namespace == "" || name == "" || strings.Contains(name, "/")) {
		return fmt.Errorf(`invalid argument %q for "--hub-kubeconfig-secret" flag: must be NAMESPACE/NAME`, s.hubSecret)
	}
	s.options.HubSecret = types.NamespacedName{Namespace: namespace, Name: name}
	return nil
}

// toHub returns the configuration of the connection to the hub, read from its current files.
func (s *settings) toHub() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.hubKubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading --hub-kubeconfig: %w", err)
	}
	if err := s.trust(config); err != nil {
		return nil, fmt.Errorf("reading --hub-certificate-authority: %w", err)
	}
	s.hub.ApplyTo(config)
	return config, nil
}

// trust adds the certificate authority given by the flag to the authorities in the kubeconfig. A kubeconfig without an authority means the
// system's authorities.
func (s *settings) trust(config *rest.Config) (err error) {
	if s.hubAuthority == "" {
		return nil
	}
	known := config.CAData
	switch {
	case len(known) > 0:
	case config.CAFile != "":
		known, err = os.ReadFile(config.CAFile)
	default:
		known, err = os.ReadFile(cmp.Or(os.Getenv("SSL_CERT_FILE"), systemAuthorities))
	}
	if err != nil {
		return err
	}
	more, err := os.ReadFile(s.hubAuthority)
	if err != nil {
		return err
	}
	config.CAFile, config.CAData = "", slices.Concat(known, []byte("\n"), more)
	return nil
}
