package change

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/packages"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// dryRunHelp is the description of --dry-run in help texts.
const dryRunHelp = "With --dry-run it writes nothing, and shows for each cluster which plan would run and why, what refuses it, and the objects\n" +
	"that would be created, changed and removed; clusters that are alike are shown together."

// InstallOptions holds the arguments and flags of the command.
type InstallOptions struct {
	changeOptions
	operator, namespace string
}

// NewCmdInstall returns the command. If runF is set, it replaces runInstall.
func NewCmdInstall(f *hubclient.Factory, runF func(context.Context, *InstallOptions) error) *cobra.Command {
	o := &InstallOptions{changeOptions: changeOptions{Factory: f}}
	if runF == nil {
		runF = runInstall
	}
	const of = "the operator is to run on"
	cmd := &cobra.Command{
		Use:   "install OPERATOR [NAME] --cluster CLUSTER[,CLUSTER]",
		Short: "Run an operator on managed clusters, as an Instance that belongs to no add-on",
		Long: "Install makes an Instance of an operator on each of the clusters, which --selector, --placement or --all-clusters may name as\n" +
			"well. OPERATOR is the name of an operator whose package was pushed, or of an OperatorVersion; NAME that of the Instance,\n" +
			"which is the operator's if left out. What runs on a fleet for good is better enabled as an add-on ('kubectl addon enable').\n\n" + dryRunHelp,
		Example: "  kubectl addon install kafka --cluster cluster1 --namespace data\n" +
			"  kubectl addon install kafka events --selector region=eu -p BROKERS=5 --dry-run",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return terminal.Usagef(cmd, "want OPERATOR and perhaps NAME, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			err := o.check(cmd, of)
			if err == nil {
				err = checkNamespace(cmd, o.namespace)
			}
			if err != nil {
				return err
			}
			if packages.IsPlace(args[0]) {
				return terminal.Usagef(cmd, "%s is a place: store the package on the hub first ('kubectl addon package push %s')", args[0], args[0])
			}
			if len(args) == 2 {
				o.name = args[1]
			}
			o.operator = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.addFlags(cmd, of)
	o.addVersionFlags(cmd)
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", "namespace on the managed clusters to install it in; the cluster's name if left out")
	return cmd
}

func runInstall(ctx context.Context, o *InstallOptions) error {
	return o.run(ctx, func(ctx context.Context, c *changing, cluster string) (change, error) {
		return c.create(ctx, cluster, o.operator, o.namespace)
	})
}

// UpdateOptions holds the arguments and flags of the command.
type UpdateOptions struct {
	changeOptions
}

// NewCmdUpdate returns the command. If runF is set, it replaces runUpdate.
func NewCmdUpdate(f *hubclient.Factory, runF func(context.Context, *UpdateOptions) error) *cobra.Command {
	o := &UpdateOptions{changeOptions: changeOptions{Factory: f}}
	if runF == nil {
		runF = runUpdate
	}
	const of = "the Instance or add-on is on"
	cmd := &cobra.Command{
		Use:   "update NAME --cluster CLUSTER[,CLUSTER] -p NAME=VALUE",
		Short: "Change parameters of Instances or add-ons",
		Long: "Update changes parameters of the Instance or add-on NAME on each of the clusters that have it, which --selector, --placement or\n" +
			"--all-clusters may name as well. All other parameters stay. The plan that the change triggers runs. An add-on's parameters are\n" +
			"kept as 'kubectl addon enable -p' keeps them; those of a child come from its parent.\n\n" + dryRunHelp,
		Example: "  kubectl addon update kafka --cluster cluster1 -p BROKERS=5 --wait\n" +
			"  kubectl addon update kafka --all-clusters -p BROKERS=5 --dry-run",
		Args: terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkStanding(cmd, of); err != nil {
				return err
			}
			if o.given.none() {
				return terminal.Usagef(cmd, "want a parameter to change: -p NAME=VALUE, --parameter-file or --unset")
			}
			o.name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.addFlags(cmd, of)
	o.addUnset(cmd)
	return cmd
}

func runUpdate(ctx context.Context, o *UpdateOptions) error {
	return o.run(ctx, func(ctx context.Context, c *changing, cluster string) (change, error) {
		return c.edit(ctx, cluster, false)
	})
}

// UpgradeOptions holds the arguments and flags of the command.
type UpgradeOptions struct {
	changeOptions
}

// NewCmdUpgrade returns the command. If runF is set, it replaces runUpgrade.
func NewCmdUpgrade(f *hubclient.Factory, runF func(context.Context, *UpgradeOptions) error) *cobra.Command {
	o := &UpgradeOptions{changeOptions: changeOptions{Factory: f}}
	if runF == nil {
		runF = runUpgrade
	}
	const of = "the Instance or add-on is on"
	cmd := &cobra.Command{
		Use:   "upgrade NAME --cluster CLUSTER[,CLUSTER] [--version VERSION]",
		Short: "Run another version of the package of Instances or add-ons",
		Long: "Upgrade gives the Instance or add-on NAME another OperatorVersion of its operator on each of the clusters that have it, which\n" +
			"--selector, --placement or --all-clusters may name as well: the highest that was pushed, unless another one is named. Parameters\n" +
			"stay, but for those that are given. Plan upgrade runs, or update, or deploy, whichever the new version has first. An add-on keeps\n" +
			"that version on the cluster whatever its ClusterManagementAddOn names from then on.\n\n" + dryRunHelp,
		Example: "  kubectl addon upgrade kafka --cluster cluster1 --dry-run\n" +
			"  kubectl addon upgrade kafka --selector region=eu --version 1.1.0 --wait",
		Args: terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkStanding(cmd, of); err != nil {
				return err
			}
			o.name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.addFlags(cmd, of)
	o.addVersionFlags(cmd)
	o.addUnset(cmd)
	return cmd
}

func runUpgrade(ctx context.Context, o *UpgradeOptions) error {
	return o.run(ctx, func(ctx context.Context, c *changing, cluster string) (change, error) {
		return c.edit(ctx, cluster, true)
	})
}
