package change

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
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
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/text"
)

// enabled is the result of enabling an add-on on clusters.
type enabled struct {
	// done lists the completed steps.
	done []change.Step
	// going lists the add-ons that are being removed, and are enabled again once they are gone.
	going []installed
}

// enableWait waits until add-ons that are being removed are gone, and enables them again on each cluster. If requested, it waits until all
// enabled add-ons are available. The failure of one add-on does not stop waiting for the others.
type enableWait struct {
	goneWait
	addOn string
	// available is set to wait until the enabled add-ons, which are then the targets, are available.
	available bool
	targets   []*target
	// enable enables the add-on on clusters.
	enable func(ctx context.Context, clusters []string, streams genericiooptions.IOStreams) (enabled, error)
	// again shows the add-ons that were enabled again. out holds the output about them until the progress, which is drawn in place, ends.
	again    []terminal.Node
	out      bytes.Buffer
	problems []error
}

// await waits, shows progress, and prints the results.
func (w *enableWait) await(
	ctx context.Context, h hubclient.Hub, streams genericiooptions.IOStreams, timeout time.Duration, first enabled,
) error {
	w.goneWait = goneWait{hub: h, progress: h.Progress(streams.ErrOut)}
	w.add(first)
	if len(w.going)+len(w.targets) == 0 {
		return nil
	}
	err := h.Await(ctx, w.clusters(), timeout, w.look, w.timeoutError)
	_, failed := w.out.WriteTo(streams.Out)
	problems := append(w.problems, err, failed)
	for _, t := range w.targets {
		if problems = append(problems, t.problem); t.settled && t.problem == nil {
			text := fmt.Sprintf("%s available on %s\n",
				text.ObjectName(addonv1alpha1.GroupVersion.Group, "ManagedClusterAddOn", t.Wanted.Name), t.Wanted.Namespace)
			problems = append(problems, printers.WriteEscaped(streams.Out, text))
		}
	}
	return errors.Join(problems...)
}

// add adds the add-ons to wait for.
func (w *enableWait) add(result enabled) {
	w.going = append(w.going, result.going...)
	if !w.available {
		return
	}
	for _, s := range result.done {
		w.targets = append(w.targets, &target{Step: s})
	}
}

// clusters returns the clusters of the add-ons.
func (w *enableWait) clusters() []string {
	clusters := clustersOf(w.going)
	for _, t := range w.targets {
		clusters = append(clusters, t.Wanted.Namespace)
	}
	slices.Sort(clusters)
	return slices.Compact(clusters)
}

func (w *enableWait) look(ctx context.Context, reader client.Reader) (bool, error) {
	trees, err := w.lookAtRemovals(ctx, reader)
	if err != nil {
		return false, err
	}
	all := len(w.going) == 0
	for _, t := range w.targets {
		if !t.settled {
			if err := t.look(ctx, reader); err != nil {
				return false, err
			}
		}
		all = all && t.settled
		trees = append(trees, t.trees...)
	}
	return all, w.progress.Show(trees...)
}

// lookAtRemovals enables the add-ons on clusters where those that were being removed are gone, and returns the lines for the others.
func (w *enableWait) lookAtRemovals(ctx context.Context, reader client.Reader) ([]terminal.Node, error) {
	before := clustersOf(w.going)
	lines, err := w.updateRemaining(ctx, reader, true)
	if err != nil {
		return nil, err
	}
	remaining := sets.New(clustersOf(w.going)...)
	if free := slices.DeleteFunc(before, remaining.Has); len(free) > 0 {
		result, err := w.enable(ctx, free, genericiooptions.IOStreams{Out: &w.out, ErrOut: io.Discard})
		w.problems = append(w.problems, err)
		w.add(result)
		for _, s := range result.done {
			place := planstatus.PlaceOf(s.Wanted)
			w.again = append(w.again, terminal.Node{Part: place, Text: place + ": enabled", Message: "enabled", State: kudo.Complete})
		}
	}
	if w.available {
		return lines, nil // the targets show the others
	}
	return append(lines, w.again...), nil
}

// timeoutError returns an error that lists the add-ons that are not gone or not available.
func (w *enableWait) timeoutError(after string) error {
	var problems []error
	if len(w.going) > 0 {
		problems = append(problems, fmt.Errorf("add-on %q is not enabled on %s: %w",
			w.addOn, terminal.OnClusters(clustersOf(w.going)), w.goneWait.timeoutError(after)))
	}
	if slices.ContainsFunc(w.targets, (*target).isOpen) {
		problems = append(problems, fmt.Errorf("add-ons are still not available%s: %s; see '%s'",
			after, strings.Join(w.open(), "; "), w.explainCommand()))
	}
	return errors.Join(problems...)
}

// open returns the first few add-ons that are not available.
func (w *enableWait) open() []string {
	var texts []string
	for _, t := range w.targets {
		if !t.settled && len(t.trees) > 0 {
			texts = append(texts, strings.TrimSuffix(t.trees[len(t.trees)-1].Text, "."))
		}
	}
	if left := len(texts) - terminal.ClustersShown; left > 0 {
		texts = append(texts[:terminal.ClustersShown], fmt.Sprintf("%d more", left))
	}
	return texts
}

