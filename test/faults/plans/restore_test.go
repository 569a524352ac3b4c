package plans

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// restore is the life of an Instance that the hub loses and that is restored there. Its removal hangs, is forced, and is cancelled by
// creating the Instance again.
func restore() scenario {
	deploy := func(ctx context.Context, r *run) error { return r.hub.Create(ctx, r.instance("gadgets-1.0.0")) }
	return scenario{
		name:    "restore",
		open:    []string{"vanish", "block", "force"},
		prepare: func(ctx context.Context, w *world) error { return w.push(ctx, gadgets("1.0.0")) },
		actions: []action{
			{"deploy", deploy, ready},
			{"vanish", vanish, expectOrphaned},
			{"restore", deploy, ready},
			{"block", block, expectStuck},
			{"force", force, expectOrphaned},
			{"revive", func(ctx context.Context, r *run) error {
				if err := r.hold(ctx, nil); err != nil {
					return err
				}
				return deploy(ctx, r)
			}, ready},
			{"remove", remove, expectGone},
		},
		onHub:     []kind{kudo.GroupVersion.WithKind("Instance")},
		onCluster: onCluster,
	}
}

// vanish deletes the Instance on the hub without a removal.
func vanish(ctx context.Context, r *run) error {
	instance := r.instance("")
	annotate := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	for range 20 { // addon-manager adds the finalizer again
		if err := r.hub.Patch(ctx, instance, annotate); client.IgnoreNotFound(err) != nil {
			return err
		}
		err := r.hub.Delete(ctx, r.instance(""), client.Preconditions{ResourceVersion: &instance.ResourceVersion})
		if err == nil || !apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
	}
	return fmt.Errorf("the Instance cannot be deleted without its finalizer")
}

// block deletes the Instance while a finalizer of another writer holds one of its objects.
func block(ctx context.Context, r *run) error {
	if err := r.hold(ctx, []string{"faults.test/hold"}); err != nil {
		return err
	}
	return remove(ctx, r)
}

// hold sets the finalizers of an object of the Instance.
func (r *run) hold(ctx context.Context, finalizers []string) error {
	config := &corev1.ConfigMap{}
	if err := r.managed.Get(ctx, client.ObjectKey{Namespace: r.name, Name: r.name + "-base"}, config); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := config.DeepCopy()
	config.Finalizers = finalizers
	return r.managed.Patch(ctx, config, client.MergeFrom(before))
}

// expectStuck returns an error unless only the object that is held remains.
func expectStuck(ctx context.Context, r *run) error {
	configs := &corev1.ConfigMapList{}
	if err := r.managed.List(ctx, configs, client.InNamespace(r.name), client.HasLabels{kudo.LabelHeritage}); err != nil {
		return err
	}
	if len(configs.Items) != 1 {
		return fmt.Errorf("%d ConfigMaps remain", len(configs.Items))
	}
	return nil
}

// force releases the Instance that is being deleted.
func force(ctx context.Context, r *run) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, kudo.AnnotationForceRelease)
	return r.hub.Patch(ctx, r.instance(""), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// expectOrphaned returns an error unless the hub has lost the Instance and its mirror is marked.
func expectOrphaned(ctx context.Context, r *run) error {
	if err := r.absentOn(ctx, "hub", client.ObjectKeyFromObject(r.instance(""))); err != nil {
		return err
	}
	mirror := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: r.name}}
	if err := r.managed.Get(ctx, client.ObjectKeyFromObject(mirror), mirror); err != nil {
		return err
	}
	if mirror.Annotations[kudo.AnnotationOrphaned] == "" {
		return fmt.Errorf("the mirror is not marked: %v", mirror.Annotations)
	}
	return nil
}
