package whatif

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/console/whatif"
	"github.com/tandem-addons/tandem/pkg/text"
)

// DisableOptions holds the arguments and flags of the command.
type DisableOptions struct {
	*hubclient.Factory
	where  hubclient.Selection
	addOn  string
	output *terminal.Output
}

// NewCmdDisable returns the command. If runF is set, it replaces runDisable.
func NewCmdDisable(f *hubclient.Factory, runF func(context.Context, *DisableOptions) error) *cobra.Command {
	o := &DisableOptions{Factory: f, output: terminal.NewOutput(terminal.FormatWide, terminal.FormatName)}
	if runF == nil {
		runF = runDisable
	}
	const of = "the add-on would be removed from"
	cmd := &cobra.Command{
		Use:   "disable ADDON --cluster CLUSTER[,CLUSTER]",
		Short: "Show which add-ons the removal of an add-on would affect",
		Long: "Show what disabling an add-on would do on the selected clusters that have it: which other add-ons would become unavailable or\n" +
			"degraded, and where the removal would be refused because a dependent protects the add-on (removal: Protect). Select the clusters\n" +
			"with --cluster, --selector, --placement or --all-clusters. The command reads only the hub and writes nothing.\n\n" +
			"'kubectl addon disable --dry-run' shows the objects that would be removed.",
		Example: "  kubectl addon what-if disable zookeeper --all-clusters\n" +
			"  kubectl addon what-if disable zookeeper --selector region=eu -o json",
		Args: terminal.Exactly("ADDON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.where.Require(cmd, of); err != nil {
				return err
			}
			if err := refuseNamespace(cmd); err != nil {
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

func runDisable(ctx context.Context, o *DisableOptions) error {
	c, err := o.Hub()
	if err != nil {
		return err
	}
	data, err := gatherDisabling(ctx, c, o)
	if err != nil {
		return hubclient.Advise(err, strings.Join(o.where.Names, ","))
	}
	return o.output.Print(o.Out, terminal.Shown{Text: disablingText(data, o.output.Format == terminal.FormatWide), Data: data, Names: disablingNames(data)})
}

// gatherDisabling reads the clusters. It returns an error if none of them has the add-on.
func gatherDisabling(ctx context.Context, c hubclient.Hub, o *DisableOptions) (whatif.Disabling, error) {
	clusters, err := o.where.Clusters(ctx, c)
	if err != nil {
		return whatif.Disabling{}, err
	}
	_, views, err := read.FleetForRemoval(ctx, c, clusters)
	if err != nil {
		return whatif.Disabling{}, err
	}
	data := whatif.DisablingOf(o.addOn, views)
	if len(data.Removed)+len(data.Refused) == 0 {
		return data, fmt.Errorf("add-on %q is not enabled on any of the %d selected clusters, or is already being removed; see 'kubectl addon get %s'",
			o.addOn, len(clusters), text.Word(o.addOn))
	}
	return data, nil
}
