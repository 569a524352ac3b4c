package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Condition sets one condition of obj's status by forced server-side apply under manager, unless current (the conditions that obj was read
// with) already contains it. It reports whether it wrote. lastTransitionTime is set to now if the status changes.
//
// manager applies nothing else to the status: other fields that it applied before are removed. If the object was re-created under the same
// name since it was read, the new one gets the condition.
func Condition(
	ctx context.Context, c client.Client, obj client.Object, current []metav1.Condition, manager string,
	want metav1.Condition, now time.Time,
) (bool, error) {
	return writeCondition(current, want, now, func(fields map[string]any) error { return Status(ctx, c, obj, manager, fields) })
}

// ConditionAsRead is Condition for exactly the object that was read: if it changed or was replaced since, nothing is written and the error
// is a conflict (apierrors.IsConflict).
func ConditionAsRead(
	ctx context.Context, c client.Client, obj client.Object, current []metav1.Condition, manager string,
	want metav1.Condition, now time.Time,
) (bool, error) {
	return writeCondition(current, want, now, func(fields map[string]any) error { return StatusAsRead(ctx, c, obj, manager, fields) })
}

// writeCondition writes a condition unless current already contains it, and reports whether it wrote.
func writeCondition(current []metav1.Condition, want metav1.Condition, now time.Time, write func(fields map[string]any) error) (bool, error) {
	condition, changed := MergeCondition(current, want, now)
	if !changed {
		return false, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&condition)
	if err != nil {
		return false, fmt.Errorf("encoding condition %s: %w", want.Type, err)
	}
	err = write(map[string]any{"conditions": []any{fields}})
	return err == nil, err
}

// messageLimit is the maximum length of a condition's message in bytes; the API server allows that number of characters.
const messageLimit = 32768

// MergeCondition returns want as it is to be stored, given current: it keeps lastTransitionTime while the status stays the same, else sets it to
// now, and truncates a message that exceeds the API server's limit. It reports whether anything but that time changes.
func MergeCondition(current []metav1.Condition, want metav1.Condition, now time.Time) (metav1.Condition, bool) {
	want.Message = text.Truncate(want.Message, messageLimit)
	want.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	stored := meta.FindStatusCondition(current, want.Type)
	if stored == nil {
		return want, true
	}
	if stored.Status == want.Status {
		want.LastTransitionTime = stored.LastTransitionTime
	}
	same := stored.Status == want.Status && stored.Reason == want.Reason && stored.Message == want.Message &&
		stored.ObservedGeneration == want.ObservedGeneration
	return want, !same
}

// Status sets fields as all fields of obj's status under manager, by forced server-side apply. It sets the resulting resource version on
// obj and changes nothing else of it. If the object was re-created under the same name since it was read, the new one gets the fields,
// because API servers do not compare the uid in an apply to the status of a custom resource. Errors are those of the API server.
func Status(ctx context.Context, c client.Client, obj client.Object, manager string, fields map[string]any) error {
	return applyStatus(ctx, c, obj, manager, map[string]any{}, fields)
}

// StatusAsRead is Status for exactly the object that was read: if it changed or was replaced since, nothing is written and the error is a
// conflict (apierrors.IsConflict).
func StatusAsRead(ctx context.Context, c client.Client, obj client.Object, manager string, fields map[string]any) error {
	return applyStatus(ctx, c, obj, manager, map[string]any{"resourceVersion": obj.GetResourceVersion()}, fields)
}

func applyStatus(ctx context.Context, c client.Client, obj client.Object, manager string, metadata, fields map[string]any) error {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return fmt.Errorf("applying status: %w", err)
	}
	metadata["namespace"], metadata["name"] = obj.GetNamespace(), obj.GetName()
	data, err := json.Marshal(map[string]any{
		"apiVersion": gvk.GroupVersion().String(),
		"kind":       gvk.Kind,
		"metadata":   metadata,
		"status":     fields,
	})
	if err != nil {
		return fmt.Errorf("encoding status: %w", err)
	}
	target := bare(gvk, obj)
	err = c.Status().Patch(ctx, target, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner(manager), client.ForceOwnership, Unchecked)
	if err != nil {
		return fmt.Errorf("applying status of %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(obj), err)
	}
	obj.SetResourceVersion(target.ResourceVersion)
	return nil
}

// ReleaseCondition removes a condition from obj's status for all field managers. It does nothing unless current (the conditions that obj
// was read with) contains it with one of reasons. It reports whether it wrote.
//
// It uses a JSON patch that tests what it removes: if the object or the condition changed since, the error is a conflict
// (apierrors.IsConflict) and nothing changes. Applying an empty status instead would fail, or keep the condition if another manager owns it
// too.
func ReleaseCondition(
	ctx context.Context, c client.Client, obj client.Object, current []metav1.Condition, conditionType string, reasons ...string,
) (bool, error) {
	operations := Release(current, conditionType, reasons...)
	if operations == nil {
		return false, nil
	}
	if err := PatchStatus(ctx, c, obj, operations); err != nil {
		return false, fmt.Errorf("releasing condition %s: %w", conditionType, err)
	}
	return true, nil
}

// Release returns the operations of a status patch that remove the condition of that type; none if current does not contain it with one of
// reasons.
func Release(current []metav1.Condition, conditionType string, reasons ...string) []Operation {
	at := slices.IndexFunc(current, func(c metav1.Condition) bool { return c.Type == conditionType })
	if at < 0 || !slices.Contains(reasons, current[at].Reason) {
		return nil
	}
	path := fmt.Sprintf("/status/conditions/%d", at)
	return []Operation{
		{Op: "test", Path: path + "/type", Value: conditionType},
		{Op: "test", Path: path + "/reason", Value: current[at].Reason},
		{Op: "remove", Path: path},
	}
}
