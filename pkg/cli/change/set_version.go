package change

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/cli-runtime/pkg/printers"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/kube/content"
	"github.com/tandem-addons/tandem/pkg/text"
)

// SetVersionOptions holds the arguments and flags of the command.
type SetVersionOptions struct {
	*hubclient.Factory
	addOn  string
	choice change.Choice
	yes    bool
	refusalFlags
	dryRunFlags
}

// NewCmdSetVersion returns the command. If runF is set, it replaces runSetVersion.
func NewCmdSetVersion(f *hubclient.Factory, runF func(context.Context, *SetVersionOptions) error) *cobra.Command {
	o := &SetVersionOptions{Factory: f}
	if runF == nil {
		runF = runSetVersion
	}
	cmd := &cobra.Command{
		Use:   "set-version ADDON VERSION",
		Short: "Set the package version that an add-on runs by default",
		Long: "Set the default OperatorVersion in the ClusterManagementAddOn of an add-on to another version of the same operator. VERSION is\n" +
			"the version of the package, or the name of the OperatorVersion. Clusters where the add-on has its own version, for example\n" +
			"after 'kubectl addon upgrade', or that of an OCM Placement, keep it. All others follow, with OCM according to the rollout\n" +
			"strategy. The command names both, and prompts for confirmation if clusters follow; without a terminal, --yes is required.\n\n" +
			dryRunHelp,
		Example: "  kubectl addon set-version kafka 1.1.0 --dry-run\n" +
			"  kubectl addon set-version kafka kafka-3.9.0-1.1.0 --yes",
		Args: terminal.Exactly("ADDON", "VERSION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("namespace") {
				return terminal.Usagef(cmd, "--namespace is not supported: the version is one of the namespace of the present version")
			}
			if err := o.checkDryRun(cmd); err != nil {
				return err
			}
			o.addOn, o.choice.Version = args[0], args[1]
			return runF(cmd.Context(), o)
		},
	}
	o.addDryRun(cmd)
	o.addRefusal(cmd)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not prompt for confirmation.")
	return cmd
}

func runSetVersion(ctx context.Context, o *SetVersionOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	return hubclient.Advise(setVersion(ctx, h, o), "")
}

// setVersion changes the default version, or shows the change. It changes nothing if the change is refused for a cluster.
func setVersion(ctx context.Context, h hubclient.Hub, o *SetVersionOptions) error {
	next, err := gatherDefault(ctx, h, o)
	if err != nil {
		return err
	}
	for i := range next.Changes {
		if err := o.refuse(&next.Changes[i], o.dryRun); err != nil {
			next.Refused[next.Changes[i].Cluster] = err
		}
	}
	next.Changes = slices.DeleteFunc(next.Changes, func(c change.Change) bool { return next.Refused[c.Cluster] != nil })
	if o.dryRun {
		return showDefault(o, next)
	}
	name := text.ObjectName(addonv1alpha1.GroupVersion.Group, "ClusterManagementAddOn", o.addOn)
	if equality.Semantic.DeepEqual(next.Current, next.Wanted) {
		return printers.WriteEscaped(o.Out, name+" unchanged\n")
	}
	if err := agreeToDefault(o, next); err != nil {
		return err
	}
	if err := next.Write(ctx, requester(h)); err != nil {
		return err
	}
	return printers.WriteEscaped(o.Out, name+" configured\n"+defaultText(next, false))
}

// gatherDefault reads the add-on on all clusters that have it, and decides on the change.
func gatherDefault(ctx context.Context, h hubclient.Hub, o *SetVersionOptions) (change.Default, error) {
	definitions, err := read.Definitions(ctx, h)
	if err != nil {
		return change.Default{}, err
	}
	if err := change.CheckDefined(definitions, o.addOn); err != nil {
		return change.Default{}, err
	}
	definition := definitions[o.addOn]
	if !definition.PlanManaged {
		return change.Default{}, fmt.Errorf("add-on %q is not plan-based; change its version in the way that its provider documents", o.addOn)
	}
	clusters := []string{}
	err = h.EachAddOn(ctx, nil, func(addOn *addonv1alpha1.ManagedClusterAddOn) {
		if addOn.Name == o.addOn {
			clusters = append(clusters, addOn.Namespace)
		}
	})
	if err != nil {
		return change.Default{}, err
	}
	state, err := change.Gather(ctx, read.NewCachingReader(content.NewFillingReader(h)), clusters)
	if err != nil {
		return change.Default{}, err
	}
	return state.SetDefault(ctx, definition.Object, o.choice)
}

// agreeToDefault returns an error if the change is refused for a cluster, and prompts for confirmation if clusters follow.
func agreeToDefault(o *SetVersionOptions, next change.Default) error {
	if len(next.Refused) > 0 && !o.force {
		return errors.Join(next.Refused.Err(), fmt.Errorf("the version of add-on %q was not changed: see what would run with --dry-run, "+
			"give these clusters their own version with 'kubectl addon upgrade', or use --force", o.addOn))
	}
	if err := warnOf(o.ErrOut, next.Changes); err != nil {
		return err
	}
	following := followingOf(next)
	switch {
	case o.yes || len(following) == 0:
		return nil
	case !printers.IsTerminal(o.In):
		return fmt.Errorf("the version of add-on %q was not changed on %s: cannot prompt for confirmation without a terminal; use --yes",
			o.addOn, terminal.OnClusters(following))
	}
	if err := printers.WriteEscaped(o.ErrOut, defaultText(next, false)); err != nil {
		return err
	}
	return terminal.Confirm(o.IOStreams, fmt.Sprintf("Change the version of add-on %s on %s?", text.Word(o.addOn), terminal.OnClusters(following)))
}

// showDefault prints the change of the default version, and what it changes on the clusters.
func showDefault(o *SetVersionOptions, next change.Default) error {
	data, wide := defaultDataOf(next), o.output.Format == terminal.FormatWide
	shown := defaultText(next, wide)
	if changes := dryRunText(data.DryRun, wide); changes != "" {
		shown += "\n" + changes
	}
	if err := o.output.Print(o.Out, terminal.Shown{Text: shown, Data: data}); err != nil {
		return err
	}
	return failingError(data.DryRun, next.Refused)
}
