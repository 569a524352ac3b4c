// Package hub runs the controllers of the hub: they evaluate add-on dependencies, turn add-ons into Instances and admit Instances. Each
// controller reads the hub, calls a pure package to decide, and writes the changes.
package hub

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/keymutex"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/pkg/hub/ocm"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/hub/uninstall"
	"github.com/tandem-addons/tandem/pkg/hub/webhook"
	"github.com/tandem-addons/tandem/pkg/kube/content"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/pkg/kube/monitoring"
)

// Options configure the hub's controllers.
type Options struct {
	// PackagesNamespace is the namespace of OperatorVersions for all clusters; OperatorVersions elsewhere serve only their own cluster.
	PackagesNamespace string
	// ConfigNamespaces are further namespaces whose AddOnDeploymentConfigs all clusters may use.
	ConfigNamespaces []string
	// AllowedNamespaces are reserved namespaces of managed clusters in which Instances may be installed.
	AllowedNamespaces []string
	// LeaderElection runs the controllers in one of several processes; the others are on standby.
	LeaderElection bool
	// LeaderElectionNamespace is the namespace of the Lease; the pod's own namespace if empty.
	LeaderElectionNamespace string
	// MetricsBindAddress and HealthProbeBindAddress are HOST:PORT; "0" disables the endpoint.
	MetricsBindAddress     string
	HealthProbeBindAddress string
	// Metrics is how metrics are served.
	Metrics monitoring.Access
	// WebhookBindAddress is the HOST:PORT of the webhook server, on every replica; empty or "0" disables it.
	WebhookBindAddress string
	// WebhookHosts are the DNS names and IP addresses at which API servers call the webhooks.
	WebhookHosts []string
	// WebhookCallers are the clients that may call the admission webhooks.
	WebhookCallers webhook.Callers
	// Namespace is the namespace of the webhook server's certificates.
	Namespace string
	// WebhookCertificateValidity and WebhookAuthorityValidity are the validity of its certificate and of the signing authority: 30 days and
	// a year if zero. They are renewed at two thirds of their validity.
	WebhookCertificateValidity, WebhookAuthorityValidity time.Duration
	// LeaseTimeout is how long an agent may fail to renew its lease before its add-ons are Unknown; five of the lease's periods if zero.
	LeaseTimeout time.Duration
	// PprofBindAddress is the HOST:PORT of the profiling endpoint; "0" disables it.
	PprofBindAddress string
	// RequireSignedPackages resolves only Instances whose OperatorVersions are signed with a key in the ConfigMap PackageKeys in Namespace.
	RequireSignedPackages bool
	PackageKeys           string
	// Concurrency is the number of objects that each controller reconciles in parallel.
	Concurrency int
	// DeliverAgents installs addon-agent on managed clusters as an OCM add-on, if the hub has OCM.
	DeliverAgents bool
	// AgentArguments are further arguments of all agents that are delivered.
	AgentArguments []string
	// AgentConfigs are patterns of the NAMESPACE/NAME of AddOnDeploymentConfigs that may configure delivered agents, beside those that their
	// ClusterManagementAddOn names.
	AgentConfigs []string
	// Version of the program, shown by `kubectl addon version`.
	Version string
	// Logger is the logger of the controllers.
	Logger logr.Logger
}

// controllers lists all controllers of the hub.
func controllers(mgr manager.Manager, options Options) []controller.Runner {
	metrics := newMetrics(mgr.GetClient())
	recorder := controller.NewRecorder("addon-manager", controller.VerdictEventQPS, mgr.GetLogger().WithName("events"), metrics.eventsDropped)
	reserved := rights.ReservedExcept(options.AllowedNamespaces)
	addOnReader := read.AddOns{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespaces: options.namespaces(), Reserved: reserved, Cycles: read.NewCycles(),
	}
	rolloutReader := addOnReader // follows the condition Resolved of add-ons with doubtful variables
	addOnReader.Doubts = read.NewDoubts()
	reads := newLiveReads(mgr.GetClient(), mgr.GetAPIReader())
	return append([]controller.Runner{
		&enforcement{live: mgr.GetAPIReader(), mapper: mgr.GetRESTMapper(), logger: mgr.GetLogger().WithName("policy")},
		&read.Indexes{},
		metrics,
		recorder,
		&definitions{recorder: recorder, client: mgr.GetClient()},
		&dependencies{recorder: recorder, client: mgr.GetClient(), metrics: metrics, cycles: read.NewCycles(), written: controller.NewWrites()},
		&automatic{recorder: recorder, client: mgr.GetClient(), live: mgr.GetAPIReader(), liveReads: reads},
		&addOns{
			reader: &addOnReader, recorder: recorder, client: mgr.GetClient(), live: mgr.GetAPIReader(),
			liveReads: reads, pace: controller.NewPace(time.Now),
			written: controller.NewWrites(), applied: controller.NewWrites(), starting: keymutex.NewHashed(1024),
			delays: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](controller.ConflictDelay, maxOrderDelay),
		},
		&instances{
			recorder: recorder, client: mgr.GetClient(), live: mgr.GetAPIReader(),
			packagesNamespace: options.PackagesNamespace, reserved: reserved, verifications: read.NewVerifications(), written: controller.NewWrites(),
			contents: content.NewVerifier(mgr.GetClient(), mgr.GetAPIReader()), packageKeys: options.packageKeys(),
			suspendConfig: options.suspendConfig(),
		},
		&children{
			recorder: recorder, client: mgr.GetClient(), live: mgr.GetAPIReader(), packagesNamespace: options.PackagesNamespace,
			liveReads: reads, written: controller.NewWrites(), applied: controller.NewWrites(),
		},
		newLeases(mgr, options.LeaseTimeout),
		&renewals{
			client: mgr.GetClient(), live: mgr.GetAPIReader(), logger: mgr.GetLogger().WithName("renewal"), answers: metrics.ocm.Certificates,
		},
		&ocm.Controllers{
			DeliverAgents: options.DeliverAgents, AgentArguments: options.AgentArguments, AgentConfigs: options.AgentConfigs,
			AddOns: &rolloutReader, CheckLive: reads.check, Recorder: recorder, Metrics: metrics.ocm,
		},
	}, webhook.Controllers(mgr, options.webhook())...)
}

