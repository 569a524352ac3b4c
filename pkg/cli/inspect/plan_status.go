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
		Short: "Show the plans of an Instance or add-on, and what they wait for",
		Long: "Status shows the plans, phases and steps of an Instance on a managed cluster with their states, and what a running\n" +
			"step waits for or why it failed. Of an add-on that has no Instance yet, which is called as the add-on, it shows what\n" +
			"its installation waits for. With --tree it shows the Instance's children as well, and theirs. With --watch it goes on\n" +
			"to show what changes, until it is interrupted or the Instance is gone. It reads the hub only.",
		Example: "  kubectl addon plan status kafka --cluster cluster1\n" +
			"  kubectl addon plan status streaming --cluster cluster1 --tree --watch",
		Args: terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.watch && !o.output.IsText() {
				return terminal.Usagef(cmd, "--watch prints text: leave --output away")
			}
			o.name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.withChildren, "tree", false, "show the children of the Instance as well, and theirs")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on to show what changes")
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
