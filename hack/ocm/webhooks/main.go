// Command webhooks serves what the webhook servers of an OCM hub serve: admission of clusters, cluster sets and ManifestWorks, and
// conversion of add-ons. The webhooks are OCM's own; only the server around them is not, because OCM's listens for probes and metrics on
// fixed ports, so that no two of its programs run on one machine. It is the default of OCM's operator in everything else.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"open-cluster-management.io/api/feature"
	workv1 "open-cluster-management.io/api/work/v1"
	addonv1alpha1 "open-cluster-management.io/ocm/pkg/addon/webhook/v1alpha1"
	addonv1beta1 "open-cluster-management.io/ocm/pkg/addon/webhook/v1beta1"
	"open-cluster-management.io/ocm/pkg/common/options"
	"open-cluster-management.io/ocm/pkg/features"
	registrationv1 "open-cluster-management.io/ocm/pkg/registration/webhook/v1"
	registrationv1beta2 "open-cluster-management.io/ocm/pkg/registration/webhook/v1beta2"
	work "open-cluster-management.io/ocm/pkg/work/webhook"
	"open-cluster-management.io/ocm/pkg/work/webhook/common"
	worksv1 "open-cluster-management.io/ocm/pkg/work/webhook/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "webhooks:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	var address, certificate, key string
	flags := flag.NewFlagSet("webhooks", flag.ExitOnError)
	config.RegisterFlags(flags) // --kubeconfig
	flags.StringVar(&address, "bind-address", "127.0.0.1:9443", "HOST:PORT that serves the webhooks, and /healthz beside them")
	flags.StringVar(&certificate, "tls-cert-file", "tls.crt", "certificate to serve with")
	flags.StringVar(&key, "tls-private-key-file", "tls.key", "its key, in the same folder")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	ctrl.SetLogger(klog.NewKlogr())
	for _, gates := range []map[featuregate.Feature]featuregate.FeatureSpec{
		feature.DefaultHubRegistrationFeatureGates, feature.DefaultHubWorkFeatureGates,
	} {
		if err := features.HubMutableFeatureGate.Add(gates); err != nil {
			return fmt.Errorf("setting feature gates: %w", err)
		}
	}
	server, err := newServer(address, certificate, key)
	if err != nil {
		return err
	}
	mgr, err := newManager(server)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newServer(address, certificate, key string) (webhook.Server, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("reading --bind-address: %w", err)
	}
	port, err := strconv.Atoi(service)
	if err != nil {
		return nil, fmt.Errorf("reading --bind-address: %w", err)
	}
	server := webhook.NewServer(webhook.Options{
		Host: host, Port: port,
		CertDir: filepath.Dir(certificate), CertName: filepath.Base(certificate), KeyName: filepath.Base(key),
	})
	// The health check is served by the server of the webhooks, so that it also checks that server.
	server.Register("/healthz", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "ok") }))
	return server, nil
}

// newManager makes a manager that runs the server with all of OCM's webhooks.
func newManager(server webhook.Server) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.Install, registrationv1beta2.Install, workv1.Install,
		addonv1alpha1.Install, addonv1beta1.Install,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering API types: %w", err)
		}
	}
	hub, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the hub (set its kubeconfig with --kubeconfig): %w", err)
	}
	mgr, err := ctrl.NewManager(hub, ctrl.Options{
		Scheme: scheme, WebhookServer: server, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the server: %w", err)
	}
	common.ManifestValidator.WithLimit(work.NewOptions().ManifestLimit)
	for _, w := range []options.WebhookInitializer{
		&registrationv1.ManagedClusterWebhook{}, &registrationv1beta2.ManagedClusterSetBindingWebhook{}, &worksv1.ManifestWorkWebhook{},
		&addonv1alpha1.ManagedClusterAddOnWebhook{}, &addonv1beta1.ManagedClusterAddOnWebhook{},
		&addonv1alpha1.ClusterManagementAddOnWebhook{}, &addonv1beta1.ClusterManagementAddOnWebhook{},
	} {
		if err := w.Init(mgr); err != nil {
			return nil, fmt.Errorf("setting up %T: %w", w, err)
		}
	}
	return mgr, nil
}
