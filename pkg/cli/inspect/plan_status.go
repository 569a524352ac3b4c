package inspect

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/planstatus"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

func NewCmdPlanStatus(streams genericiooptions.IOStreams, flags *genericclioptions.ConfigFlags) *cobra.Command {
	var cluster string
	var withChildren, watch bool
	o := terminal.NewOutput(terminal.FormatName)
	cmd := &cobra.Command{
		Use:   "status NAME --cluster CLUSTER",
		Short: "Show the plans of an Instance or add-on, and what they wait for",
		Long: "Status shows the plans, phases and steps of an Instance on a managed cluster with their states, and what a running\n" +
			"step waits for or why it failed. Of an add-on that has no Instance yet, which is called as the add-on, it shows what\n" +
			"its installation waits for. With --tree it shows the Instance's children as well, and theirs. With --watch it goes on\n" +
			"to show what changes, until it is interrupted or the Instance is gone. It reads the hub only.",
		Example: "  kubectl addon plan status kafka --cluster cluster1\n" +
			"  kubectl addon plan status streaming --cluster cluster1 --tree --watch",
		Args: terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if watch && !o.IsText() {
				return terminal.Usagef(cmd, "--watch prints text: leave --output away")
			}
			h, err := hubclient.Connect(flags, streams.ErrOut)
			if err != nil {
				return err
			}
			key := client.ObjectKey{Namespace: cluster, Name: args[0]}
			found, err := planstatus.Find(cmd.Context(), h, key, withChildren)
			if err != nil {
				return hubclient.Advise(err, cluster)
			}
			if watch {
				return hubclient.Advise(watchStatus(cmd.Context(), h, streams.Out, key, withChildren), cluster)
			}
			return o.Print(streams.Out, found)
		},
	}
	cmd.Flags().BoolVar(&withChildren, "tree", false, "show the children of the Instance as well, and theirs")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on to show what changes")
	hubclient.ClusterFlag(cmd, &cluster, "the Instance or add-on is for")
	o.AddFlag(cmd)
	return cmd
}
