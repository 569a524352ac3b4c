package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Operation is one operation of a JSON patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Patch applies operations to exactly the object that was read, which gets the resource version that this led to, and stays as it is
// otherwise. They test what they change: where the object was replaced since, or one of them does not apply to it any more, nothing
// has changed and the error is a conflict (apierrors.IsConflict). Whatever else the API server refuses, as a policy or the schema does,
// is its own error.
func Patch(ctx context.Context, c client.Client, object client.Object, operations []Operation, options ...client.PatchOption) error {
	return patch(c, object, operations, func(target client.Object, patch client.Patch) error {
		return c.Patch(ctx, target, patch, options...)
	})
}

// PatchStatus is Patch for the status of object.
func PatchStatus(
	ctx context.Context, c client.Client, object client.Object, operations []Operation, options ...client.SubResourcePatchOption,
) error {
	return patch(c, object, operations, func(target client.Object, patch client.Patch) error {
		return c.Status().Patch(ctx, target, patch, options...)
	})
}

func patch(c client.Client, object client.Object, operations []Operation, send func(client.Object, client.Patch) error) error {
	operations = append([]Operation{{Op: "test", Path: "/metadata/uid", Value: object.GetUID()}}, operations...)
	data, err := json.Marshal(operations)
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return fmt.Errorf("patching: %w", err)
	}
	target := bare(gvk, object)
	err = send(target, client.RawPatch(types.JSONPatchType, data))
	if doesNotApply(err) {
		return apierrors.NewConflict(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, object.GetName(), err)
	}
	if err != nil {
		return fmt.Errorf("patching %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(object), err)
	}
	object.SetResourceVersion(target.ResourceVersion)
	return nil
}

// bare is an object to send a patch of object through: what the caller's shares with a cache stays as it is, and the API server answers
// with no more than metadata.
func bare(gvk schema.GroupVersionKind, object client.Object) *metav1.PartialObjectMetadata {
	target := &metav1.PartialObjectMetadata{}
	target.SetGroupVersionKind(gvk)
	target.SetNamespace(object.GetNamespace())
	target.SetName(object.GetName())
	return target
}

// doesNotApply reports whether err is how an API server answers a JSON patch that does not apply to the object: a test fails, or
// a path does not exist. It is a 422 like the refusals of policies and schemas. Those name the object or a cause; this one
// carries nothing but the message that the code has by itself (patchResource in k8s.io/apiserver, endpoints/handlers/patch.go).
func doesNotApply(err error) bool {
	var refused apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &refused) {
		return false
	}
	status := refused.Status()
	bare := apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "", 0, false).ErrStatus
	return status.Message == bare.Message &&
		(status.Details == nil || status.Details.Name == "" && len(status.Details.Causes) == 0)
}