// explainCommand returns the command that explains the first add-on that is not available.
func (w *enableWait) explainCommand() string {
	first := w.targets[slices.IndexFunc(w.targets, (*target).isOpen)]
	return text.Command("kubectl addon why %s --cluster %s", first.Wanted.Name, first.Wanted.Namespace)
}

// target is an add-on to wait for.
type target struct {
	change.Step
	// seen is set once the add-on was observed. settled ends the wait: the add-on is available, or problem states why it will not be.
	seen, settled bool
	problem       error
	trees         []terminal.Node
}

func (t *target) isOpen() bool { return !t.settled }

func (t *target) look(ctx context.Context, reader client.Reader) error {
	key, addOn, instance := client.ObjectKeyFromObject(t.Wanted), &addonv1alpha1.ManagedClusterAddOn{}, &kudo.Instance{}
	if err := reader.Get(ctx, key, addOn); err != nil {
		if t.seen && apierrors.IsNotFound(err) {
			t.settle(fmt.Errorf("add-on %q on cluster %s was deleted before it became available", key.Name, key.Namespace))
		}
		return client.IgnoreNotFound(err)
	}
	t.seen = true
	switch err := reader.Get(ctx, key, instance); {
	case err == nil && install.OwnedBy(instance, addOn):
		t.judge(addOn, new(read.View(ctx, reader, instance)))
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading Instance %s: %w", key, err)
	default:
		t.judge(addOn, nil)
	}
	return nil
}

// judge decides whether the add-on is available, from the add-on and its Instance; view is nil if it has no Instance.
func (t *target) judge(addOn *addonv1alpha1.ManagedClusterAddOn, view *progress.View) {
	t.trees = []terminal.Node{addOnLine(addOn)}
	if problem := planstatus.LastingProblem("add-on", addOn, addOn.Status.Conditions); problem != nil && !isStale(problem, problemBefore(t.Current)) {
		t.settle(problem)
		return
	}
	if view != nil {
		done, problem := awaitedPlan{ObjectKey: client.ObjectKeyFromObject(addOn)}.hasEnded(*view)
		if problem != nil && t.hasParameters(view.Instance) {
			t.settle(problem)
		}
		if !done || !t.hasParameters(view.Instance) {
			if trees := planstatus.InstanceProgress(*view); len(trees) > 0 {
				t.trees = trees
			}
			return
		}
	}
	if isComplete(addOn) && isProcessed(addOn, view) {
		t.trees = []terminal.Node{availableNode(addOn, view)}
		t.settle(nil)
	}
}

// isComplete reports whether an add-on is available, no plan updates it, and addon-manager does not report any more that it lacks a required add-on.
func isComplete(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	degraded := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionDegraded)
	if degraded != nil && degraded.Status == metav1.ConditionTrue && degraded.Reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied {
		return false
	}
	available := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	return available != nil && available.Status == metav1.ConditionTrue && available.Reason != addonv1alpha1.ReasonUpdating &&
		available.Reason != kudo.ReasonReturned
}

// availableNode returns the line of an available add-on and, if it has an Instance, the result of its plan.
func availableNode(addOn *addonv1alpha1.ManagedClusterAddOn, view *progress.View) terminal.Node {
	line := terminal.Node{Text: planstatus.PlaceOf(addOn) + ": available", Part: planstatus.PlaceOf(addOn), Message: "available", State: kudo.Complete}
	if view != nil && view.Instance.Status.Execution != nil {
		line.Children = []terminal.Node{planstatus.LastPlanTree(*view)}
	}
	return line
}

func (t *target) settle(problem error) { t.settled, t.problem = true, problem }

// hasParameters reports whether the Instance has the given parameters.
func (t *target) hasParameters(instance *kudo.Instance) bool {
	for name, value := range t.Parameters {
		if !change.SetsTo(instance.Spec, name, value) {
			return false
		}
	}
	return true
}

// isProcessed reports whether the hub has processed the last change of an add-on. For a plan-based add-on it checks condition
// Resolved.
func isProcessed(addOn *addonv1alpha1.ManagedClusterAddOn, view *progress.View) bool {
	resolved := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionResolved)
	if resolved == nil {
		return view == nil
	}
	return resolved.Status == metav1.ConditionTrue && resolved.ObservedGeneration >= addOn.Generation
}

// addOnLine returns the reason why the installation of an add-on is held up, or why the add-on is not available.
func addOnLine(addOn *addonv1alpha1.ManagedClusterAddOn) terminal.Node {
	if resolved := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionResolved); resolved != nil && resolved.Status != metav1.ConditionTrue {
		return planstatus.AddOnProgress(addOn)
	}
	place := planstatus.PlaceOf(addOn)
	text := "Available " + progress.ConditionText(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable, "Unknown: not reported yet")
	return terminal.Node{Text: place + ": " + text, Part: place, Message: text}
}
