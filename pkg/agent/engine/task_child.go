package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/outcome"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

// child observes the child Instance of a KudoOperator task. The hub creates or removes it because the task is reported as in progress; the
// engine only waits for it.
func (p *pass) child(ctx context.Context, x *execution, placed plan.Placed, action plan.TaskAction) plan.Outcome {
	if placed.Plan == kudo.CleanupPlan {
		return outcome.Fatal(errors.New("a KudoOperator task cannot be part of the cleanup plan: children are removed after it"))
	}
	child, err := p.see(ctx, x.instance, tree.Acknowledged(x.instance, placed.Task))
	if err != nil {
		return outcomeOf(err)
	}
	return plan.ChildOutcome(action, x.UID, child)
}

// children returns the children of an idle Instance, as acknowledged by the hub.
func (p *pass) children(ctx context.Context, o plan.Observation) ([]plan.Child, error) {
	var tasks []kudo.Task
	isKnown := o.Running != nil && plan.IsWhole(o.Instance.Status) // before the first plan, or if the version cannot be read, no child has vanished
	if isKnown {
		tasks = tree.Tasks(o.Running)
	}
	var children []plan.Child
	for _, said := range o.Instance.Status.Children {
		child, err := p.see(ctx, o.Instance, said)
		if err != nil {
			return nil, err
		}
		child.Vanished = isKnown && !slices.ContainsFunc(tasks, func(t kudo.Task) bool { return t.Name == said.Task })
		children = append(children, child)
		for _, name := range said.Former {
			former, err := p.see(ctx, o.Instance, kudo.ChildStatus{Task: said.Task, Instance: name})
			if err != nil {
				return nil, err
			}
			former.Former = true
			children = append(children, former)
		}
	}
	return children, nil
}

// see reads a child's mirror, which is in its parent's namespace.
func (e *engine) see(ctx context.Context, parent *kudo.Instance, said kudo.ChildStatus) (plan.Child, error) {
	child := plan.Child{Name: types.NamespacedName{Namespace: parent.Namespace, Name: said.Instance}, Acknowledged: said}
	mirror, err := e.readInstance(ctx, child.Name)
	if apierrors.IsNotFound(err) || err == nil && !e.signer.IsSigned(mirror) {
		return child, nil
	}
	if err != nil {
		return child, fmt.Errorf("reading Instance %q: %w", said.Instance, err)
	}
	observed, err := e.withVersions(ctx, mirror)
	if lost := (*content.Error)(nil); errors.As(err, &lost) { // condition Ready of the child says so
		err = nil
	}
	child.Mirror, child.Due = mirror, plan.DueForReady(observed.State()) != ""
	return child, err
}
