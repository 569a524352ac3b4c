package details

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/text"
)

// HistoryOptions holds the arguments and flags of the command.
type HistoryOptions struct {
	*hubclient.Factory
	hubclient.Targets
	output *terminal.Output
}

// NewCmdHistory returns the command. If runF is set, it replaces runHistory.
func NewCmdHistory(f *hubclient.Factory, runF func(context.Context, *HistoryOptions) error) *cobra.Command {
	o := &HistoryOptions{Factory: f, output: terminal.NewOutput(terminal.FormatWide)}
	if runF == nil {
		runF = runHistory
	}
	cmd := &cobra.Command{
		Use:   "history NAME [--cluster CLUSTER[,CLUSTER]]",
		Short: "Show the last changes of an Instance or add-on, and how they ended",
		Long: "Show the last executions of plans of an Instance or add-on on a managed cluster, the latest one last: the OperatorVersion and\n" +
			"the one before, why the plan ran, the names of the changed parameters, who asked for the change, the result and the duration.\n" +
			"The agent keeps up to 20 executions. A plan that is retried automatically keeps its revision.\n\n" +
			"BY is the field manager on the hub that made the change, a name that its writer has chosen: the audit log of the hub has the\n" +
			"users. -o wide adds the object that it wrote.\n\n" +
			"On several clusters, which --cluster, --selector or --placement select, or on all by default, show the last execution\n" +
			"on each. 'kubectl addon rollback' returns to the OperatorVersion of a revision. The command contacts only the hub.",
		Example: "  kubectl addon history kafka --cluster cluster1\n" +
			"  kubectl addon history kafka --selector region=eu",
		Args: terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkSelection(cmd, &o.Selection); err != nil {
				return err
			}
			o.Name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.AddFlags(cmd, "run the Instance or add-on")
	o.output.AddFlag(cmd)
	return cmd
}

// checkSelection returns an error unless the flags select clusters in at most one way. All clusters are selected by default.
func checkSelection(cmd *cobra.Command, s *hubclient.Selection) error {
	if cmd.Flags().Changed("namespace") {
		return terminal.Usagef(cmd, "--namespace is not supported: --cluster selects the managed clusters and their namespaces on the hub")
	}
	return s.Check(cmd)
}

func runHistory(ctx context.Context, o *HistoryOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	return hubclient.Advise(showHistory(ctx, h, o), strings.Join(o.Names, ","))
}

// historyList is the output for several clusters, for programs.
type historyList struct {
	// Histories has the last revision on each cluster.
	Histories []progress.Revisions `json:"histories"`
}

// showHistory prints the history on a single cluster, or the last execution on each of several ones. A problem on one cluster does not affect the
// others.
func showHistory(ctx context.Context, h hubclient.Hub, o *HistoryOptions) error {
	targets, err := o.Find(ctx, h, nil)
	if err != nil {
		return err
	}
	wide, now := o.output.Format == terminal.FormatWide, time.Now()
	if o.Single() != "" {
		instance, err := targets[0].Read(ctx, h)
		if err != nil {
			return err
		}
		found := progress.RevisionsOf(instance)
		return o.output.Print(o.Out, terminal.Shown{Text: historyText(found, wide, now), Data: found})
	}
	list := historyList{Histories: []progress.Revisions{}}
	var problems []error
	for _, target := range targets {
		if target.Instance == nil && len(o.Names) == 0 { // an add-on that waits for something
			list.Histories = append(list.Histories, progress.Revisions{Instance: target.Name, Cluster: target.Namespace, Revisions: []kudo.HistoryEntry{}})
			continue
		}
		instance, err := target.Read(ctx, h)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		list.Histories = append(list.Histories, progress.RevisionsOf(instance).Last())
	}
	shown := terminal.Shown{Text: lastText(list, wide, now), Data: list}
	return errors.Join(append(problems, o.output.Print(o.Out, shown))...)
}

// historyText returns the revisions as a table.
func historyText(found progress.Revisions, wide bool, now time.Time) string {
	if len(found.Revisions) == 0 {
		return "No execution is recorded: none has run yet, or the agent is of a version that keeps no history.\n"
	}
	rows := make([][]string, 0, len(found.Revisions))
	for _, entry := range found.Revisions {
		rows = append(rows, cellsOf(entry, wide, now))
	}
	return terminal.Table(headerOf(wide), rows)
}

// lastText returns the last revision on each cluster as a table.
func lastText(list historyList, wide bool, now time.Time) string {
	var rows [][]string
	for _, found := range list.Histories {
		cells := make([]string, len(headerOf(wide)))
		for i := range cells {
			cells[i] = "-"
		}
		if len(found.Revisions) > 0 {
			cells = cellsOf(found.Revisions[0], wide, now)
		}
		rows = append(rows, append([]string{found.Cluster}, cells...))
	}
	return terminal.Table(append([]string{"CLUSTER"}, headerOf(wide)...), rows)
}

func headerOf(wide bool) []string {
	header := []string{"REVISION", "STARTED", "PLAN", "VERSION", "CAUSE", "BY", "RESULT", "DURATION", "MESSAGE"}
	if wide {
		return append(header, "UID")
	}
	return header
}

// cellsOf returns the cells of a revision.
func cellsOf(entry kudo.HistoryEntry, wide bool, now time.Time) []string {
	message := "-"
	if entry.Message != "" {
		message = terminal.Cell(text.JoinMessage(entry.Message), wide)
	}
	revision := progress.Revision{HistoryEntry: entry}
	cells := []string{
		fmt.Sprint(entry.Revision), timeText(entry.StartedTimestamp), text.Word(entry.Plan), revision.VersionText(), revision.CauseText(wide),
		terminal.Cell(revision.ByText(wide), wide), revision.ResultText(), cmp.Or(progress.DurationText(entry.StartedTimestamp, entry.EndedTimestamp, now), "-"), message,
	}
	if wide {
		return append(cells, text.Word(string(entry.UID)))
	}
	return cells
}

func timeText(at *metav1.Time) string {
	if at == nil {
		return "-"
	}
	return at.UTC().Format(time.RFC3339)
}
