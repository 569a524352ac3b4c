package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// children creates, updates and removes the children of Instances for the KudoOperator tasks that agents report to be in progress (KEP-29,
// KEP-36), and reports to the agents in status.children.
type children struct {
	client    client.Client
	live      client.Reader // bypasses the cache
	liveReads *liveReads
	recorder  events.EventRecorder
	// packagesNamespace is the namespace of the OperatorVersions for all clusters.
	packagesNamespace string
	// written tracks the last writes of parents, applied those of children.
	written, applied *controller.Writes
}

func (c *children) SetUp(mgr manager.Manager) error {
	return controller.New(mgr, "children", controller.Options{}).
		For(&kudo.Instance{}, builder.WithPredicates(controller.ChangeIn(viewParent))).
		Watches(&kudo.Instance{}, controller.EnqueueFrom(read.Parent), builder.WithPredicates(controller.ChangeIn(viewChild))).
		Watches(&kudo.OperatorVersion{}, controller.EnqueueFrom(c.instancesOf), builder.WithPredicates(controller.Existence(), controller.AfterStart())).
		Complete(&controller.Reconciler[*kudo.Instance]{
			Client: c.client, Written: c.written, IsIgnored: kudo.IsMirror, Forget: c.applied.Forget, ReconcileObject: c.Reconcile,
		})
}

// Reconcile brings the children of one Instance to the state that its execution requires.
func (c *children) Reconcile(ctx context.Context, parent *kudo.Instance) (ctrl.Result, error) {
	state, err := c.gather(ctx, parent)
	if err != nil || state == nil {
		return ctrl.Result{}, err
	}
	steps := install.Children(*state)
	if slices.ContainsFunc(steps, state.Decides) {
		if err := c.checkLive(ctx, parent); err != nil {
			return controller.RetryConflict(err)
		}
		if state, err = c.gather(ctx, parent); err != nil || state == nil { // the first decision may have used a stale cache
			return ctrl.Result{}, err
		}
		steps = install.Children(*state)
	}
	statuses, failed := c.act(ctx, parent, steps)
	return controller.RetryConflict(errors.Join(failed, c.commit(ctx, state, statuses)))
}

// checkLive returns a conflict if the cached parent, or a cached OperatorVersion that decides about its children, is stale.
func (c *children) checkLive(ctx context.Context, parent *kudo.Instance) error {
	current := &kudo.Instance{}
	err := c.live.Get(ctx, client.ObjectKeyFromObject(parent), current)
	if err != nil {
		return fmt.Errorf("reading Instance %s: %w", client.ObjectKeyFromObject(parent), err)
	}
	if install.IsStale(parent, current) {
		return staleCacheConflict(parent, "has changed")
	}
	if parent.Status.Execution == nil || !parent.DeletionTimestamp.IsZero() {
		return nil
	}
	running := parent.Status.Execution.OperatorVersion
	for _, namespace := range []string{running.Namespace, install.VersionOf(parent).Namespace} {
		if install.MayRead(parent.Namespace, namespace, c.packagesNamespace) {
			if err := c.liveReads.checkVersions(ctx, namespace, running.UID); err != nil {
				return err
			}
		}
	}
	return nil
}

// gather reads everything that decides about the children of an Instance. It returns nil if the Instance neither has nor needs children, as
// most do, or if nothing is removed from its cluster any more.
func (c *children) gather(ctx context.Context, parent *kudo.Instance) (*install.Parent, error) {
	state := &install.Parent{Instance: parent}
	var err error
	if state.Running, err = read.StartedVersion(ctx, c.client, parent, nil, c.packagesNamespace); err != nil {
		return nil, err
	}
	if state.Running == nil && parent.Status.Execution != nil {
		if state.Wanted, err = read.WantedVersion(ctx, c.client, parent, c.packagesNamespace); err != nil {
			return nil, err
		}
	}
	if !hasChildren(state.Running) && !hasChildren(state.Wanted) {
		owned, err := read.Children(ctx, c.client, parent)
		if err != nil || len(owned)+len(parent.Status.Children) == 0 {
			return nil, err
		}
	}
	detached, err := read.IsDetached(ctx, c.client, parent.Namespace)
	if err != nil || detached {
		return nil, err
	}
	return state, c.gatherAround(ctx, state)
}

