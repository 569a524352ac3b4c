package inspect

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/planstatus"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// PlanStatusOptions holds the arguments and flags of the command.
type PlanStatusOptions struct {
	*hubclient.Factory
	cluster, name       string
	withChildren, watch bool
	output              *terminal.Output
}

// NewCmdPlanStatus returns the command. If runF is set, it replaces runPlanStatus.
func NewCmdPlanStatus(f *hubclient.Factory, runF func(context.Context, *PlanStatusOptions) error) *cobra.Command {
	o := &PlanStatusOptions{Factory: f, output: terminal.NewOutput(terminal.FormatName)}
	if runF == nil {
		runF = runPlanStatus
	}
	cmd := &cobra.Command{
		Use:   "status NAME --cluster CLUSTER",
		Short: "Show the status of the plans of an Instance or add-on",
		Long: "Show the plans, phases and steps of an Instance on a managed cluster with their status, what a running step waits for, and\n" +
			"why a step failed. The Instance of an add-on has the name of the add-on; if it does not exist yet, show what the\n" +
			"installation of the add-on waits for.\n\n" +
			"With --watch, continue to show changes until the command is interrupted or the Instance is deleted. The command contacts\n" +
			"only the hub.",
		Example: "  kubectl addon plan status kafka --cluster cluster1\n" +
			"  kubectl addon plan status streaming --cluster cluster1 --tree --watch",
		Args: terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.watch && !o.output.IsText() {
				return terminal.Usagef(cmd, "--watch and --output are mutually exclusive")
			}
			o.name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.withChildren, "tree", false, "Also show the children of the Instance, and their children.")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Watch for changes after showing the status.")
	hubclient.ClusterFlag(cmd, &o.cluster, "the Instance or add-on is for")
	o.output.AddFlag(cmd)
	return cmd
}

func runPlanStatus(ctx context.Context, o *PlanStatusOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: o.cluster, Name: o.name}
	found, err := planstatus.Find(ctx, h, key, o.withChildren)
	if err != nil {
		return hubclient.Advise(err, o.cluster)
	}
	if o.watch {
		return hubclient.Advise(watchStatus(ctx, h, o.Out, key, o.withChildren), o.cluster)
	}
	return o.output.Print(o.Out, found)
}
