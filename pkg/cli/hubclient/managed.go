package hubclient

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/text"
)

// ManagedFlags holds the connection flags for a managed cluster.
type ManagedFlags struct{ kubeconfig, context string }

// AddFlags adds the flags to a command.
func (f *ManagedFlags) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kubeconfig, "cluster-kubeconfig", "",
		"Kubeconfig of the managed cluster, if the kubeconfig of the hub does not contain it.")
	cmd.Flags().StringVar(&f.context, "cluster-context", "", "Kubeconfig context of the managed cluster.")
}

// IsSet reports whether one of the flags is set.
func (f *ManagedFlags) IsSet() bool { return f.kubeconfig != "" || f.context != "" }

// Config returns the client configuration of the managed cluster. flags provides the kubeconfig unless the flags name one.
func (f *ManagedFlags) Config(flags *genericclioptions.ConfigFlags) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = cmp.Or(f.kubeconfig, ptr.Deref(flags.KubeConfig, ""))
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.context})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the managed cluster: %w%s", err, otherContexts(loader, f.context))
	}
	return config, nil
}

// HubConfig returns the client configuration of the hub.
func HubConfig(flags *genericclioptions.ConfigFlags) (*rest.Config, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the hub: %w%s", err, otherContexts(flags.ToRawKubeConfigLoader(), ptr.Deref(flags.Context, "")))
	}
	return config, nil
}

// otherContexts returns the contexts of a kubeconfig for a message about one that does not exist; empty if it exists, or if none was named.
func otherContexts(loader clientcmd.ClientConfig, context string) string {
	names := Contexts(loader)
	if context == "" || slices.Contains(names, context) {
		return ""
	}
	return fmt.Sprintf("%s; contexts of the kubeconfig: %s", text.DidYouMean(context, names), text.ListOrNone(names))
}

// Contexts returns the names of the contexts of a kubeconfig; none if it cannot be read.
func Contexts(loader clientcmd.ClientConfig) []string {
	config, err := loader.RawConfig()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}

// AnyClient returns a client for a hub or a managed cluster, with the core and certificates kinds.
func AnyClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, certificatesv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.New(config, client.Options{Scheme: scheme})
}
