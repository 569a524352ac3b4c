package release

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/health"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

const definition = "CustomResourceDefinition"

// jobKind and podKind are the kinds that run; others have succeeded once they are applied.
var (
	jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}
	podKind = schema.GroupKind{Kind: "Pod"}
)

// Seen is a hook as it was read.
type Seen struct {
	// Live is nil if the object does not exist.
	Live *unstructured.Unstructured
	// Why is why it has failed, as its pods say.
	Why string
	// Free is true if it belongs to no Instance: this one has released it, and may take it back.
	Free bool
}

// runs reports whether a hook runs until it succeeds or fails.
func runs(o *unstructured.Unstructured) bool {
	kind := o.GroupVersionKind().GroupKind()
	return kind == jobKind || kind == podKind
}

// Started returns the object of a hook to apply for an event. A Job gets its time to live once its outcome is stored.
func (h Hook) Started(event Event) *unstructured.Unstructured {
	return plan.Provisional(h.Restored(event))
}

// Restored returns the object of a hook to apply for an event, as it was rendered.
func (h Hook) Restored(event Event) *unstructured.Unstructured {
	object := h.Object.Object.DeepCopy()
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[kudo.AnnotationHook] = string(event)
	object.SetAnnotations(annotations)
	return object
}

// ranIn reports whether an execution has applied an object as a hook, for an event.
func ranIn(live *unstructured.Unstructured, execution types.UID, event Event) bool {
	return plan.Object{Live: live}.AppliedBy(execution) && live.GetAnnotations()[kudo.AnnotationHook] == string(event)
}

// judge returns the state of a hook that was applied, and what it waits for or why it has failed. A Job that is being deleted is judged all the
// same: it may have ended before.
func judge(seen Seen) (state kudo.HookState, message string) {
	switch seen.Live.GroupVersionKind().GroupKind() {
	case podKind:
		state, message = judgePod(seen.Live)
	case jobKind:
		result := health.Of(seen.Live)
		state, message = kudo.HookRunning, strings.TrimPrefix(result.Message, plan.Describe(seen.Live)+": ")
		switch result.Status {
		case health.Healthy:
			state = kudo.HookSucceeded
		case health.Failed:
			state = kudo.HookFailed
		}
	default:
		return kudo.HookSucceeded, ""
	}
	if state == kudo.HookFailed {
		message = cmp.Or(seen.Why, message)
	}
	return state, message
}

// judgePod returns the state of a Pod, which runs until all of its containers have ended.
func judgePod(live *unstructured.Unstructured) (state kudo.HookState, message string) {
	phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
	reason, _, _ := unstructured.NestedString(live.Object, "status", "reason")
	switch phase {
	case "Succeeded":
		return kudo.HookSucceeded, ""
	case "Failed":
		return kudo.HookFailed, cmp.Or(reason, "has failed")
	default:
		return kudo.HookRunning, "phase " + cmp.Or(phase, "Pending")
	}
}

// isOf reports whether a record is of that hook and event.
func isOf(record kudo.HookRecord, hook Hook, event Event) bool {
	o := hook.Object.Object
	return record.Event == string(event) && record.Kind == o.GetKind() && record.Namespace == o.GetNamespace() && record.Name == o.GetName()
}

// recordOf returns the record of a hook; the zero value if there is none.
func recordOf(task kudo.TaskRecord, hook Hook, event Event) kudo.HookRecord {
	for _, record := range task.Hooks {
		if isOf(record, hook, event) {
			return record
		}
	}
	return kudo.HookRecord{}
}

// stateOf returns the recorded state of a hook; empty if there is none.
func stateOf(task kudo.TaskRecord, hook Hook, event Event) kudo.HookState {
	return recordOf(task, hook, event).State
}
