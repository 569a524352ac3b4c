package hubclient

import (
	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// ClusterFlag adds the required flag --cluster to a command.
func ClusterFlag(cmd *cobra.Command, cluster *string, of string) {
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return checkCluster(cmd, *cluster, of) }
	cmd.Flags().StringVar(cluster, "cluster", "", "managed cluster that "+of+" (required)")
}

// checkCluster returns an error unless the cluster is given by --cluster alone.
func checkCluster(cmd *cobra.Command, cluster, of string) error {
	if cluster == "" {
		return terminal.Usagef(cmd, "--cluster is required: the managed cluster that %s", of)
	}
	if cmd.Flags().Changed("namespace") {
		return terminal.Usagef(cmd, "--namespace has no meaning here: --cluster names the managed cluster, and with it the namespace on the hub")
	}
	return nil
}
