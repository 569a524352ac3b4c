package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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

// waitsForParent says whether a child that is being deleted stays until nothing else is left of its parent, whose cleanup plan may need
// it. The hub deletes them in that order; Kubernetes' garbage collector, and whoever deletes all Instances at once, do not.
func (m *mirror) waitsForParent(ctx context.Context, child *kudo.Instance) (bool, error) {
	owner := child.Parent()
	if owner == nil {
		return false, nil
	}
	parent := &kudo.Instance{}
	err := m.hub.Get(ctx, types.NamespacedName{Namespace: child.Namespace, Name: owner.Name}, parent)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Instance %q on the hub: %w", owner.Name, err)
	}
	return parent.UID == owner.UID && parent.DeletionTimestamp != nil && !hasLetGo(parent), nil
}

// hasLetGo says whether the children of an Instance on the hub do not wait for its removal, or not any more.
func hasLetGo(parent client.Object) bool {
	i := parent.(*kudo.Instance)
	return i.Removed() || i.ForceReleased()
}

// childrenOf maps an Instance on the hub that is being deleted to its children there.
func (m *mirror) childrenOf(ctx context.Context, parent client.Object) []reconcile.Request {
	if parent.GetDeletionTimestamp() == nil {
		return nil
	}
	list := &kudo.InstanceList{}
	if err := m.hub.List(ctx, list, client.InNamespace(parent.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing Instances on the hub", "namespace", parent.GetNamespace())
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if owner := list.Items[i].Parent(); owner != nil && owner.UID == parent.GetUID() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
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
	return changed(func(o client.Object) string { return acknowledgements(o.(*kudo.Instance)) })
}

// acknowledgements is status.children as something to compare.
func acknowledgements(i *kudo.Instance) string {
	if len(i.Status.Children) == 0 {
		return ""
	}
	return fmt.Sprint(i.Status.Children)
}
