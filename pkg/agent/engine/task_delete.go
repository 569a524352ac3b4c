package engine

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

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
