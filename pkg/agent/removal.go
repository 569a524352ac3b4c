package agent

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/plan"
	"github.com/tandem-addons/tandem/pkg/render"
)

// removalPause is the time between two looks at what is still left of an Instance: not all of it is watched.
const removalPause = time.Second

// remove deletes everything that belongs to the Instance, volume claims last, and waits until it is gone.
func (e *engine) remove(ctx context.Context, s seen) pass {
	if s.instance.Status.Execution == nil {
		return pass{removed: true}
	}
	left, err := e.deleteOwned(ctx, s)
	if err == nil && len(left) == 0 {
		return pass{removed: true}
	}
	message := ""
	if err != nil {
		message = oneLine(err)
	} else {
		message = fmt.Sprintf("waiting for %d objects to be gone, %s among them", len(left), plan.Describe(left[0].Live))
	}
	p := s.stopped(plan.Condition(metav1.ConditionFalse, kudo.ReasonRemoving, message))
	p.after = removalPause
	return p
}

// deleteOwned deletes what the Instance's tasks have applied, and then the volume claims of its StatefulSets but those that the
// package asks to keep. It returns what is still there. A kind that cannot be listed holds nothing up unless the package has
// objects of it.
func (e *engine) deleteOwned(ctx context.Context, s seen) ([]plan.Object, error) {
	x := s.execution()
	found, err := e.objects.owned(ctx, x.owner())
	if err != nil {
		return nil, err
	}
	left, err := e.deleteEach(ctx, found.applied)
	if err != nil || len(left) > 0 {
		return left, err
	}
	rendered, fault := everything(x)
	for _, o := range rendered {
		if err := found.unread[o.GroupVersionKind()]; err != nil {
			return nil, err
		}
	}
	kept := retained(rendered, fault)
	return e.deleteEach(ctx, slices.DeleteFunc(found.claims, func(o plan.Object) bool { return kept(o.Live.GetName()) }))
}

func (e *engine) deleteEach(ctx context.Context, objects []plan.Object) (left []plan.Object, err error) {
	for _, object := range objects {
		if object, err = e.delete(ctx, object); err != nil {
			return nil, err
		}
		if object.Live != nil {
			left = append(left, object)
		}
	}
	return left, nil
}

// everything renders all templates that any task of the version names. The error says that some could not be rendered with the
// parameters in force.
func everything(x *execution) ([]*unstructured.Unstructured, error) {
	if x.version == nil {
		return nil, errors.New("the OperatorVersion is lost")
	}
	var (
		rendered []*unstructured.Unstructured
		faults   error
	)
	for _, task := range x.version.Tasks {
		for _, template := range task.Spec.Resources {
			objects, err := render.Objects(x.context(plan.Placed{Task: task}), template)
			faults = errors.Join(faults, err)
			rendered = append(rendered, objects...)
		}
	}
	return rendered, faults
}

// retained tells the names of volume claims that a StatefulSet asks in so many words to keep when it is deleted. Without that,
// what Kubernetes would keep by default is removed with the Instance. Where a fault hides what the package asks, all are kept.
func retained(rendered []*unstructured.Unstructured, fault error) func(claim string) bool {
	var names []*regexp.Regexp
	for _, o := range rendered {
		policy, _, _ := unstructured.NestedString(o.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
		if o.GetKind() != "StatefulSet" || policy != "Retain" {
			continue
		}
		templates, _, _ := unstructured.NestedSlice(o.Object, "spec", "volumeClaimTemplates")
		for _, t := range templates {
			template, _ := t.(map[string]any)
			name, _, _ := unstructured.NestedString(template, "metadata", "name")
			names = append(names, regexp.MustCompile("^"+regexp.QuoteMeta(name+"-"+o.GetName())+"-[0-9]+$"))
		}
	}
	return func(claim string) bool {
		return fault != nil || slices.ContainsFunc(names, func(n *regexp.Regexp) bool { return n.MatchString(claim) })
	}
}

// release lets the Instance go.
func (e *engine) release(ctx context.Context, instance *kudo.Instance) error {
	before := instance.DeepCopy()
	if !controllerutil.RemoveFinalizer(instance, kudo.Finalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := e.client.Patch(ctx, instance, patch, client.FieldOwner(managerEngine)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("releasing Instance %q: %w", instance.Name, err))
	}
	return nil
}
