package change

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// DisableOptions holds the arguments and flags of the command.
type DisableOptions struct {
	*hubclient.Factory
	hubclient.Selection
	addOn string
	// yes skips the prompt; force ignores dependents that require the add-on.
	yes, force bool
	dryRunFlags
	terminal.WaitFlags
}

// NewCmdDisable returns the command. If runF is set, it replaces runDisable.
func NewCmdDisable(f *hubclient.Factory, runF func(context.Context, *DisableOptions) error) *cobra.Command {
	o := &DisableOptions{Factory: f}
	if runF == nil {
		runF = runDisable
	}
	const of = "the add-on is removed from"
	cmd := &cobra.Command{
		Use:   "disable ADDON --cluster CLUSTER[,CLUSTER]",
		Short: "Remove an add-on from managed clusters",
		Long: "Delete an add-on from managed clusters and wait until it is gone. Select the clusters with --cluster, --selector,\n" +
			"--placement or --all-clusters. Interrupting the wait does not stop the removal.\n\n" +
			"The command first lists the add-ons that depend on the add-on on these clusters, what is deleted together with its\n" +
			"CustomResourceDefinitions and Namespaces, and the objects that its package keeps, and prompts for confirmation. With --yes it\n" +
			"does not prompt, and fails if other add-ons require the add-on, unless --force is set. Without a terminal, --yes is required.\n" +
			"If an add-on that requires it protects it from removal (removal: Protect), --force is required in any case. An add-on that runs\n" +
			"a package is removed after those that depend on it and are being removed, too.\n" +
			"With --dry-run nothing is written: the command shows the volume claims that would be deleted, the cleanup plan, and the objects\n" +
			"that would be removed.\n\n" +
			"Nothing is removed from a detached cluster: the command deletes the add-on on the hub, lists the objects that stay on the\n" +
			"cluster, and fails.\n\n" +
			"If a cluster is gone or the cleanup cannot succeed, release the add-on with 'kubectl addon uninstall --release'.",
		Example: "  kubectl addon disable kafka --cluster cluster1 --dry-run\n" +
			"  kubectl addon disable kafka --cluster cluster1\n" +
			"  kubectl addon disable kafka --selector region=eu --yes",
		Args: terminal.Exactly("ADDON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Require(cmd, of); err != nil {
				return err
			}
			if err := refuseNamespace(cmd); err != nil {
				return err
			}
			if err := o.checkDryRun(cmd); err != nil {
				return err
			}
			o.addOn = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.AddFlags(cmd, of)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not prompt for confirmation.")
	cmd.Flags().BoolVar(&o.force, "force", false, "Disable the add-on even if other add-ons require or protect it, or a Placement enables it again.")
	o.addDryRun(cmd)
	o.AddWait(cmd, true, "Wait until the add-on is gone.")
	return cmd
}

func runDisable(ctx context.Context, o *DisableOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	return hubclient.Advise(disable(ctx, h, o), strings.Join(o.Names, ","))
}

// disable deletes the add-on on each cluster that has it.
func disable(ctx context.Context, h hubclient.Hub, o *DisableOptions) error {
	found, err := gatherDisabling(ctx, h, o.addOn, o.Selection)
	if err != nil {
		return err
	}
	if o.dryRun {
		return found.show(ctx, h, o)
	}
	if found.losses, err = losses(ctx, h, found.there, found.detached); err != nil {
		return err
	}
	if err := found.agree(o); err != nil {
		return err
	}
	return removal{hub: h, streams: o.IOStreams, found: found.there, detached: found.detached, forced: o.force}.run(ctx, o.WaitFlags)
}

// disabling is an add-on to delete.
type disabling struct {
	addOn string
	// there lists the existing objects by cluster.
	there []installed
	// detached holds the clusters from which nothing is removed.
	detached sets.Set[string]
	// losses states what else is deleted, and what is kept.
	losses []string
	// returns is set if the add-on would be re-created, and states why.
	returns error
}

// gatherDisabling reads the installed add-ons and their dependents. It returns an error if the add-on is not installed, or not on a named
// cluster.
func gatherDisabling(ctx context.Context, c client.Reader, addOn string, where hubclient.Selection) (disabling, error) {
	found := disabling{addOn: addOn}
	clusters, err := where.Clusters(ctx, c)
	if err != nil {
		return found, err
	}
	definitions, fleet, err := read.FleetForRemoval(ctx, c, clusters)
	if err != nil {
		return found, err
	}
	for _, cluster := range clusters {
		view := fleet[cluster]
		if view.AddOns[addOn] == nil {
			if len(where.Names) > 0 {
				return found, change.NotEnabledError(view, addOn)
			}
			continue
		}
		found.there = append(found.there, installed(change.RemovalOf(view, addOn)))
	}
	if len(found.there) == 0 {
		return found, fmt.Errorf("add-on %q is not enabled on any of the %d selected clusters; see 'kubectl addon get %s'",
			addOn, len(clusters), addOn)
	}
	if found.detached, err = read.DetachedClusters(ctx, c, clustersOf(found.there)); err != nil {
		return found, err
	}
	for i := range found.there {
		if found.detached.Has(found.there[i].Namespace) { // for the objects that stay
			if found.there[i], err = found.there[i].now(ctx, c); err != nil {
				return found, err
			}
		}
	}
	found.returns = change.CheckRecreation(definitions[addOn].Object, terminal.OnClusters(clustersOf(found.there)))
	return found, nil
}

// show prints what would be removed, or why the add-on must not be deleted.
func (d disabling) show(ctx context.Context, c client.Client, o *DisableOptions) error {
	refused := change.Refusals{}
	var going []installed
	there := d.there
	if !o.force {
		there = refuseProtected(there, d.detached, refused)
	}
	for _, i := range there {
		if d.returns != nil && !o.force {
			refused[i.Namespace] = d.returns
			continue
		}
		complete, err := i.now(ctx, c)
		if err != nil {
			return err
		}
		going = append(going, complete)
	}
	changes, err := uninstallChanges(ctx, c, going, d.detached)
	if err != nil {
		return err
	}
	return showChanges(o.IOStreams, o.output, changes, refused)
}

// agree lists the affected dependents and what else is deleted, and prompts for confirmation. It returns an error if the add-on must not be deleted.
func (d disabling) agree(o *DisableOptions) error {
	if d.returns != nil && !o.force {
		return fmt.Errorf("add-on %q would be enabled again: %w", d.addOn, d.returns)
	}
	if protected := (change.Refusals{}); !o.force && len(refuseProtected(d.there, d.detached, protected)) < len(d.there) {
		return protected.Err()
	}
	suffer, required := impactTexts(d.there, d.detached)
	if err := terminal.Warn(o.ErrOut, slices.Concat(suffer, d.losses, keptTexts(d.there))...); err != nil {
		return err
	}
	where := terminal.OnClusters(clustersOf(d.there))
	switch {
	case o.yes && required && !o.force:
		return fmt.Errorf("add-on %q is required by other add-ons on %s; disable those first, or use --force", d.addOn, where)
	case o.yes:
		return nil
	case !printers.IsTerminal(o.In):
		return fmt.Errorf("add-on %q was not disabled on %s: cannot prompt for confirmation without a terminal; "+
			"use --yes, and --force if other add-ons require it", d.addOn, where)
	}
	return terminal.Confirm(o.IOStreams, fmt.Sprintf("Disable %s on %s? This removes its applied objects, including their data.",
		text.Word(d.addOn), where))
}
