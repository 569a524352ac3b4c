package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/pkg/text"
)

// job judges a Job by its terminal conditions. SuccessCriteriaMet precedes Complete while the last pods are being deleted: the outcome is
// already determined.
func job(f *fields) verdict {
	if c := f.condition("Failed"); c.isTrue() {
		return failedf("failed: %s", c.why())
	}
	succeeded := f.integer(0, "status", "succeeded")
	// Without completions the Job is a work queue: it is complete once one pod has succeeded and all have ended.
	completions := f.integer(1, "spec", "completions")
	progress := fmt.Sprintf("%d of %d completions", succeeded, completions)
	if f.condition("Complete").isTrue() || f.condition("SuccessCriteriaMet").isTrue() {
		return healthyf("complete: %s", progress)
	}
	if f.boolean("spec", "suspend") {
		return progressingf("%s, suspended", progress)
	}
	if f.integer(1, "spec", "parallelism") == 0 {
		return progressingf("%s, parallelism is 0", progress)
	}
	if c := f.condition("FailureTarget"); c.isTrue() {
		return progressingf("%s, failing: %s", progress, c.why())
	}
	if pods := f.integer(0, "status", "failed"); pods > 0 {
		return progressingf("%s, %d failed pods", progress, pods)
	}
	return progressingf("%s", progress)
}

func pod(f *fields) verdict {
	switch phase := f.text("status", "phase"); phase {
	case "Succeeded":
		return healthyf("succeeded")
	case "Failed":
		if exited := failedContainer(f); exited != "" && f.text("status", "reason") == "" {
			return failedf("failed: %s", exited)
		}
		return failedf("failed: %s", foreign(f.text("status", "reason"), f.text("status", "message")))
	case "Unknown":
		return unknownf("its node is unreachable")
	}
	ready := f.condition("Ready")
	if ready.isTrue() {
		return healthyf("is ready")
	}
	if waits := waitingContainer(f); waits != "" {
		return progressingf("%s", waits)
	}
	if c := f.condition("PodScheduled"); c.isFalse() {
		return progressingf("is not scheduled: %s", c.why())
	}
	if ready.status == "" {
		return progressingf("has not started yet")
	}
	return progressingf("is not ready: %s", ready.why())
}

// containerLists are the lists of containers' statuses, in the order in which containers start.
var containerLists = []string{"initContainerStatuses", "containerStatuses"}

// waitingContainer describes the first container that waits, or that is restarted because it failed, and why.
func waitingContainer(f *fields) string {
	for _, list := range containerLists {
		for _, status := range f.list("status", list) {
			name, waits := status.text("name"), waitReason(f, list, status)
			f.adopt(status, "status."+list)
			if waits != "" {
				return "container " + name + " " + waits
			}
		}
	}
	return ""
}

// waitReason describes why a container waits, or is restarted because it failed; empty if neither. A container that fails is restarted,
// runs, fails and waits in turn: the description is the same throughout. It omits the messages of waiting containers, which contain a
// back-off time that changes repeatedly.
func waitReason(f *fields, list string, status *fields) string {
	reason, exited := status.text("state", "waiting", "reason"), lastExit(status)
	restarts := reason == crashLoop || status.has("lastState", "terminated")
	switch {
	case exited != "" && restarts && !status.boolean("ready"):
		return "restarts: " + loopText(f, list, status) + ": " + exited
	case reason == "" || reason == "PodInitializing" || reason == "ContainerCreating":
		return ""
	case reason == "ErrImagePull" || reason == "ImagePullBackOff":
		waits := "is waiting: ImagePullBackOff" // ErrImagePull alternates with it
		if image := imageOf(f, list, status.text("name")); image != "" {
			waits += ": image " + image
		}
		return waits
	}
	return "is waiting: " + reason
}

const crashLoop = "CrashLoopBackOff"

