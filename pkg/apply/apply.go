// Package apply writes objects and status to a cluster: server-side apply, deletion, and single conditions. It does I/O.
package apply

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object applies want by forced server-side apply under manager, and returns the resulting object. It does not modify the input. Errors are
// those of the API server.
func Object(ctx context.Context, c client.Client, want *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	applied := want.DeepCopy()
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(manager), client.ForceOwnership)
	if err != nil {
		return nil, err
	}
	return applied, nil
}

// unmade is a resource version that no object has. An apply with it creates an object and never changes an existing one.
const unmade = "1"

// Onto is Object with live as the expected current object, nil if it did not exist: if the object was created or replaced since, the error
// is a conflict (apierrors.IsConflict), and nothing changes.
func Onto(ctx context.Context, c client.Client, live, want *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	want = want.DeepCopy()
	if live == nil {
		want.SetResourceVersion(unmade)
	} else {
		want.SetUID(live.GetUID())
	}
	applied, err := Object(ctx, c, want, manager)
	if slices.ContainsFunc(causesOf(err), func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" }) {
		return nil, apierrors.NewConflict(schema.GroupResource{Group: want.GroupVersionKind().Group, Resource: want.GetKind()}, want.GetName(), err)
	}
	return applied, err
}

// Rehearse is a dry run of Object.
func Rehearse(ctx context.Context, c client.Client, want *unstructured.Unstructured, manager string) error {
	config := client.ApplyConfigurationFromUnstructured(want.DeepCopy())
	return c.Apply(ctx, config, client.FieldOwner(manager), client.ForceOwnership, client.DryRunAll)
}

// Delete deletes exactly the object live, after everything that it owns (foreground). It returns no error if the object is already deleted,
// or was replaced by another one of the same name.
func Delete(ctx context.Context, c client.Client, live client.Object) error {
	err := c.Delete(ctx, live,
		client.PropagationPolicy(metav1.DeletePropagationForeground),
		client.Preconditions{UID: ptr.To(live.GetUID())})
	return client.IgnoreNotFound(ignoreReplaced(err))
}

// ignoreReplaced drops the conflict of a failed precondition: the object was replaced.
func ignoreReplaced(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
