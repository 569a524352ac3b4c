package change

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// PlanCancelOptions holds the arguments and flags of the command.
type PlanCancelOptions struct {
	*hubclient.Factory
	cluster, name string
	terminal.WaitFlags
}

// NewCmdPlanCancel returns the command. If runF is set, it replaces runPlanCancel.
func NewCmdPlanCancel(f *hubclient.Factory, runF func(context.Context, *PlanCancelOptions) error) *cobra.Command {
	o := &PlanCancelOptions{Factory: f}
	if runF == nil {
		runF = runPlanCancel
	}
	cmd := &cobra.Command{
		Use:   "cancel NAME --cluster CLUSTER",
		Short: "Cancel the running plan of an Instance or add-on",
		Long: "Cancel the running plan of an Instance or add-on, which then counts as failed, and withdraw a request for another plan\n" +
			"that has not started. Objects that were already applied stay unchanged until a plan runs again.",
		Example: "  kubectl addon plan cancel kafka --cluster cluster1",
		Args:    terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	hubclient.ClusterFlag(cmd, &o.cluster, "runs the Instance or add-on")
	o.AddWait(cmd, true, "Wait until the plan has ended.")
	return cmd
}

func runPlanCancel(ctx context.Context, o *PlanCancelOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: o.cluster, Name: o.name}
	return hubclient.Advise(planCancel(ctx, h, o.IOStreams, key, o.Wait, o.Timeout), o.cluster)
}

// planCancel cancels the running plan and withdraws a request that has not started. If there is neither, it returns an error that names the
// last plan.
func planCancel(ctx context.Context, h hubclient.Hub, streams genericiooptions.IOStreams, key client.ObjectKey, wait bool, timeout time.Duration) error {
	instance, err := read.ReadInstance(ctx, h, key)
	if err != nil {
		return err
	}
	cancellation, err := change.Cancel(instance)
	if err != nil {
		return err
	}
	name, pending, running := text.ObjectName(kudo.GroupVersion.Group, "Instance", key.Name), cancellation.Pending, cancellation.Running
	a := awaitedPlan{ObjectKey: key, plan: running, request: cancellation.Spec.PlanExecution.UID}
	if err := change.Request(ctx, requester(h), instance, cancellation.Spec); err != nil {
		return err
	}
	text := ""
	if pending != "" {
		text = fmt.Sprintf("%s plan %s no longer requested\n", name, pending)
	}
	switch {
	case running != "" && wait:
		text += fmt.Sprintf("%s plan %s cancelled\n", name, running)
		err = awaitCancelled(ctx, h, a, timeout)
	case running != "":
		text += fmt.Sprintf("%s plan %s is being cancelled\n", name, running)
	}
	if err != nil {
		return err
	}
	return printers.WriteEscaped(streams.Out, text)
}

// seenWithin is the longest time until the agent reports that it has observed a change, while addon-manager runs.
const seenWithin = 3 * time.Second

// awaitCancelled waits until the cancelled plan has stopped, and then until the agent has observed the rest of the change, so that the next
// command does not report a pending change. An agent cancels plans even if addon-manager has not judged the Instance, so without
// addon-manager it never observes the rest.
func awaitCancelled(ctx context.Context, h hubclient.Hub, cancelled awaitedPlan, timeout time.Duration) error {
	clusters := []string{cancelled.Namespace}
	err := h.Await(ctx, clusters, timeout, cancelled.until(func(i *kudo.Instance) bool { return !cancelled.runs(i) }), func(after string) error {
		return fmt.Errorf("plan %q of %s is still running%s; check that addon-agent runs on cluster %s, "+
			"and see 'kubectl addon plan status %s --cluster %[4]s'",
			cancelled.plan, cancelled, after, cancelled.Namespace, cancelled.Name)
	})
	if err != nil {
		return err
	}
	limited, stop := context.WithTimeout(ctx, seenWithin)
	defer stop()
	_ = h.Follow(limited, clusters, cancelled.until(func(i *kudo.Instance) bool { return !progress.Unseen(i) })) // the plan is cancelled in any case
	return nil
}

// until returns a Look that checks the Instance; a deleted Instance counts as done.
func (a awaitedPlan) until(done func(*kudo.Instance) bool) hubclient.Look {
	return func(ctx context.Context, reader client.Reader) (bool, error) {
		instance := &kudo.Instance{}
		if err := reader.Get(ctx, a.ObjectKey, instance); err != nil {
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			return false, fmt.Errorf("reading %s: %w", a, err)
		}
		return done(instance), nil
	}
}

// runs reports whether the execution with that UID is running.
func (a awaitedPlan) runs(instance *kudo.Instance) bool {
	last := instance.Status.Execution
	return progress.RunningPlan(instance) != "" && last.UID == a.request
}
