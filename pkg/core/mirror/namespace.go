package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// NamespaceError reports that the install namespace of an installed Instance was deleted on the managed cluster, or is being deleted.
type NamespaceError struct {
	Name     string
	Deleting bool
}

func (e *NamespaceError) Error() string {
	if e.Deleting {
		return terminatingText(e.Name) + "; the objects of the Instance in it are deleted, too"
	}
	return fmt.Sprintf("namespace %q was deleted on the managed cluster, with the objects of the Instance in it: create the namespace there and "+
		"run a plan to deploy the Instance again ('kubectl addon plan run'), or delete the Instance", e.Name)
}

// terminatingText says that a namespace is being deleted, and how to find out what its deletion waits for.
func terminatingText(namespace string) string {
	return fmt.Sprintf("namespace %q is being deleted on the managed cluster, where 'kubectl describe namespace %[1]s' shows what its deletion waits for",
		namespace)
}

// ProblemOf returns what to report to the user about an error of an Instance; empty for temporary errors.
func ProblemOf(wanted *kudo.Instance, err error) string {
	var network *url.Error
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return terminatingText(wanted.TargetNamespace()) + "; the plans run once it is gone"
	case err == nil, errors.As(err, &network), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ""
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err), apierrors.IsInternalError(err),
		apierrors.IsServiceUnavailable(err):
		return ""
	default:
		return err.Error()
	}
}

// respectNamespace returns a *NamespaceError if the install namespace of an installed Instance was deleted, or is being deleted: then the
// Instance is not mirrored, and the agent does not create the namespace again. It removes the finalizer of the mirror in it, which would
// block the deletion. The Decision is empty if the Instance is to be mirrored.
func respectNamespace(o Observation) Decision {
	switch {
	case o.Mirror == nil && o.Wanted.Status.Execution == nil, o.Mirror != nil && o.Mirror.DeletionTimestamp == nil:
		return Decision{}
	case o.lacks(FactNamespace):
		return Decision{Need: FactNamespace}
	case o.Namespace == NamespaceMissing:
		return Decision{Err: &NamespaceError{Name: o.HomeNamespace()}}
	case o.Namespace == NamespaceActive:
		return Decision{}
	default:
		return Decision{Writes: leave(o), Err: &NamespaceError{Name: o.HomeNamespace(), Deleting: true}}
	}
}

// leave removes the finalizer of the mirror, if there is one, in a namespace that is being deleted.
func leave(o Observation) []Write {
	if o.Mirror == nil {
		return nil
	}
	left := o.Mirror.DeepCopy()
	if !removeFinalizer(left) {
		return nil
	}
	return []Write{{Kind: Leave, Mirror: left}}
}

// hasVanished reports whether all objects of an Instance without a mirror were deleted with its namespace. It needs FactNamespace if the
// inventory lists only objects in that namespace.
func hasVanished(o Observation) (vanished bool, need Fact) {
	name, listed := o.Wanted.TargetNamespace(), o.Wanted.Status.Inventory
	if len(listed) == 0 || slices.ContainsFunc(listed, func(e kudo.InventoryEntry) bool { return e.Namespace != name }) {
		return false, ""
	}
	if o.lacks(FactNamespace) {
		return false, FactNamespace
	}
	return o.Namespace == NamespaceMissing, ""
}

// skipsCleanup reports whether a removal skips the cleanup plan: on request, or because the namespace is being deleted too, so that the
// plan cannot create anything in it.
func skipsCleanup(o Observation) (skips bool, need Fact) {
	switch {
	case o.Wanted.SkipsCleanup():
		return true, ""
	case o.Mirror == nil || o.Mirror.DeletionTimestamp == nil:
		return false, ""
	case o.lacks(FactNamespace):
		return false, FactNamespace
	default:
		return o.Namespace == NamespaceTerminating, ""
	}
}
