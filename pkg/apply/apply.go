// Package apply brings objects onto a cluster and off it, and writes status: server-side apply, deletion, and single
// conditions. It does I/O.
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

// unmade is a resource version that no object has. An apply that asks for it makes an object and changes none that is there.
const unmade = "1"

// Onto is Object for what was seen as live before, nil if it was not there: an object that was made or replaced since is a conflict
// (apierrors.IsConflict), and stays as it is.
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

// Rehearse is what Object would answer, and changes nothing.
func Rehearse(ctx context.Context, c client.Client, want *unstructured.Unstructured, manager string) error {
	config := client.ApplyConfigurationFromUnstructured(want.DeepCopy())
	return c.Apply(ctx, config, client.FieldOwner(manager), client.ForceOwnership, client.DryRunAll)
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
