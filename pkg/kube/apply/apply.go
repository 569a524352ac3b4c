// Package apply writes objects and status to a cluster: server-side apply, deletion, and single conditions. It does I/O.
package apply

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
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

// Unchecked is an option for writes of Tandem's own types: the API server does not search for unknown and repeated fields, which would only
// result in warnings.
const Unchecked = client.FieldValidation(metav1.FieldValidationIgnore)

// unusedVersion is a resource version that no object has. An apply with it creates an object and never changes an existing one.
const unusedVersion = "1"

// Onto is Object with live as the expected current object, nil if it did not exist: if the object was created or replaced since, the error
// is a conflict (apierrors.IsConflict), and nothing changes. It first converts managed fields in a version that the definition of the object
// no longer has, with which the API server rejects the apply.
func Onto(ctx context.Context, c client.Client, live, want *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	want = want.DeepCopy()
	if live == nil {
		want.SetResourceVersion(unusedVersion)
	} else {
		want.SetUID(live.GetUID())
	}
	applied, err := Object(ctx, c, want, manager)
	if version := unconvertedVersion(err); version != "" {
		if err = convertManagers(ctx, c, want, version, manager); err == nil {
			applied, err = Object(ctx, c, want, manager)
		}
	}
	if err = toConflict(want, err); err != nil {
		return nil, err
	}
	return applied, nil
}

// toConflict returns a conflict if the API server refuses an apply because the object was replaced; otherwise the error.
func toConflict(want *unstructured.Unstructured, err error) error {
	if slices.ContainsFunc(causesOf(err), func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" }) {
		return apierrors.NewConflict(schema.GroupResource{Group: want.GroupVersionKind().Group, Resource: want.GetKind()}, want.GetName(), err)
	}
	return err
}

// DryRun is a dry run of Object.
func DryRun(ctx context.Context, c client.Client, want *unstructured.Unstructured, manager string) error {
	_, err := dryRun(ctx, c, want.DeepCopy(), manager)
	return err
}

// Trial is a dry run of Onto for an object that exists. It converts no managed fields. The error is a conflict (apierrors.IsConflict) if the object was
// replaced.
func Trial(ctx context.Context, c client.Client, live, want *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	tried := want.DeepCopy()
	tried.SetUID(live.GetUID())
	applied, err := dryRun(ctx, c, tried, manager)
	return applied, toConflict(want, err)
}

// dryRun replaces want by the object that its apply would result in.
func dryRun(ctx context.Context, c client.Client, want *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	config := client.ApplyConfigurationFromUnstructured(want)
	return want, c.Apply(ctx, config, client.FieldOwner(manager), client.ForceOwnership, client.DryRunAll)
}

// Delete deletes exactly this version of an object: custom resources at once, other objects after everything that they own. gone reports
// whether it is already deleted: finalizers and grace periods delay that. The error is a conflict (apierrors.IsConflict) if the object was
// changed or replaced.
func Delete(ctx context.Context, c client.Client, live client.Object) (gone bool, err error) {
	propagation := metav1.DeletePropagationForeground
	if kind := live.GetObjectKind().GroupVersionKind().GroupKind(); ownsNothing[kind] || isCustom(kind) {
		propagation, gone = metav1.DeletePropagationBackground, len(live.GetFinalizers()) == 0
	}
	err = c.Delete(ctx, live, client.PropagationPolicy(propagation),
		client.Preconditions{UID: ptr.To(live.GetUID()), ResourceVersion: ptr.To(live.GetResourceVersion())})
	if apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err) { // any other version of the kind may still be served
		return true, nil
	}
	return gone && err == nil, err
}

// Probe returns why the API server refuses an update of an object, as an admission webhook does that cannot be reached. It is a dry run, and nil
// if the update is admitted, or if a webhook supports no dry run.
func Probe(ctx context.Context, c client.Client, live *unstructured.Unstructured) error {
	const patch = `{"metadata":{"annotations":{"kudo.dev/probe":"true"}}}`
	probed := live.DeepCopy()
	err := c.Patch(ctx, probed, client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
	if apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) {
		return nil
	}
	return err
}

// Disown removes the marks of an Instance from exactly this version of an object, and annotates who has released it: labels, annotations, the
// Instance as an owner, with which Kubernetes would delete the object, and the fields that manager owns, over which others would have conflicts.
// live is as the API server has returned it. The error is a conflict (apierrors.IsConflict) if the object was changed or replaced.
func Disown(ctx context.Context, c client.Client, live *unstructured.Unstructured, by, manager string) error {
	released := live.DeepCopy()
	labels, annotations := released.GetLabels(), released.GetAnnotations()
	for _, name := range []string{kudo.LabelHeritage, kudo.LabelInstance, kudo.LabelOperator} {
		delete(labels, name)
	}
	for _, name := range []string{
		kudo.AnnotationPlan, kudo.AnnotationPhase, kudo.AnnotationStep, kudo.AnnotationOperatorVersion,
		kudo.AnnotationExecution, kudo.AnnotationInstanceNamespace,
	} {
		delete(annotations, name)
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[kudo.AnnotationReleasedBy] = by
	released.SetLabels(labels)
	released.SetAnnotations(annotations)
	released.SetOwnerReferences(slices.DeleteFunc(released.GetOwnerReferences(), isInstance))
	released.SetManagedFields(withoutManager(released.GetManagedFields(), manager))
	return c.Patch(ctx, released, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}), client.FieldOwner(manager))
}

// isInstance reports whether an owner is an Instance.
func isInstance(owner metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return group == kudo.GroupVersion.Group && owner.Kind == "Instance"
}

// withoutManager returns the managed fields of others. An empty item removes all: the API server ignores an empty list.
func withoutManager(entries []metav1.ManagedFieldsEntry, manager string) []metav1.ManagedFieldsEntry {
	others := slices.DeleteFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })
	if len(entries) > 0 && len(others) == 0 {
		return []metav1.ManagedFieldsEntry{{}}
	}
	return others
}

// isCustom reports whether a kind is not Kubernetes' own. The garbage collector updates an object that is deleted in the foreground, which an
// admission webhook of a custom resource refuses once the operator that serves it is gone.
func isCustom(kind schema.GroupKind) bool {
	return !scheme.Scheme.IsGroupRegistered(kind.Group) && !ownGroups[kind.Group]
}

// ownGroups are Kubernetes' API groups that are not in the scheme of its client.
var ownGroups = map[string]bool{"apiextensions.k8s.io": true, "apiregistration.k8s.io": true}

// ownsNothing holds kinds whose objects Kubernetes deletes at once, because no controller creates objects that they own, or only the endpoints
// of a Service, which have no effect without it. A foreground deletion adds a finalizer, and needs another write by the garbage collector.
var ownsNothing = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}:      true,
	{Kind: "LimitRange"}:     true,
	{Kind: "ResourceQuota"}:  true,
	{Kind: "Secret"}:         true,
	{Kind: "Service"}:        true,
	{Kind: "ServiceAccount"}: true,

	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: true,

	{Group: "policy", Kind: "PodDisruptionBudget"}: true,

	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        true,

	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: true,
}
