package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/planstatus"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// PlanWaitOptions holds the arguments and flags of the command.
type PlanWaitOptions struct {
	*hubclient.Factory
	hubclient.Targets
	timeout time.Duration
}

// NewCmdPlanWait returns the command. If runF is set, it replaces runPlanWait.
func NewCmdPlanWait(f *hubclient.Factory, runF func(context.Context, *PlanWaitOptions) error) *cobra.Command {
	o := &PlanWaitOptions{Factory: f}
	if runF == nil {
		runF = runPlanWait
	}
	const of = "run the Instance or add-on"
	cmd := &cobra.Command{
		Use:   "wait NAME --cluster CLUSTER[,CLUSTER]",
		Short: "Wait until the plans of an Instance or add-on have ended",
		Long: "Show the progress of the running plan, and wait until it is complete and no other plan is due. The command fails as soon\n" +
			"as the plan fails, or the hub reports that no plan can start. If an add-on has no Instance yet, the command waits for the\n" +
			"Instance first. Interrupting the wait does not stop the plan.\n\n" +
			"Select the clusters with --cluster, --selector, --placement or --all-clusters; clusters that do not have NAME are skipped\n" +
			"unless they are named. The failure of a plan on one cluster does not end the wait for the others.",
		Example: "  kubectl addon plan wait kafka --cluster cluster1\n" +
			"  kubectl addon plan wait kafka --cluster cluster1 --timeout 10m\n" +
			"  kubectl addon plan wait kafka --all-clusters",
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
	terminal.TimeoutFlag(cmd, &o.timeout)
	return cmd
}

func runPlanWait(ctx context.Context, o *PlanWaitOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	var awaited []awaitedPlan
	err = h.RetryUntilStarted(ctx, func() error {
		awaited, err = awaitedOf(ctx, h, o)
		return err
	})
	if err == nil {
		err = awaitPlans(ctx, h, o.IOStreams, awaited, o.timeout)
	}
	return hubclient.Advise(err, strings.Join(o.Names, ","))
}

// awaitedOf returns the Instances to wait for. Those that exist neither as an Instance nor as an add-on are errors.
func awaitedOf(ctx context.Context, h hubclient.Hub, o *PlanWaitOptions) ([]awaitedPlan, error) {
	targets, err := o.Find(ctx, h, nil)
	if err != nil {
		return nil, err
	}
	var awaited []awaitedPlan
	missing := change.Refusals{}
	for _, target := range targets {
		if target.Instance == nil {
			if _, err := planstatus.Find(ctx, h, target.ObjectKey, false); err != nil { // it lists the existing names
				missing[target.Namespace] = err
			}
		}
		awaited = append(awaited, awaitedPlan{ObjectKey: target.ObjectKey})
	}
	return awaited, missing.Err()
}

// awaitedPlan is an Instance to wait for.
type awaitedPlan struct {
	client.ObjectKey
	// generation is the generation to wait for; status of an older generation is stale.
	generation int64
	// request is the UID of the manual request to wait for; empty to wait for all due plans.
	request types.UID
	plan    string
	// wanted is the Instance as derived from its add-on, or nil to not wait for it; before is the add-on before the change, and problemBefore the
	// problem that it had.
	wanted        *kudo.Instance
	before        *addonv1alpha1.ManagedClusterAddOn
	problemBefore error
}

func (a awaitedPlan) String() string {
	return fmt.Sprintf("Instance %s on cluster %s", text.Word(a.Name), text.Word(a.Namespace))
}

// awaitPlans waits until the plans of Instances have ended, shows progress, and prints the results. The failure of one does not stop waiting for
// the others.
func awaitPlans(ctx context.Context, h hubclient.Hub, streams genericiooptions.IOStreams, awaited []awaitedPlan, timeout time.Duration) error {
	w := plansWait{progress: h.Progress(streams.ErrOut)}
	for _, a := range awaited {
		w.plans = append(w.plans, &planWait{awaitedPlan: a})
	}
	problems := []error{h.Await(ctx, w.clusters(), timeout, w.look, w.timeoutError)}
	for _, p := range w.plans {
		if problems = append(problems, p.problem); p.settled && p.problem == nil {
			text := p.text
			if len(w.plans) > 1 {
				text = onCluster(text, p.Namespace)
			}
			problems = append(problems, printers.WriteEscaped(streams.Out, text))
		}
	}
	return errors.Join(problems...)
}

// onCluster returns a message with the name of the cluster at the end of its first line.
func onCluster(message, cluster string) string {
	first, rest, _ := strings.Cut(message, "\n")
	return first + " on " + text.Word(cluster) + "\n" + rest
}

// plansWait waits for the plans of Instances.
type plansWait struct {
	plans    []*planWait
	progress *terminal.Progress
}

// clusters returns the clusters of the Instances.
func (w *plansWait) clusters() []string {
	var clusters []string
	for _, p := range w.plans {
		clusters = append(clusters, p.Namespace)
	}
	slices.Sort(clusters)
	return slices.Compact(clusters)
}

func (w *plansWait) look(ctx context.Context, reader client.Reader) (bool, error) {
	var trees []terminal.Node
	all := true
	for _, p := range w.plans {
		if !p.settled {
			done, err := p.look(ctx, reader)
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			p.settled, p.problem = done || err != nil, err
		}
		all = all && p.settled
		trees = append(trees, p.trees...)
	}
	return all, w.progress.Show(trees...)
}

// timeoutError returns an error that lists the plans that have not ended.
func (w *plansWait) timeoutError(after string) error {
	var problems []error
	for _, p := range w.plans {
		if !p.settled {
			problems = append(problems, fmt.Errorf("the plans of %s are still in progress%s%s; "+
				"see 'kubectl addon plan status %s --cluster %s'",
				p, after, strings.TrimSuffix(": "+p.last, ": "), p.Name, p.Namespace))
		}
	}
	return errors.Join(problems...)
}

// planWait waits for the plans of an Instance.
type planWait struct {
	awaitedPlan
	// found is the last observed Instance, and last what it was waiting for.
	found *kudo.Instance
	last  string
	trees []terminal.Node
	// ended is when the plans were first seen to have ended.
	ended time.Time
	// settled ends the wait: text is the result, or problem states why there will not be one.
	settled bool
	text    string
	problem error
}

func (w *planWait) look(ctx context.Context, reader client.Reader) (bool, error) {
	instance := &kudo.Instance{}
	err := reader.Get(ctx, w.ObjectKey, instance)
	switch {
	case apierrors.IsNotFound(err) && w.found == nil:
		return false, w.lookAtAddOn(ctx, reader)
	case apierrors.IsNotFound(err):
		return w.endRemoved()
	case err != nil:
		return false, fmt.Errorf("reading %s: %w", w, err)
	}
	if w.wanted != nil && !change.SameSpec(instance, w.wanted) {
		return false, w.lookAtAddOn(ctx, reader)
	}
	return w.judge(ctx, reader, instance)
}

// judge decides from the Instance whether the wait is over.
func (w *planWait) judge(ctx context.Context, reader client.Reader, instance *kudo.Instance) (bool, error) {
	view := read.View(ctx, reader, instance)
	if len(instance.Status.Children) > 0 {
		if err := read.Children(ctx, reader, &view); err != nil {
			return false, err
		}
	}
	done, err := w.hasEnded(view)
	if done && err == nil && w.isReportPending(ctx, reader) {
		done = false
	}
	if w.found != nil || !done && err == nil { // a plan that ended earlier is not progress
		w.trees = planstatus.InstanceProgress(view)
	}
	w.found, w.last = instance, progress.HoldUp(view)
	w.text = fmt.Sprintf("%s plan %s is complete\n", text.ObjectName(kudo.GroupVersion.Group, "Instance", w.Name), w.planOf(instance))
	return done, err
}

// maxReportDelay is how long the wait continues for addon-manager's report about an add-on whose plans have ended.
const maxReportDelay = 20 * time.Second

// isReportPending reports whether the add-on of an Instance still has the condition Resolved from before the change: addon-manager reports the next one
// only after a write delay, and until then, 'why' and 'get' would call the change blocked.
func (w *planWait) isReportPending(ctx context.Context, reader client.Reader) bool {
	if w.wanted == nil {
		return false
	}
	if w.ended.IsZero() {
		w.ended = time.Now()
	}
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	return time.Since(w.ended) < maxReportDelay && reader.Get(ctx, w.ObjectKey, addOn) == nil && isResolvedBefore(addOn, w.before)
}

// isResolvedBefore reports whether a condition Resolved that is False is about the add-on before a change; before is nil if it did not exist.
func isResolvedBefore(addOn, before *addonv1alpha1.ManagedClusterAddOn) bool {
	resolved := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionResolved)
	if resolved == nil || resolved.Status == metav1.ConditionTrue {
		return false
	}
	if resolved.ObservedGeneration < addOn.Generation || before == nil {
		return true
	}
	was := meta.FindStatusCondition(before.Status.Conditions, addonv1alpha1.ConditionResolved)
	return was != nil && was.Reason == resolved.Reason && was.Message == resolved.Message
}

