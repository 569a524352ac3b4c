package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/outcome"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/release"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// applyTask applies the objects of a task, and marks those that it no longer renders.
func (p *pass) applyTask(
	ctx context.Context, x *execution, placed plan.Placed, started bool, wants []*unstructured.Unstructured,
) plan.Outcome {
	applied, outcome := p.applyAll(ctx, x, placed, started, wants)
	if applied {
		x.inventory.markSurplus(placed.Task.Name, wants)
	}
	return outcome
}

// applyAll applies objects in the listed order, once per execution, and judges the health of all. It reports whether all are applied. A task that has
// started has applied its objects: only objects that were deleted or overwritten since are applied again. A stale object in the cache does not
// complete the task.
func (p *pass) applyAll(
	ctx context.Context, x *execution, placed plan.Placed, started bool, wants []*unstructured.Unstructured,
) (applied bool, result plan.Outcome) {
	wants, undefined, err := p.objects.placeAll(x.instance, wants)
	if err == nil {
		err = outcome.CheckDefined(undefined, x.defines, p.objects.servedInstead)
	}
	if err != nil {
		return false, outcomeOf(err)
	}
	if !x.mayApply(wants, started) {
		return false, x.postpone(placed, wants)
	}
	if !started {
		if outcome := p.deleteBlockingJobs(ctx, x, wants); outcome.Status != kudo.Complete {
			return false, outcome
		}
	}
	objects, err := p.applyEach(ctx, x, placed.Task, wants, started)
	if err == nil {
		objects, err = p.objects.withClasses(ctx, objects)
	}
	if err != nil {
		return false, outcomeOf(err)
	}
	if len(undefined) > 0 {
		return false, outcome.OfUndefined(undefined[0], p.objects.servedInstead(undefined[0]))
	}
	objects = plan.WithRules(x.version, objects)
	if outcome := plan.ApplyOutcome(p.view.MaskObjects(objects)); outcome.Status != kudo.Complete {
		return true, p.explain(ctx, x, placed, objects, outcome)
	}
	return true, outcome.OfProvisional(objects)
}

// mayApply reports whether the stored inventory lists the objects, and no earlier round that is not recorded has applied or deleted one.
func (x *execution) mayApply(wants []*unstructured.Unstructured, started bool) bool {
	return len(plan.UnlistedObjects(x.instance.Status.Inventory, wants)) == 0 && x.inventory.claim(x.round, started, wants)
}

// deleteBlockingJobs deletes Jobs of earlier executions that block a task that has not started: Jobs that the task changes, which is not
// possible, and Jobs that have failed. It completes once all of them are deleted. The task applies nothing before, so that objects it has
// applied never need to be replaced.
func (p *pass) deleteBlockingJobs(ctx context.Context, x *execution, wants []*unstructured.Unstructured) plan.Outcome {
	var going []plan.Object
	for _, want := range wants {
		if !plan.IsJob(want) {
			continue
		}
		object, err := p.objects.find(ctx, x.instance, want, fromServerAndWatch)
		if err != nil {
			return outcomeOf(err)
		}
		if !object.CanReplace(x.UID) || x.owner().Claim(object) != nil {
			continue
		}
		blocks, err := p.blocks(ctx, object)
		if err != nil {
			return outcomeOf(fmt.Errorf("checking whether %s can be changed: %w", plan.Describe(want), p.conceal(want, err)))
		}
		if !blocks {
			continue
		}
		if !object.IsDeleted() {
			ctrl.LoggerFrom(ctx).Info("replacing a Job of an earlier execution", "object", plan.Describe(object.Live), "execution", x.UID)
		}
		if object, err = p.deleteOwn(ctx, p.acting, x.owner().Has, object); err != nil {
			return outcomeOf(err)
		}
		going = append(going, object)
	}
	return plan.ReplaceOutcome(p.view.MaskObjects(going))
}

// blocks reports whether the object has to be deleted before it can be applied: it is spent, or applying it would change immutable fields. A
// rejection for another reason that is permanent is left to the apply; any other error says nothing about the fields, and is returned.
func (p *pass) blocks(ctx context.Context, object plan.Object) (bool, error) {
	if object.IsSpent() {
		return true, nil
	}
	var immutable *apply.ImmutableError
	err := apply.ToImmutableError(apply.DryRun(ctx, p.acting.client, object.Want, fieldManager), object.Live, object.Want)
	switch {
	case errors.As(err, &immutable):
		return true, nil
	case apply.IsFinal(err):
		return false, nil
	default:
		return false, err
	}
}

// maxParallelApplies is the maximum number of objects of a task that are applied in parallel.
const maxParallelApplies = 8

