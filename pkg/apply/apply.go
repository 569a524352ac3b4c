// Package apply brings objects onto a cluster and off it, and writes status: server-side apply, deletion, and single
// conditions. It does I/O.
package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object applies want by forced server-side apply under manager, and returns the object as the API server has it then. The
// input is not changed. Errors are those of the API server.
func Object(ctx context.Context, c client.Client, want *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	applied := want.DeepCopy()
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(manager), client.ForceOwnership)
	if err != nil {
		return nil, err
	}
	return applied, nil
}

// Delete removes exactly the object that live is, and with it, before it, everything that it owns (foreground). An object
// that is gone already, or was replaced by another one of its name, is no error.
func Delete(ctx context.Context, c client.Client, live client.Object) error {
	err := c.Delete(ctx, live,
		client.PropagationPolicy(metav1.DeletePropagationForeground),
		client.Preconditions{UID: ptr.To(live.GetUID())})
	return client.IgnoreNotFound(ignoreReplaced(err))
}

// ignoreReplaced drops the conflict that a failed precondition is: the object is not the one that was meant.
func ignoreReplaced(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
