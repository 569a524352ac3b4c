package change

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
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
