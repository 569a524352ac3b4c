package health

import "fmt"

// job judges a Job by its terminal conditions. SuccessCriteriaMet precedes Complete while the last pods are being deleted: the outcome is
// already determined.
func job(f *fields) verdict {
	if c := f.condition("Failed"); c.isTrue() {
		return failed("failed: %s", c.why())
	}
	succeeded := f.integer(0, "status", "succeeded")
	// Without completions the Job is a work queue: it is complete once one pod has succeeded and all have ended.
	completions := f.integer(1, "spec", "completions")
	progress := fmt.Sprintf("%d of %d completions", succeeded, completions)
	if f.condition("Complete").isTrue() || f.condition("SuccessCriteriaMet").isTrue() {
		return healthy("complete: %s", progress)
	}
	if f.boolean("spec", "suspend") {
		return progressing("%s, suspended", progress)
	}
	if f.integer(1, "spec", "parallelism") == 0 {
		return progressing("%s, parallelism is 0", progress)
	}
	if c := f.condition("FailureTarget"); c.isTrue() {
		return progressing("%s, failing: %s", progress, c.why())
	}
	if pods := f.integer(0, "status", "failed"); pods > 0 {
		return progressing("%s, %d failed pods", progress, pods)
	}
	return progressing("%s", progress)
}

func pod(f *fields) verdict {
	switch phase := f.text("status", "phase"); phase {
	case "Succeeded":
		return healthy("succeeded")
	case "Failed":
		return failed("failed: %s", foreign(f.text("status", "reason"), f.text("status", "message")))
	case "Unknown":
		return unknown("its node is unreachable")
	}
	ready := f.condition("Ready")
	if ready.isTrue() {
		return healthy("is ready")
	}
	if waiting := waitingContainer(f); waiting != "" {
		return progressing("%s", waiting)
	}
	if c := f.condition("PodScheduled"); c.isFalse() {
		return progressing("is not scheduled: %s", c.why())
	}
	if ready.status == "" {
		return progressing("has not started yet")
	}
	return progressing("is not ready: %s", ready.why())
}

// waitingContainer describes the first container that waits, and why. It omits the message, which contains a back-off time that changes
// repeatedly.
func waitingContainer(f *fields) string {
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, status := range f.list("status", list) {
			name, reason := status.text("name"), status.text("state", "waiting", "reason")
			f.adopt(status, "status."+list)
			switch reason {
			case "", "PodInitializing", "ContainerCreating":
				continue
			case "ErrImagePull": // alternates with the back-off
				reason = "ImagePullBackOff"
			}
			return fmt.Sprintf("container %s is waiting: %s", name, reason)
		}
	}
	return ""
}
