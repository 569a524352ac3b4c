package controller

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// AddFinalizer adds a finalizer to object under manager, unless it has it. It sets the resulting resource version on object and changes nothing
// else of it. If the object was replaced since it was read, the error is a conflict; Hold never creates an object.
func AddFinalizer(ctx context.Context, c client.Client, object client.Object, finalizer, manager string) error {
	if controllerutil.ContainsFinalizer(object, finalizer) {
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
	configuration.SetFinalizers([]string{finalizer})
	err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration), client.FieldOwner(manager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("adding the finalizer to %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(object), err)
	}
	object.SetResourceVersion(configuration.GetResourceVersion())
	return nil
}

// RemoveFinalizer removes a finalizer from object, regardless of its field manager.
func RemoveFinalizer(ctx context.Context, c client.Client, object client.Object, finalizer string) error {
	at := slices.Index(object.GetFinalizers(), finalizer)
	if at < 0 {
		return nil
	}
	path := fmt.Sprintf("/metadata/finalizers/%d", at)
	return apply.Patch(ctx, c, object, []apply.Operation{
		{Op: "test", Path: path, Value: finalizer},
		{Op: "remove", Path: path},
	})
}
