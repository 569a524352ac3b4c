package plans

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// drift is the life of an Instance whose objects another writer changes and deletes: it is reported, and put back once the Instance says so.
func drift() scenario {
	return scenario{
		name:    "drift",
		prepare: func(ctx context.Context, w *world) error { return w.push(ctx, gadgets("1.0.0")) },
		actions: []action{
			{"deploy", func(ctx context.Context, r *run) error { return r.hub.Create(ctx, r.instance("gadgets-1.0.0")) }, ready},
			{"change", change, expectDrifted(metav1.ConditionTrue, "another")},
			{"repair", setDrift(kudo.DriftRepair), expectDrifted(metav1.ConditionFalse, "one")},
			{"delete", func(ctx context.Context, r *run) error { return r.managed.Delete(ctx, r.base()) }, expectDrifted(metav1.ConditionFalse, "one")},
			{"remove", remove, expectGone},
		},
		repairs:   []string{"repair", "delete"},
		onHub:     []kind{kudo.GroupVersion.WithKind("Instance")},
		onCluster: onCluster,
	}
}

// base returns the ConfigMap of the first step.
func (r *run) base() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: r.name + "-base"}}
}

// app returns the Deployment.
func (r *run) app() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: r.name + "-app"}}
}

// change changes a ConfigMap and a Deployment as another writer.
func change(ctx context.Context, r *run) error {
	intruder := client.FieldOwner("intruder")
	if err := r.managed.Patch(ctx, r.base(), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"value":"another"}}`)), intruder); err != nil {
		return err
	}
	return r.managed.Patch(ctx, r.app(), client.RawPatch("application/strategic-merge-patch+json",
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"app:another"}]}}}}`)), intruder)
}

// setDrift returns an action that sets how drift is answered.
func setDrift(mode kudo.DriftMode) func(context.Context, *run) error {
	return edit(func(i *kudo.Instance) { i.Spec.Drift = &kudo.DriftPolicy{Mode: mode} })
}

// expectDrifted returns a check of condition Drifted, and that both objects exist with that value.
func expectDrifted(status metav1.ConditionStatus, value string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		if err := ready(ctx, r); err != nil {
			return err
		}
		config, app := r.base(), r.app()
		for _, o := range []client.Object{config, app} {
			if err := r.managed.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return fmt.Errorf("an object is not put back yet: %w", err)
			}
		}
		image := app.Spec.Template.Spec.Containers[0].Image
		if config.Data["value"] != value || image != "app:"+value {
			return fmt.Errorf("the objects have %q and %q, want %q", config.Data["value"], image, value)
		}
		i := &kudo.Instance{}
		if err := r.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: r.name}, i); err != nil {
			return err
		}
		if drifted := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionDrifted); drifted == nil || drifted.Status != status {
			return fmt.Errorf("condition Drifted is %+v, want %s", drifted, status)
		}
		return nil
	}
}
