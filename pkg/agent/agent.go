// Package agent runs on a managed cluster: it mirrors what the hub wants there, carries out plans, and reports. It does I/O;
// what to do is decided by the pure packages plan and availability.
//
//	hub ──mirror──▶ Instance, OperatorVersion ──engine──▶ workloads
//	hub ◀─report──  Instance status           ◀─engine──  health
//	hub ◀─availability── Available
//	hub ◀─lease──        the agent is alive
//
// The engine needs the managed cluster only, so that plans go on while the hub is away.
package agent

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tandem-addons/tandem/pkg/agent/availability"
	"github.com/tandem-addons/tandem/pkg/agent/engine"
	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	"github.com/tandem-addons/tandem/pkg/agent/report"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/controller"
)

// Options say which cluster the agent speaks for and how it reaches both sides.
type Options struct {
	// ClusterName is the name of the managed cluster, which is its namespace on the hub.
	ClusterName string

	// Hub leads to the hub, with the agent's narrow identity. It is asked again every HubPeriod (a minute if zero), and where it leads
	// elsewhere, or by another identity, the connection is made anew. Certificates that stand in files are renewed without it.
	Hub       func() (*rest.Config, error)
	HubPeriod time.Duration

	// Local leads to the managed cluster.
	Local *rest.Config

	// MetricsAddress and ProbeAddress are host:port to listen on; "0" turns one off.
	MetricsAddress, ProbeAddress string

	// LeaderElection keeps a second agent of the same cluster waiting; the Lease is in LeaderElectionNamespace.
	LeaderElection          bool
	LeaderElectionNamespace string

	// Version of the program, for the hub to know.
	Version string

	// Standalone is true if no OCM klusterlet runs on the managed cluster: the agent judges add-ons by their leases, and renews one
	// of its own on the hub.
	Standalone bool

	// LeaseNamespace is where, on the managed cluster, the agent keeps the lease by which OCM's klusterlet sees that it is alive; none if
	// empty.
	LeaseNamespace string

	// LeasePeriod is how often a lease of the agent's own is renewed; one minute if zero.
	LeasePeriod time.Duration

	// PipeImage is the image of the container that waits beside the files of a Pipe task; pipe.DefaultImage if empty.
	PipeImage string

	// ReportInterval is the least time between two reports of one Instance to the hub; one second if zero.
	ReportInterval time.Duration
}

// Run works until ctx ends. While the hub cannot be reached, the engine goes on and the rest is tried again.
func Run(ctx context.Context, o Options) error {
	local, err := localManager(o)
	if err != nil {
		return fmt.Errorf("connecting to the managed cluster: %w", err)
	}
	if err := mirror.Index(ctx, local); err != nil {
		return fmt.Errorf("indexing Instances: %w", err)
	}
	measured, err := availability.NewMetrics(registry.Registry)
	if err != nil {
		return err
	}
	if err := addLocal(o, local); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return local.Start(ctx) })
	group.Go(func() error { return keepHub(ctx, o, measured, local) })
	return group.Wait()
}

// addLocal adds what needs the managed cluster only.
func addLocal(o Options, local ctrl.Manager) error {
	return cmp.Or(
		engine.Add(engine.Options{PipeImage: o.PipeImage}, local),
		availability.AddLocalLease(o.lease(), o.LeaseNamespace, local),
	)
}

// addHub adds the controllers that speak with the hub.
func addHub(o Options, measured *availability.Metrics, hub, local ctrl.Manager) error {
	statuses := mirror.NewStatuses()
	return cmp.Or(
		mirror.Add(o.ClusterName, statuses, hub, local),
		report.Add(report.Options{Cluster: o.ClusterName, Statuses: statuses, Interval: o.ReportInterval}, hub, local),
		availability.Add(availability.Options{Cluster: o.ClusterName, Standalone: o.Standalone, Metrics: measured}, hub, local),
		availability.AddLease(o.lease(), o.ClusterName, o.Standalone, hub),
	)
}

func (o Options) lease() availability.LeaseOptions {
	return availability.LeaseOptions{Version: o.Version, Period: o.LeasePeriod}
}

