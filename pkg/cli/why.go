package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func whyCommand(streams genericiooptions.IOStreams, flags *genericclioptions.ConfigFlags) *cobra.Command {
	var cluster string
	o := newOutput()
	cmd := &cobra.Command{
		Use:   "why ADDON --cluster CLUSTER",
		Short: "Say why an add-on is not available on a cluster, and what to do",
		Long: "Why says in one paragraph why an add-on is not available or degraded on a managed cluster. It follows what the add-on\n" +
			"depends on down to the add-ons at fault, and ends with the commands to type. It reads the hub only.",
		Example: "  kubectl addon why kafka --cluster cluster1\n" +
			"  kubectl addon why kafka --cluster cluster1 -o jsonpath='{.causes[*].addOn}'",
		Args: exactly("ADDON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := hubClient(flags)
			if err != nil {
				return err
			}
			view, err := gatherCluster(cmd.Context(), c, cluster)
			if err != nil {
				return explain(err, cluster)
			}
			if view.instances, err = gatherInstances(cmd.Context(), c, cluster); err != nil {
				return explain(err, cluster)
			}
			if err := view.lacks(args[0]); err != nil {
				return err
			}
			why := explained(view, args[0])
			return o.print(streams.Out, shown{text: why.text(), data: why.data(args[0])})
		},
	}
	clusterFlag(cmd, &cluster, "the add-on is on")
	o.addFlag(cmd)
	return cmd
}
