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

// Condition sets one condition of obj's status by forced server-side apply under manager, unless current (the conditions
// that obj was read with) holds it already. It reports whether it wrote. now becomes lastTransitionTime where the status
// changes.
//
// It is all that manager applies to the status: fields that manager applied before and that are not the condition go. An object
// that was made anew under its name since it was read gets the condition as well.
func Condition(
	ctx context.Context, c client.Client, obj client.Object, current []metav1.Condition, manager string,
	want metav1.Condition, now time.Time,
) (bool, error) {
	settled, changed := Settle(current, want, now)
	if !changed {
		return false, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&settled)
	if err != nil {
		return false, fmt.Errorf("encoding condition %s: %w", want.Type, err)
	}
	err = Status(ctx, c, obj, manager, map[string]any{"conditions": []any{fields}})
	return err == nil, err
}

// messageLimit is the length of a condition's message in bytes at most; the API server takes that many characters.
const messageLimit = 32768

// Settle is want as it is to be stored beside current, with its lastTransitionTime: that of the stored condition while the
// status stays the same, else now. A message that the API server would refuse for its length is cut. It reports whether
// storing it changes anything but that time.
func Settle(current []metav1.Condition, want metav1.Condition, now time.Time) (metav1.Condition, bool) {
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

// Status makes fields all that manager holds of obj's status, by forced server-side apply. obj gets the resource version that this
// led to, and stays as it was read otherwise. An object that was made anew under its name since it was read gets them as well, for
// API servers do not compare the uid of what is applied to the status of a custom resource. Errors are the API server's.
func Status(ctx context.Context, c client.Client, obj client.Object, manager string, fields map[string]any) error {
	return applyStatus(ctx, c, obj, manager, map[string]any{}, fields)
}

// StatusAsRead is Status for exactly what was read of obj: where it has changed since, or is another one, nothing is written and the
// error is a conflict (apierrors.IsConflict).
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
	err = c.Status().Patch(ctx, target, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner(manager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying status of %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(obj), err)
	}
	obj.SetResourceVersion(target.ResourceVersion)
	return nil
}

// ReleaseCondition removes a condition of obj's status, so that no field manager holds it any longer. Nothing happens unless
// current (the conditions that obj was read with) holds it with one of reasons. It reports whether it wrote.
//
// It is a JSON patch that tests what it removes: when the object or the condition is another by now, the error is a conflict
// (apierrors.IsConflict) and nothing has changed. Applying an empty status instead would fail, or leave the condition
// standing as soon as another manager owns it too.
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

// Release removes, as part of a status patch, the condition of that type; it is nothing where current does not hold it with one of
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
