package hubclient

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ManagedFlags holds the connection flags for a managed cluster.
type ManagedFlags struct{ kubeconfig, context string }

func (f *ManagedFlags) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kubeconfig, "cluster-kubeconfig", "", "kubeconfig of the managed cluster, if it is not in that of the hub")
	cmd.Flags().StringVar(&f.context, "cluster-context", "", "kubeconfig context of the managed cluster")
}

func (f *ManagedFlags) Given() bool { return f.kubeconfig != "" || f.context != "" }

func (f *ManagedFlags) Config(flags *genericclioptions.ConfigFlags) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = cmp.Or(f.kubeconfig, ptr.Deref(flags.KubeConfig, ""))
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the managed cluster: %w", err)
	}
	return config, nil
}

func AnyClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, certificatesv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.New(config, client.Options{Scheme: scheme})
}
