package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
)

// RequestDiagnosis asks the agent for the pods of this Instance, their Events and last log lines. It fails if the Instance was re-created under the same
// name.
func RequestDiagnosis(ctx context.Context, c client.Client, instance *kudo.Instance, at time.Time) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": instance.UID, "annotations": map[string]string{kudo.AnnotationDiagnose: at.UTC().Format(time.RFC3339)},
	}})
	if err != nil {
		return fmt.Errorf("encoding the request: %w", err)
	}
	if err = c.Patch(ctx, instance, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("changing Instance %q of cluster %q: %w", instance.Name, instance.Namespace, err)
	}
	return nil
}

// ignoreTime is how long plans ignore maintenance windows on request: long enough for a plan that has to wait for another one.
const ignoreTime = time.Hour

// IgnoreWindows makes plans of the spec start outside of the maintenance windows that the hub sets, for an hour.
func IgnoreWindows(spec *kudo.InstanceSpec, now time.Time) {
	spec.IgnoreWindowsUntil = &metav1.Time{Time: now.Add(ignoreTime).Truncate(time.Second)}
}

// Suspend returns the Instance's spec with or without a suspension, and whether that changes it. An Instance that is being removed cannot be suspended.
func Suspend(instance *kudo.Instance, suspend bool) (kudo.InstanceSpec, bool, error) {
	if suspend && !instance.DeletionTimestamp.IsZero() {
		return kudo.InstanceSpec{}, false, fmt.Errorf("cluster %s: Instance %q is being removed: a removal cannot be suspended", instance.Namespace, instance.Name)
	}
	wanted := *instance.Spec.DeepCopy()
	wanted.Suspend = suspend
	return wanted, instance.Spec.Suspend != suspend, nil
}

// SuspendMany suspends all Instances of an origin with its reason, and reports whether that changes anything. The reason of a suspension that exists is
// replaced by another one that is not empty.
func SuspendMany(ctx context.Context, c client.Client, origin suspension.Origin) (bool, error) {
	if origin.Kind == suspension.KindEverything {
		return createSuspendConfig(ctx, c, origin)
	}
	object, err := readOrigin(ctx, c, origin)
	if err != nil {
		return false, err
	}
	if reason, suspended := object.Annotations[kudo.AnnotationSuspend]; suspended && (origin.Reason == "" || origin.Reason == reason) {
		return false, nil
	}
	return true, annotateOrigin(ctx, c, object, origin.Reason)
}

// ResumeMany ends the suspension of all Instances of an origin, and reports whether there was one.
func ResumeMany(ctx context.Context, c client.Client, origin suspension.Origin) (bool, error) {
	if origin.Kind == suspension.KindEverything {
		err := c.Delete(ctx, &corev1.ConfigMap{ObjectMeta: suspendConfigMeta(origin)})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("deleting ConfigMap %s: %w", origin.Name, err)
		}
		return err == nil, nil
	}
	object, err := readOrigin(ctx, c, origin)
	if err != nil {
		return false, err
	}
	if _, suspended := object.Annotations[kudo.AnnotationSuspend]; !suspended {
		return false, nil
	}
	return true, annotateOrigin(ctx, c, object, nil)
}

func suspendConfigMeta(origin suspension.Origin) metav1.ObjectMeta {
	namespace, name, _ := strings.Cut(origin.Name, "/")
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// createSuspendConfig creates the ConfigMap that suspends everything, or changes its reason.
func createSuspendConfig(ctx context.Context, c client.Client, origin suspension.Origin) (bool, error) {
	config := &corev1.ConfigMap{ObjectMeta: suspendConfigMeta(origin), Data: map[string]string{kudo.SuspendKey: origin.Reason}}
	err := c.Create(ctx, config.DeepCopy())
	if err == nil {
		return true, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("creating ConfigMap %s: %w", origin.Name, err)
	}
	existing := &corev1.ConfigMap{ObjectMeta: config.ObjectMeta}
	if err := c.Get(ctx, client.ObjectKeyFromObject(existing), existing); err != nil {
		return false, fmt.Errorf("reading ConfigMap %s: %w", origin.Name, err)
	}
	if origin.Reason == "" || existing.Data[kudo.SuspendKey] == origin.Reason {
		return false, nil
	}
	patch, err := json.Marshal(map[string]any{"data": config.Data})
	if err != nil {
		return false, fmt.Errorf("encoding the request: %w", err)
	}
	if err := c.Patch(ctx, existing, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return false, fmt.Errorf("changing ConfigMap %s: %w", origin.Name, err)
	}
	return true, nil
}

// errNoAddOn is the way out if an add-on has no ClusterManagementAddOn.
var errNoAddOn = errors.New("an Instance that belongs to no add-on is suspended on its clusters (--cluster, --selector, --placement or --all-clusters)")

// readOrigin reads the metadata of a ManagedCluster or ClusterManagementAddOn.
func readOrigin(ctx context.Context, c client.Reader, origin suspension.Origin) (*metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(clusterv1.GroupVersion.String(), string(origin.Kind)))
	if origin.Kind == suspension.KindAddOn {
		object.SetGroupVersionKind(addonv1alpha1.GroupVersion.WithKind(string(origin.Kind)))
	}
	err := c.Get(ctx, types.NamespacedName{Name: origin.Name}, object)
	switch {
	case apierrors.IsNotFound(err) && origin.Kind == suspension.KindAddOn:
		return nil, fmt.Errorf("%s %q does not exist: %w", origin.Kind, origin.Name, errNoAddOn)
	case err != nil:
		return nil, fmt.Errorf("reading %s %q: %w", origin.Kind, origin.Name, err)
	}
	return object, nil
}

// annotateOrigin sets the reason of an object that suspends Instances; nil removes the annotation.
func annotateOrigin(ctx context.Context, c client.Client, object *metav1.PartialObjectMetadata, reason any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": object.UID, "annotations": map[string]any{kudo.AnnotationSuspend: reason},
	}})
	if err != nil {
		return fmt.Errorf("encoding the request: %w", err)
	}
	if err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("changing %s %q: %w", object.Kind, object.Name, err)
	}
	return nil
}
