// Package hub is what runs on the hub: controllers that judge add-on dependencies, turn add-ons into Instances and admit
// Instances. Each controller reads the hub, lets a pure package decide, and writes what changed.
package hub

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/controller"
	"github.com/tandem-addons/tandem/pkg/hub/ocm"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/hub/uninstall"
	"github.com/tandem-addons/tandem/pkg/hub/webhook"
)

// leaderLease is the Lease by which one of several processes works.
const leaderLease = "tandem-addon-manager"

// Options say how the hub's controllers run.
type Options struct {
	// PackagesNamespace is where OperatorVersions for all clusters stand; OperatorVersions elsewhere serve their own cluster only.
	PackagesNamespace string
	// LeaderElection lets one of several processes work; the others stand by.
	LeaderElection bool
	// LeaderElectionNamespace holds the lease; the pod's own namespace if empty.
	LeaderElectionNamespace string
	// MetricsBindAddress and HealthProbeBindAddress are HOST:PORT; "0" serves nothing.
	MetricsBindAddress     string
	HealthProbeBindAddress string
	// WebhookBindAddress is HOST:PORT where webhooks are served, on every replica; empty or "0" serves none.
	WebhookBindAddress string
	// WebhookHosts are the DNS names and IPs by which API servers call the webhooks.
	WebhookHosts []string
	// Namespace is where the webhook server's certificates are kept.
	Namespace string
	// WebhookCertificateValidity and WebhookAuthorityValidity are how long its certificate and the authority that signs it are valid:
	// 30 days and a year if zero. They are renewed at two thirds of that.
	WebhookCertificateValidity, WebhookAuthorityValidity time.Duration
	// LeaseGrace is how long an agent may leave its lease unrenewed before its add-ons are Unknown; five of the lease's periods if zero.
	LeaseGrace time.Duration
	// PprofBindAddress is the HOST:PORT that serves profiles; "0" serves none.
	PprofBindAddress string
	// Concurrency is how many objects each controller works on at a time.
	Concurrency int
	// DeliverAgents delivers addon-agent to managed clusters as an add-on of OCM's, where the hub has OCM.
	DeliverAgents bool
	// Version of the program, for `kubectl addon version`.
	Version string
	// Logger gets everything that the controllers log.
	Logger logr.Logger
}

// controllers is the table of contents: everything that runs on the hub.
func controllers(mgr manager.Manager, options Options) []controller.Runner {
	metrics := newMetrics()
	recorder := controller.NewRecorder("addon-manager", mgr.GetLogger().WithName("events"), metrics.eventsDropped)
	byPlans := &read.AddOns{Client: mgr.GetClient(), PackagesNamespace: options.PackagesNamespace, Cycles: read.NewCycles()}
	return append([]controller.Runner{
		&enforcement{live: mgr.GetAPIReader(), mapper: mgr.GetRESTMapper(), logger: mgr.GetLogger().WithName("policy")},
		&read.Indexes{},
		metrics,
		recorder,
		&definitions{recorder: recorder, client: mgr.GetClient()},
		&dependencies{recorder: recorder, client: mgr.GetClient(), metrics: metrics, cycles: read.NewCycles(), written: controller.NewWrites()},
		&addOns{
			reader: byPlans, recorder: recorder, client: mgr.GetClient(), live: mgr.GetAPIReader(),
			written: controller.NewWrites(), applied: controller.NewWrites(),
		},
		&instances{
			recorder: recorder, client: mgr.GetClient(), live: mgr.GetAPIReader(),
			packagesNamespace: options.PackagesNamespace, verifications: read.NewVerifications(), written: controller.NewWrites(),
		},
		&children{
			recorder: recorder, client: mgr.GetClient(), live: mgr.GetAPIReader(), written: controller.NewWrites(), applied: controller.NewWrites(),
		},
		newLeases(mgr, options.LeaseGrace),
		&ocm.Controllers{DeliverAgents: options.DeliverAgents, AddOns: byPlans, Recorder: recorder, Metrics: metrics.ocm},
	}, webhook.Controllers(mgr, options.webhook())...)
}

// webhook is what serving webhooks needs of them.
func (o Options) webhook() webhook.Options {
	return webhook.Options{
		Address: o.WebhookBindAddress, Hosts: o.WebhookHosts, Namespace: o.Namespace,
		CertificateValidity: o.WebhookCertificateValidity, AuthorityValidity: o.WebhookAuthorityValidity,
		PackagesNamespace: o.PackagesNamespace, Version: o.Version,
	}
}

// Run runs the hub's controllers until ctx ends. It fails when the hub cannot be reached at the start, or the leadership is lost.
func Run(ctx context.Context, cfg *rest.Config, options Options) error {
	mgr, err := newManager(cfg, options)
	if err != nil {
		return fmt.Errorf("preparing the hub's controllers: %w", err)
	}
	for _, c := range controllers(mgr, options) {
		if err := c.SetUp(mgr); err != nil {
			return fmt.Errorf("setting up the hub's controllers: %w", err)
		}
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the hub's controllers: %w", err)
	}
	return nil
}

// Uninstall takes what Tandem enforces and what it has judged off a hub, as uninstall.Run does.
func Uninstall(ctx context.Context, cfg *rest.Config, options Options, out io.Writer) error {
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connecting to the hub: %w", err)
	}
	return uninstall.Run(ctx, c, uninstall.Options{Lease: options.leaseKey(), Concurrency: options.Concurrency}, out)
}

// leaseKey is the Lease that the leader holds.
func (o Options) leaseKey() types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(o.LeaderElectionNamespace, o.Namespace), Name: leaderLease}
}

func newManager(cfg *rest.Config, options Options) (manager.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	every := controller.Every()
	every.MaxConcurrentReconciles = max(1, options.Concurrency)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                        scheme,
		Logger:                        controller.Calm(options.Logger),
		Cache:                         cache.Options{DefaultTransform: read.Trim, ByObject: cached(options)},
		LeaderElection:                options.LeaderElection,
		LeaderElectionID:              leaderLease,
		LeaderElectionNamespace:       options.LeaderElectionNamespace,
		LeaderElectionConfig:          controller.Apart(cfg), // however much there is to do, the Lease is kept
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: options.MetricsBindAddress},
		HealthProbeBindAddress:        options.HealthProbeBindAddress,
		PprofBindAddress:              options.PprofBindAddress,
		Controller:                    every,
	})
	if err != nil {
		return nil, err
	}
	for _, add := range []func(string, healthz.Checker) error{mgr.AddHealthzCheck, mgr.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return nil, err
		}
	}
	return mgr, nil
}

// cached limits what the cache holds of kinds of which few objects are read.
func cached(options Options) map[client.Object]cache.ByObject {
	objects := webhook.Cache(options.Namespace)
	objects[&coordinationv1.Lease{}] = cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", addonv1alpha1.AgentLease)}
	return objects
}

// Scheme knows every kind that the hub's controllers read or write.
func Scheme() (*runtime.Scheme, error) { return controller.Scheme(apiextensionsv1.AddToScheme) }
