package change

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
)

// RollbackOptions holds the arguments and flags of the command.
type RollbackOptions struct {
	changeOptions
	to int64
}

// NewCmdRollback returns the command. If runF is set, it replaces runRollback.
func NewCmdRollback(f *hubclient.Factory, runF func(context.Context, *RollbackOptions) error) *cobra.Command {
	o := &RollbackOptions{changeOptions: changeOptions{Factory: f}}
	if runF == nil {
		runF = runRollback
	}
	const of = "run the Instance or add-on"
	cmd := &cobra.Command{
		Use:   "rollback NAME --cluster CLUSTER[,CLUSTER] [--to REVISION]",
		Short: "Return to the package version of an earlier revision",
		Long: "Set the OperatorVersion of an earlier revision for the Instance or add-on NAME on each selected cluster that has it, by\n" +
			"default that of the last revision that was completely applied with another OperatorVersion. 'kubectl addon history' lists\n" +
			"the revisions. Select the clusters with --cluster, --selector, --placement or --all-clusters; --to requires a single one.\n\n" +
			"The change is the same as that of 'kubectl addon upgrade': it runs the first of the plans upgrade, update and deploy that\n" +
			"the earlier version defines. Parameters stay the same, and the command names those that have changed since; the data of\n" +
			"the software stays as it is, too.\n\n" + dryRunHelp,
		Example: "  kubectl addon rollback kafka --cluster cluster1 --dry-run\n" +
			"  kubectl addon rollback kafka --cluster cluster1 --to 3 --wait",
		Args: terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkExisting(cmd, of); err != nil {
				return err
			}
			if err := o.checkRevision(cmd); err != nil {
				return err
			}
			o.name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.Selection.AddFlags(cmd, of)
	cmd.Flags().Int64Var(&o.to, "to", 0, "Number of the revision to return to.")
	o.addDryRun(cmd)
	o.addRefusal(cmd)
	o.AddWait(cmd, false, "Wait until the plans have ended.")
	return cmd
}

// checkRevision returns an error if --to is invalid, or given for several clusters: each one has its own revisions.
func (o *RollbackOptions) checkRevision(cmd *cobra.Command) error {
	switch {
	case !cmd.Flags().Changed("to"):
		return nil
	case o.to < 1:
		return terminal.Usagef(cmd, "invalid argument \"%d\" for \"--to\" flag: must be the number of a revision", o.to)
	case o.Single() == "":
		return terminal.Usagef(cmd, "--to requires a single --cluster, because each cluster has its own revisions")
	}
	return nil
}

func runRollback(ctx context.Context, o *RollbackOptions) error {
	return o.run(ctx, func(ctx context.Context, state *change.State, cluster string) (change.Change, error) {
		return state.Rollback(ctx, client.ObjectKey{Namespace: cluster, Name: o.name}, o.to)
	})
}
