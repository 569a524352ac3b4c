package inspect

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/check"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// CheckOptions holds the arguments and flags of the command.
type CheckOptions struct {
	*hubclient.Factory
	where  hubclient.Selection
	output *terminal.Output
}

// NewCmdCheck returns the command. If runF is set, it replaces runCheck.
func NewCmdCheck(f *hubclient.Factory, runF func(context.Context, *CheckOptions) error) *cobra.Command {
	o := &CheckOptions{Factory: f, output: terminal.NewOutput()}
	if runF == nil {
		runF = runCheck
	}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the hub, addon-manager, the agents and your permissions",
		Long: "Check whether the hub responds and has the definitions, webhooks and policies of Tandem, whether addon-manager renews its Lease,\n" +
			"whether the agents are in contact and run the same version as addon-manager, whether the clocks agree, what is suspended, whether\n" +
			"PackageSources are ready, and which commands your user may run.\n\n" +
			"Start here if something does not work. What your user may not read is reported as unknown. The command exits with 1 if a check\n" +
			"has failed; warnings and unknown results do not count as failures. It contacts only the hub, and changes nothing.",
		Example: "  kubectl addon check\n" +
			"  kubectl addon check --cluster cluster1\n" +
			"  kubectl addon check -o jsonpath='{.failed}'",
		Args: terminal.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.where.Check(cmd); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	o.where.AddFlags(cmd, "the agents are on")
	o.output.AddFlag(cmd)
	return cmd
}

func runCheck(ctx context.Context, o *CheckOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	observed, err := observe(ctx, o.Factory, h, o.where)
	if err != nil {
		return err
	}
	report := check.Judge(observed)
	if err := o.output.Print(o.Out, terminal.Shown{Text: CheckText(report), Data: report}); err != nil {
		return err
	}
	if report.Failed > 0 {
		return fmt.Errorf("%s failed", text.Plural(report.Failed, "check"))
	}
	return nil
}

// warnOfManager prints a warning if addon-manager does not run. It prints nothing if that is unknown.
func warnOfManager(ctx context.Context, h hubclient.Hub, namespace string, errOut io.Writer) {
	if hint := check.Hint(read.Leader(ctx, h, namespace), h.Now()); hint != "" {
		fmt.Fprintf(errOut, "Warning: %s\n", hint)
	}
}