// endRemoved ends the wait for an Instance that no longer exists.
func (w *planWait) endRemoved() (bool, error) {
	if !planstatus.IsRemovalOf(w.found) || w.request != "" {
		return false, fmt.Errorf("%s was deleted before its plans ended", w)
	}
	w.text = fmt.Sprintf("%s is removed\n", text.ObjectName(kudo.GroupVersion.Group, "Instance", w.Name))
	return true, nil
}

// lookAtAddOn records why the Instance of an add-on is not created or changed. It returns an error if that requires a change by the user.
func (w *planWait) lookAtAddOn(ctx context.Context, reader client.Reader) error {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	if err := reader.Get(ctx, w.ObjectKey, addOn); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("reading add-on %q of cluster %q: %w", w.Name, w.Namespace, err))
	}
	tree := planstatus.AddOnProgress(addOn)
	w.last, w.trees = tree.Message, []terminal.Node{tree}
	problem := planstatus.LastingProblem("add-on", addOn, addOn.Status.Conditions)
	if isStale(problem, w.problemBefore) {
		return nil
	}
	return problem
}

// problemBefore returns the problem that an add-on had before a change; nil if there was none, or no add-on.
func problemBefore(addOn *addonv1alpha1.ManagedClusterAddOn) error {
	if addOn == nil {
		return nil
	}
	return planstatus.LastingProblem("add-on", addOn, addOn.Status.Conditions)
}

