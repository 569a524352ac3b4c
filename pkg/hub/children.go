package hub

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/install"
	"github.com/tandem-addons/tandem/pkg/tree"
)

// children brings the children of Instances about, and removes them, as the KudoOperator tasks ask for it that agents report to be in
// progress (KEP-29, KEP-36), and tells the agents in status.children.
type children struct {
	client   client.Client
	live     client.Reader // not from the cache
	recorder events.EventRecorder
	// written are the parents' last writes, applied those of children.
	written, applied *lastWrites
}

func (c *children) setUp(mgr manager.Manager) error {
	return newController(mgr, "children", controller.Options{}).
		For(&kudo.Instance{}, builder.WithPredicates(changed(viewParent))).
		Watches(&kudo.Instance{}, mapped(parentOf), builder.WithPredicates(changed(viewChild))).
		Watches(&kudo.OperatorVersion{}, mapped(c.naming), builder.WithPredicates(existence(), afterStart())).
		Complete(c)
}

// Reconcile brings the children of one Instance to what its execution asks for.
func (c *children) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	parent := &kudo.Instance{}
	err := c.client.Get(ctx, request.NamespacedName, parent)
	if apierrors.IsNotFound(err) || kudo.IsMirror(parent) {
		c.written.forget(request.NamespacedName)
		c.applied.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading Instance %s: %w", request.NamespacedName, err)
	}
	// Where the cache does not have the last write yet, it would be repeated. As a rule its own event leads here again.
	if wait := c.written.awaits(parent); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	defer c.written.noteSince(parent, parent.ResourceVersion)
	state, err := c.gather(ctx, parent)
	if err != nil || state == nil {
		return ctrl.Result{}, err
	}
	told, failed := c.act(ctx, parent, install.Children(*state))
	return retryConflict(errors.Join(failed, c.commit(ctx, state, told)))
}

// gather reads everything that matters about the children of an Instance; nil where it neither has nor wants any, as most do, or where
// nothing is to be removed from its cluster any more.
func (c *children) gather(ctx context.Context, parent *kudo.Instance) (*install.Parent, error) {
	state := &install.Parent{Instance: parent}
	var err error
	if state.Running, err = startedVersion(ctx, c.client, parent, nil); err != nil {
		return nil, err
	}
	if state.Running == nil && parent.Status.Execution != nil {
		if state.Wanted, err = versionAt(ctx, c.client, install.VersionOf(parent)); err != nil {
			return nil, err
		}
	}
	if !bringsAlong(state.Running) && !bringsAlong(state.Wanted) {
		owned, err := childrenOf(ctx, c.client, parent)
		if err != nil || len(owned)+len(parent.Status.Children) == 0 {
			return nil, err
		}
	}
	detached, err := isDetached(ctx, c.client, parent.Namespace)
	if err != nil || detached {
		return nil, err
	}
	return state, c.gatherAround(ctx, state)
}

// gatherAround reads the Instances of the cluster, and the OperatorVersions that the children of tasks in progress may run.
func (c *children) gatherAround(ctx context.Context, state *install.Parent) (err error) {
	if state.Instances, err = instancesOn(ctx, c.client, state.Instance.Namespace); err != nil {
		return err
	}
	for _, operator := range state.Operators() {
		versions, err := versionsOf(ctx, c.client, state.Running.Namespace, operator)
		if err != nil {
			return err
		}
		state.Candidates = append(state.Candidates, versions...)
	}
	return nil
}

// bringsAlong says whether the version, if there is one, has children.
func bringsAlong(version *kudo.OperatorVersion) bool {
	return version != nil && len(tree.Tasks(&version.Spec)) > 0
}

// act carries the steps out, each as if it were the only one, and returns what the agent is to be told.
func (c *children) act(ctx context.Context, parent *kudo.Instance, steps []install.ChildStep) ([]kudo.ChildStatus, error) {
	var (
		told   []kudo.ChildStatus
		failed error
	)
	for _, step := range steps {
		status, err := c.carryOut(ctx, parent, step)
		failed = errors.Join(failed, err)
		if err == nil && status.State != "" {
			told = append(told, status)
		}
	}
	return told, failed
}

