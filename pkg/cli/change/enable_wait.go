package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/planstatus"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/install"
)

// awaitAvailable waits until all written add-ons are available, and shows progress. The failure of one add-on does not stop waiting for the
// others.
func awaitAvailable(ctx context.Context, h hubclient.Hub, streams genericiooptions.IOStreams, done []step, timeout time.Duration) error {
	w := availableWait{progress: h.Progress(streams.ErrOut)}
	for _, s := range done {
		w.targets = append(w.targets, &target{step: s})
	}
	err := h.Await(ctx, w.clusters(), timeout, w.look, func(after string) error {
		return fmt.Errorf("add-ons are still not available%s: %s; see 'kubectl addon why ADDON --cluster CLUSTER'",
			after, strings.Join(w.open(), "; "))
	})
	problems := []error{err}
	for _, t := range w.targets {
		if problems = append(problems, t.problem); t.settled && t.problem == nil {
			text := fmt.Sprintf("%s available on %s\n",
				terminal.ObjectName(addonv1alpha1.GroupVersion.Group, "ManagedClusterAddOn", t.wanted.Name), t.wanted.Namespace)
			problems = append(problems, printers.WriteEscaped(streams.Out, text))
		}
	}
	return errors.Join(problems...)
}

// availableWait waits for add-ons to become available.
type availableWait struct {
	targets  []*target
	progress *terminal.Progress
}

// target is an add-on to wait for.
type target struct {
	step
	// seen is set once the add-on was observed. settled ends the wait: the add-on is available, or problem states why it will not be.
	seen, settled bool
	problem       error
	trees         []terminal.Node
}

// clusters returns the clusters of the add-ons.
func (w *availableWait) clusters() []string {
	var clusters []string
	for _, t := range w.targets {
		clusters = append(clusters, t.wanted.Namespace)
	}
	slices.Sort(clusters)
	return slices.Compact(clusters)
}

// open returns the first few add-ons that are still pending.
func (w *availableWait) open() []string {
	var texts []string
	for _, t := range w.targets {
		if !t.settled && len(t.trees) > 0 {
			texts = append(texts, t.trees[len(t.trees)-1].Text)
		}
	}
	if left := len(texts) - terminal.ClustersShown; left > 0 {
		texts = append(texts[:terminal.ClustersShown], fmt.Sprintf("%d more", left))
	}
	return texts
}

func (w *availableWait) look(ctx context.Context, reader client.Reader) (bool, error) {
	var trees []terminal.Node
	all := true
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

func (t *target) look(ctx context.Context, reader client.Reader) error {
	key, addOn, instance := client.ObjectKeyFromObject(t.wanted), &addonv1alpha1.ManagedClusterAddOn{}, &kudo.Instance{}
	if err := reader.Get(ctx, key, addOn); err != nil {
		if t.seen && apierrors.IsNotFound(err) {
			t.settle(fmt.Errorf("add-on %q on cluster %s was deleted before it became available", key.Name, key.Namespace))
		}
		return client.IgnoreNotFound(err)
	}
	t.seen = true
	switch err := reader.Get(ctx, key, instance); {
	case err == nil && install.OwnedBy(instance, addOn):
		t.judge(addOn, new(planstatus.Gather(ctx, reader, instance)))
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading Instance %s: %w", key, err)
	default:
		t.judge(addOn, nil)
	}
	return nil
}

// judge decides whether the add-on is available, from the add-on and its Instance; view is nil if it has no Instance.
func (t *target) judge(addOn *addonv1alpha1.ManagedClusterAddOn, view *planstatus.View) {
	t.trees = []terminal.Node{addOnLine(addOn)}
	if problem := hopeless("add-on", addOn, addOn.Status.Conditions); problem != nil {
		t.settle(problem)
		return
	}
	if view != nil {
		done, problem := awaitedPlan{ObjectKey: client.ObjectKeyFromObject(addOn)}.ended(*view)
		if problem != nil && t.applied(view.Instance) {
			t.settle(problem)
		}
		if !done || !t.applied(view.Instance) {
			if trees := planstatus.GoingOn(*view); len(trees) > 0 {
				t.trees = trees
			}
			return
		}
	}
	if meta.IsStatusConditionTrue(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable) && followed(addOn, view) {
		t.trees = []terminal.Node{available(addOn, view)}
		t.settle(nil)
	}
}

// available returns the line of an available add-on and, if it has an Instance, the result of its plan.
func available(addOn *addonv1alpha1.ManagedClusterAddOn, view *planstatus.View) terminal.Node {
	line := terminal.Node{Text: planstatus.PlaceOf(addOn) + ": available", Part: planstatus.PlaceOf(addOn), Message: "available", State: kudo.Complete}
	if view != nil && view.Instance.Status.Execution != nil {
		line.Children = []terminal.Node{planstatus.PlanGoingOn(*view)}
	}
	return line
}

func (t *target) settle(problem error) { t.settled, t.problem = true, problem }

// applied reports whether the Instance has the given parameters.
func (t *target) applied(instance *kudo.Instance) bool {
	if t.config == nil {
		return true
	}
	return !slices.ContainsFunc(t.config.Spec.CustomizedVariables, func(v upstream.CustomizedVariable) bool {
		return instance.Spec.Parameters[v.Name] != v.Value
	})
}

// followed reports whether the hub has processed the last change of an add-on. For a plan-based add-on it checks condition
// Resolved.
func followed(addOn *addonv1alpha1.ManagedClusterAddOn, view *planstatus.View) bool {
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
	text := "Available " + planstatus.ConditionText(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable, "Unknown: not reported yet")
	return terminal.Node{Text: place + ": " + text, Part: place, Message: text}
}
