package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/planstatus"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// watchStatuses prints a line for each change on several clusters, until the plans on all of them have ended. It returns the errors of `plan wait`.
func watchStatuses(ctx context.Context, h hubclient.Hub, out io.Writer, targets []hubclient.Target, withChildren bool) error {
	w := statusesWatch{progress: h.Progress(out)}
	w.progress.PrintLines()
	w.progress.MarkReported(nil) // what has ended before is printed, too
	var clusters []string
	for _, target := range targets {
		one := &planWatch{ObjectKey: target.ObjectKey, live: h, withChildren: withChildren}
		if target.Instance == nil {
			_, one.problem = planstatus.Find(ctx, h, target.ObjectKey, false) // it lists the existing names
		}
		w.plans, clusters = append(w.plans, one), append(clusters, target.Namespace)
	}
	problems := []error{h.Await(ctx, clusters, 0, w.look, w.unfinishedError)}
	for _, one := range w.plans {
		problems = append(problems, one.problem)
	}
	return errors.Join(problems...)
}

// statusesWatch watches the plans of Instances on several clusters.
type statusesWatch struct {
	plans    []*planWatch
	progress *terminal.Progress
}

func (w *statusesWatch) look(ctx context.Context, reader client.Reader) (bool, error) {
	var trees []terminal.Node
	all := true
	for _, one := range w.plans {
		if !one.hasEnded() {
			done, err := one.look(ctx, reader)
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			one.done, one.problem = done, err
		}
		all = all && one.hasEnded()
		trees = append(trees, one.trees...)
	}
	return all, w.progress.Show(trees...)
}

// unfinishedError returns the error for an interruption. It names the clusters on which plans have not ended.
func (w *statusesWatch) unfinishedError(string) error {
	var clusters []string
	for _, one := range w.plans {
		if !one.hasEnded() {
			clusters = append(clusters, text.Word(one.Namespace))
		}
	}
	return fmt.Errorf("plans are still in progress on %s", text.ListOrNone(clusters))
}

// planWatch watches the plans of an Instance.
type planWatch struct {
	client.ObjectKey
	// live reads the hub, and not a watch cache.
	live         client.Reader
	withChildren bool
	// found is the last observed Instance, nil if there is none yet.
	found *kudo.Instance
	// before is the execution that had ended when the Instance was first observed: its steps are not printed.
	before types.UID
	trees  []terminal.Node
	// done is set once the plans are complete; problem states why they will not be.
	done    bool
	problem error
}

func (w *planWatch) hasEnded() bool { return w.done || w.problem != nil }

func (w *planWatch) look(ctx context.Context, reader client.Reader) (bool, error) {
	instance := &kudo.Instance{}
	err := reader.Get(ctx, w.ObjectKey, instance)
	switch {
	case apierrors.IsNotFound(err) && w.found == nil:
		return w.lookAtAddOn(ctx, reader)
	case apierrors.IsNotFound(err):
		return w.endRemoved()
	case err != nil:
		return false, fmt.Errorf("reading Instance %q of cluster %q: %w", w.Name, w.Namespace, err)
	}
	view := read.View(ctx, reader, instance)
	if w.withChildren {
		if err := read.Children(ctx, reader, &view); err != nil {
			return false, err
		}
	}
	w.observe(view)
	return planstatus.HasEnded(view)
}

// observe records the Instance, and its lines.
func (w *planWatch) observe(view progress.View) {
	last := view.Instance.Status.Execution
	hasEnded := last != nil && view.Instance.Status.PlanStatus[last.Plan].Status.IsTerminal()
	switch {
	case !hasEnded:
		w.before = ""
	case w.found == nil:
		w.before = last.UID
	}
	w.found, w.trees = view.Instance, planstatus.InstanceProgress(view)
	if hasEnded && last.UID == w.before && !w.withChildren {
		w.trees[0].Children = nil // the first tree is the last execution's
	}
}

// endRemoved ends the watch of an Instance that no longer exists.
func (w *planWatch) endRemoved() (bool, error) {
	w.trees = w.line("gone")
	if !planstatus.IsRemovalOf(w.found) {
		return false, fmt.Errorf("%s on %s was deleted before its plans ended", text.Word(w.Name), text.Word(w.Namespace))
	}
	return true, nil
}

// line returns a tree of a single line.
func (w *planWatch) line(message string) []terminal.Node {
	place := fmt.Sprintf("%s on %s", text.Word(w.Name), text.Word(w.Namespace))
	return []terminal.Node{{Text: place + ": " + message, Part: place, Message: message}}
}

// lookForRemoval ends the watch if neither Instance nor add-on exist. The watch cache may lack what has just been created.
func (w *planWatch) lookForRemoval(ctx context.Context) (bool, error) {
	for _, object := range []client.Object{&addonv1alpha1.ManagedClusterAddOn{}, &kudo.Instance{}} {
		if err := w.live.Get(ctx, w.ObjectKey, object); !apierrors.IsNotFound(err) {
			return false, err
		}
	}
	w.trees = w.line("gone")
	return true, nil
}

// lookAtAddOn records why the Instance of an add-on is not created. It returns an error if that requires a change by the user.
func (w *planWatch) lookAtAddOn(ctx context.Context, reader client.Reader) (bool, error) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	err := reader.Get(ctx, w.ObjectKey, addOn)
	switch {
	case apierrors.IsNotFound(err):
		return w.lookForRemoval(ctx)
	case err != nil:
		return false, fmt.Errorf("reading add-on %q of cluster %q: %w", w.Name, w.Namespace, err)
	}
	w.trees = []terminal.Node{planstatus.AddOnProgress(addOn)}
	return false, planstatus.LastingProblem("add-on", addOn, addOn.Status.Conditions)
}
