package inspect

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/planstatus"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// PlanStatusOptions holds the arguments and flags of the command.
type PlanStatusOptions struct {
	*hubclient.Factory
	hubclient.Targets
	withChildren, watch bool
	output              *terminal.Output
}

// NewCmdPlanStatus returns the command. If runF is set, it replaces runPlanStatus.
func NewCmdPlanStatus(f *hubclient.Factory, runF func(context.Context, *PlanStatusOptions) error) *cobra.Command {
	o := &PlanStatusOptions{Factory: f, output: terminal.NewOutput(terminal.FormatName)}
	if runF == nil {
		runF = runPlanStatus
	}
	const of = "run the Instance or add-on"
	cmd := &cobra.Command{
		Use:   "status NAME --cluster CLUSTER[,CLUSTER]",
		Short: "Show the status of the plans of an Instance or add-on",
		Long: "Show the plans, phases and steps of an Instance on a managed cluster with their status, what a running step waits for, and\n" +
			"why a step failed. The Instance of an add-on has the name of the add-on; if it does not exist yet, show what the\n" +
			"installation of the add-on waits for.\n\n" +
			"Select the clusters with --cluster, --selector, --placement or --all-clusters; clusters that do not have NAME are skipped\n" +
			"unless they are named. With --failed, show only Instances whose last plan, or another one that they owe, has failed.\n\n" +
			"With --watch on one cluster named by --cluster, show changes until the command is interrupted or the Instance is deleted. With\n" +
			"several clusters, --selector, --placement or --all-clusters, print one line for each change until all plans have ended; the exit\n" +
			"code is the same as for 'kubectl addon plan wait'. The command contacts only the hub.",
		Example: "  kubectl addon plan status kafka --cluster cluster1\n" +
			"  kubectl addon plan status streaming --cluster cluster1 --tree --watch\n" +
			"  kubectl addon plan status kafka --selector region=eu --watch\n" +
			"  kubectl addon plan status kafka --failed",
		Args: terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.CheckTargets(cmd, of); err != nil {
				return err
			}
			if o.watch && o.Failed {
				return terminal.Usagef(cmd, "--watch and --failed are mutually exclusive")
			}
			if o.watch && !o.output.IsText() {
				return terminal.Usagef(cmd, "--watch and --output are mutually exclusive")
			}
			o.Name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.withChildren, "tree", false, "Also show the children of the Instance, and their children.")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Watch for changes after showing the status.")
	o.AddFlags(cmd, of)
	o.AddFailed(cmd, "Only Instances with a failed plan; on all clusters by default.")
	o.output.AddFlag(cmd)
	return cmd
}

func runPlanStatus(ctx context.Context, o *PlanStatusOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	return hubclient.Advise(planStatus(ctx, h, o), strings.Join(o.Names, ","))
}

func planStatus(ctx context.Context, h hubclient.Hub, o *PlanStatusOptions) error {
	targets, err := o.Find(ctx, h, hubclient.HasFailed)
	if err != nil {
		return err
	}
	if len(targets) == 0 && o.output.IsText() {
		return printers.WriteEscaped(o.Out, o.NoneFailedText(""))
	}
	if o.watch && o.Single() == "" {
		return watchStatuses(ctx, h, o.Out, targets, o.withChildren)
	}
	if o.Single() == "" || o.Failed {
		return showStatuses(ctx, h, o, targets)
	}
	key := targets[0].ObjectKey
	found, err := planstatus.Find(ctx, h, key, o.withChildren)
	if err != nil {
		return err
	}
	if o.watch {
		return watchStatus(ctx, h, o.Out, key, o.withChildren)
	}
	return o.output.Print(o.Out, found)
}

// statusList is the output of `plan status` for several clusters, for programs.
type statusList struct {
	// Statuses lists the status on each cluster, as the command shows it for a single one.
	Statuses []any `json:"statuses"`
}

// showStatuses prints the status on several clusters. A problem on one cluster does not affect the others.
func showStatuses(ctx context.Context, c client.Reader, o *PlanStatusOptions, targets []hubclient.Target) error {
	reader := read.NewCachingReader(c)
	var texts, names []string
	var problems []error
	list := statusList{Statuses: []any{}}
	for _, target := range targets {
		find := func() (terminal.Shown, error) { return planstatus.Find(ctx, reader, target.ObjectKey, o.withChildren) }
		if target.Instance != nil {
			find = func() (terminal.Shown, error) { return planstatus.Of(ctx, reader, target.Instance, o.withChildren) }
		}
		found, err := find()
		if err != nil {
			problems = append(problems, err)
			continue
		}
		texts, names, list.Statuses = append(texts, found.Text), append(names, found.Names...), append(list.Statuses, found.Data)
	}
	shown := terminal.Shown{Text: strings.Join(texts, "\n"), Data: list, Names: names}
	return errors.Join(append(problems, o.output.Print(o.Out, shown))...)
}
