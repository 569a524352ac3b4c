package hub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// releaseTree releases an Instance after all its descendants: on a detached cluster, the agent must not see a deletion.
func releaseTree(ctx context.Context, c client.Client, instance *kudo.Instance, manager string) error {
	below, err := read.Children(ctx, c, instance)
	if err != nil {
		return err
	}
	for i := range below {
		if err := releaseTree(ctx, c, below[i].DeepCopy(), manager); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	err = controller.RemoveFinalizer(ctx, c, instance, kudo.Finalizer)
	if isUnrecognized(err, instance, kudo.AnnotationForceRelease) {
		if instance, err = annotate(ctx, c, instance, kudo.AnnotationForceRelease, manager); err == nil {
			err = controller.RemoveFinalizer(ctx, c, instance, kudo.Finalizer)
		}
	}
	return err
}

// deleteInstance deletes an Instance.
func deleteInstance(ctx context.Context, c client.Client, instance *kudo.Instance, manager string, preconditions client.Preconditions) error {
	err := c.Delete(ctx, instance.DeepCopy(), preconditions)
	if isUnrecognized(err, instance, kudo.AnnotationAllowDeletion) {
		allowed, err := annotate(ctx, c, instance, kudo.AnnotationAllowDeletion, manager)
		if err != nil {
			return err
		}
		return deleteInstance(ctx, c, allowed, manager, client.Preconditions{UID: &allowed.UID, ResourceVersion: &allowed.ResourceVersion})
	}
	if err != nil {
		return fmt.Errorf("deleting Instance %s: %w", client.ObjectKeyFromObject(instance), err)
	}
	return nil
}

// isUnrecognized reports whether a policy refused a request that an annotation allows, and that the Instance lacks. The policies
// tandem-instance-owner and tandem-instance-deletion recognize addon-manager by the name of its service account; under another identity, it
// sets the annotation as users do.
func isUnrecognized(err error, instance *kudo.Instance, annotation string) bool {
	return apierrors.IsForbidden(err) && instance.Annotations[annotation] != "true"
}

// annotate sets an annotation of an Instance to "true", if the Instance is unchanged since it was read, and returns the result.
func annotate(ctx context.Context, c client.Client, instance *kudo.Instance, annotation, manager string) (*kudo.Instance, error) {
	annotated := instance.DeepCopy()
	metav1.SetMetaDataAnnotation(&annotated.ObjectMeta, annotation, "true")
	unchanged := client.MergeFromWithOptions(instance, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, annotated, unchanged, client.FieldOwner(manager)); err != nil {
		return nil, fmt.Errorf("setting annotation %s of Instance %s: %w", annotation, client.ObjectKeyFromObject(instance), err)
	}
	return annotated, nil
}

// instanceConfiguration returns the apply configuration of an Instance that the hub creates, or updates if current is not nil.
func instanceConfiguration(current, want *kudo.Instance) (*unstructured.Unstructured, error) {
	owner, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&want.OwnerReferences[0])
	if err != nil {
		return nil, fmt.Errorf("encoding Instance %s: %w", client.ObjectKeyFromObject(want), err)
	}
	parameters := make(map[string]any, len(want.Spec.Parameters))
	for name, value := range want.Spec.Parameters {
		parameters[name] = value
	}
	version := map[string]any{
		"namespace": want.Spec.OperatorVersion.Namespace,
		"name":      want.Spec.OperatorVersion.Name,
	}
	if uid := want.Spec.OperatorVersion.UID; uid != "" {
		version["uid"] = string(uid)
	}
	from := make([]any, 0, len(want.Spec.ParametersFrom))
	for _, f := range want.Spec.ParametersFrom {
		from = append(from, map[string]any{"name": f.Name, "secretKeyRef": map[string]any{"name": f.SecretKeyRef.Name, "key": f.SecretKeyRef.Key}})
	}
	spec := map[string]any{
		"operatorVersion": version,
		"parameters":      parameters, // always set, so that the hub owns the field
	}
	if len(from) > 0 || current != nil && len(current.Spec.ParametersFrom) > 0 { // others may have set the field
		spec["parametersFrom"] = from
	}
	setRegistries(spec, current, want)
	setWindows(spec, current, want)
	setHealthyFor(spec, current, want)
	setOnFailure(spec, current, want)
	setAuthor(spec, want.Spec.ChangedBy)
	if want.Spec.InstallNamespace != "" {
		spec["installNamespace"] = want.Spec.InstallNamespace
	}
	if want.Spec.ServiceAccountName != "" {
		spec["serviceAccountName"] = want.Spec.ServiceAccountName
	}
	configuration := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"ownerReferences": []any{owner}},
		"spec":     spec,
	}}
	configuration.SetGroupVersionKind(kudo.GroupVersion.WithKind("Instance"))
	configuration.SetNamespace(want.Namespace)
	configuration.SetName(want.Name)
	return configuration, nil
}

