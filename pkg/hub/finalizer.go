package hub

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/apply"
)

// hold puts kudo.Finalizer on object under manager, unless it is there. object gets the resource version that this led to, and stays as
// it was read otherwise. One that was replaced since is a conflict, never a new object.
func hold(ctx context.Context, c client.Client, object client.Object, manager string) error {
	if controllerutil.ContainsFinalizer(object, kudo.Finalizer) {
		return nil
	}
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return fmt.Errorf("adding the finalizer: %w", err)
	}
	configuration := &unstructured.Unstructured{}
	configuration.SetGroupVersionKind(gvk)
	configuration.SetNamespace(object.GetNamespace())
	configuration.SetName(object.GetName())
	configuration.SetUID(object.GetUID())
	configuration.SetFinalizers([]string{kudo.Finalizer})
	err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration), client.FieldOwner(manager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("adding the finalizer to %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(object), err)
	}
	object.SetResourceVersion(configuration.GetResourceVersion())
	return nil
}

// release takes kudo.Finalizer off object, whoever else holds that field.
func release(ctx context.Context, c client.Client, object client.Object) error {
	at := slices.Index(object.GetFinalizers(), kudo.Finalizer)
	if at < 0 {
		return nil
	}
	path := fmt.Sprintf("/metadata/finalizers/%d", at)
	return apply.Patch(ctx, c, object, []apply.Operation{
		{Op: "test", Path: path, Value: kudo.Finalizer},
		{Op: "remove", Path: path},
	})
}
