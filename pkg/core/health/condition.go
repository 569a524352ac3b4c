package health

import (
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// byConditions judges a kind without its own rule like kstatus does: Reconciling and Stalled, then Ready; an object without these
// conditions is healthy. Unlike kstatus, it ignores Ready and Stalled of an older generation.
func byConditions(f *fields, obj *unstructured.Unstructured) verdict {
	ready, stalled := f.condition("Ready"), f.condition("Stalled")
	generation := f.integer(0, "metadata", "generation")
	if ready.outdated(generation) || stalled.isTrue() && stalled.outdated(generation) {
		return progressing("generation %d has not been observed yet", generation)
	}
	result, err := status.Compute(obj)
	if err != nil {
		return unknown("its status is malformed: %s", foreign("", err.Error()))
	}
	switch result.Status {
	case status.CurrentStatus:
		if ready.isTrue() {
			return healthy("is ready")
		}
		return healthy("exists")
	case status.InProgressStatus:
		return progressing("is not ready: %s", reasonOf(result))
	case status.TerminatingStatus:
		return progressing("is being deleted")
	case status.FailedStatus:
		return failed("%s", reasonOf(result))
	default:
		return unknown("%s", reasonOf(result))
	}
}

// reasonOf returns the reason and message of the first condition that kstatus gives, else its message.
func reasonOf(result *status.Result) string {
	for _, c := range result.Conditions {
		if why := foreign(c.Reason, c.Message); why != "" {
			return why
		}
	}
	return foreign("", result.Message)
}
