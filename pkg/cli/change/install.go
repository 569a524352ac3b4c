package change

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/packages"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/text"
)

// dryRunHelp is the description of --dry-run in help texts.
const dryRunHelp = "With --dry-run nothing is written. For each cluster, the command shows which plan would run and why, any problem that\n" +
	"prevents the change, and the objects to create, change and remove. Clusters with the same changes are shown together. The last\n" +
	"line names what was not checked, because only the clusters know it. Without --dry-run, a change is refused on clusters where\n" +
	"one of its plans would fail, for example because a value does not fit into a template or an immutable field would change.\n" +
	"--force makes the change anyway."

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
	const of = "should run the operator"
	cmd := &cobra.Command{
		Use:   "install OPERATOR [NAME] --cluster CLUSTER[,CLUSTER]",
		Short: "Install an operator on managed clusters as an Instance without an add-on",
		Long: "Create an Instance of an operator for managed clusters. Select the clusters with --cluster, --selector, --placement or\n" +
			"--all-clusters. OPERATOR is the name of an operator whose package was pushed, or of an OperatorVersion. NAME is the name\n" +
			"of the Instance and defaults to the name of the operator. To run an operator permanently on a fleet, prefer to enable it\n" +
			"as an add-on ('kubectl addon enable').\n\n" + dryRunHelp,
		Example: "  kubectl addon install kafka --cluster cluster1 --namespace data\n" +
			"  kubectl addon install kafka events --selector region=eu -p BROKERS=5 --dry-run",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return terminal.Usagef(cmd, "expected OPERATOR [NAME], got %s", text.Plural(len(args), "argument"))
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
				return terminal.Usagef(cmd, "%s is a path or URL, not an operator; push the package to the hub first ('kubectl addon package push %s')",
					args[0], args[0])
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
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "",
		"Namespace on the managed clusters to install the operator into. Defaults to the name of the cluster.")
	return cmd
}

func runInstall(ctx context.Context, o *InstallOptions) error {
	return o.run(ctx, func(ctx context.Context, state *change.State, cluster string) (change.Change, error) {
		return state.Install(ctx, change.Installation{
			Cluster: cluster, Operator: o.operator, Name: o.name, Namespace: o.namespace, Parameters: o.given.of(cluster), Choice: o.choice,
		})
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
	const of = "run the Instance or add-on"
	cmd := &cobra.Command{
		Use:   "update NAME --cluster CLUSTER[,CLUSTER] -p NAME=VALUE",
		Short: "Change parameters of Instances or add-ons",
		Long: "Change parameters of the Instance or add-on NAME on each selected cluster that has it. Select the clusters with --cluster,\n" +
			"--selector, --placement or --all-clusters. All other parameters stay the same. The change triggers a plan. The parameters\n" +
			"of an add-on are stored as with 'kubectl addon enable -p'; the parameters of a child Instance come from its parent.\n\n" + dryRunHelp,
		Example: "  kubectl addon update kafka --cluster cluster1 -p BROKERS=5 --wait\n" +
			"  kubectl addon update kafka --all-clusters -p BROKERS=5 --dry-run",
		Args: terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkExisting(cmd, of); err != nil {
				return err
			}
			if o.given.none() {
				return terminal.Usagef(cmd, "no parameter to change: use -p NAME=VALUE, --parameter-file, --unset or --reset")
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
	return o.run(ctx, func(ctx context.Context, state *change.State, cluster string) (change.Change, error) {
		return o.edit(ctx, state, cluster, false)
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
	const of = "run the Instance or add-on"
	cmd := &cobra.Command{
		Use:   "upgrade NAME --cluster CLUSTER[,CLUSTER] [--version VERSION]",
		Short: "Upgrade Instances or add-ons to another package version",
		Long: "Set another OperatorVersion of the same operator for the Instance or add-on NAME on each selected cluster that has it, by\n" +
			"default the highest version that was pushed. Select the clusters with --cluster, --selector, --placement or\n" +
			"--all-clusters. Parameters that are not given stay the same. The change runs the first of the plans upgrade, update\n" +
			"and deploy that the new version defines. An add-on keeps this version on the cluster even if its\n" +
			"ClusterManagementAddOn refers to another one later.\n\n" + dryRunHelp,
		Example: "  kubectl addon upgrade kafka --cluster cluster1 --dry-run\n" +
			"  kubectl addon upgrade kafka --selector region=eu --version 1.1.0 --wait",
		Args: terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkExisting(cmd, of); err != nil {
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
	return o.run(ctx, func(ctx context.Context, state *change.State, cluster string) (change.Change, error) {
		return o.edit(ctx, state, cluster, true)
	})
}
