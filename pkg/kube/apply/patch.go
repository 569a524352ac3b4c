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

// Patch applies operations to exactly the object that was read. It sets the resulting resource version on the object and changes nothing
// else of it. Operations test what they change: if the object was replaced since, or an operation no longer applies, nothing changes and
// the error is a conflict (apierrors.IsConflict). Other rejections by the API server, such as by a policy or the schema, are returned as
// they are.
func Patch(ctx context.Context, c client.Client, object client.Object, operations []Operation, options ...client.PatchOption) error {
	_, err := patch(c, object, operations, func(target client.Object, patch client.Patch) error {
		return c.Patch(ctx, target, patch, options...)
	})
	return err
}

// PatchSpec is Patch, and reports whether that changed the spec of object, whose generation it requires to be current. The resource version does not: it
// also differs if another writer has changed something else.
func PatchSpec(ctx context.Context, c client.Client, object client.Object, operations []Operation, options ...client.PatchOption) (changed bool, err error) {
	operations = append([]Operation{{Op: "test", Path: "/metadata/generation", Value: object.GetGeneration()}}, operations...)
	generation, err := patch(c, object, operations, func(target client.Object, patch client.Patch) error {
		return c.Patch(ctx, target, patch, options...)
	})
	return err == nil && generation != object.GetGeneration(), err
}

// PatchStatus is Patch for the status of object.
func PatchStatus(
	ctx context.Context, c client.Client, object client.Object, operations []Operation, options ...client.SubResourcePatchOption,
) error {
	_, err := patch(c, object, operations, func(target client.Object, patch client.Patch) error {
		return c.Status().Patch(ctx, target, patch, options...)
	})
	return err
}

// patch sends operations, and returns the generation of the result.
func patch(
	c client.Client, object client.Object, operations []Operation, send func(client.Object, client.Patch) error,
) (generation int64, err error) {
	operations = append([]Operation{{Op: "test", Path: "/metadata/uid", Value: object.GetUID()}}, operations...)
	data, err := json.Marshal(operations)
	if err != nil {
		return 0, fmt.Errorf("encoding a patch: %w", err)
	}
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return 0, fmt.Errorf("patching: %w", err)
	}
	target := bare(gvk, object)
	err = send(target, client.RawPatch(types.JSONPatchType, data))
	if doesNotApply(err) {
		return 0, apierrors.NewConflict(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, object.GetName(), err)
	}
	if err != nil {
		return 0, fmt.Errorf("patching %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(object), err)
	}
	object.SetResourceVersion(target.ResourceVersion)
	return target.Generation, nil
}

// bare returns an object for sending a patch of object: the caller's object, which may belong to a cache, stays unmodified, and the API
// server returns only metadata.
func bare(gvk schema.GroupVersionKind, object client.Object) *metav1.PartialObjectMetadata {
	target := &metav1.PartialObjectMetadata{}
	target.SetGroupVersionKind(gvk)
	target.SetNamespace(object.GetNamespace())
	target.SetName(object.GetName())
	return target
}

// doesNotApply reports whether err is the response of an API server to a JSON patch that does not apply to the object: a test fails, or a
// path does not exist. It is a 422 like the rejections of policies and schemas. Those name the object or a cause; this one has only the
// default message of the code (patchResource in k8s.io/apiserver, endpoints/handlers/patch.go).
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
