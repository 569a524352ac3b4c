package health

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tandem-addons/tandem/pkg/text"
)

// availabilities maps the kinds of workloads to their own rules of availability (DESIGN §3): whether the workload serves while it is updated.
// Each returns the number of pods that count, whether they suffice, and a description.
var availabilities = map[schema.GroupKind]func(*fields) (pods int64, suffice bool, message string){
	{Group: "apps", Kind: "Deployment"}:  deploymentAvailable,
	{Group: "apps", Kind: "StatefulSet"}: statefulSetAvailable,
	{Group: "apps", Kind: "DaemonSet"}:   daemonSetAvailable,
}

// IsWorkload reports whether objects of the kind have a rule of availability: Deployments, StatefulSets and DaemonSets.
func IsWorkload(kind schema.GroupKind) bool { return availabilities[kind] != nil }

// Unavailable returns why a workload is not available by the rule of its kind; empty if it is. Its status may belong to an older generation:
// its pods serve in the meantime. Crash loops are only visible in the pods (see CrashLoop).
func Unavailable(workload *unstructured.Unstructured) string {
	_, suffice, message := availability(workload)
	if suffice {
		return ""
	}
	return text.OneLine(subject(workload) + ": " + message)
}

// Serves reports whether a workload is available with at least one pod: it then has something to lose in an update.
func Serves(workload *unstructured.Unstructured) bool {
	pods, suffice, _ := availability(workload)
	return suffice && pods > 0
}

func availability(workload *unstructured.Unstructured) (pods int64, suffice bool, message string) {
	rule := availabilities[workload.GroupVersionKind().GroupKind()]
	if rule == nil {
		return 0, true, "has no pods"
	}
	f := &fields{object: workload.Object}
	if f.has("metadata", "deletionTimestamp") {
		return 0, false, "is being deleted"
	}
	if pods, suffice, message = rule(f); f.problem != "" {
		return 0, false, f.problem
	}
	return pods, suffice, message
}

// deploymentAvailable follows condition Available, which takes maxUnavailable into account.
func deploymentAvailable(f *fields) (pods int64, suffice bool, message string) {
	pods = f.integer(0, "status", "availableReplicas")
	switch c := f.condition("Available"); {
	case f.integer(1, "spec", "replicas") == 0, c.isTrue():
		return pods, true, ""
	case c.status == "":
		return pods, pods > 0, "is not available yet"
	default:
		return pods, false, "is not available: " + c.why()
	}
}

// statefulSetAvailable requires one ready pod, unless none is desired.
func statefulSetAvailable(f *fields) (pods int64, suffice bool, message string) {
	pods = f.integer(0, "status", "readyReplicas")
	return pods, pods > 0 || f.integer(1, "spec", "replicas") == 0, "is not available: no pod is ready"
}

// daemonSetAvailable requires one ready pod, unless no node is to run one.
func daemonSetAvailable(f *fields) (pods int64, suffice bool, message string) {
	pods = f.integer(0, "status", "numberReady")
	none := f.has("status", "desiredNumberScheduled") && f.integer(0, "status", "desiredNumberScheduled") == 0
	return pods, pods > 0 || none, "is not available: no pod is ready"
}

// CrashLoop describes the first container of a pod that fails repeatedly; empty if there is none. One restart is no loop: a container may
// fail once because another one starts later.
func CrashLoop(pod *unstructured.Unstructured) string {
	f := &fields{object: pod.Object}
	for _, list := range containerLists {
		for _, status := range f.list("status", list) {
			repeats := status.text("state", "waiting", "reason") == crashLoop || status.integer(0, "restartCount") > 1
			if exited := lastExit(status); exited != "" && repeats && !status.boolean("ready") {
				return text.OneLine(subject(pod) + ": container " + status.text("name") + " restarts: " + loopText(f, list, status) + ": " + exited)
			}
		}
	}
	return ""
}
