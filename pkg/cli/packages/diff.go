package packages

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

func NewCmdDiff(streams genericiooptions.IOStreams, flags *genericclioptions.ConfigFlags) *cobra.Command {
	f, o := &Finder{Flags: flags}, terminal.NewOutput(terminal.FormatWide)
	cmd := &cobra.Command{
		Use:   "diff FROM TO",
		Short: "Show in what two versions of a package differ, and what an upgrade does",
		Long: "Diff compares two packages: parameters, plans, tasks and templates that TO adds, removes or changes. It says which plan runs\n" +
			"where an Instance goes over from one to the other, and what keeps it from that. With -o wide it shows the lines of templates.\n" + naming,
		Example: "  kubectl addon package diff kafka-3.8.0-1.0.0 ./kafka\n" +
			"  kubectl addon package diff ./kafka-old ./kafka -o wide",
		Args: terminal.Exactly("FROM", "TO"),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := compared(cmd.Context(), f, args[0], args[1])
			if err != nil {
				return err
			}
			return o.Print(streams.Out, terminal.Shown{Text: data.text(o.Format == terminal.FormatWide), Data: data})
		},
	}
	o.AddFlag(cmd)
	f.addFlag(cmd)
	return cmd
}

// compared finds both packages and compares them.
func compared(ctx context.Context, f *Finder, from, to string) (diffData, error) {
	f.onHub = f.repository == "" && !(IsPlace(from) && IsPlace(to))
	before, err := f.find(ctx, from)
	if err != nil {
		return diffData{}, err
	}
	after, err := f.find(ctx, to)
	if err != nil {
		return diffData{}, err
	}
	return difference(&before.version, &after.version), nil
}
