package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unconverted is in the message of an API server, before the version, that rejects a server-side apply to a custom resource with managed fields in a
// version that its definition no longer has. Up to Kubernetes 1.36, it removed all managed fields in the next update.
const unconverted = "request to convert CR to an invalid group/version: "

// unconvertedVersion returns the version, with its group, of managed fields with which the API server has rejected an apply; empty if the error has
// another cause.
func unconvertedVersion(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	_, version, _ := strings.Cut(status.Status().Message, unconverted)
	return version
}

// convertManagers changes the managed fields of an object in a version into those of the version of want. Without them, its managers would own
// nothing, and the next apply would remove no field.
func convertManagers(ctx context.Context, c client.Client, want *unstructured.Unstructured, version, manager string) error {
	live := bare(want.GroupVersionKind(), want)
	if err := c.Get(ctx, client.ObjectKeyFromObject(want), live); err != nil {
		return err
	}
	var operations []Operation
	for i, entry := range live.ManagedFields {
		if entry.APIVersion == version {
			path := fmt.Sprintf("/metadata/managedFields/%d/apiVersion", i)
			operations = append(operations,
				Operation{Op: "test", Path: path, Value: version}, Operation{Op: "replace", Path: path, Value: want.GetAPIVersion()})
		}
	}
	return Patch(ctx, c, live, operations, client.FieldOwner(manager))
}
