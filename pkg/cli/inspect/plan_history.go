package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/planstatus"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
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
			"OperatorVersion has its own history.\n\n" +
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
	instance, err := hubclient.ReadInstance(ctx, c, client.ObjectKey{Namespace: o.cluster, Name: o.name})
	if err != nil {
		return hubclient.Advise(err, o.cluster)
	}
	data := historyOf(planstatus.Gather(ctx, c, instance))
	return o.output.Print(o.Out, terminal.Shown{Text: data.text(time.Now()), Data: data})
}

// history is the output of `plan history`.
type history struct {
	Instance string    `json:"instance"`
	Cluster  string    `json:"cluster"`
	Plans    []lastRun `json:"plans"`
}

// lastRun is the last run of a plan.
type lastRun struct {
	Plan   string               `json:"plan"`
	Status kudo.ExecutionStatus `json:"status"`
	// Manual is set if the run was requested manually. It is known only for the last started plan.
	Manual  bool         `json:"manual,omitempty"`
	Started *metav1.Time `json:"started,omitempty"`
	// Ended is empty while the plan runs.
	Ended   *metav1.Time `json:"ended,omitempty"`
	Message string       `json:"message,omitempty"`
}

// historyOf returns the last runs of all plans, latest first, followed by the plans that never ran.
func historyOf(view planstatus.View) history {
	runs := []lastRun{}
	last := view.Instance.Status.Execution
	for _, name := range planstatus.PlanNames(view) {
		status := view.Instance.Status.PlanStatus[name]
		run := lastRun{Plan: name, Status: planstatus.State(status.Status), Started: status.StartedTimestamp, Message: status.Message}
		if status.Status.Terminal() {
			run.Ended = status.LastUpdatedTimestamp
		}
		run.Manual = last != nil && last.Plan == name && last.UID == last.Request
		runs = append(runs, run)
	}
	slices.SortStableFunc(runs, func(a, b lastRun) int {
		return cmp.Or(b.latest().Compare(a.latest()), cmp.Compare(a.Plan, b.Plan))
	})
	return history{Instance: view.Instance.Name, Cluster: view.Instance.Namespace, Plans: runs}
}

// latest returns the start of the run, or its last known time if the start is not recorded.
func (r lastRun) latest() time.Time {
	switch {
	case r.Started != nil:
		return r.Started.Time
	case r.Ended != nil:
		return r.Ended.Time
	default:
		return time.Time{}
	}
}

// text returns the runs as a table.
func (h history) text(now time.Time) string {
	if len(h.Plans) == 0 {
		return "No plan has run, and the OperatorVersion cannot be read.\n"
	}
	rows := make([][]string, 0, len(h.Plans))
	for _, run := range h.Plans {
		status := string(run.Status)
		if run.Manual {
			status += " (manual)"
		}
		rows = append(rows, []string{run.Plan, status, timeText(run.Started), run.took(now), terminal.OneLine(run.Message)})
	}
	return terminal.Table([]string{"PLAN", "STATUS", "STARTED", "DURATION", "MESSAGE"}, rows)
}

// took returns the duration of the run, up to now if it has not ended.
func (r lastRun) took(now time.Time) string {
	switch {
	case r.Started == nil:
		return "-"
	case r.Ended != nil:
		return duration.HumanDuration(r.Ended.Sub(r.Started.Time))
	default:
		return duration.HumanDuration(now.Sub(r.Started.Time)) + " so far"
	}
}

func timeText(at *metav1.Time) string {
	if at == nil {
		return "-"
	}
	return at.UTC().Format(time.RFC3339)
}
