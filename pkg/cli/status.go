package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func statusCommand(streams genericiooptions.IOStreams, flags *genericclioptions.ConfigFlags) *cobra.Command {
	var cluster string
	var withChildren, watch bool
	o := newOutput(formatName)
	cmd := &cobra.Command{
		Use:   "status NAME --cluster CLUSTER",
		Short: "Show the plans of an Instance or add-on, and what they wait for",
		Long: "Status shows the plans, phases and steps of an Instance on a managed cluster with their states, and what a running\n" +
			"step waits for or why it failed. Of an add-on that has no Instance yet, which is called as the add-on, it shows what\n" +
			"its installation waits for. With --tree it shows the Instance's children as well, and theirs. With --watch it goes on\n" +
			"to show what changes, until it is interrupted or the Instance is gone. It reads the hub only.",
		Example: "  kubectl addon plan status kafka --cluster cluster1\n" +
			"  kubectl addon plan status streaming --cluster cluster1 --tree --watch",
		Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if watch && !o.isText() {
				return usagef(cmd, "--watch prints text: leave --output away")
			}
			h, err := connect(flags, streams.ErrOut)
			if err != nil {
				return err
			}
			key := client.ObjectKey{Namespace: cluster, Name: args[0]}
			found, err := status(cmd.Context(), h, key, withChildren)
			if err != nil {
				return explain(err, cluster)
			}
			if watch {
				return explain(watchStatus(cmd.Context(), h, streams.Out, key, withChildren), cluster)
			}
			return o.print(streams.Out, found)
		},
	}
	cmd.Flags().BoolVar(&withChildren, "tree", false, "show the children of the Instance as well, and theirs")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on to show what changes")
	clusterFlag(cmd, &cluster, "the Instance or add-on is for")
	o.addFlag(cmd)
	return cmd
}

// status shows the Instance of that key, perhaps with its children, else the add-on. If there is neither, the error names what there is.
func status(ctx context.Context, c client.Reader, key client.ObjectKey, withChildren bool) (shown, error) {
	instance := &kudo.Instance{}
	err := c.Get(ctx, key, instance)
	if err == nil {
		view := gatherStatus(ctx, c, instance)
		if withChildren {
			err = gatherChildren(ctx, c, &view)
		}
		return view.shown(), err
	}
	if !apierrors.IsNotFound(err) {
		return shown{}, fmt.Errorf("reading Instance %q of cluster %q: %w", key.Name, key.Namespace, err)
	}
	addOn := &addon.ManagedClusterAddOn{}
	err = c.Get(ctx, key, addOn)
	if err == nil {
		return shown{text: addOnText(addOn), data: addOnData(addOn), names: []string{
			objectName(addon.GroupVersion.Group, "ManagedClusterAddOn", addOn.Name),
		}}, nil
	}
	if !apierrors.IsNotFound(err) {
		return shown{}, fmt.Errorf("reading ManagedClusterAddOn %q of cluster %q: %w", key.Name, key.Namespace, err)
	}
	found, err := gatherInventory(ctx, c, key.Namespace)
	if err != nil {
		return shown{}, err
	}
	return shown{}, found.lacks(key.Name)
}

// statusView is all that is shown about an Instance.
type statusView struct {
	instance *kudo.Instance
	// version gives the shape of plans that never ran; nil if it cannot be read, and unreadable says why.
	version    *kudo.OperatorVersion
	unreadable error
	// withChildren says that the children are shown as well.
	withChildren bool
	children     []statusView
}

func (v statusView) shown() shown {
	return shown{text: statusText(v), data: statusData(v), names: v.names()}
}

// names are those of the Instance, and of its children where they are shown.
func (v statusView) names() []string {
	names := []string{objectName(kudo.GroupVersion.Group, "Instance", v.instance.Name)}
	for _, child := range v.children {
		names = append(names, child.names()...)
	}
	return names
}

func gatherStatus(ctx context.Context, c client.Reader, instance *kudo.Instance) statusView {
	ref := instance.Spec.OperatorVersion
	version := &kudo.OperatorVersion{}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if key.Namespace == "" {
		key.Namespace = instance.Namespace
	}
	if err := c.Get(ctx, key, version); err != nil {
		return statusView{instance: instance, unreadable: err}
	}
	return statusView{instance: instance, version: version}
}
