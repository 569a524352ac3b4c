package diagnosis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/health"
)

// ranks order pods: those that need attention first.
var ranks = map[health.Status]int{health.Failed: 1, health.Progressing: 2, health.Unknown: 3, health.Healthy: 4}

// Choose returns the pods of an answer, failed ones before others and then by name, and whether some are omitted.
func Choose(pods []unstructured.Unstructured) (chosen []unstructured.Unstructured, omitted bool) {
	type ranked struct {
		rank int
		key  string
		pod  unstructured.Unstructured
	}
	sorted := make([]ranked, len(pods))
	for i, pod := range pods {
		sorted[i] = ranked{ranks[health.Of(&pods[i]).Status], pod.GetNamespace() + "/" + pod.GetName(), pod}
	}
	slices.SortFunc(sorted, func(a, b ranked) int { return cmp.Or(a.rank-b.rank, strings.Compare(a.key, b.key)) })
	sorted = slices.CompactFunc(sorted, func(a, b ranked) bool { return a.key == b.key })
	for _, pod := range sorted[:min(len(sorted), maxPods)] {
		chosen = append(chosen, pod.pod)
	}
	return chosen, len(sorted) > maxPods
}

// Describe returns the state of a pod, without logs.
func Describe(pod *unstructured.Unstructured) kudo.DiagnosedPod {
	d := kudo.DiagnosedPod{Namespace: pod.GetNamespace(), Name: pod.GetName(), Phase: textOf(pod.Object, "status", "phase")}
	if result := health.Of(pod); result.Status != health.Healthy {
		_, reason, _ := strings.Cut(result.Message, ": ")
		d.Reason = Clean(reason)
	}
	if pod.GetDeletionTimestamp() != nil {
		d.Phase = "Terminating"
	}
	for i, container := range listOf(pod.Object, "spec", "containers") {
		if i == 0 {
			d.Image = textOf(container, "image")
		}
	}
	ready, statuses := 0, listOf(pod.Object, "status", "containerStatuses")
	for _, status := range statuses {
		if is, _, _ := unstructured.NestedBool(status, "ready"); is {
			ready++
		}
		restarts, _, _ := unstructured.NestedInt64(status, "restartCount")
		d.Restarts += restarts
	}
	d.Ready = fmt.Sprintf("%d/%d", ready, max(len(statuses), len(listOf(pod.Object, "spec", "containers"))))
	return d
}

// Logs returns the logs of a pod to read, those of containers that are not ready first. Of a container that waits for its restart, it is the one of the
// previous run; init containers that are complete, and containers that have not started, have none to read.
func Logs(pod *unstructured.Unstructured) []kudo.DiagnosedLog {
	var unready, ready []kudo.DiagnosedLog
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, status := range listOf(pod.Object, "status", list) {
			code, ended, _ := unstructured.NestedInt64(status, "state", "terminated", "exitCode")
			_, runs, _ := unstructured.NestedMap(status, "state", "running")
			_, again, _ := unstructured.NestedMap(status, "lastState", "terminated")
			log := kudo.DiagnosedLog{Container: textOf(status, "name"), Previous: !runs && !ended && again}
			switch is, _, _ := unstructured.NestedBool(status, "ready"); {
			case !runs && !ended && !again, ended && code == 0 && list == "initContainerStatuses":
			case is:
				ready = append(ready, log)
			default:
				unready = append(unready, log)
			}
		}
	}
	logs := append(unready, ready...)
	return logs[:min(len(logs), maxLogs)]
}

// LogLines is the number of lines of each log to read.
const LogLines = maxLines

// Lines returns the lines of a log, clean and without sensitive values.
func Lines(log string, mask func(string) string) []string {
	var lines []string
	for line := range strings.Lines(mask(log)) { // a value may have several lines
		if line = mask(Clean(line)); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// Events returns what Events say, the latest first.
func Events(events []unstructured.Unstructured) []kudo.DiagnosedEvent {
	said := make([]kudo.DiagnosedEvent, 0, len(events))
	for _, event := range events {
		d := kudo.DiagnosedEvent{Reason: textOf(event.Object, "reason"), Message: textOf(event.Object, "message"), Time: lastSeen(event.Object)}
		d.Object = textOf(event.Object, "involvedObject", "kind") + " " + textOf(event.Object, "involvedObject", "name")
		once, _, _ := unstructured.NestedInt64(event.Object, "count")
		series, _, _ := unstructured.NestedInt64(event.Object, "series", "count")
		d.Count = max(once, series, 1)
		said = append(said, d)
	}
	slices.SortStableFunc(said, func(a, b kudo.DiagnosedEvent) int { return b.Time.Compare(a.Time.Time) })
	return said
}

// lastSeen returns when an Event was last seen, in whole seconds.
func lastSeen(event map[string]any) metav1.Time {
	for _, field := range [][]string{{"series", "lastObservedTime"}, {"lastTimestamp"}, {"eventTime"}, {"metadata", "creationTimestamp"}} {
		if at, err := time.Parse(time.RFC3339, textOf(event, field...)); err == nil {
			return metav1.NewTime(at.Truncate(time.Second))
		}
	}
	return metav1.Time{}
}

// textOf returns a clean text of an object: sensitive values are masked after that.
func textOf(object map[string]any, fields ...string) string {
	s, _, _ := unstructured.NestedString(object, fields...)
	return Clean(s)
}

func listOf(object map[string]any, fields ...string) []map[string]any {
	items, _, _ := unstructured.NestedSlice(object, fields...)
	var maps []map[string]any
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			maps = append(maps, m)
		}
	}
	return maps
}
