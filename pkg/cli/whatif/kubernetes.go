package whatif

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/console/whatif"
	"github.com/tandem-addons/tandem/pkg/core/compatibility"
)

// KubernetesOptions holds the arguments and flags of the command.
type KubernetesOptions struct {
	*hubclient.Factory
	where hubclient.Selection
	// version is the version as clusters report it.
	version string
	output  *terminal.Output
}

// NewCmdKubernetes returns the command. If runF is set, it replaces runKubernetes.
func NewCmdKubernetes(f *hubclient.Factory, runF func(context.Context, *KubernetesOptions) error) *cobra.Command {
	o := &KubernetesOptions{Factory: f, output: terminal.NewOutput(terminal.FormatWide)}
	if runF == nil {
		runF = runKubernetes
	}
	const of = "would be upgraded"
	cmd := &cobra.Command{
		Use:   "kubernetes VERSION --cluster CLUSTER[,CLUSTER]",
		Short: "Show what an upgrade of clusters to another version of Kubernetes would break or release",
		Long: "Show the effects of an upgrade to Kubernetes VERSION on all selected clusters that run a lower version: which add-ons run packages or\n" +
			"charts that do not support VERSION, which waiting versions and installations would start, and which dependencies would begin or\n" +
			"cease to apply because their cluster selectors read the version. Select the clusters with --cluster, --selector, --placement or\n" +
			"--all-clusters. The command reads only the hub and writes nothing.\n\n" +
			"An add-on with the same effect on several clusters is one row. The worst effects come first. Unknown facts, such as a version that\n" +
			"a cluster does not report, are listed below the table.",
		Example: "  kubectl addon what-if kubernetes 1.36.0 --all-clusters\n" +
			"  kubectl addon what-if kubernetes 1.36.0 --selector region=eu -o json",
		Args: terminal.Exactly("VERSION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.where.Require(cmd, of); err != nil {
				return err
			}
			if err := refuseNamespace(cmd); err != nil {
				return err
			}
			version, err := compatibility.ParseCluster(args[0])
			if err != nil {
				return terminal.Usagef(cmd, "%v", err)
			}
			o.version = version
			return runF(cmd.Context(), o)
		},
	}
	o.where.AddFlags(cmd, of)
	o.output.AddFlag(cmd)
	return cmd
}

// refuseNamespace returns an error if a namespace was given.
func refuseNamespace(cmd *cobra.Command) error {
	if cmd.Flags().Changed("namespace") {
		return terminal.Usagef(cmd, "--namespace is not supported: select managed clusters with --cluster")
	}
	return nil
}

func runKubernetes(ctx context.Context, o *KubernetesOptions) error {
	c, err := o.Hub()
	if err != nil {
		return err
	}
	data, err := gatherKubernetes(ctx, c, o)
	if err != nil {
		return hubclient.Advise(err, strings.Join(o.where.Names, ","))
	}
	return o.output.Print(o.Out, terminal.Shown{Text: kubernetesText(data, o.output.Format == terminal.FormatWide), Data: data})
}

func gatherKubernetes(ctx context.Context, c hubclient.Hub, o *KubernetesOptions) (whatif.Kubernetes, error) {
	clusters, err := o.where.Clusters(ctx, c)
	if err != nil {
		return whatif.Kubernetes{}, err
	}
	found, err := read.WhatIf(ctx, c, clusters)
	if err != nil {
		return whatif.Kubernetes{}, err
	}
	return whatif.KubernetesOf(o.version, found), nil
}
