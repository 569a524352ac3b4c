package change

import (
	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// dryRunFlags holds --dry-run and its output format.
type dryRunFlags struct {
	dryRun bool
	output *terminal.Output
}

func (f *dryRunFlags) addDryRun(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "Only print the plans that would run and their changes, without writing anything.")
	f.output = terminal.NewOutput(terminal.FormatWide)
	f.output.AddFlag(cmd)
}

// checkDryRun rejects an output format without --dry-run.
func (f *dryRunFlags) checkDryRun(cmd *cobra.Command) error {
	if cmd.Flags().Changed("output") && !f.dryRun {
		return terminal.Usagef(cmd, "--output requires --dry-run")
	}
	return nil
}

// addForce adds the flag that makes a change although a plan would fail.
func addForce(cmd *cobra.Command, force *bool) {
	cmd.Flags().BoolVar(force, "force", false, "Make the change even if one of its plans would fail.")
}

// refuseNamespace rejects --namespace if the namespace of the changed object is fixed.
func refuseNamespace(cmd *cobra.Command) error {
	if cmd.Flags().Changed("namespace") {
		return terminal.Usagef(cmd, "--namespace is not supported: --cluster selects the managed cluster and its namespace on the hub")
	}
	return nil
}
