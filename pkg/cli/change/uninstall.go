package change

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// UninstallOptions holds the arguments and flags of the command.
type UninstallOptions struct {
	*hubclient.Factory
	hubclient.Selection
	name string
	// yes skips the prompt; release leaves the applied objects on the cluster.
	yes, release bool
	dryRunFlags
	terminal.WaitFlags
}

// NewCmdUninstall returns the command. If runF is set, it replaces runUninstall.
func NewCmdUninstall(f *hubclient.Factory, runF func(context.Context, *UninstallOptions) error) *cobra.Command {
	o := &UninstallOptions{Factory: f}
	if runF == nil {
		runF = runUninstall
	}
	const of = "the add-on or Instance is removed from"
	cmd := &cobra.Command{
		Use:   "uninstall NAME --cluster CLUSTER[,CLUSTER]",
		Short: "Remove an add-on or Instance from managed clusters",
		Long: "Delete an add-on, or an Instance that belongs to no add-on, from managed clusters and wait until it is gone: its cleanup\n" +
			"plan runs first, then its applied objects are removed. The command shows the progress. Interrupting the wait does not stop\n" +
			"the removal.\n\n" +
			"The command first lists the add-ons that depend on it on these clusters, what is deleted together with its\n" +
			"CustomResourceDefinitions and Namespaces, and the objects that its package keeps, and prompts for confirmation. Without a\n" +
			"terminal, --yes is required. With --dry-run nothing is written: the command shows the volume claims that would be\n" +
			"deleted, the cleanup plan, and the objects that would be removed.\n\n" +
			"Nothing is removed from a detached cluster: the command deletes the object on the hub, lists the objects that stay on the\n" +
			"cluster, and fails.\n\n" +
			"With --release no controller waits for the cleanup: the applied objects stay on the cluster in their current state, and the\n" +
			"known ones are listed. Use it if the cluster is gone or the cleanup cannot succeed.",
		Example: "  kubectl addon uninstall kafka --cluster cluster1\n" +
			"  kubectl addon uninstall kafka --cluster cluster1 --release",
		Args: terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, of); err != nil {
				return err
			}
			o.name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.AddFlags(cmd, of)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not prompt for confirmation.")
	cmd.Flags().BoolVar(&o.release, "release", false, "Release the add-on or Instance: leave its applied objects on the cluster.")
	o.addDryRun(cmd)
	o.AddWait(cmd, true, "Wait until the add-on or Instance is gone.")
	return cmd
}

// check validates the flags.
func (o *UninstallOptions) check(cmd *cobra.Command, of string) error {
	if err := refuseNamespace(cmd); err != nil {
		return err
	}
	if err := o.Require(cmd, of); err != nil {
		return err
	}
	if o.dryRun && o.release {
		return terminal.Usagef(cmd, "--dry-run shows what would be removed from the cluster, and --release removes nothing: use only one of them")
	}
	return o.checkDryRun(cmd)
}

func runUninstall(ctx context.Context, o *UninstallOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	return hubclient.Advise(uninstall(ctx, h, o), strings.Join(o.Names, ","))
}

// uninstall deletes the add-on of that name, or else the Instance, on each cluster that has it, and waits for the removal.
func uninstall(ctx context.Context, h hubclient.Hub, o *UninstallOptions) error {
	found, refused, err := gatherUninstalling(ctx, h, o)
	if err != nil {
		return err
	}
	detached, err := read.DetachedClusters(ctx, h, clustersOf(found))
	if err != nil {
		return err
	}
	if !o.release {
		found = refuseProtected(found, detached, refused)
	}
	if o.dryRun {
		changes, err := uninstallChanges(ctx, h, found, detached)
		if err != nil {
			return err
		}
		return showChanges(o.IOStreams, o.output, changes, refused)
	}
	if err := agreeToUninstall(ctx, h, found, detached, o); err != nil {
		return errors.Join(refused.Err(), err)
	}
	problems := []error{refused.Err()}
	if o.release {
		found = slices.DeleteFunc(found, func(i installed) bool {
			if i.Instance == nil {
				return false
			}
			err := release(ctx, h, o.Out, i)
			problems = append(problems, err)
			return err != nil
		})
	}
	r := removal{hub: h, streams: o.IOStreams, found: found, detached: detached, released: o.release, forced: o.release}
	return errors.Join(append(problems, r.run(ctx, o.WaitFlags))...)
}

// gatherUninstalling reads the existing objects of that name on the selected clusters. Clusters without one are omitted, unless they were
// named explicitly.
func gatherUninstalling(ctx context.Context, c client.Reader, o *UninstallOptions) ([]installed, change.Refusals, error) {
	clusters, err := o.toUninstall(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	var found []installed
	refused := change.Refusals{}
	for _, cluster := range slices.Compact(slices.Sorted(slices.Values(clusters))) {
		i, err := gatherInstalled(ctx, c, client.ObjectKey{Namespace: cluster, Name: o.name})
		switch {
		case err != nil:
			return nil, nil, err
		case !i.isGone():
			if err := change.Removal(i).Validate(); err != nil && !o.release {
				refused[cluster] = err
				continue
			}
			found = append(found, i)
		case len(o.Names) > 0:
			others, err := read.InventoryOf(ctx, c, cluster)
			if err != nil {
				return nil, nil, err
			}
			refused[cluster] = others.NotFoundError(o.name)
		}
	}
	if len(found) == 0 && len(refused) == 0 {
		return nil, nil, fmt.Errorf("none of the %d selected clusters has an Instance or add-on %q", len(clusters), o.name)
	}
	return found, refused, nil
}

// toUninstall returns the selected clusters; those that were named explicitly may be gone already.
func (o *UninstallOptions) toUninstall(ctx context.Context, c client.Reader) ([]string, error) {
	if len(o.Names) > 0 {
		return o.Names, nil
	}
	return o.Clusters(ctx, c)
}

// agreeToUninstall lists the affected dependents and what else is deleted, and prompts for confirmation. It returns an error if nothing may be
// deleted.
func agreeToUninstall(ctx context.Context, c client.Reader, found []installed, detached sets.Set[string], o *UninstallOptions) error {
	suffer, _ := impactTexts(found, detached)
	question := "Uninstall %s from %s? This removes its applied objects, including their data."
	if o.release {
		question = "Release %s on %s? Its applied objects stay on the cluster, and are no longer managed."
	} else {
		lost, err := losses(ctx, c, found, detached)
		if err != nil {
			return err
		}
		suffer = append(suffer, lost...)
	}
	if err := terminal.Warn(o.ErrOut, append(suffer, keptTexts(found)...)...); err != nil || o.yes || len(found) == 0 {
		return err
	}
	where := terminal.OnClusters(clustersOf(found))
	if !printers.IsTerminal(o.In) {
		return fmt.Errorf("%s was not uninstalled from %s: cannot prompt for confirmation without a terminal; use --yes",
			found[0], where)
	}
	return terminal.Confirm(o.IOStreams, fmt.Sprintf(question, text.Word(found[0].Name), where))
}

// release force-releases this Instance and its children, so that no controller waits for their removal, and lists the objects that they leave
// behind. An Instance re-created under the same name is not affected.
func release(ctx context.Context, c client.Client, out io.Writer, found installed) error {
	instance := found.Instance
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:"true"}}}`, instance.UID, kudo.AnnotationForceRelease)
	err := c.Patch(ctx, instance.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(hubclient.FieldManager))
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("releasing Instance %q: %w", instance.Name, err))
	}
	text := leftText(instance)
	for i := range found.Below {
		text += leftText(&found.Below[i])
	}
	return printers.WriteEscaped(out, text)
}
