// Package source follows packages in OCI registries, and charts, for the PackageSources on a hub: it pulls, verifies and stores them as OperatorVersions in the
// namespace of the source. It changes no Instance. It is the only package in a cluster that reaches other servers than API servers; core/sourcing decides which.
package source

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/pkg/kube/monitoring"
)

// LeaderLease is the name of the Lease of the leader.
const LeaderLease = "package-controller"

// Options configure the controller.
type Options struct {
	// Namespaces are those whose PackageSources are followed. Secrets and ConfigMaps are read, and packages are stored, in these only.
	Namespaces []string
	// Network is how registries and repositories are reached.
	Network Network
	// LeaderElection runs the controller in one of several processes; the others are on standby.
	LeaderElection bool
	// LeaderElectionNamespace is the namespace of the Lease; the pod's own namespace if empty.
	LeaderElectionNamespace string
	// MetricsBindAddress and HealthProbeBindAddress are HOST:PORT; "0" disables the endpoint.
	MetricsBindAddress     string
	HealthProbeBindAddress string
	// Metrics is how metrics are served.
	Metrics monitoring.Access
	// Concurrency is the number of sources that are attempted in parallel.
	Concurrency int
	// Logger is the logger of the controller.
	Logger logr.Logger
}

// runners lists everything that runs.
func runners(mgr manager.Manager, live client.Client, options Options) []controller.Runner {
	metrics := newMetrics()
	recorder := controller.NewRecorder(FieldManager, controller.PlanEventQPS, mgr.GetLogger().WithName("events"), metrics.eventsDropped)
	return []controller.Runner{
		metrics,
		recorder,
		&sources{
			client: mgr.GetClient(), live: live, recorder: recorder, metrics: metrics, network: options.Network, clock: time.Now,
			logger: mgr.GetLogger().WithName("source"), written: controller.NewWrites(), memory: newMemories(),
		},
	}
}

// Run follows the PackageSources on a hub until ctx ends. It fails if the hub is unreachable at the start, or if leadership is lost.
func Run(ctx context.Context, cfg *rest.Config, options Options) error {
	mgr, live, err := newManager(ctx, cfg, options)
	if err != nil {
		return fmt.Errorf("preparing the controller: %w", err)
	}
	for _, r := range runners(mgr, live, options) {
		if err := r.SetUp(mgr); err != nil {
			return fmt.Errorf("setting up the controller: %w", err)
		}
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the controller: %w", err)
	}
	return nil
}

// newManager returns a manager whose cache holds PackageSources only, and a client that reads everything else live.
func newManager(ctx context.Context, cfg *rest.Config, options Options) (manager.Manager, client.Client, error) {
	scheme, err := controller.Scheme()
	if err != nil {
		return nil, nil, err
	}
	every := controller.DefaultConfig()
	every.MaxConcurrentReconciles = max(1, options.Concurrency)
	namespaces := map[string]cache.Config{}
	for _, namespace := range options.Namespaces {
		namespaces[namespace] = cache.Config{}
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                        scheme,
		Logger:                        controller.Logger(options.Logger),
		NewCache:                      controller.NewCache(ctx),
		Cache:                         cache.Options{NewInformer: controller.NewInformer, DefaultNamespaces: namespaces},
		LeaderElection:                options.LeaderElection,
		LeaderElectionID:              LeaderLease,
		LeaderElectionNamespace:       options.LeaderElectionNamespace,
		LeaderElectionConfig:          controller.WithoutLimits(cfg),
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: "0"}, // served with limits
		HealthProbeBindAddress:        "0",
		Controller:                    every,
	})
	if err != nil {
		return nil, nil, err
	}
	live, err := client.New(cfg, client.Options{Scheme: scheme, Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return nil, nil, err
	}
	if err := options.Metrics.AddTo(mgr, options.MetricsBindAddress); err != nil {
		return nil, nil, err
	}
	if mgr, err = monitoring.WithProbes(mgr, options.HealthProbeBindAddress); err != nil {
		return nil, nil, err
	}
	for _, add := range []func(string, healthz.Checker) error{mgr.AddHealthzCheck, mgr.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return nil, nil, err
		}
	}
	return mgr, live, nil
}
