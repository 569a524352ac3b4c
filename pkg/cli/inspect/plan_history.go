package inspect

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// PlanHistoryOptions holds the arguments and flags of the command.
type PlanHistoryOptions struct {
	*hubclient.Factory
	cluster, name string
	output        *terminal.Output
}

// NewCmdPlanHistory returns the command. If runF is set, it replaces runPlanHistory.
func NewCmdPlanHistory(f *hubclient.Factory, runF func(context.Context, *PlanHistoryOptions) error) *cobra.Command {
	o := &PlanHistoryOptions{Factory: f, output: terminal.NewOutput()}
	if runF == nil {
		runF = runPlanHistory
	}
	cmd := &cobra.Command{
		Use:   "history NAME --cluster CLUSTER",
		Short: "Show the last run of each plan and its result",
		Long: "Show the start, duration and result of the last run of each plan of an Instance or add-on, the latest run first. Each\n" +
			"OperatorVersion has its own history: plans that ran only before an upgrade are omitted. 'kubectl addon history' shows all of\n" +
			"the last executions.\n\n" +
			"The command contacts only the hub.",
		Example: "  kubectl addon plan history kafka --cluster cluster1",
		Args:    terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	hubclient.ClusterFlag(cmd, &o.cluster, "the Instance or add-on is for")
	o.output.AddFlag(cmd)
	return cmd
}

func runPlanHistory(ctx context.Context, o *PlanHistoryOptions) error {
	c, err := o.Hub()
	if err != nil {
		return err
	}
	instance, err := read.ReadInstance(ctx, c, client.ObjectKey{Namespace: o.cluster, Name: o.name})
	if err != nil {
		return hubclient.Advise(err, o.cluster)
	}
	data := progress.HistoryOf(read.View(ctx, c, instance))
	return o.output.Print(o.Out, terminal.Shown{Text: historyText(data, time.Now()), Data: data})
}

// historyText returns the runs as a table.
func historyText(h progress.History, now time.Time) string {
	if len(h.Plans) == 0 {
		return "No plan has run yet.\n"
	}
	rows := make([][]string, 0, len(h.Plans))
	for _, run := range h.Plans {
		status := string(run.Status)
		if run.Manual {
			status += " (manual)"
		}
		rows = append(rows, []string{run.Plan, status, timeText(run.Started), cmp.Or(progress.DurationText(run.Started, run.Ended, now), "-"), text.JoinMessage(run.Message)})
	}
	return terminal.Table([]string{"PLAN", "STATUS", "STARTED", "DURATION", "MESSAGE"}, rows)
}

func timeText(at *metav1.Time) string {
	if at == nil {
		return "-"
	}
	return at.UTC().Format(time.RFC3339)
}
