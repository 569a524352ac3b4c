package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// hold puts kudo.Finalizer on object under manager, unless it is there. An object that was replaced since it was read is a
// conflict, never a new object.
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
	return nil
}

// release takes kudo.Finalizer off object, whoever else holds that field.
func release(ctx context.Context, c client.Client, object client.Object) error {
	at := slices.Index(object.GetFinalizers(), kudo.Finalizer)
	if at < 0 {
		return nil
	}
	path := fmt.Sprintf("/metadata/finalizers/%d", at)
	return patchTested(ctx, c, object, []patchOperation{
		{Op: "test", Path: path, Value: kudo.Finalizer},
		{Op: "remove", Path: path},
	})
}

// patchOperation is one operation of a JSON patch (RFC 6902).
type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patchTested patches exactly the object that was read: one that was replaced, or for which a test does not hold any more, is a
// conflict (apierrors.IsConflict).
func patchTested(ctx context.Context, c client.Client, object client.Object, operations []patchOperation, options ...client.PatchOption) error {
	operations = append([]patchOperation{{Op: "test", Path: "/metadata/uid", Value: object.GetUID()}}, operations...)
	data, err := json.Marshal(operations)
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return fmt.Errorf("patching: %w", err)
	}
	target := &unstructured.Unstructured{}
	target.SetGroupVersionKind(gvk)
	target.SetNamespace(object.GetNamespace())
	target.SetName(object.GetName())
	err = c.Patch(ctx, target, client.RawPatch(types.JSONPatchType, data), options...)
	if apierrors.IsInvalid(err) {
		return apierrors.NewConflict(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, object.GetName(), err)
	}
	if err != nil {
		return fmt.Errorf("patching %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(object), err)
	}
	return nil
}
