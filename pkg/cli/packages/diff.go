package packages

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// DiffOptions holds the arguments and flags of the command.
type DiffOptions struct {
	*hubclient.Factory
	from, to string
	finder   *Finder
	output   *terminal.Output
}

// NewCmdDiff returns the command. If runF is set, it replaces runDiff.
func NewCmdDiff(f *hubclient.Factory, runF func(context.Context, *DiffOptions) error) *cobra.Command {
	o := &DiffOptions{Factory: f, finder: &Finder{Factory: f}, output: terminal.NewOutput(terminal.FormatWide)}
	if runF == nil {
		runF = runDiff
	}
	cmd := &cobra.Command{
		Use:   "diff FROM TO",
		Short: "Compare two versions of a package and show the effect of an upgrade",
		Long: "Compare two packages: list the parameters, plans, tasks and templates that TO adds, removes or changes, the plan that runs\n" +
			"when an Instance is upgraded from FROM to TO, and the problems that prevent the upgrade. With -o wide, show the changed lines\n" +
			"of templates.\n\n" + naming,
		Example: "  kubectl addon package diff kafka-3.8.0-1.0.0 ./kafka\n" +
			"  kubectl addon package diff ./kafka-old ./kafka -o wide",
		Args: terminal.Exactly("FROM", "TO"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.from, o.to = args[0], args[1]
			return runF(cmd.Context(), o)
		},
	}
	o.output.AddFlag(cmd)
	o.finder.addFlag(cmd)
	return cmd
}

func runDiff(ctx context.Context, o *DiffOptions) error {
	data, err := comparePackages(ctx, o.finder, o.from, o.to)
	if err != nil {
		return err
	}
	return o.output.Print(o.Out, terminal.Shown{Text: data.text(o.output.Format == terminal.FormatWide), Data: data})
}

// comparePackages finds both packages and compares them.
func comparePackages(ctx context.Context, f *Finder, from, to string) (diffData, error) {
	f.onHub = f.repository == "" && !(IsPlace(from) && IsPlace(to))
	before, err := f.findFilled(ctx, from)
	if err != nil {
		return diffData{}, err
	}
	after, err := f.findFilled(ctx, to)
	if err != nil {
		return diffData{}, err
	}
	return difference(&before.version, &after.version), nil
}
