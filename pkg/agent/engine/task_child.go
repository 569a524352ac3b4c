package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/plan"
	"github.com/tandem-addons/tandem/pkg/tree"
)

// child looks at the child Instance of a KudoOperator task. The hub brings it about, or removes it, because the task is reported to be
// in progress; here it is only waited for.
func (e *engine) child(ctx context.Context, x *execution, placed plan.Placed, action plan.TaskAction) plan.Outcome {
	if placed.Plan == kudo.CleanupPlan {
		return fatal(errors.New("a KudoOperator task cannot be part of the cleanup plan: children are removed after it"))
	}
	said := kudo.ChildStatus{Instance: tree.ChildName(x.instance.Name, placed.Task)}
	if i := slices.IndexFunc(x.instance.Status.Children, func(c kudo.ChildStatus) bool { return c.Task == placed.Task.Name }); i >= 0 {
		said = x.instance.Status.Children[i]
	}
	child, err := e.see(ctx, e.live, x.instance, said)
	if err != nil {
		return outcomeOf(err)
	}
	return plan.ChildOutcome(action, x.UID, child)
}

// children are the children of an Instance at rest, as the hub has acknowledged them.
func (e *engine) children(ctx context.Context, s seen) ([]plan.Child, error) {
	tasks, isWhole := tree.Tasks(s.running), plan.IsWhole(s.instance.Status.PlanStatus)
	var children []plan.Child
	for _, said := range s.instance.Status.Children {
		child, err := e.see(ctx, e.client, s.instance, said)
		if err != nil {
			return nil, err
		}
		child.Vanished = isWhole && !slices.ContainsFunc(tasks, func(t kudo.Task) bool { return t.Name == said.Task })
		children = append(children, child)
	}
	return children, nil
}

// see reads a child's mirror, which stands beside its parent's.
func (e *engine) see(ctx context.Context, from client.Reader, parent *kudo.Instance, said kudo.ChildStatus) (plan.Child, error) {
	child := plan.Child{Name: types.NamespacedName{Namespace: parent.Namespace, Name: said.Instance}, Acknowledged: said}
	mirror := &kudo.Instance{}
	err := from.Get(ctx, child.Name, mirror)
	if apierrors.IsNotFound(err) {
		return child, nil
	}
	if err != nil {
		return child, fmt.Errorf("reading Instance %q: %w", said.Instance, err)
	}
	seen, err := e.gather(ctx, mirror)
	child.Mirror, child.Due = mirror, plan.Due(seen.wish()) != ""
	return child, err
}

// parentsOf maps an Instance to those that wait for it, or whose health it is a part of.
func (e *engine) parentsOf(ctx context.Context, child client.Object) []reconcile.Request {
	return e.requestsFor(ctx, child.GetNamespace(), func(i *kudo.Instance) bool {
		return slices.ContainsFunc(i.Status.Children, func(c kudo.ChildStatus) bool { return c.Instance == child.GetName() })
	})
}

// viewChild is what matters of a child to its parent: which generation stands, and how.
func viewChild(o client.Object) string {
	i := o.(*kudo.Instance)
	ready := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionReady)
	if ready == nil {
		return fmt.Sprint(i.Annotations)
	}
	return fmt.Sprint(i.Annotations, i.Status.ObservedGeneration, ready.Status, ready.Reason, ready.Message)
}

// acknowledged lets through what the hub says about KudoOperator tasks.
func acknowledged() predicate.Predicate {
	return mirror.Changed(func(o client.Object) string { return mirror.Acknowledgements(o.(*kudo.Instance)) })
}
