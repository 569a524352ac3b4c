// Package agent runs on a managed cluster: it mirrors Instances from the hub, runs their plans, and reports their status. It does I/O; the
// pure packages plan and availability decide.
//
//	hub ──mirror──▶ Instance, OperatorVersion ──engine──▶ workloads
//	hub ◀─report──  Instance status           ◀─engine──  health
//	hub ◀─availability── Available
//	hub ◀─lease──        the agent is alive
//	hub ──renewal──▶     the agent's certificate
//
// The engine only needs the managed cluster, so plans continue while the hub is unreachable.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tandem-addons/tandem/pkg/agent/addonstatus"
	"github.com/tandem-addons/tandem/pkg/agent/engine"
	"github.com/tandem-addons/tandem/pkg/agent/maintenance"
	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	"github.com/tandem-addons/tandem/pkg/agent/rendering"
	"github.com/tandem-addons/tandem/pkg/agent/report"
	"github.com/tandem-addons/tandem/pkg/agent/secret"
	"github.com/tandem-addons/tandem/pkg/agent/sweep"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/pkg/kube/monitoring"
)

// Options configure the agent: its managed cluster and its connections to both clusters.
type Options struct {
	// ClusterName is the name of the managed cluster, which is its namespace on the hub.
	ClusterName string

	// Hub returns the configuration of the connection to the hub, with the agent's restricted identity. It is called again every HubPeriod
	// (a minute if zero). The agent reconnects if the server or the identity changed. Certificates in files are renewed without it.
	Hub       func() (*rest.Config, error)
	HubPeriod time.Duration

	// HubSecret is the Secret on the managed cluster that stores the certificate for the hub, which the agent then renews; not renewed if
	// empty, as beside a klusterlet that does so.
	HubSecret types.NamespacedName

	// Local is the configuration of the connection to the managed cluster.
	Local *rest.Config

	// MetricsAddress and ProbeAddress are host:port to listen on; "0" disables the endpoint.
	MetricsAddress, ProbeAddress string

	// Metrics is how metrics are served.
	Metrics monitoring.Access

	// LeaderElection keeps a second agent of the same cluster on standby; the Lease is in LeaderElectionNamespace.
	LeaderElection          bool
	LeaderElectionNamespace string

	// Version of the program, reported to the hub.
	Version string

	// Standalone is true if no OCM klusterlet runs on the managed cluster: the agent judges add-ons by their leases, and renews its own
	// lease on the hub.
	Standalone bool

	// LeaseNamespace is the namespace on the managed cluster of the lease by which OCM's klusterlet judges the agent; no lease if empty.
	LeaseNamespace string

	// LeasePeriod is how often the agent renews its own leases; one minute if zero.
	LeasePeriod time.Duration

	// PipeImage is the image of the waiting container in the pod of a Pipe task; pipe.DefaultImage if empty.
	PipeImage string

	// Namespace on the managed cluster in which the agent stores copies of sensitive values, and the key of their digests; tandem-system if
	// empty.
	Namespace string

	// Rights is what the plans of Instances may do.
	Rights rights.Policy

	// SweepInterval is how often copies of sensitive values that no Instance needs are deleted; one minute if zero.
	SweepInterval time.Duration

	// ReportInterval is the minimum time between two reports of one Instance to the hub; one second if zero.
	ReportInterval time.Duration

	// ProgressDelay is how long the progress of a plan may remain unrecorded if nothing depends on it; half a second if zero.
	ProgressDelay time.Duration

	// PlanRetryDelay is the delay before an owed plan that timed out starts again for the first time; plan.MinRetryDelay if zero.
	PlanRetryDelay time.Duration

	// HoldInterval is how often it is checked whether a plan can start that waits for another version of Kubernetes, for example; half a minute if
	// zero.
	HoldInterval time.Duration

	// DriftInterval is how often all applied objects are compared with what was applied; ten minutes if zero.
	DriftInterval time.Duration
}

// DefaultNamespace is the namespace of the agent in its manifests.
const DefaultNamespace = rights.AgentNamespace

