package inspect

import (
	"context"
	"maps"
	"slices"
	"strings"
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
	where  hubclient.Selection
	addOn  string
	output *terminal.Output
}

// NewCmdWhy returns the command. If runF is set, it replaces runWhy.
func NewCmdWhy(f *hubclient.Factory, runF func(context.Context, *WhyOptions) error) *cobra.Command {
	o := &WhyOptions{Factory: f, output: terminal.NewOutput(terminal.FormatWide)}
	if runF == nil {
		runF = runWhy
	}
	const of = "the add-on is on"
	cmd := &cobra.Command{
		Use:   "why ADDON --cluster CLUSTER[,CLUSTER]",
		Short: "Explain why an add-on is not available, and how to fix it",
		Long: "Explain in one paragraph why an add-on is not available or is degraded on a managed cluster. The explanation follows the\n" +
			"dependencies of the add-on down to the root causes, and ends with the commands to run.\n\n" +
			"For several clusters (--cluster, --selector, --placement or --all-clusters), group those that have the add-on by state and\n" +
			"root causes, the worst first, and explain the first cluster of each group.\n\n" +
			"The command contacts only the hub.",
		Example: "  kubectl addon why kafka --cluster cluster1\n" +
			"  kubectl addon why kafka --all-clusters\n" +
			"  kubectl addon why kafka --cluster cluster1 -o jsonpath='{.causes[*].addOn}'",
		Args: terminal.Exactly("ADDON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.where.RequireClusters(cmd, of); err != nil {
				return err
			}
			o.addOn = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.where.AddFlags(cmd, of)
	o.output.AddFlag(cmd)
	return cmd
}

func runWhy(ctx context.Context, o *WhyOptions) error {
	c, err := o.Hub()
	if err != nil {
		return err
	}
	explain := explainFleet
	if o.where.Single() != "" {
		explain = explainCluster
	}
	shown, err := explain(ctx, c, o)
	if err != nil {
		return hubclient.Advise(err, strings.Join(o.where.Names, ","))
	}
	warnOfManager(ctx, c, o.ManagerNamespace(), o.ErrOut)
	return o.output.Print(o.Out, shown)
}

// explainCluster explains the add-on on a single cluster.
func explainCluster(ctx context.Context, c hubclient.Hub, o *WhyOptions) (terminal.Shown, error) {
	cluster := o.where.Single()
	view, err := read.Cluster(ctx, c, cluster)
	if err != nil {
		return terminal.Shown{}, err
	}
	if view.Instances, err = read.Instances(ctx, c, cluster); err != nil {
		return terminal.Shown{}, err
	}
	if view.Rollouts, err = read.Rollouts(ctx, c, time.Now(), view); err != nil {
		return terminal.Shown{}, err
	}
	if err := view.CheckAddOn(o.addOn); err != nil {
		return terminal.Shown{}, err
	}
	explained := why.Of(view, o.addOn, time.Now())
	shown := explained.Text()
	if width := terminal.Width(o.Out); width > 0 {
		shown = explained.Bullets(width)
	}
	return terminal.Shown{Text: shown, Data: explained.Data(o.addOn)}, nil
}

// explainFleet explains the add-on on several clusters.
func explainFleet(ctx context.Context, c hubclient.Hub, o *WhyOptions) (terminal.Shown, error) {
	views, err := viewsWith(ctx, c, o.where, o.addOn)
	if err != nil {
		return terminal.Shown{}, err
	}
	rollouts, err := read.Rollouts(ctx, c, time.Now(), slices.Collect(maps.Values(views))...)
	if err != nil {
		return terminal.Shown{}, err
	}
	for cluster, view := range views {
		view.Rollouts = rollouts
		views[cluster] = view
	}
	data := fleetWhy{AddOn: o.addOn, Groups: why.Fleet(views, o.addOn, time.Now())}
	return terminal.Shown{Text: data.text(o.output.Format == terminal.FormatWide, terminal.Width(o.Out)), Data: data}, nil
}
