package inspect

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// FleetOptions holds the arguments and flags of the command.
type FleetOptions struct {
	*hubclient.Factory
	where  hubclient.Selection
	watch  bool
	output *terminal.Output
}

// NewCmdFleet returns the command. If runF is set, it replaces runFleet.
func NewCmdFleet(f *hubclient.Factory, runF func(context.Context, *FleetOptions) error) *cobra.Command {
	o := &FleetOptions{Factory: f, output: terminal.NewOutput(terminal.FormatWide)}
	if runF == nil {
		runF = runFleet
	}
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Summarize the status of all add-ons on managed clusters",
		Long: "Summarize the status of each add-on and the reasons of problems. Below, list the clusters with a mark for each add-on, the\n" +
			"worst first: clusters with the same marks share a line. With -o wide, nothing is omitted. Instances that belong to no\n" +
			"add-on are included as instance/NAME, and are available if they are ready. An add-on that is available, but whose last change is\n" +
			"blocked or waiting, or that is degraded, counts in that column only.\n\n" +
			"With --watch, continue to show the summary: on a terminal it is redrawn, otherwise it is printed again when it changes. The\n" +
			"command contacts only the hub.",
		Example: "  kubectl addon fleet\n" +
			"  kubectl addon fleet --watch\n" +
			"  kubectl addon fleet --selector region=eu -o wide",
		Args: terminal.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.where.Check(cmd); err != nil {
				return err
			}
			if cmd.Flags().Changed("namespace") {
				return terminal.Usagef(cmd, "--namespace is not supported: add-ons of all clusters are shown")
			}
			if o.watch && !o.output.IsText() {
				return terminal.Usagef(cmd, "--watch requires --output table or wide")
			}
			return runF(cmd.Context(), o)
		},
	}
	o.where.AddFlags(cmd, "are shown")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Watch for changes.")
	o.output.AddFlag(cmd)
	return cmd
}

func runFleet(ctx context.Context, o *FleetOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	found, err := Glance(ctx, h, o.where, unreadTo(o.ErrOut))
	if err != nil {
		return hubclient.Advise(err, strings.Join(o.where.Names, ","))
	}
	warnOfManager(ctx, h, o.ManagerNamespace(), o.ErrOut)
	data, wide := found.Sum(), o.output.Format == terminal.FormatWide
	if o.watch {
		return hubclient.Advise(watchFleet(ctx, h, o.IOStreams, o.where, wide), strings.Join(o.where.Names, ","))
	}
	return o.output.Print(o.Out, terminal.Shown{Text: SummaryText(data, wide), Data: data})
}
