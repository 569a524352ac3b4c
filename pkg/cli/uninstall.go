package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/dependency"
)

// uninstallOptions say how to uninstall.
type uninstallOptions struct {
	force, wait bool
	timeout     time.Duration
}

func uninstallCommand(streams genericiooptions.IOStreams, flags *genericclioptions.ConfigFlags) *cobra.Command {
	var (
		cluster string
		options uninstallOptions
	)
	cmd := &cobra.Command{
		Use:   "uninstall NAME --cluster CLUSTER",
		Short: "Remove an add-on, or an Instance, from a cluster",
		Long: "Uninstall deletes an add-on of a managed cluster, or an Instance that is no add-on's, and waits until it is gone: its\n" +
			"cleanup plan runs first, then what it has applied is removed. What is waited for is shown; to stop waiting stops\n" +
			"nothing else. Add-ons on the cluster that depend on it are named.\n\n" +
			"With --force nobody waits: what it has applied stays on the cluster as it is at that moment, and the objects that\n" +
			"are known to be there are listed. That is for a cluster that is gone, and for a cleanup that cannot succeed.",
		Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := connect(flags, streams.ErrOut)
			if err != nil {
				return err
			}
			return explain(uninstall(cmd.Context(), h, streams, client.ObjectKey{Namespace: cluster, Name: args[0]}, options), cluster)
		},
	}
	clusterFlag(cmd, &cluster, "the add-on or Instance is on")
	cmd.Flags().BoolVar(&options.force, "force", false, "let go of it: leave what it has applied on the cluster")
	cmd.Flags().BoolVar(&options.wait, "wait", true, "wait until it is gone")
	timeoutFlag(cmd, &options.timeout)
	return cmd
}

// installed is what stands on the hub of what is to be uninstalled.
type installed struct {
	client.ObjectKey
	addOn    *addon.ManagedClusterAddOn
	instance *kudo.Instance
	// below are the Instance's children, and theirs, each before its own.
	below []kudo.Instance
	// dependants are the add-ons on the cluster that suffer without it.
	dependants []dependency.Dependant
}

// uninstall deletes the add-on of that key, else the Instance, and waits until it is gone.
func uninstall(
	ctx context.Context, h hub, streams genericiooptions.IOStreams, key client.ObjectKey, options uninstallOptions,
) error {
	found, err := gatherInstalled(ctx, h, key)
	if err != nil {
		return err
	}
	if err := found.refuse(options.force); err != nil {
		return err
	}
	suffer, _ := suffering([]installed{found})
	if err := warn(streams.ErrOut, suffer...); err != nil {
		return err
	}
	if options.force && found.instance != nil {
		if err := letGo(ctx, h, streams.Out, found); err != nil {
			return err
		}
	}
	if err := remove(ctx, h, found); err != nil {
		return err
	}
	if !options.wait {
		return printers.WriteEscaped(streams.Out, fmt.Sprintf("%s is being deleted\n", found))
	}
	if err := awaitGone(ctx, h, streams.ErrOut, []installed{found}, options.timeout); err != nil {
		return err
	}
	return printers.WriteEscaped(streams.Out, fmt.Sprintf("%s deleted\n", found))
}

// gatherInstalled reads what there is of that key. If there is nothing, the error names what there is instead.
func gatherInstalled(ctx context.Context, c client.Reader, key client.ObjectKey) (installed, error) {
	found := installed{ObjectKey: key}
	var err error
	if found, err = found.now(ctx, c); err != nil {
		return found, err
	}
	if found.addOn != nil {
		view, err := gatherCluster(ctx, c, key.Namespace)
		if err != nil {
			return found, err
		}
		found.dependants = view.dependants(key.Name)
		return found, nil
	}
	if found.instance != nil {
		return found, nil
	}
	others, err := gatherInventory(ctx, c, key.Namespace)
	if err != nil {
		return found, err
	}
	return found, others.lacks(key.Name)
}

// now reads what is there by now. An Instance of the add-on's name that is not its own is none of this.
func (i installed) now(ctx context.Context, c client.Reader) (installed, error) {
	addOn, instance := &addon.ManagedClusterAddOn{}, &kudo.Instance{}
	next := installed{ObjectKey: i.ObjectKey, dependants: i.dependants}
	switch err := c.Get(ctx, i.ObjectKey, addOn); {
	case err == nil:
		next.addOn = addOn
	case !apierrors.IsNotFound(err):
		return i, fmt.Errorf("reading ManagedClusterAddOn %q of cluster %q: %w", i.Name, i.Namespace, err)
	}
	switch err := c.Get(ctx, i.ObjectKey, instance); {
	case err == nil && (next.addOn == nil || metav1.IsControlledBy(instance, next.addOn)):
		next.instance = instance
	case client.IgnoreNotFound(err) != nil:
		return i, fmt.Errorf("reading Instance %q of cluster %q: %w", i.Name, i.Namespace, err)
	}
	if next.instance != nil && len(next.instance.Status.Children) > 0 {
		var instances kudo.InstanceList
		if err := c.List(ctx, &instances, client.InNamespace(i.Namespace)); err != nil {
			return i, fmt.Errorf("listing Instances of cluster %q: %w", i.Namespace, err)
		}
		next.below = below(next.instance, instances.Items)
	}
	return next, nil
}