// carryOut does what one step says, and returns its status, complete.
func (c *children) carryOut(ctx context.Context, parent *kudo.Instance, step install.ChildStep) (kudo.ChildStatus, error) {
	status := step.Status
	switch {
	case step.Delete:
		return status, c.delete(ctx, parent, step.Current, step.Force)
	case step.Current != nil && c.applied.awaits(step.Current) > 0:
		return status, unknownToCache(step.Current, "it was applied already")
	case step.Apply == nil && step.Rerun == nil:
		return status, nil
	}
	child := step.Current
	if step.Apply != nil {
		applied, err := c.apply(ctx, parent, step)
		switch {
		case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
			status.State, status.Message = kudo.ChildFailed, "the hub refuses it: "+note(err.Error())
			return status, nil
		case err != nil:
			return status, err
		}
		child = applied
	}
	if step.Rerun != nil {
		rerun, err := c.rerun(ctx, parent, child, *step.Rerun)
		if err != nil {
			return status, err
		}
		child = rerun
	}
	status.UID, status.Generation = child.UID, child.Generation
	return status, nil
}

// apply makes the child, or changes exactly the one that was read.
func (c *children) apply(ctx context.Context, parent *kudo.Instance, step install.ChildStep) (*kudo.Instance, error) {
	want, reason := step.Apply, eventChildCreated
	var live *unstructured.Unstructured
	if step.Current != nil {
		reason = eventChildChanged
		live = &unstructured.Unstructured{}
		live.SetUID(step.Current.UID)
	}
	configuration, err := childConfiguration(want)
	if err != nil {
		return nil, err
	}
	stored, err := apply.Onto(ctx, c.client, live, configuration, ManagerChildren)
	if err != nil {
		return nil, fmt.Errorf("applying Instance %s: %w", client.ObjectKeyFromObject(want), err)
	}
	c.applied.note(stored)
	child := &kudo.Instance{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, child); err != nil {
		return nil, fmt.Errorf("decoding Instance %s: %w", client.ObjectKeyFromObject(want), err)
	}
	c.recorder.Eventf(parent, child, corev1.EventTypeNormal, reason, actionBringAbout, "%s",
		note(fmt.Sprintf("Instance %q of OperatorVersion %q stands", child.Name, child.Spec.OperatorVersion.Name)))
	return child, nil
}

// childConfiguration is what the hub applies of a child.
func childConfiguration(want *kudo.Instance) (*unstructured.Unstructured, error) {
	configuration, err := instanceConfiguration(want)
	if err != nil {
		return nil, err
	}
	configuration.SetLabels(want.Labels)
	return configuration, nil
}

// rerun asks for a plan of the child to be run again, and returns the child as it is then.
func (c *children) rerun(ctx context.Context, parent, child *kudo.Instance, request kudo.PlanExecution) (*kudo.Instance, error) {
	err := apply.Patch(ctx, c.client, child.DeepCopy(), []apply.Operation{
		{Op: "add", Path: "/spec/planExecution", Value: request},
	}, client.FieldOwner(ManagerChildren))
	if err != nil {
		return nil, err
	}
	current := &kudo.Instance{}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(child), current); err != nil {
		return nil, fmt.Errorf("reading Instance %s: %w", client.ObjectKeyFromObject(child), err)
	}
	c.applied.note(current)
	c.recorder.Eventf(parent, current, corev1.EventTypeNormal, eventChildRerun, actionBringAbout, "%s",
		note(fmt.Sprintf("plan %q of Instance %q has failed and is run again", request.PlanName, child.Name)))
	return current, nil
}

