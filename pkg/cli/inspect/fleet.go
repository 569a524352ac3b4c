package inspect

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

func NewCmdFleet(streams genericiooptions.IOStreams, flags *genericclioptions.ConfigFlags) *cobra.Command {
	var where hubclient.Selection
	o := terminal.NewOutput(terminal.FormatWide)
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Show how all add-ons are on all managed clusters, at a glance",
		Long: "Fleet counts how each add-on is, and the reasons of what is not in order. Below stand the clusters, with a mark for each add-on:\n" +
			"those that are alike in one line, the worst first. With -o wide, nothing is left out. It reads the hub only.",
		Example: "  kubectl addon fleet\n" +
			"  kubectl addon fleet --selector region=eu -o wide",
		Args: terminal.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := where.Check(cmd); err != nil {
				return err
			}
			if cmd.Flags().Changed("namespace") {
				return terminal.Usagef(cmd, "--namespace has no meaning here: add-ons of all clusters are shown")
			}
			h, err := hubclient.Connect(flags, streams.ErrOut)
			if err != nil {
				return err
			}
			fleet, err := GatherGlance(cmd.Context(), h, where)
			if err != nil {
				return hubclient.Advise(err, strings.Join(where.Names, ","))
			}
			data := fleet.Sum()
			return o.Print(streams.Out, terminal.Shown{Text: data.Text(o.Format == terminal.FormatWide), Data: data})
		},
	}
	where.AddFlags(cmd, "are shown")
	o.AddFlag(cmd)
	return cmd
}
