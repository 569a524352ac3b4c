package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/former"
	"github.com/tandem-addons/tandem/pkg/core/mirror"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/soak"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

// readInstance reads an Instance from the cache if that has the last write of this process, else from the API server. After a start of the
// agent the last write is unknown.
func (e *engine) readInstance(ctx context.Context, name types.NamespacedName, options ...client.GetOption) (*kudo.Instance, error) {
	cached, instance := &kudo.Instance{}, &kudo.Instance{}
	if err := e.client.Get(ctx, name, cached, options...); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if upToDate, known := e.writes.UpToDate(cached); upToDate && known {
		return cached, nil
	}
	if err := e.live.Get(ctx, name, instance); err != nil {
		if apierrors.IsNotFound(err) {
			e.writes.Forget(name)
		}
		return nil, err
	}
	e.writes.NoteIfNewer(instance)
	return instance, nil
}

// withVersions observes an Instance with its desired and its last started OperatorVersion, each nil if it does not exist.
func (e *engine) withVersions(ctx context.Context, instance *kudo.Instance) (plan.Observation, error) {
	o := plan.Observation{
		Now: e.clock(), Instance: instance, RetryDelay: e.retryDelay,
		Owner: plan.Owner{Namespace: instance.Namespace, Name: render.InstanceName(instance.Name), UID: instance.UID},
	}
	desired, err := e.filledVersion(ctx, instance, instance.Spec.OperatorVersion.Name)
	if err != nil {
		return o, err
	}
	if desired != nil {
		o.Desired, o.Reference = &desired.Spec, mirror.HubReference(desired)
	}
	last := instance.Status.Execution
	switch {
	case last == nil:
		return o, nil
	case desired != nil && desired.Name == mirror.VersionName(last.OperatorVersion):
		o.Running = &desired.Spec
	default:
		started, err := e.filledVersion(ctx, instance, mirror.VersionName(last.OperatorVersion))
		if err != nil {
			return o, err
		}
		if started != nil {
			o.Running = &started.Spec
		}
	}
	o.SoakFailure = soak.Failure(instance.Status)
	if o.Former, err = e.formerVersion(ctx, o); err != nil {
		return o, err
	}
	return o.Normalize(), nil
}

// formerVersion returns what an Instance may return to; nil if it does not exist, or if no plan of another version runs or has failed. While one runs, it may fail
// during this pass.
func (e *engine) formerVersion(ctx context.Context, o plan.Observation) (*kudo.OperatorVersionSpec, error) {
	record, last := o.Instance.Status.Former, o.Instance.Status.Execution
	if record == nil || !o.MayReturn() || former.Same(record.OperatorVersion, last.OperatorVersion) {
		return nil, nil
	}
	hasFailed := o.SoakFailure != "" || plan.ReachedState(o.Instance.Status, o.Running).FailedOwed() != ""
	if !hasFailed && !o.Instance.Status.PlanStatus[last.Plan].Status.IsRunning() {
		return nil, nil
	}
	version, err := e.filledVersion(ctx, o.Instance, mirror.VersionName(record.OperatorVersion))
	lost := (*content.Error)(nil)
	switch {
	case errors.As(err, &lost), err != nil && !hasFailed: // what only a failure needs stops no plan that runs
		return nil, nil
	case err != nil || version == nil:
		return nil, err
	}
	return &version.Spec, nil
}

// filledVersion returns the signed OperatorVersion of an Instance with the templates that its content stores; nil if it does not exist. If
// content is missing, only a removal continues.
func (e *engine) filledVersion(ctx context.Context, of *kudo.Instance, name string) (*kudo.OperatorVersion, error) {
	version, err := e.version(ctx, of, name)
	if err != nil {
		return nil, err
	}
	filled, err := e.contents.Fill(ctx, version)
	if err != nil && of.IsRemoving() {
		return version, nil
	}
	return filled, err
}

// version returns the signed OperatorVersion of an Instance; nil if it does not exist. After the first start, one that the cache lacks is read
// live: without it, a removal skips the cleanup plan, and the Instance loses its permissions.
func (e *engine) version(ctx context.Context, of *kudo.Instance, name string, options ...client.GetOption) (*kudo.OperatorVersion, error) {
	version, key := &kudo.OperatorVersion{}, types.NamespacedName{Namespace: of.Namespace, Name: name}
	err := e.client.Get(ctx, key, version, options...)
	if apierrors.IsNotFound(err) && of.Status.Execution != nil && name != "" {
		err = e.live.Get(ctx, key, version)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading OperatorVersion %q: %w", name, err)
	}
	if !e.signer.IsSigned(version) {
		return nil, nil
	}
	return version, nil
}