// below are the Instance's children among instances, and theirs, each before its own.
func below(parent *kudo.Instance, instances []kudo.Instance) []kudo.Instance {
	var found []kudo.Instance
	for i := range instances {
		if metav1.IsControlledBy(&instances[i], parent) {
			found = append(append(found, instances[i]), below(&instances[i], instances)...)
		}
	}
	return found
}

// dependants are the add-ons on the cluster that would suffer without that one, and are there to stay.
func (v clusterView) dependants(name string) []dependency.Dependant {
	needs := make(map[string][]addon.AddonDependency, len(v.definitions))
	for of := range v.definitions {
		needs[of] = v.needs(of)
	}
	return dependency.Dependants(name, dependency.Direct(needs), func(other string) bool {
		there := v.addOns[other]
		return there != nil && there.DeletionTimestamp.IsZero()
	})
}

// refuse is the error for a child, which its parent would make again.
func (i installed) refuse(force bool) error {
	if i.addOn != nil || i.instance == nil || force {
		return nil
	}
	if owner := metav1.GetControllerOf(i.instance); owner != nil && owner.Kind == "Instance" && i.instance.DeletionTimestamp.IsZero() {
		return fmt.Errorf("%q is a child of Instance %q, which would make it again: uninstall that one, or change its parameters",
			i.Name, owner.Name)
	}
	return nil
}

// letGo marks the Instance, and no other of its name, so that nobody waits for its removal, and lists what it leaves behind; its
// children go the same way.
func letGo(ctx context.Context, c client.Client, out io.Writer, found installed) error {
	instance := found.instance
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:"true"}}}`, instance.UID, kudo.AnnotationForceRelease)
	err := c.Patch(ctx, instance.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(fieldManager))
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("letting go of Instance %q: %w", instance.Name, err))
	}
	text := leftText(instance)
	for i := range found.below {
		text += leftText(&found.below[i])
	}
	return printers.WriteEscaped(out, text)
}

// remove deletes the add-on, whose Instance addon-manager deletes, or the Instance.
func remove(ctx context.Context, c client.Client, found installed) error {
	var object client.Object = found.instance
	if found.addOn != nil {
		object = found.addOn
	}
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	uid := object.GetUID()
	if err := c.Delete(ctx, object, client.Preconditions{UID: &uid}); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("deleting %s: %w", found, err))
	}
	return nil
}

// awaitGone waits until everything that was found is gone, and shows what it waits for.
func awaitGone(ctx context.Context, h hub, out io.Writer, found []installed, timeout time.Duration) error {
	w := goneWait{hub: h, progress: newProgress(out), going: found}
	return h.await(ctx, w.clusters(), timeout, w.look, func(after string) error {
		return fmt.Errorf("%s is not gone%s, and its removal goes on%s (see 'kubectl addon uninstall --help' for --force)",
			w.names(), after, strings.TrimSuffix(": "+w.waiting, ": "))
	})
}

// goneWait waits for what was found to be gone.
type goneWait struct {
	hub      client.Reader
	progress *progress
	// going is what is still there, and waiting what the first of it waits for.
	going   []installed
	waiting string
}

func (w *goneWait) look(ctx context.Context, reader client.Reader) (bool, error) {
	var trees []node
	var still []installed
	for _, i := range w.going {
		left, err := i.left(ctx, reader)
		if err == nil && left.gone() {
			left, err = i.left(ctx, w.hub) // what follows the hub may be behind it
		}
		if err != nil {
			return false, err
		}
		if left.gone() {
			continue
		}
		line := node{part: "waiting", message: left.waitText()}
		if len(w.going) > 1 || len(still) > 0 {
			line.part = fmt.Sprintf("waiting for %s on %s", word(i.Name), word(i.Namespace))
		}
		line.text = line.part + ": " + line.message
		trees, still = append(trees, line), append(still, i)
	}
	if w.going = still; len(trees) == 0 {
		return true, w.progress.show()
	}
	w.waiting = trees[0].message
	return false, w.progress.show(trees...)
}

// clusters are those of what is still there.
func (w *goneWait) clusters() []string {
	var clusters []string
	for _, i := range w.going {
		clusters = append(clusters, i.Namespace)
	}
	return clusters
}

// names are those of what is still there.
func (w *goneWait) names() string {
	if len(w.going) == 1 {
		return w.going[0].String()
	}
	return fmt.Sprintf("%s on %s", w.going[0], onClusters(w.clusters()))
}

// left is what is still there of what was found.
func (i installed) left(ctx context.Context, c client.Reader) (installed, error) {
	left, err := i.now(ctx, c)
	if err != nil {
		return left, err
	}
	if i.addOn == nil || left.addOn != nil && left.addOn.UID != i.addOn.UID {
		left.addOn = nil
	}
	if left.instance != nil && !i.includes(left.instance) {
		left.instance = nil
	}
	return left, nil
}

// includes says whether the Instance is what was found, and not another one of its name.
func (i installed) includes(instance *kudo.Instance) bool {
	if i.addOn != nil {
		return metav1.IsControlledBy(instance, i.addOn)
	}
	return i.instance != nil && instance.UID == i.instance.UID
}

func (i installed) gone() bool { return i.addOn == nil && i.instance == nil }
