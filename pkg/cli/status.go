package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func statusCommand(streams genericiooptions.IOStreams, flags *genericclioptions.ConfigFlags) *cobra.Command {
	var cluster string
	cmd := &cobra.Command{
		Use:   "status INSTANCE --cluster CLUSTER",
		Short: "Show the plans of an Instance, and what they wait for",
		Long: "Status shows the plans, phases and steps of an Instance on a managed cluster with their states, and what a running\n" +
			"step waits for or why it failed. It reads the hub only.",
		Args: exactly("INSTANCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cluster == "" {
				return usagef(cmd, "--cluster is required: the managed cluster that the Instance runs on")
			}
			c, err := hubClient(flags)
			if err != nil {
				return err
			}
			view, err := gatherStatus(cmd.Context(), c, cluster, args[0])
			if err != nil {
				return explain(err, cluster)
			}
			_, err = fmt.Fprint(streams.Out, statusText(view))
			return err
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "managed cluster that the Instance runs on (required)")
	return cmd
}

// statusView is all that is shown about an Instance.
type statusView struct {
	instance *kudo.Instance
	// version gives the shape of plans that never ran; nil if it cannot be read, and unreadable says why.
	version    *kudo.OperatorVersion
	unreadable error
}

func gatherStatus(ctx context.Context, c client.Client, cluster, name string) (statusView, error) {
	instance := &kudo.Instance{}
	err := c.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, instance)
	if apierrors.IsNotFound(err) {
		return statusView{}, noInstance(ctx, c, cluster, name)
	}
	if err != nil {
		return statusView{}, fmt.Errorf("reading Instance %q of cluster %q: %w", name, cluster, err)
	}
	ref := instance.Spec.OperatorVersion
	version := &kudo.OperatorVersion{}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if key.Namespace == "" {
		key.Namespace = cluster
	}
	if err := c.Get(ctx, key, version); err != nil {
		return statusView{instance: instance, unreadable: err}, nil
	}
	return statusView{instance: instance, version: version}, nil
}

// noInstance names the Instances that there are instead.
func noInstance(ctx context.Context, c client.Client, cluster, name string) error {
	var list kudo.InstanceList
	if err := c.List(ctx, &list, client.InNamespace(cluster)); err != nil {
		return fmt.Errorf("listing the Instances of cluster %q: %w", cluster, err)
	}
	if len(list.Items) == 0 {
		return fmt.Errorf("cluster %q has no Instance %q, nor any other: is its name right?", cluster, name)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	slices.Sort(names)
	return fmt.Errorf("cluster %q has no Instance %q: it has %s", cluster, name, strings.Join(names, ", "))
}
