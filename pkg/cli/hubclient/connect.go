package hubclient

import (
	"fmt"
	"io"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// FieldManager is the field manager of all writes of the plugin.
const FieldManager = "kubectl-addon"

// Hub is a connection to the hub's API server.
type Hub struct {
	client.Client
	Config  *rest.Config
	contact *contact
}

// connect connects to the hub selected by the flags and the kubeconfig. Warnings of the hub are written to errOut.
func connect(flags *genericclioptions.ConfigFlags, errOut io.Writer) (Hub, error) {
	config, err := HubConfig(flags)
	if err != nil {
		return Hub{}, err
	}
	config.QPS, config.Burst = 50, 300 // kubectl's limits; client-go's defaults would delay the pages of a long list
	config.WarningHandler = rest.NewWarningWriter(errOut, rest.WarningWriterOptions{Deduplicate: true})
	contact := newContact()
	contact.watch(config)
	scheme := runtime.NewScheme()
	utilruntime.Must(kudo.AddToScheme(scheme))
	utilruntime.Must(addonv1alpha1.AddToScheme(scheme))
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(coordinationv1.AddToScheme(scheme))
	utilruntime.Must(authorizationv1.AddToScheme(scheme))
	utilruntime.Must(clusterv1.Install(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return Hub{}, fmt.Errorf("connecting to the hub: %w", err)
	}
	return Hub{Client: c, Config: config, contact: contact}, nil
}
