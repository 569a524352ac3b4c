package inspect

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/console/why"
)

// WhyOptions holds the arguments and flags of the command.
type WhyOptions struct {
	*hubclient.Factory
	cluster, addOn string
	output         *terminal.Output
}

// NewCmdWhy returns the command. If runF is set, it replaces runWhy.
func NewCmdWhy(f *hubclient.Factory, runF func(context.Context, *WhyOptions) error) *cobra.Command {
	o := &WhyOptions{Factory: f, output: terminal.NewOutput()}
	if runF == nil {
		runF = runWhy
	}
	cmd := &cobra.Command{
		Use:   "why ADDON --cluster CLUSTER",
		Short: "Explain why an add-on is not available on a cluster, and how to fix it",
		Long: "Explain in one paragraph why an add-on is not available or is degraded on a managed cluster. The explanation follows the\n" +
			"dependencies of the add-on down to the root causes, and ends with the commands to run.\n\n" +
			"The command contacts only the hub.",
		Example: "  kubectl addon why kafka --cluster cluster1\n" +
			"  kubectl addon why kafka --cluster cluster1 -o jsonpath='{.causes[*].addOn}'",
		Args: terminal.Exactly("ADDON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.addOn = args[0]
			return runF(cmd.Context(), o)
		},
	}
	hubclient.ClusterFlag(cmd, &o.cluster, "the add-on is on")
	o.output.AddFlag(cmd)
	return cmd
}

func runWhy(ctx context.Context, o *WhyOptions) error {
	c, err := o.Hub()
	if err != nil {
		return err
	}
	view, err := read.Cluster(ctx, c, o.cluster)
	if err != nil {
		return hubclient.Advise(err, o.cluster)
	}
	if view.Instances, err = read.Instances(ctx, c, o.cluster); err != nil {
		return hubclient.Advise(err, o.cluster)
	}
	if view.Peers, err = read.Peers(ctx, c, view); err != nil {
		return hubclient.Advise(err, o.cluster)
	}
	if err := view.CheckAddOn(o.addOn); err != nil {
		return err
	}
	warnOfManager(ctx, c, o.ManagerNamespace(), o.ErrOut)
	explained := why.Of(view, o.addOn, time.Now())
	return o.output.Print(o.Out, terminal.Shown{Text: explained.Text(), Data: explained.Data(o.addOn)})
}
