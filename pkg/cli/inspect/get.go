package inspect

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// GetOptions holds the arguments and flags of the command.
type GetOptions struct {
	*hubclient.Factory
	addOn  string
	where  hubclient.Selection
	watch  bool
	sortBy terminal.Field
	output *terminal.Output
}

// NewCmdGet returns the command. If runF is set, it replaces runGet.
func NewCmdGet(f *hubclient.Factory, runF func(context.Context, *GetOptions) error) *cobra.Command {
	o := &GetOptions{Factory: f, output: terminal.NewOutput(terminal.FormatWide, terminal.FormatName, terminal.FormatColumns)}
	if runF == nil {
		runF = runGet
	}
	cmd := &cobra.Command{
		Use:   "get [ADDON]",
		Short: "List add-ons and their status on managed clusters",
		Long: "List the enabled add-ons with their status. VERSION is the desired OperatorVersion of a plan-based add-on; until a\n" +
			"rollout has reached the cluster, it is the previous one. INSTALLED -> DESIRED means that another version was the last to be\n" +
			"installed completely. STATE is blocked if an add-on is available, but its last change cannot be applied, and waiting if\n" +
			"that change is still pending. REASON is the reason of the state. A second table lists the Instances that belong to no add-on;\n" +
			"child Instances are omitted. With -o wide, NOTICES names what else to know, such as drifted, suspended or soaking, and MESSAGE\n" +
			"explains the reason.\n\n" +
			"With --watch, continue to print a row for each add-on that changes. --sort-by and -o custom-columns take fields of the items\n" +
			"that -o json prints, for example .created or .state. The command contacts only the hub.",
		Example: "  kubectl addon get\n" +
			"  kubectl addon get kafka --cluster cluster1,cluster2 -o json\n" +
			"  kubectl addon get --selector region=eu --sort-by .state --watch\n" +
			"  kubectl addon get -o custom-columns=CLUSTER:.cluster,NAME:.addOn,WHY:.message --no-headers",
		Args: terminal.AtMost("ADDON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.where.Check(cmd); err != nil {
				return err
			}
			if cmd.Flags().Changed("namespace") {
				return terminal.Usagef(cmd, "--namespace is not supported: --cluster selects the managed clusters and their namespaces on the hub")
			}
			if o.watch && !o.output.IsText() {
				return terminal.Usagef(cmd, "--watch requires --output table or wide")
			}
			o.addOn = strings.Join(args, "")
			return runF(cmd.Context(), o)
		},
	}
	o.where.AddFlags(cmd, "the add-ons are on")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Watch for changes after listing the add-ons.")
	cmd.Flags().Var(&o.sortBy, "sort-by", "Sort the add-ons, and the Instances, by this field, such as .created.")
	o.output.AddFlag(cmd)
	o.output.AddNoHeaders(cmd)
	return cmd
}

func runGet(ctx context.Context, o *GetOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	return hubclient.Advise(getAddOns(ctx, h, o), strings.Join(o.where.Names, ","))
}

// getAddOns prints the add-ons, and then their changes if requested.
func getAddOns(ctx context.Context, h hubclient.Hub, o *GetOptions) error {
	of := listing{name: o.addOn}
	var err error
	if of.clusters, err = clustersOf(ctx, h, o.where); err != nil {
		return err
	}
	if of.definitions, err = read.Definitions(ctx, h); err != nil {
		return err
	}
	list, err := of.listAddOns(ctx, h, unreadTo(o.ErrOut))
	if err == nil {
		err = list.sortBy(o.sortBy)
	}
	if err != nil {
		return err
	}
	as := layout{now: time.Now(), wide: o.output.Format == terminal.FormatWide, noHeaders: o.output.NoHeaders}
	if o.watch {
		return watchAddOns(ctx, h, o.IOStreams, as, of, list)
	}
	return o.output.Print(o.Out, terminal.Shown{Text: list.text(as), Data: list, Names: list.names(), Items: list.items()})
}