// Run runs the agent until ctx ends. While the hub is unreachable, the engine continues and the connection is retried. An agent on standby
// only takes part in the leader election and serves its endpoints. It fills its caches when it becomes the leader, so that it does not start
// from a stale view.
func Run(ctx context.Context, o Options) error {
	election, err := electionManager(o)
	if err != nil {
		return fmt.Errorf("preparing the leader election and the endpoints: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	holding, release := context.WithCancel(context.WithoutCancel(ctx))
	led := make(chan error, 1)
	go func() {
		defer release() // release the Lease only after the last write
		select {
		case <-election.Elected():
			led <- lead(ctx, o)
		case <-ctx.Done():
			led <- nil
		}
	}()
	if err := election.Start(holding); err != nil {
		select {
		case cause := <-led:
			return errors.Join(cause, err)
		default: // do not wait for the controllers: if the Lease was lost, another agent may already lead
			return err
		}
	}
	return <-led
}

// lead runs all controllers until ctx ends or one of them fails.
func lead(ctx context.Context, o Options) error {
	prepared := make(chan parts, 1)
	go func() { prepared <- prepare(ctx, o) }() // discovery does not end with ctx
	var p parts
	select {
	case p = <-prepared:
	case <-ctx.Done(): // no controller has written anything
		return nil
	}
	switch {
	case p.err == nil:
		return runBoth(ctx, o, p.kept, p.local)
	case ctx.Err() != nil:
		return nil
	}
	return p.err
}

// parts are what is prepared before the controllers run.
type parts struct {
	kept  shared
	local ctrl.Manager
	err   error
}

// prepare returns a manager of the managed cluster with its controllers, not started.
func prepare(ctx context.Context, o Options) parts {
	unserved := make(controller.Unserved)
	local, err := localManager(ctx, o, unserved)
	if err != nil {
		return parts{err: fmt.Errorf("connecting to the managed cluster: %w", err)}
	}
	if err := mirror.Index(ctx, local); err != nil {
		return parts{err: fmt.Errorf("indexing Instances: %w", err)}
	}
	measured, err := addonstatus.NewMetrics(registry.Registry)
	if err != nil {
		return parts{err: err}
	}
	secrets, err := secret.Add(ctx, secret.Options{
		Namespace: cmp.Or(o.Namespace, DefaultNamespace), HubSecret: o.HubSecret, Rights: o.Rights,
	}, local)
	if err != nil {
		return parts{err: fmt.Errorf("adding sensitive values: %w", err)}
	}
	windows, err := maintenance.Add(ctx, cmp.Or(o.Namespace, DefaultNamespace), local)
	if err != nil {
		return parts{err: fmt.Errorf("adding maintenance windows: %w", err)}
	}
	signer, err := mirror.LoadSigner(ctx, cmp.Or(o.Namespace, DefaultNamespace), local)
	if err != nil {
		return parts{err: err}
	}
	charts, err := chart.NewRenderer()
	if err != nil {
		return parts{err: err}
	}
	kept := shared{
		charts:  charts,
		metrics: measured, writes: mirror.NewWrites(), secrets: secrets, windows: windows, signer: signer, unserved: unserved,
		renderings: rendering.New(cmp.Or(o.Namespace, DefaultNamespace), local.GetClient(), local.GetAPIReader()),
	}
	return parts{kept: kept, local: local, err: addLocal(ctx, o, kept, local)}
}

// runBoth runs the controllers of the managed cluster, and those that connect to the hub, which end first: see controller.Lend.
func runBoth(ctx context.Context, o Options, kept shared, local ctrl.Manager) error {
	ctx, stop := context.WithCancel(ctx)
	untilHub, hubEnded := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() {
		defer stop()
		ended <- local.Start(untilHub)
	}()
	select {
	case <-local.Elected(): // its caches are filled; it takes part in no election
		keepHub(ctx, o, kept, local)
	case <-ctx.Done():
	}
	hubEnded()
	return <-ended
}

// shared is used by controllers of both clusters, and outlives connections to the hub.
type shared struct {
	metrics *addonstatus.Metrics
	// writes are those of mirrored Instances, by all controllers: none acts on an older Instance in the cache.
	writes *controller.Writes
	// secrets are the values of sensitive parameters.
	secrets *secret.Store
	// windows are the maintenance windows.
	windows *maintenance.Windows
	// charts renders charts, and renderings are what they have rendered.
	charts     *chart.Renderer
	renderings *rendering.Store
	// signer signs and recognizes mirrors.
	signer *mirror.Signer
	// unserved receives the kinds of the managed cluster that its API server no longer serves.
	unserved controller.Unserved
}

// addLocal adds the controllers that only need the managed cluster.
func addLocal(ctx context.Context, o Options, kept shared, local ctrl.Manager) error {
	return cmp.Or(
		engine.Add(ctx, engine.Options{
			PipeImage: o.PipeImage, Writes: kept.writes, Rights: o.Rights, Secrets: kept.secrets, Windows: kept.windows, Signer: kept.signer,
			Namespace: cmp.Or(o.Namespace, DefaultNamespace), Charts: kept.charts, Rendered: kept.renderings,
			ProgressDelay: o.ProgressDelay, RetryDelay: o.PlanRetryDelay, HoldInterval: o.HoldInterval, DriftInterval: o.DriftInterval, Unserved: kept.unserved,
		}, local),
		addonstatus.AddLocalLease(o.lease(), o.LeaseNamespace, local),
		addRenewal(o, local),
	)
}

// addRenewal adds the renewal of the agent's certificate if it is responsible for it.
func addRenewal(o Options, local ctrl.Manager) error {
	if o.HubSecret.Name == "" {
		return nil
	}
	return (&renewal{cluster: o.ClusterName, secret: o.HubSecret, hub: o.Hub}).addTo(local)
}

// addHub adds the controllers that connect to the hub.
func addHub(o Options, kept shared, hub, local ctrl.Manager) error {
	statuses := mirror.NewStatuses()
	return cmp.Or(
		mirror.Add(mirror.Options{
			Cluster: o.ClusterName, Statuses: statuses, Writes: kept.writes, Signer: kept.signer, Rights: o.Rights,
		}, hub, local),
		report.Add(report.Options{Cluster: o.ClusterName, Statuses: statuses, Interval: o.ReportInterval, Signer: kept.signer}, hub, local),
		addonstatus.Add(addonstatus.Options{Cluster: o.ClusterName, Standalone: o.Standalone, Metrics: kept.metrics, Signer: kept.signer}, hub, local),
		addonstatus.AddLease(o.lease(), o.ClusterName, o.Standalone, hub, local),
		sweep.Add(sweep.Options{
			Cluster: o.ClusterName, Interval: cmp.Or(o.SweepInterval, time.Minute),
			Stores: []sweep.Store{
				{Content: "copies of sensitive values", UIDs: kept.secrets.UIDs, Remove: kept.secrets.Remove},
				{Content: "renderings of charts", UIDs: kept.renderings.UIDs, Remove: kept.renderings.Forget},
			},
		}, hub, local),
	)
}

func (o Options) lease() addonstatus.LeaseOptions {
	return addonstatus.LeaseOptions{Version: o.Version, Period: o.LeasePeriod}
}

// keepHub runs the controllers that connect to the hub, and restarts them when they end because the hub was unreachable for too long.
func keepHub(ctx context.Context, o Options, kept shared, local ctrl.Manager) {
	const pause = 5 * time.Second
	for ctx.Err() == nil {
		if err := runHub(ctx, o, kept, local); err != nil {
			ctrl.Log.WithName("agent").Error(err, "the hub is unreachable; retrying", "after", pause)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// runHub adds the controllers that connect to the hub to a manager of it, and runs them until the connection's configuration changes.
func runHub(ctx context.Context, o Options, kept shared, local ctrl.Manager) error {
	config, err := o.Hub()
	if err != nil {
		return fmt.Errorf("finding the hub: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hub, err := hubManager(ctx, o, config)
	if err != nil {
		return fmt.Errorf("connecting to the hub: %w", err)
	}
	lent, err := controller.Lend(local, hub)
	if err != nil {
		return fmt.Errorf("sharing the cache of the managed cluster: %w", err)
	}
	if err := addHub(o, kept, hub, lent); err != nil {
		return err
	}
	go func() {
		defer cancel()
		if o.awaitConfigChange(ctx, config) {
			hub.GetLogger().Info("the configuration of the connection to the hub changed: reconnecting")
		}
	}()
	return hub.Start(ctx)
}

// awaitConfigChange waits until Hub returns another config, or ctx ends. A config that cannot be read counts as unchanged.
func (o Options) awaitConfigChange(ctx context.Context, config *rest.Config) bool {
	period := cmp.Or(o.HubPeriod, time.Minute)
	err := wait.PollUntilContextCancel(ctx, period, false, func(context.Context) (bool, error) {
		now, err := o.Hub()
		return err == nil && !sameConnection(config, now), nil
	})
	return err == nil
}

// sameConnection reports whether two configs connect to the same server with the same identity.
func sameConnection(a, b *rest.Config) bool {
	way := func(c *rest.Config) []any {
		return []any{c.Host, c.APIPath, c.TLSClientConfig, c.Username, c.Password, c.BearerToken, c.BearerTokenFile, c.ExecProvider}
	}
	return reflect.DeepEqual(way(a), way(b))
}

// Scheme returns a scheme with every type that the agent reads or writes typed.
func Scheme() (*runtime.Scheme, error) { return controller.Scheme() }

// electionManager returns the manager that serves the endpoints and takes part in the leader election. It has no controllers and no caches.
func electionManager(o Options) (ctrl.Manager, error) {
	scheme, err := Scheme() // a manager without one writes to client-go's, which is shared
	if err != nil {
		return nil, err
	}
	election, err := ctrl.NewManager(o.Local, ctrl.Options{
		Scheme:                        scheme,
		Logger:                        controller.Logger(ctrl.Log),
		Metrics:                       metricsserver.Options{BindAddress: "0"}, // served with limits
		HealthProbeBindAddress:        "0",
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              "tandem-addon-agent",
		LeaderElectionNamespace:       o.LeaderElectionNamespace,
		LeaderElectionConfig:          controller.WithoutLimits(o.Local), // a separate client renews the Lease under any load
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, err
	}
	if err := o.Metrics.AddTo(election, o.MetricsAddress); err != nil {
		return nil, err
	}
	if election, err = monitoring.WithProbes(election, o.ProbeAddress); err != nil {
		return nil, err
	}
	if err := election.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return election, election.AddReadyzCheck("ping", healthz.Ping)
}

// localManager caches Instances, OperatorVersions and StorageClasses, and other objects only if they carry KUDO's label of an Instance; Roles and
// bindings if they carry its heritage label.
func localManager(ctx context.Context, o Options, unserved controller.Unserved) (ctrl.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	everything := cache.ByObject{Label: labels.Everything()}
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{kudo.LabelHeritage: kudo.Heritage})}
	applied, err := labels.NewRequirement(kudo.LabelInstance, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(o.Local)
	config.WarningHandlerWithContext = rest.NoWarnings{} // a policy's warning may quote a sensitive value, and would be logged
	return ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		MapperProvider: func(config *rest.Config, connection *http.Client) (meta.RESTMapper, error) {
			return controller.NewMapper(config, connection)
		},
		NewCache: controller.NewCache(ctx),
		Cache: cache.Options{
			NewInformer:          unserved.NewInformer,
			DefaultTransform:     engine.TrimManagedFields,
			DefaultLabelSelector: labels.NewSelector().Add(*applied),
			ByObject: map[client.Object]cache.ByObject{
				&kudo.Instance{}:        everything,
				&kudo.OperatorVersion{}: everything,
				&kudo.OperatorContent{}: everything, // only metadata
				// Those that hold the permissions of an Instance are applied by none.
				&rbacv1.Role{}: ours, &rbacv1.RoleBinding{}: ours, &rbacv1.ClusterRole{}: ours, &rbacv1.ClusterRoleBinding{}: ours,
				// The health of volume claims depends on StorageClasses, which belong to no Instance.
				&storagev1.StorageClass{}: everything,
				// Node leases are many, and belong to no add-on.
				&coordinationv1.Lease{}: {
					Label: labels.Everything(), Field: fields.OneTermNotEqualSelector("metadata.namespace", corev1.NamespaceNodeLease),
				},
			},
		},
		Client: client.Options{Cache: &client.CacheOptions{
			Unstructured: true,
			DisableFor:   []client.Object{&corev1.Namespace{}},
		}},
		Controller:             controller.DefaultConfig(),
		Logger:                 controller.Logger(ctrl.Log),
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
}

// hubManager only reads the cluster's own namespace on the hub.
func hubManager(ctx context.Context, o Options, config *rest.Config) (ctrl.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	controllerConfig := controller.DefaultConfig()
	controllerConfig.CacheSyncTimeout = 24 * time.Hour // wait for an unreachable hub instead of giving up
	return ctrl.NewManager(config, ctrl.Options{
		Scheme:   scheme,
		NewCache: controller.NewCache(ctx),
		Cache: cache.Options{
			NewInformer:       controller.NewInformer,
			DefaultTransform:  cache.TransformStripManagedFields(),
			DefaultNamespaces: map[string]cache.Config{o.ClusterName: {}},
		},
		// OperatorVersions and OperatorContents may be read with get, but not with list or watch.
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor: []client.Object{&kudo.OperatorVersion{}, &kudo.OperatorContent{}},
		}},
		Controller:             controllerConfig,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
}