// loopText describes a container that fails repeatedly, without its last failure: its image, and roughly how often it was restarted.
func loopText(f *fields, list string, status *fields) string {
	var details []string
	if image := imageOf(f, list, status.text("name")); image != "" {
		details = append(details, "image "+image)
	}
	count := status.integer(0, "restartCount")
	if i := slices.IndexFunc(restartSteps, func(step int) bool { return count > int64(step) }); i >= 0 {
		details = append(details, "more than "+text.Plural(restartSteps[i], "restart"))
	}
	if len(details) == 0 {
		return crashLoop
	}
	return crashLoop + " (" + strings.Join(details, ", ") + ")"
}

// restartSteps are the numbers of restarts that messages name: each restart would otherwise rewrite the message.
var restartSteps = []int{100, 30, 10, 3, 1}

// failedContainer describes how the first failed container of a failed pod ended.
func failedContainer(f *fields) string {
	for _, list := range containerLists {
		for _, status := range f.list("status", list) {
			exited := lastExit(status)
			f.adopt(status, "status."+list)
			if exited != "" {
				return fmt.Sprintf("container %s %s", status.text("name"), exited)
			}
		}
	}
	return ""
}

// lastExit describes how a container failed last; empty if it did not. A container without a process, because its command does not exist for
// example, has a message of the runtime; others may have written one.
func lastExit(status *fields) string {
	for _, state := range []string{"state", "lastState"} {
		exited := exitText(status, state)
		if exited == "" {
			continue
		}
		if message := status.text(state, "terminated", "message"); message != "" {
			exited += ": " + truncate(message)
		}
		return exited
	}
	return ""
}

// Restart is the last restart of a container.
type Restart struct {
	Container string
	// Count is how often it has restarted.
	Count int64
	// Time is when it did, by the clock of the node; zero if the status does not say.
	Time time.Time
	// Cause is how its former process ended: its exit code, and the reason of the runtime. It contains nothing that the process has written.
	Cause string
}

// Restarts returns the restarts of the containers of a pod, with init containers and sidecars, that have restarted. A container that has started once has not.
func Restarts(pod *unstructured.Unstructured) []Restart {
	f := &fields{object: pod.Object}
	var restarts []Restart
	for _, list := range containerLists {
		for _, status := range f.list("status", list) {
			count := status.integer(0, "restartCount")
			if count <= 0 {
				continue
			}
			var latest time.Time
			for _, path := range [][]string{{"state", "running", "startedAt"}, {"state", "terminated", "startedAt"}, {"lastState", "terminated", "finishedAt"}} {
				if at, err := time.Parse(time.RFC3339, status.text(path...)); err == nil && at.After(latest) {
					latest = at
				}
			}
			restarts = append(restarts, Restart{status.text("name"), count, latest, cmp.Or(exitText(status, "lastState"), "its process ended")})
		}
	}
	return restarts
}

// exitText describes how a container failed, in its current or last state, without its message; empty if it did not.
func exitText(status *fields, state string) string {
	code := status.integer(0, state, "terminated", "exitCode")
	if code == 0 {
		return ""
	}
	exited := fmt.Sprintf("exited with code %d", code)
	if reason := status.text(state, "terminated", "reason"); reason != "" {
		exited += " (" + truncate(reason) + ")"
	}
	return exited
}

// FailedContainer returns the first container of a pod that has failed and whose status does not say why, and whether that was its previous
// run; empty if there is none.
func FailedContainer(pod *unstructured.Unstructured) (name string, previous bool) {
	f := &fields{object: pod.Object}
	for _, list := range containerLists {
		for _, status := range f.list("status", list) {
			for _, state := range []string{"state", "lastState"} {
				if status.boolean("ready") || status.integer(0, state, "terminated", "exitCode") == 0 {
					continue
				}
				if status.text(state, "terminated", "message") != "" {
					return "", false
				}
				return status.text("name"), state == "lastState"
			}
		}
	}
	return "", false
}

// imageOf returns the image of a container; empty if it is not known.
func imageOf(f *fields, list, name string) string {
	field := "containers"
	if list == "initContainerStatuses" {
		field = "initContainers"
	}
	for _, container := range f.list("spec", field) {
		if container.text("name") == name {
			return truncate(container.text("image"))
		}
	}
	return ""
}