// namespaces returns the namespaces for all clusters.
func (o Options) namespaces() install.Namespaces {
	return install.Namespaces{Packages: o.PackagesNamespace, Configs: o.ConfigNamespaces}
}

// webhook returns the options of the webhook server.
func (o Options) webhook() webhook.Options {
	return webhook.Options{
		Address: o.WebhookBindAddress, Hosts: o.WebhookHosts, Callers: o.WebhookCallers, Namespace: o.Namespace,
		CertificateValidity: o.WebhookCertificateValidity, AuthorityValidity: o.WebhookAuthorityValidity,
		Namespaces: o.namespaces(), Reserved: rights.ReservedExcept(o.AllowedNamespaces), Version: o.Version,
	}
}

// Run runs the hub's controllers until ctx ends. It fails if the hub is unreachable at the start, or if leadership is lost.
func Run(ctx context.Context, cfg *rest.Config, options Options) error {
	mgr, err := newManager(ctx, cfg, options)
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

// Uninstall removes the rules and verdicts of Tandem from a hub, see uninstall.Run.
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

// leaseKey returns the name of the leader's Lease.
func (o Options) leaseKey() types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(o.LeaderElectionNamespace, o.Namespace), Name: addonv1alpha1.LeaderLease}
}

func newManager(ctx context.Context, cfg *rest.Config, options Options) (manager.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	every := controller.DefaultConfig()
	every.MaxConcurrentReconciles = max(1, options.Concurrency)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                        scheme,
		Logger:                        controller.Logger(options.Logger),
		NewCache:                      controller.NewCache(ctx),
		Cache:                         cache.Options{NewInformer: controller.NewInformer, DefaultTransform: read.Transform(), ByObject: cacheByObject(options)},
		LeaderElection:                options.LeaderElection,
		LeaderElectionID:              addonv1alpha1.LeaderLease,
		LeaderElectionNamespace:       options.LeaderElectionNamespace,
		LeaderElectionConfig:          controller.WithoutLimits(cfg), // a separate client renews the Lease under any load
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: "0"}, // served with limits
		HealthProbeBindAddress:        "0",
		PprofBindAddress:              options.PprofBindAddress,
		Controller:                    every,
	})
	if err != nil {
		return nil, err
	}
	if err := options.Metrics.AddTo(mgr, options.MetricsBindAddress); err != nil {
		return nil, err
	}
	if mgr, err = monitoring.WithProbes(mgr, options.HealthProbeBindAddress); err != nil {
		return nil, err
	}
	for _, add := range []func(string, healthz.Checker) error{mgr.AddHealthzCheck, mgr.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return nil, err
		}
	}
	return mgr, nil
}

// cacheByObject limits the cache for kinds of which only few objects are read.
func cacheByObject(options Options) map[client.Object]cache.ByObject {
	objects := webhook.Cache(options.Namespace)
	objects[&coordinationv1.Lease{}] = cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", addonv1alpha1.AgentLease)}
	objects[&certificatesv1.CertificateSigningRequest{}] = cache.ByObject{
		Field: fields.OneTermEqualSelector("spec.signerName", certificatesv1.KubeAPIServerClientSignerName),
	}
	return objects
}

// Scheme returns a scheme with every kind that the hub's controllers read or write.
func Scheme() (*runtime.Scheme, error) {
	return controller.Scheme(apiextensionsv1.AddToScheme, clusterv1.Install)
}