// setRegistries sets the image registries in the apply configuration of a spec, unless neither Instance has any.
func setRegistries(spec map[string]any, current, want *kudo.Instance) {
	if len(want.Spec.ImageRegistries) == 0 && (current == nil || len(current.Spec.ImageRegistries) == 0) {
		return
	}
	configurations := make([]any, 0, len(want.Spec.ImageRegistries))
	for _, r := range want.Spec.ImageRegistries {
		configuration := map[string]any{"mirror": r.Mirror}
		if r.Source != "" {
			configuration["source"] = r.Source
		}
		configurations = append(configurations, configuration)
	}
	spec["imageRegistries"] = configurations
}

// setAuthor sets who has changed the Instance; nil if that is not known.
func setAuthor(spec map[string]any, a *kudo.ChangeAuthor) {
	if a == nil {
		return
	}
	configuration := map[string]any{"manager": a.Manager, "kind": a.Kind, "name": a.Name, "change": a.Change}
	if a.Time != nil {
		configuration["time"] = a.Time.UTC().Format(time.RFC3339)
	}
	spec["changedBy"] = configuration
}

// isUndeclared reports whether the API server has refused to apply an object because its resource definition lacks a field.
func isUndeclared(err error) bool {
	return err != nil && strings.Contains(err.Error(), "field not declared in schema")
}

// applyWithAuthor applies the configuration of an Instance, without its author if the resource definition of the API server is of an earlier release.
func applyWithAuthor(configuration *unstructured.Unstructured, apply func() error) error {
	err := apply()
	if _, authored, _ := unstructured.NestedMap(configuration.Object, "spec", "changedBy"); isUndeclared(err) && authored {
		unstructured.RemoveNestedField(configuration.Object, "spec", "changedBy")
		return apply()
	}
	return err
}

// staleCacheConflict returns a conflict: the cached Instance is older than the last write.
func staleCacheConflict(instance *kudo.Instance, what string) error {
	resource := schema.GroupResource{Group: kudo.GroupVersion.Group, Resource: "instances"}
	return apierrors.NewConflict(resource, instance.Name, errors.New(what+", but not in the cache yet"))
}

// setWindows sets the maintenance windows, also to none if others may have set the field.
func setWindows(spec map[string]any, current, want *kudo.Instance) {
	if want.Spec.Windows != "" || current != nil && current.Spec.Windows != "" {
		spec["windows"] = want.Spec.Windows
	}
}

// setOnFailure sets what the agent does if a plan for another version fails, also to nothing if others may have set the field.
func setOnFailure(spec map[string]any, current, want *kudo.Instance) {
	if want.Spec.OnFailure != "" || current != nil && current.Spec.OnFailure != "" {
		spec["onFailure"] = string(want.Spec.OnFailure)
	}
}

// setHealthyFor sets how long the Instance has to be healthy after a plan, also to zero if others may have set the field.
func setHealthyFor(spec map[string]any, current, want *kudo.Instance) {
	if want.Spec.HealthyFor != nil || current != nil && current.Spec.HealthyFor != nil {
		spec["healthyFor"] = ptr.Deref(want.Spec.HealthyFor, metav1.Duration{}).Duration.String()
	}
}