// applyEach applies objects in their order, and returns the live objects. Those of a chart that are of one kind are applied in parallel.
func (p *pass) applyEach(
	ctx context.Context, x *execution, task kudo.Task, wants []*unstructured.Unstructured, started bool,
) ([]plan.Object, error) {
	batches := slices.Collect(slices.Chunk(wants, 1))
	if task.Kind == kudo.TaskHelm {
		batches = release.Batches(wants)
	}
	objects := make([]plan.Object, 0, len(wants))
	for _, batch := range batches {
		applied := make([]plan.Object, len(batch))
		var group errgroup.Group // an error does not cancel the others, which may have reached the API server
		group.SetLimit(maxParallelApplies)
		for i, want := range batch {
			group.Go(func() (err error) {
				applied[i], err = p.applyUnlessReplaced(ctx, x, want, started)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
		objects = append(objects, slices.DeleteFunc(applied, plan.Object.IsExpired)...)
	}
	return objects, nil
}

// applyUnlessReplaced applies an object. One that another writer created or replaced between read and apply is read again, and not taken over. A Job gets
// its time to live once it is recorded that the task has applied all its objects: otherwise it would run again if it had expired before.
func (p *pass) applyUnlessReplaced(
	ctx context.Context, x *execution, want *unstructured.Unstructured, started bool,
) (object plan.Object, err error) {
	fresh, applied := beforeApply, plan.Provisional(want)
	if started {
		fresh, applied = asAppliedBy(x.UID), want
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
		object, err = p.apply(ctx, x, applied, started, fresh)
		fresh = fromServerAndWatch
		return err
	})
	object.Want = want
	return object, err
}

// apply applies an object, unless its task has started and it is up to date; its pods restart if the execution has a pending
// restart.
func (p *pass) apply(ctx context.Context, x *execution, want *unstructured.Unstructured, started bool, fresh freshness) (plan.Object, error) {
	object, err := p.objects.find(ctx, x.instance, want, fresh)
	if err != nil || started && object.IsExpired() {
		return object, err
	}
	if err := cmp.Or(p.policy.Protects(want.GetNamespace()), x.owner().Claim(object)); err != nil {
		x.inventory.forget(plan.Entry(want, ""))
		return object, err
	}
	if started && x.hasApplied(object) {
		x.inventory.recordApplied(object)
		p.objects.expectations.NoteIfNewer(object.Live)
		return object, nil
	}
	desired, err := p.keepReplicas(ctx, render.RestartPods(want, object.Live, x.UID, x.inventory.restart(want)), object.Live)
	if err != nil {
		return object, err
	}
	if former := render.TakeOver(desired, object.Live, fieldManager); former != nil {
		_, err = apply.Onto(ctx, p.acting.client, object.Live, former, fieldManager)
	}
	live := object.Live
	if err == nil {
		live, err = apply.Onto(ctx, p.acting.client, object.Live, desired, fieldManager)
	}
	if err != nil {
		err = p.objects.wrapUnserved(want.GroupVersionKind(), err)
		return object, fmt.Errorf("applying %s: %w", plan.Describe(want), p.conceal(want, apply.ToImmutableError(err, object.Live, desired)))
	}
	x.inventory.recordResponse(plan.Object{Want: want, Live: live})
	p.objects.deletions.Remove(placeOf(live))
	p.objects.expectations.NoteIfNewer(live)
	return plan.Object{Want: want, Live: live}, nil
}

// hasApplied reports whether the execution has applied an object as it was rendered.
func (x *execution) hasApplied(object plan.Object) bool {
	return object.AppliedBy(x.UID) && !object.IsProvisional()
}

// keepReplicas returns an object without a change of the number of replicas that an autoscaler has chosen. It reads autoscalers only for such a
// change.
func (p *pass) keepReplicas(ctx context.Context, desired, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !render.Rescales(desired, live) {
		return desired, nil
	}
	autoscalers := &unstructured.UnstructuredList{}
	autoscalers.SetGroupVersionKind(render.AutoscalerKind)
	if err := p.live.List(ctx, autoscalers, client.InNamespace(live.GetNamespace())); err != nil {
		return nil, fmt.Errorf("listing the HorizontalPodAutoscalers of namespace %q: %w", live.GetNamespace(), err)
	}
	return render.KeepReplicas(desired, live, autoscalers.Items), nil
}

// deleteAll deletes, in the listed order, the task's objects and then its earlier entries, and waits until all are deleted. Objects of
// unknown kinds and of other owners count as deleted.
func (p *pass) deleteAll(
	ctx context.Context, x *execution, placed plan.Placed, started bool, wants []*unstructured.Unstructured,
) plan.Outcome {
	if err := p.objects.setServedVersions(ctx, wants); err != nil {
		return outcomeOf(err)
	}
	wants, undefined, err := p.objects.placeAll(x.instance, wants)
	if err != nil {
		return outcomeOf(err)
	}
	if !x.inventory.claim(x.round, started, wants) {
		return plan.Outcome{Status: kudo.Pending}
	}
	x.inventory.deletes()
	x.forgetUndefined(undefined)
	objects := make([]plan.Object, 0, len(wants))
	for _, want := range wants {
		object, err := p.objects.find(ctx, x.instance, want, asSeen)
		if err == nil {
			object, err = p.deleteOwn(ctx, p.acting, x.owner().Has, object)
		}
		if err != nil {
			return outcomeOf(err)
		}
		entry := plan.Entry(want, "")
		returns := plan.Replaces(x.instance.Status.PlanStatus[x.Plan], placed.Task.Name, x.instance.Status.Inventory, entry)
		if !returns {
			x.inventory.dismiss(entry)
		}
		if !x.owner().Has(object) {
			x.inventory.recordDeleted(entry, returns)
			continue
		}
		objects = append(objects, object)
	}
	left, err := p.prune(ctx, x, plan.Surplus(x.instance.Status.Inventory, placed.Task.Name, wants))
	if err != nil {
		return outcomeOf(err)
	}
	return plan.DeleteOutcome(p.view.MaskObjects(p.probe(ctx, append(objects, left...))))
}

// forgetUndefined removes entries of objects whose kind the cluster does not have, with or without a namespace.
func (x *execution) forgetUndefined(undefined []*unstructured.Unstructured) {
	for _, want := range undefined {
		inNamespace := plan.Entry(want, "")
		inNamespace.Namespace = cmp.Or(inNamespace.Namespace, x.instance.Namespace)
		clusterScoped := inNamespace
		clusterScoped.Namespace = ""
		x.inventory.forget(inNamespace, clusterScoped)
	}
}
