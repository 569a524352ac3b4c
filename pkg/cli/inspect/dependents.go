package inspect

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// DependentsOptions holds the arguments and flags of the command.
type DependentsOptions struct {
	*hubclient.Factory
	addOn  string
	output *terminal.Output
}

// NewCmdDependents returns the command. If runF is set, it replaces runDependents.
func NewCmdDependents(f *hubclient.Factory, runF func(context.Context, *DependentsOptions) error) *cobra.Command {
	o := &DependentsOptions{Factory: f, output: terminal.NewOutput(terminal.FormatWide, terminal.FormatName)}
	if runF == nil {
		runF = runDependents
	}
	cmd := &cobra.Command{
		Use:   "dependents ADDON",
		Short: "Show the add-ons that depend on an add-on, and their clusters",
		Long: "Show the add-ons that depend on an add-on, directly or through others, with the clusters they are on. EFFECT is what\n" +
			"happens to them if the add-on becomes unavailable.\n\n" +
			"The command contacts only the hub.",
		Example: "  kubectl addon dependents zookeeper\n" +
			"  kubectl addon dependents zookeeper -o json",
		Args: terminal.Exactly("ADDON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("namespace") {
				return terminal.Usagef(cmd, "--namespace is not supported: add-ons of all clusters are shown")
			}
			o.addOn = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.output.AddFlag(cmd)
	return cmd
}

func runDependents(ctx context.Context, o *DependentsOptions) error {
	c, err := o.Hub()
	if err != nil {
		return err
	}
	view, err := read.Dependents(ctx, c, o.addOn)
	if err != nil {
		return hubclient.Advise(err, "")
	}
	data := fleet.DependentsOf(view)
	return o.output.Print(o.Out, terminal.Shown{Text: dependentsText(data, o.output.Format == terminal.FormatWide), Data: data, Names: dependentsNames(data)})
}
