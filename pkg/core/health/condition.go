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
	if ready.isStale(generation) || stalled.isTrue() && stalled.isStale(generation) {
		return progressingf("generation %d has not been observed yet", generation)
	}
	result, err := status.Compute(obj)
	if err != nil {
		return unknownf("its status is malformed: %s", foreign("", err.Error()))
	}
	switch result.Status {
	case status.CurrentStatus:
		if ready.isTrue() {
			return healthyf("is ready")
		}
		return healthyf("exists")
	case status.InProgressStatus:
		return progressingf("is not ready: %s", reasonOf(result))
	case status.TerminatingStatus:
		return progressingf("is being deleted")
	case status.FailedStatus:
		return failedf("%s", reasonOf(result))
	default:
		return unknownf("%s", reasonOf(result))
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