// keepHub runs the controllers that speak with the hub, again and again: they end when the hub cannot be reached for long.
func keepHub(ctx context.Context, o Options, measured *availability.Metrics, local ctrl.Manager) error {
	select {
	case <-local.Elected():
	case <-ctx.Done():
		return nil
	}
	if !local.GetCache().WaitForCacheSync(ctx) {
		return nil
	}
	const pause = 5 * time.Second
	for ctx.Err() == nil {
		if err := runHub(ctx, o, measured, local); err != nil {
			ctrl.Log.WithName("agent").Error(err, "the hub cannot be reached; trying again", "after", pause)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// runHub adds the controllers that speak with the hub to a manager of it, and runs them until the way there is another.
func runHub(ctx context.Context, o Options, measured *availability.Metrics, local ctrl.Manager) error {
	config, err := o.Hub()
	if err != nil {
		return fmt.Errorf("finding the hub: %w", err)
	}
	hub, err := hubManager(o, config)
	if err != nil {
		return fmt.Errorf("connecting to the hub: %w", err)
	}
	if err := addHub(o, measured, hub, local); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		if o.awaitOther(ctx, config) {
			hub.GetLogger().Info("the hub is reached another way now: connecting anew")
		}
	}()
	return hub.Start(ctx)
}

// awaitOther waits until Hub says something else than config, or ctx ends. What cannot be read has not changed.
func (o Options) awaitOther(ctx context.Context, config *rest.Config) bool {
	period := cmp.Or(o.HubPeriod, time.Minute)
	err := wait.PollUntilContextCancel(ctx, period, false, func(context.Context) (bool, error) {
		now, err := o.Hub()
		return err == nil && !sameWay(config, now), nil
	})
	return err == nil
}

// sameWay reports whether two configs lead to the same server as the same identity.
func sameWay(a, b *rest.Config) bool {
	way := func(c *rest.Config) []any {
		return []any{c.Host, c.APIPath, c.TLSClientConfig, c.Username, c.Password, c.BearerToken, c.BearerTokenFile, c.ExecProvider}
	}
	return reflect.DeepEqual(way(a), way(b))
}

// Scheme holds every type that the agent reads or writes typed.
func Scheme() (*runtime.Scheme, error) { return controller.Scheme() }

// localManager caches Instances and OperatorVersions, and of everything else only what carries KUDO's heritage label.
func localManager(o Options) (ctrl.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	everything := cache.ByObject{Label: labels.Everything()}
	local, err := ctrl.NewManager(o.Local, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform:     cache.TransformStripManagedFields(),
			DefaultLabelSelector: labels.SelectorFromSet(labels.Set{kudo.LabelHeritage: kudo.Heritage}),
			ByObject: map[client.Object]cache.ByObject{
				&kudo.Instance{}:        everything,
				&kudo.OperatorVersion{}: everything,
				// Those of nodes are many, and no add-on's.
				&coordinationv1.Lease{}: {
					Label: labels.Everything(), Field: fields.OneTermNotEqualSelector("metadata.namespace", corev1.NamespaceNodeLease),
				},
			},
		},
		Client: client.Options{Cache: &client.CacheOptions{
			Unstructured: true,
			DisableFor:   []client.Object{&corev1.Namespace{}},
		}},
		Controller:                    controller.Every(),
		Logger:                        controller.Calm(ctrl.Log),
		Metrics:                       metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:        o.ProbeAddress,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              "tandem-addon-agent",
		LeaderElectionNamespace:       o.LeaderElectionNamespace,
		LeaderElectionConfig:          controller.Apart(o.Local), // however much there is to do, the Lease is kept
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, err
	}
	if err := local.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return local, local.AddReadyzCheck("ping", healthz.Ping)
}

// hubManager sees nothing of the hub but the cluster's own namespace.
func hubManager(o Options, config *rest.Config) (ctrl.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	patient := controller.Every()
	patient.CacheSyncTimeout = 24 * time.Hour // a hub that is away is waited for, not given up
	return ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform:  cache.TransformStripManagedFields(),
			DefaultNamespaces: map[string]cache.Config{o.ClusterName: {}},
		},
		// OperatorVersions may be got but neither listed nor watched.
		Client:                 client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&kudo.OperatorVersion{}}}},
		Controller:             patient,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
}
