package hubclient

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// ClusterFlag adds the required flag --cluster to a command.
func ClusterFlag(cmd *cobra.Command, cluster *string, of string) {
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return checkCluster(cmd, *cluster, of) }
	cmd.Flags().StringVar(cluster, "cluster", "", "Managed cluster that "+of+" (required).")
}

// checkCluster returns an error unless the cluster is given by --cluster alone.
func checkCluster(cmd *cobra.Command, cluster, of string) error {
	if cluster == "" {
		return terminal.Usagef(cmd, "--cluster is required: name the managed cluster that %s", of)
	}
	if strings.Contains(cluster, ",") {
		return terminal.Usagef(cmd, "invalid argument %q for \"--cluster\" flag: %s takes a single cluster", cluster, cmd.Name())
	}
	if cmd.Flags().Changed("namespace") {
		return terminal.Usagef(cmd, "--namespace is not supported: --cluster selects the managed cluster and its namespace on the hub")
	}
	return nil
}
