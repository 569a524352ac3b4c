package change

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/text"
)

// PlanCancelOptions holds the arguments and flags of the command.
type PlanCancelOptions struct {
	*hubclient.Factory
	hubclient.Targets
	terminal.WaitFlags
}

// NewCmdPlanCancel returns the command. If runF is set, it replaces runPlanCancel.
func NewCmdPlanCancel(f *hubclient.Factory, runF func(context.Context, *PlanCancelOptions) error) *cobra.Command {
	o := &PlanCancelOptions{Factory: f}
	if runF == nil {
		runF = runPlanCancel
	}
	const of = "run the Instance or add-on"
	cmd := &cobra.Command{
		Use:   "cancel NAME --cluster CLUSTER[,CLUSTER]",
		Short: "Cancel the running plan of an Instance or add-on",
		Long: "Cancel the running plan of an Instance or add-on, which then counts as failed, and withdraw a request for another plan\n" +
			"that has not started. Objects that were already applied stay unchanged until a plan runs again.\n\n" +
			"Select the clusters with --cluster, --selector, --placement or --all-clusters. Clusters that have no plan to cancel are\n" +
			"skipped unless they are named.",
		Example: "  kubectl addon plan cancel kafka --cluster cluster1\n" +
			"  kubectl addon plan cancel kafka --selector region=eu",
		Args: terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.CheckTargets(cmd, of); err != nil {
				return err
			}
			o.Name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.AddFlags(cmd, of)
	o.AddWait(cmd, true, "Wait until the plan has ended.")
	return cmd
}

func runPlanCancel(ctx context.Context, o *PlanCancelOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	return hubclient.Advise(planCancel(ctx, h, o), strings.Join(o.Names, ","))
}

// planCancel cancels the running plan and withdraws a request that has not started, on each of the clusters. If there is neither, the error
// names the last plan. A failure on one cluster does not affect the others.
func planCancel(ctx context.Context, h hubclient.Hub, o *PlanCancelOptions) error {
	targets, err := o.Find(ctx, h, nil)
	if err != nil {
		return err
	}
	cancelled, refused := o.cancellations(ctx, h, targets)
	if len(cancelled)+len(refused) == 0 {
		return fmt.Errorf("no plan of %q is running on the selected clusters", o.Name)
	}
	problems := make([]error, len(cancelled))
	cancel := func(i int) { problems[i] = change.Request(ctx, requester(h), cancelled[i].instance, cancelled[i].Spec) }
	var awaited []awaitedPlan
	atOnce(len(cancelled), cancel, func(i int) {
		if problems[i] != nil {
			return
		}
		if o.Wait && cancelled[i].Running != "" {
			awaited = append(awaited, cancelled[i].awaited())
		}
	})
	failed := errors.Join(problems...)
	late := awaitCancelled(ctx, h, awaited, o.Timeout)
	for i, c := range cancelled {
		if problems[i] == nil && late == nil {
			failed = errors.Join(failed, printers.WriteEscaped(o.Out, c.text(o.Wait, len(targets) > 1)))
		}
	}
	return errors.Join(refused.Err(), failed, late)
}

// cancellation is the cancellation of the plan of an Instance.
type cancellation struct {
	change.Cancellation
	instance *kudo.Instance
}

// cancellations returns what cancels the plans, and the reasons why others are refused. Clusters that were not named may have no plan to cancel.
func (o *PlanCancelOptions) cancellations(
	ctx context.Context, c client.Reader, targets []hubclient.Target,
) ([]cancellation, change.Refusals) {
	var found []cancellation
	refused := change.Refusals{}
	for _, target := range targets {
		if target.Instance == nil && len(o.Names) == 0 {
			continue
		}
		instance, err := target.Read(ctx, c)
		var cancelled change.Cancellation
		if err == nil {
			cancelled, err = change.Cancel(instance)
		}
		var idle *change.IdleError
		switch {
		case err == nil:
			found = append(found, cancellation{cancelled, instance})
		case errors.As(err, &idle) && len(o.Names) == 0:
		default:
			refused[target.Namespace] = err
		}
	}
	return found, refused
}

func (c cancellation) awaited() awaitedPlan {
	return awaitedPlan{ObjectKey: client.ObjectKeyFromObject(c.instance), plan: c.Running, request: c.Spec.PlanExecution.UID}
}

// text describes what was cancelled, on which cluster if there are several.
func (c cancellation) text(waited, several bool) string {
	name := text.ObjectName(kudo.GroupVersion.Group, "Instance", c.instance.Name)
	var lines []string
	if c.Pending != "" {
		lines = append(lines, fmt.Sprintf("%s plan %s no longer requested\n", name, c.Pending))
	}
	switch {
	case c.Running != "" && waited:
		lines = append(lines, fmt.Sprintf("%s plan %s cancelled\n", name, c.Running))
	case c.Running != "":
		lines = append(lines, fmt.Sprintf("%s plan %s is being cancelled\n", name, c.Running))
	}
	for i := range lines {
		if several {
			lines[i] = onCluster(lines[i], c.instance.Namespace)
		}
	}
	return strings.Join(lines, "")
}

// seenWithin is the longest time until the agent reports that it has observed a change, while addon-manager runs.
const seenWithin = 3 * time.Second

// awaitCancelled waits until the cancelled plans have stopped, and then until the agents have observed the rest of the change, so that the next
// command does not report a pending change. An agent cancels plans even if addon-manager has not judged the Instance, so without
// addon-manager it never observes the rest.
func awaitCancelled(ctx context.Context, h hubclient.Hub, cancelled []awaitedPlan, timeout time.Duration) error {
	if len(cancelled) == 0 {
		return nil
	}
	var clusters []string
	for _, c := range cancelled {
		clusters = append(clusters, c.Namespace)
	}
	var running []awaitedPlan
	hasStopped := func(ctx context.Context, reader client.Reader) (bool, error) {
		var err error
		running, err = unlessDone(ctx, reader, cancelled, func(a awaitedPlan, i *kudo.Instance) bool { return !a.runs(i) })
		return len(running) == 0, err
	}
	err := h.Await(ctx, clusters, timeout, hasStopped, func(after string) error { return stillRunning(running, after) })
	if err != nil {
		return err
	}
	limited, stop := context.WithTimeout(ctx, seenWithin)
	defer stop()
	_ = h.Follow(limited, clusters, func(ctx context.Context, reader client.Reader) (bool, error) { // the plans are cancelled in any case
		unseen, err := unlessDone(ctx, reader, cancelled, func(_ awaitedPlan, i *kudo.Instance) bool { return !progress.Unseen(i) })
		return len(unseen) == 0, err
	})
	return nil
}

// stillRunning returns an error that lists the cancelled plans that have not stopped.
func stillRunning(running []awaitedPlan, after string) error {
	var problems []error
	for _, a := range running {
		problems = append(problems, fmt.Errorf("plan %q of %s is still running%s; check that addon-agent runs on cluster %s, "+
			"and see 'kubectl addon plan status %s --cluster %[4]s'", a.plan, a, after, a.Namespace, a.Name))
	}
	return errors.Join(problems...)
}

// unlessDone returns the plans of Instances that are not done; a deleted Instance is.
func unlessDone(
	ctx context.Context, reader client.Reader, plans []awaitedPlan, isDone func(awaitedPlan, *kudo.Instance) bool,
) ([]awaitedPlan, error) {
	var left []awaitedPlan
	for _, a := range plans {
		instance := &kudo.Instance{}
		err := reader.Get(ctx, a.ObjectKey, instance)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", a, err)
		case !isDone(a, instance):
			left = append(left, a)
		}
	}
	return left, nil
}

// runs reports whether the execution with that UID is running.
func (a awaitedPlan) runs(instance *kudo.Instance) bool {
	last := instance.Status.Execution
	return progress.RunningPlan(instance) != "" && last.UID == a.request
}