// delete lets the child's agent remove it, or, by force, lets go of it first. What is below it follows as it follows its parent.
func (c *children) delete(ctx context.Context, parent, child *kudo.Instance, force bool) error {
	if force && child.Annotations[kudo.AnnotationForceRelease] != "true" {
		mark := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:"true"}}}`, child.UID, kudo.AnnotationForceRelease)
		patch := client.RawPatch(types.MergePatchType, mark)
		if err := c.client.Patch(ctx, child.DeepCopy(), patch, client.FieldOwner(ManagerChildren)); err != nil {
			return client.IgnoreNotFound(fmt.Errorf("letting go of Instance %s: %w", client.ObjectKeyFromObject(child), err))
		}
	}
	if !child.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := c.client.Delete(ctx, child.DeepCopy(), client.Preconditions{UID: &child.UID}); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("deleting Instance %s: %w", client.ObjectKeyFromObject(child), err))
	}
	c.recorder.Eventf(parent, child, corev1.EventTypeNormal, eventChildDeleted, actionBringAbout, "%s",
		note(fmt.Sprintf("Instance %q is removed", child.Name)))
	return nil
}

// commit tells the agent what was done, if there is anything new.
func (c *children) commit(ctx context.Context, state *install.Parent, told []kudo.ChildStatus) error {
	parent := state.Instance
	want := install.Acknowledgements(*state, told)
	if equality.Semantic.DeepEqual(parent.Status.Children, want) {
		return nil
	}
	entries := make([]any, 0, len(want))
	for i := range want {
		entry, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&want[i])
		if err != nil {
			return fmt.Errorf("encoding the children of Instance %s: %w", client.ObjectKeyFromObject(parent), err)
		}
		entries = append(entries, entry)
	}
	if err := apply.StatusAsRead(ctx, c.client, parent, ManagerChildren, map[string]any{"children": entries}); err != nil {
		return client.IgnoreNotFound(err)
	}
	for _, status := range told {
		if status.State == kudo.ChildFailed {
			c.recorder.Eventf(parent, nil, corev1.EventTypeWarning, eventChildFailed, actionBringAbout, "%s",
				note(fmt.Sprintf("Instance %q: %s", status.Instance, status.Message)))
		}
	}
	return nil
}

// childrenOf are the Instances that are children of that one. They are the cache's own, not to be changed.
func childrenOf(ctx context.Context, c client.Reader, parent *kudo.Instance) ([]kudo.Instance, error) {
	var found kudo.InstanceList
	err := c.List(ctx, &found, client.InNamespace(parent.Namespace), client.MatchingFields{byParent: string(parent.UID)},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the children of Instance %s: %w", client.ObjectKeyFromObject(parent), err)
	}
	return found.Items, nil
}

// parentKeys are the uid of the Instance that the Instance is a child of.
func parentKeys(o client.Object) []string {
	if owner := o.(*kudo.Instance).Parent(); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// parentOf is the Instance that a changed Instance is a child of.
func parentOf(_ context.Context, child client.Object) ([]reconcile.Request, error) {
	owner := child.(*kudo.Instance).Parent()
	if owner == nil {
		return nil, nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: child.GetNamespace(), Name: owner.Name}}}, nil
}

// naming are the Instances that ask for an OperatorVersion. Where it has replaced the one that runs, the plan that runs is stranded.
func (c *children) naming(ctx context.Context, version client.Object) ([]reconcile.Request, error) {
	return instancesWith(ctx, c.client, client.MatchingFields{byVersion: client.ObjectKeyFromObject(version).String()})
}

// gone lets deletions pass only.
func gone() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

// releaseTree lets go of an Instance, after everything below it: on a cluster that is detached no deletion may be seen.
func releaseTree(ctx context.Context, c client.Client, instance *kudo.Instance) error {
	below, err := childrenOf(ctx, c, instance)
	if err != nil {
		return err
	}
	for i := range below {
		if err := releaseTree(ctx, c, below[i].DeepCopy()); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return release(ctx, c, instance, kudo.Finalizer)
}

// parentView is what matters of an Instance to its children.
type parentView struct {
	generation                int64
	deleting, removed, forced bool
	execution                 types.UID
	progress, children        string
}

func viewParent(i *kudo.Instance) parentView {
	view := parentView{
		generation: i.Generation, deleting: !i.DeletionTimestamp.IsZero(), removed: i.Removed(), forced: i.ForceReleased(),
	}
	if i.Status.Execution != nil {
		view.execution = i.Status.Execution.UID
	}
	if len(i.Status.PlanStatus) > 0 { // of most Instances the cache has none
		view.progress = fmt.Sprint(i.Status.PlanStatus)
	}
	if len(i.Status.Children) > 0 {
		view.children = fmt.Sprint(i.Status.Children)
	}
	return view
}

// childView is what matters of an Instance to its parent.
type childView struct {
	uid              types.UID
	generation       int64
	deleting, forced bool
	root             string
	resolved         conditionView
}

func viewChild(i *kudo.Instance) childView {
	return childView{
		uid: i.UID, generation: i.Generation, deleting: !i.DeletionTimestamp.IsZero(), forced: i.ForceReleased(),
		root: i.Labels[kudo.LabelRoot], resolved: viewCondition(i.Status.Conditions, kudo.ConditionResolved),
	}
}
