// Command addon-agent runs on a managed cluster: it carries out the plans that the hub wants there, and reports.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/tandem-addons/tandem/pkg/agent"
	"github.com/tandem-addons/tandem/pkg/availability"
	"github.com/tandem-addons/tandem/pkg/limit"
	"github.com/tandem-addons/tandem/pkg/pipe"
)

// version is set when the program is built.
var version = "devel"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "addon-agent:", err)
		os.Exit(1)
	}
}

func run() error {
	var (
		options                   agent.Options
		hubKubeconfig, kubeconfig string
		logging                   = zap.Options{}
		hub                       = limit.Limit{QPS: 20, Burst: 40}
		local                     = limit.Limit{QPS: 400, Burst: 800}
		printVersion              bool
	)
	flags := flag.NewFlagSet("addon-agent", flag.ExitOnError)
	flags.StringVar(&hubKubeconfig, "hub-kubeconfig", "", "file that leads to the hub with the agent's identity (required)")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "file that leads to the managed cluster; empty inside of it")
	flags.StringVar(&options.ClusterName, "cluster-name", "", "name of the managed cluster on the hub (required)")
	flags.StringVar(&options.MetricsAddress, "metrics-bind-address", ":8080", "host:port of the metrics; 0 for none")
	flags.StringVar(&options.ProbeAddress, "health-probe-bind-address", ":8081", "host:port of the health probes; 0 for none")
	flags.BoolVar(&options.LeaderElection, "leader-elect", true, "let one agent at a time work")
	flags.StringVar(&options.LeaderElectionNamespace, "leader-election-namespace", "", "namespace of the Lease; the pod's own if empty")
	flags.BoolVar(&options.Standalone, "standalone", false,
		"no OCM klusterlet runs on this cluster: judge add-ons by their leases, and renew one on the hub")
	flags.DurationVar(&options.LeasePeriod, "lease-period", availability.DefaultPeriod,
		"how often a standalone agent renews its lease on the hub; 1s to 24h")
	flags.DurationVar(&options.ReportInterval, "report-interval", 0, "least time between two reports of one Instance to the hub; 1s if zero")
	flags.StringVar(&options.PipeImage, "pipe-image", pipe.DefaultImage,
		"image of the container through which the files of Pipe tasks are read; it needs sleep and head")
	hub.Bind(flags, "hub-api", "the hub")
	local.Bind(flags, "kube-api", "the managed cluster")
	flags.BoolVar(&printVersion, "version", false, "print the version and end")
	logging.BindFlags(flags)
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	if printVersion {
		fmt.Println(version)
		return nil
	}
	if options.ClusterName == "" || hubKubeconfig == "" {
		return fmt.Errorf("--cluster-name and --hub-kubeconfig are required")
	}
	if options.LeasePeriod < time.Second || options.LeasePeriod > availability.LongestPeriod {
		return fmt.Errorf("--lease-period is %v: it must be from 1s to %v", options.LeasePeriod, availability.LongestPeriod)
	}
	if err := errors.Join(hub.Check(), local.Check()); err != nil {
		return err
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	var err error
	if options.Hub, err = clientcmd.BuildConfigFromFlags("", hubKubeconfig); err != nil {
		return fmt.Errorf("reading --hub-kubeconfig: %w", err)
	}
	if options.Local, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil { // empty: what a pod finds in its cluster
		return fmt.Errorf("reading --kubeconfig: %w", err)
	}
	hub.Together(options.Hub)
	local.Together(options.Local)
	return agent.Run(ctrl.SetupSignalHandler(), options)
}