// gatherAround reads the Instances of the cluster, and the OperatorVersions that the children of tasks in progress may run.
func (c *children) gatherAround(ctx context.Context, state *install.Parent) (err error) {
	if state.Instances, err = read.InstancesOn(ctx, c.client, state.Instance.Namespace); err != nil {
		return err
	}
	for _, operator := range state.Operators() {
		versions, err := read.Versions(ctx, c.client, state.Running.Namespace, operator)
		if err != nil {
			return err
		}
		state.Candidates = append(state.Candidates, versions...)
	}
	return nil
}

// hasChildren reports whether the version, which may be nil, has children.
func hasChildren(version *kudo.OperatorVersion) bool {
	return version != nil && len(tree.Tasks(&version.Spec)) > 0
}

// act carries out the steps independently of each other, and returns the status for the agent.
func (c *children) act(ctx context.Context, parent *kudo.Instance, steps []install.ChildStep) ([]kudo.ChildStatus, error) {
	var (
		statuses []kudo.ChildStatus
		failed   error
	)
	for _, step := range steps {
		status, err := c.carryOut(ctx, parent, step)
		failed = errors.Join(failed, err)
		if err == nil && status.State != "" {
			statuses = append(statuses, status)
		}
	}
	return statuses, failed
}

// carryOut carries out one step, and returns its complete status.
func (c *children) carryOut(ctx context.Context, parent *kudo.Instance, step install.ChildStep) (kudo.ChildStatus, error) {
	status := step.Status
	switch {
	case step.Delete:
		return status, c.delete(ctx, parent, step.Current, step.Force)
	case step.Current != nil && c.applied.WaitTime(step.Current) > 0:
		return status, staleCacheConflict(step.Current, "already applied")
	case step.Apply == nil && step.Rerun == nil:
		return status, nil
	}
	child := step.Current
	if step.Apply != nil {
		applied, err := c.apply(ctx, parent, step)
		switch {
		case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
			status.State, status.Message = kudo.ChildFailed, "the hub rejected it: "+controller.TruncateNote(err.Error())
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

// apply creates the child, or updates it if it is unchanged since it was read.
func (c *children) apply(ctx context.Context, parent *kudo.Instance, step install.ChildStep) (*kudo.Instance, error) {
	want, reason := step.Apply, eventChildCreated
	var live *unstructured.Unstructured
	if step.Current != nil {
		reason = eventChildChanged
		live = &unstructured.Unstructured{}
		live.SetUID(step.Current.UID)
	}
	configuration, err := childConfiguration(step.Current, want)
	if err != nil {
		return nil, err
	}
	var stored *unstructured.Unstructured
	err = applyWithAuthor(configuration, func() (err error) {
		stored, err = apply.Onto(ctx, c.client, live, configuration, ManagerChildren)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("applying Instance %s: %w", client.ObjectKeyFromObject(want), err)
	}
	c.applied.Note(stored)
	child := &kudo.Instance{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, child); err != nil {
		return nil, fmt.Errorf("decoding Instance %s: %w", client.ObjectKeyFromObject(want), err)
	}
	c.recorder.Eventf(parent, child, corev1.EventTypeNormal, reason, actionBringAbout, "%s",
		controller.TruncateNote(fmt.Sprintf("applied Instance %q of OperatorVersion %q", child.Name, child.Spec.OperatorVersion.Name)))
	return child, nil
}

// childConfiguration returns the apply configuration of a child.
func childConfiguration(current, want *kudo.Instance) (*unstructured.Unstructured, error) {
	configuration, err := instanceConfiguration(current, want)
	if err != nil {
		return nil, err
	}
	configuration.SetLabels(want.Labels)
	configuration.SetAnnotations(want.Annotations)
	return configuration, nil
}

// rerun requests another run of a plan of the child, and returns the updated child.
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
	c.applied.Note(current)
	c.recorder.Eventf(parent, current, corev1.EventTypeNormal, eventChildRerun, actionBringAbout, "%s",
		controller.TruncateNote(fmt.Sprintf("plan %q of Instance %q failed and is run again", request.PlanName, child.Name)))
	return current, nil
}

// delete deletes the child for its agent to remove; a forced removal releases it first. Grandchildren follow in the same way.
func (c *children) delete(ctx context.Context, parent, child *kudo.Instance, force bool) error {
	if force && child.Annotations[kudo.AnnotationForceRelease] != "true" {
		mark := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:"true"}}}`, child.UID, kudo.AnnotationForceRelease)
		patch := client.RawPatch(types.MergePatchType, mark)
		if err := c.client.Patch(ctx, child.DeepCopy(), patch, client.FieldOwner(ManagerChildren)); err != nil {
			return client.IgnoreNotFound(fmt.Errorf("releasing Instance %s: %w", client.ObjectKeyFromObject(child), err))
		}
	}
	if !child.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := deleteInstance(ctx, c.client, child, ManagerChildren, client.Preconditions{UID: &child.UID}); err != nil {
		return client.IgnoreNotFound(err)
	}
	c.recorder.Eventf(parent, child, corev1.EventTypeNormal, eventChildDeleted, actionBringAbout, "%s",
		controller.TruncateNote(fmt.Sprintf("Instance %q is removed", child.Name)))
	return nil
}

// commit reports the results to the agent if they changed.
func (c *children) commit(ctx context.Context, state *install.Parent, statuses []kudo.ChildStatus) error {
	parent := state.Instance
	want := install.Acknowledgements(*state, statuses)
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
	for _, status := range statuses {
		if status.State == kudo.ChildFailed {
			c.recorder.Eventf(parent, nil, corev1.EventTypeWarning, eventChildFailed, actionBringAbout, "%s",
				controller.TruncateNote(fmt.Sprintf("Instance %q: %s", status.Instance, status.Message)))
		}
	}
	return nil
}

// instancesOf returns the Instances that name an OperatorVersion. If it replaces the running one, the running plan is stranded.
func (c *children) instancesOf(ctx context.Context, version client.Object) ([]reconcile.Request, error) {
	return read.InstanceRequests(ctx, c.client, client.MatchingFields{read.ByVersion: client.ObjectKeyFromObject(version).String()})
}

// parentView holds the fields of an Instance that its children depend on.
type parentView struct {
	generation                int64
	deleting, removed, forced bool
	execution                 types.UID
	progress, children        string
}

func viewParent(i *kudo.Instance) parentView {
	view := parentView{
		generation: i.Generation, deleting: !i.DeletionTimestamp.IsZero(), removed: i.IsRemoved(), forced: i.IsForceReleased(),
	}
	if i.Status.Execution != nil {
		view.execution = i.Status.Execution.UID
	}
	if len(i.Status.PlanStatus) > 0 { // the cache drops it for most Instances
		view.progress = fmt.Sprint(i.Status.PlanStatus)
	}
	if len(i.Status.Children) > 0 {
		view.children = fmt.Sprint(i.Status.Children)
	}
	return view
}

// childView holds the fields of an Instance that its parent depends on.
type childView struct {
	uid              types.UID
	generation       int64
	deleting, forced bool
	root             string
	resolved         controller.ConditionView
}

func viewChild(i *kudo.Instance) childView {
	return childView{
		uid: i.UID, generation: i.Generation, deleting: !i.DeletionTimestamp.IsZero(), forced: i.IsForceReleased(),
		root: i.Labels[kudo.LabelRoot], resolved: controller.ViewCondition(i.Status.Conditions, kudo.ConditionResolved),
	}
}
