package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/plan"
	"github.com/tandem-addons/tandem/pkg/render"
)

var claimKind = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")

// remove deletes everything that belongs to the Instance, volume claims last, and waits until it is gone.
func (e *engine) remove(ctx context.Context, s seen) pass {
	if s.instance.Status.Execution == nil {
		return pass{removed: true}
	}
	x := s.execution()
	rendered := everything(x)
	left, err := e.deleteKinds(ctx, x.owner(), kindsOf(rendered), nil)
	if err == nil && len(left) == 0 {
		left, err = e.deleteKinds(ctx, x.owner(), []schema.GroupVersionKind{claimKind}, retainedClaims(rendered))
	}
	if err != nil {
		return pass{err: err}
	}
	if len(left) == 0 {
		return pass{removed: true}
	}
	message := fmt.Sprintf("waiting for %d objects to be gone, %s among them", len(left), plan.Describe(left[0].Live))
	return s.stopped(plan.Condition(metav1.ConditionFalse, kudo.ReasonRemoving, message))
}

// deleteKinds deletes the owner's objects of these kinds but the kept ones, and returns those that are still there.
func (e *engine) deleteKinds(ctx context.Context, owner plan.Owner, kinds []schema.GroupVersionKind, kept []string) ([]plan.Object, error) {
	var left []plan.Object
	for _, kind := range kinds {
		found, err := e.objects.list(ctx, owner, kind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, object := range found {
			if hasPrefix(object.Live.GetName(), kept) {
				continue
			}
			if object, err = e.delete(ctx, object); err != nil {
				return nil, err
			}
			if object.Live != nil {
				left = append(left, object)
			}
		}
	}
	return left, nil
}

// everything renders all templates that any task of the version names. What cannot be rendered with the parameters in force
// was not applied with them either.
func everything(x *execution) []*unstructured.Unstructured {
	var rendered []*unstructured.Unstructured
	for _, task := range x.version.Tasks {
		for _, template := range task.Spec.Resources {
			objects, err := render.Objects(x.context(plan.Placed{Task: task}), template)
			if err == nil {
				rendered = append(rendered, objects...)
			}
		}
	}
	return rendered
}

func kindsOf(objects []*unstructured.Unstructured) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, o := range objects {
		if kind := o.GroupVersionKind(); kind != claimKind && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// retainedClaims are the prefixes of the names of volume claims that a StatefulSet asks in so many words to keep when it is
// deleted. Without that, what Kubernetes would keep by default is removed with the Instance.
func retainedClaims(objects []*unstructured.Unstructured) []string {
	var prefixes []string
	for _, o := range objects {
		policy, _, _ := unstructured.NestedString(o.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
		if o.GetKind() != "StatefulSet" || policy != "Retain" {
			continue
		}
		templates, _, _ := unstructured.NestedSlice(o.Object, "spec", "volumeClaimTemplates")
		for _, t := range templates {
			template, _ := t.(map[string]any)
			name, _, _ := unstructured.NestedString(template, "metadata", "name")
			prefixes = append(prefixes, name+"-"+o.GetName()+"-")
		}
	}
	return prefixes
}

func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
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
