package inspect

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

func NewCmdWhy(streams genericiooptions.IOStreams, flags *genericclioptions.ConfigFlags) *cobra.Command {
	var cluster string
	o := terminal.NewOutput()
	cmd := &cobra.Command{
		Use:   "why ADDON --cluster CLUSTER",
		Short: "Say why an add-on is not available on a cluster, and what to do",
		Long: "Why says in one paragraph why an add-on is not available or degraded on a managed cluster. It follows what the add-on\n" +
			"depends on down to the add-ons at fault, and ends with the commands to type. It reads the hub only.",
		Example: "  kubectl addon why kafka --cluster cluster1\n" +
			"  kubectl addon why kafka --cluster cluster1 -o jsonpath='{.causes[*].addOn}'",
		Args: terminal.Exactly("ADDON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := hubclient.HubClient(flags)
			if err != nil {
				return err
			}
			view, err := hubclient.GatherCluster(cmd.Context(), c, cluster)
			if err != nil {
				return hubclient.Advise(err, cluster)
			}
			if view.Instances, err = hubclient.GatherInstances(cmd.Context(), c, cluster); err != nil {
				return hubclient.Advise(err, cluster)
			}
			if err := view.Lacks(args[0]); err != nil {
				return err
			}
			why := Explained(view, args[0])
			return o.Print(streams.Out, terminal.Shown{Text: why.Text(), Data: why.data(args[0])})
		},
	}
	hubclient.ClusterFlag(cmd, &cluster, "the add-on is on")
	o.AddFlag(cmd)
	return cmd
}