// isStale reports whether a problem of an add-on is the one that it had before a change: addon-manager reports the next one only after a
// write delay.
func isStale(problem, before error) bool {
	return problem != nil && before != nil && problem.Error() == before.Error()
}

// planOf returns the awaited plan: the requested plan, or the last one.
func (a awaitedPlan) planOf(instance *kudo.Instance) string {
	if a.plan != "" || instance.Status.Execution == nil {
		return a.plan
	}
	return instance.Status.Execution.Plan
}

// hasEnded reports whether the wait is over. It returns an error if the plan has failed or cannot run.
func (a awaitedPlan) hasEnded(view progress.View) (bool, error) {
	instance := view.Instance
	if instance.Generation < a.generation {
		return false, nil
	}
	if a.request == "" {
		return planstatus.HasEnded(view)
	}
	if done, err := a.requestEnded(instance); done || err != nil {
		return done, err
	}
	if !instance.DeletionTimestamp.IsZero() {
		return false, nil
	}
	return false, planstatus.LastingProblem("Instance", instance, instance.Status.Conditions)
}

// requestEnded reports whether the manually requested plan has ended.
func (a awaitedPlan) requestEnded(instance *kudo.Instance) (bool, error) {
	ran, last := instance.Status.PlanStatus[a.plan], instance.Status.Execution
	switch isRequested := ran.UID == a.request || a.isResumedBy(last, ran); {
	case instance.Status.Returned != nil && instance.Status.Returned.Execution == a.request:
		return false, planstatus.ReturnOf(instance)
	case isRequested && ran.Status == kudo.FatalError:
		return false, planstatus.FailureOf(instance, a.plan)
	case isRequested:
		return ran.Status == kudo.Complete, nil
	case a.refusal(instance) != "":
		return false, fmt.Errorf("plan %q of %s does not run: %s", a.plan, a, a.refusal(instance))
	case last != nil && last.Request == a.request:
		return false, fmt.Errorf("plan %q of %s was superseded by plan %q", a.plan, a, last.Plan)
	case instance.Spec.PlanExecution.UID != a.request:
		return false, fmt.Errorf("plan %q of %s did not run: another request replaced this one", a.plan, a)
	}
	return false, nil
}

// isResumedBy reports whether the last execution, which changed values or a retry have started, does what the request has asked for.
func (a awaitedPlan) isResumedBy(last *kudo.Execution, ran kudo.PlanStatus) bool {
	return last != nil && last.Request == a.request && last.Resume != "" && last.UID == ran.UID
}

// refusal returns why the agent does not execute the request; empty if it may.
func (a awaitedPlan) refusal(instance *kudo.Instance) string {
	condition := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionLastRequestSucceeded)
	if condition == nil || condition.Reason != kudo.ReasonRequestInvalid || instance.Spec.PlanExecution.UID != a.request ||
		condition.ObservedGeneration < instance.Generation {
		return ""
	}
	return text.JoinMessage(condition.Message)
}