// versionsOf returns the names of the mirrored OperatorVersions whose permissions an Instance has: the running one, the one before it, and during a return
// the one that has failed, whose objects are removed.
func versionsOf(instance *kudo.Instance) []string {
	last := instance.Status.Execution
	if last == nil {
		return []string{instance.Spec.OperatorVersion.Name}
	}
	used := []corev1.ObjectReference{last.OperatorVersion}
	if whole := instance.Status.Whole; whole != nil {
		used = append(used, whole.OperatorVersion)
	}
	if record := instance.Status.Former; record != nil {
		used = append(used, record.OperatorVersion)
		if returned := instance.Status.Returned; returned != nil {
			used = append(used, returned.OperatorVersion)
		}
	}
	var names []string
	for _, reference := range used {
		if name := mirror.VersionName(reference); reference != (corev1.ObjectReference{}) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// departure observes the part of an Instance in the removal of an ancestor: the nearest one whose cleanup plan is complete. It is nothing for an
// Instance that is being removed itself.
func (e *engine) departure(ctx context.Context, of *kudo.Instance) (plan.Departure, error) {
	if of.IsRemoving() {
		return plan.Departure{}, nil
	}
	for below := of; ; {
		root, err := e.removedAncestor(ctx, below)
		if err != nil || root == nil {
			return plan.Departure{}, err
		}
		found, err := e.treeOf(ctx, root)
		if departure := found.Departure(of.Name); err != nil || departure.Stage != "" {
			return departure, err
		}
		below = root
	}
}

// removedAncestor returns the nearest ancestor of an Instance that is being removed; nil if there is none. It ends, because the name of a child
// is longer than that of its parent.
func (e *engine) removedAncestor(ctx context.Context, of *kudo.Instance) (*kudo.Instance, error) {
	for of.Annotations[kudo.AnnotationParent] != "" {
		name := types.NamespacedName{Namespace: of.Namespace, Name: of.Annotations[kudo.AnnotationParent]}
		parent, err := e.readInstance(ctx, name, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) || err == nil && !e.signer.IsSigned(parent) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading parent Instance %q: %w", name.Name, err)
		}
		if parent.IsRemoving() {
			return parent.DeepCopy(), nil
		}
		of = parent
	}
	return nil, nil
}

// treeBelow observes the descendants of an Instance that is being removed. It costs nothing for an Instance without children.
func (e *engine) treeBelow(ctx context.Context, x *execution) (plan.Tree, error) {
	if x.version != nil && len(tree.Tasks(x.version)) == 0 && len(x.instance.Status.Children) == 0 {
		return plan.Tree{Root: plan.Branch{Instance: x.instance}}, nil
	}
	return e.treeOf(ctx, x.instance)
}

// treeOf observes an Instance and its descendants. It reads them live, because custom resources of one that the cache lacks would outlive
// their controllers. Only signed mirrors count, and those whose plans can run.
func (e *engine) treeOf(ctx context.Context, root *kudo.Instance) (found plan.Tree, err error) {
	list := &kudo.InstanceList{}
	if err := e.live.List(ctx, list, client.InNamespace(root.Namespace)); err != nil {
		return plan.Tree{}, fmt.Errorf("listing the children of Instance %q: %w", root.Name, err)
	}
	if found.Root, err = e.branch(ctx, root); err != nil {
		return plan.Tree{}, err
	}
	for parents := []string{root.Name}; len(parents) > 0; parents = parents[1:] {
		for at := range list.Items {
			child := &list.Items[at]
			if child.Annotations[kudo.AnnotationParent] != parents[0] || !e.signer.IsSigned(child) || !mirror.HandedOver(child) {
				continue
			}
			branch, err := e.branch(ctx, child)
			if err != nil {
				return plan.Tree{}, err
			}
			found.Descendants = append(found.Descendants, branch)
			parents = append(parents, child.Name)
		}
	}
	return found, nil
}

// branch observes an Instance of a tree.
func (e *engine) branch(ctx context.Context, instance *kudo.Instance) (plan.Branch, error) {
	o, err := e.withVersions(ctx, instance)
	return plan.Branch{Instance: instance, Clean: plan.IsClean(o.State())}, err
}
