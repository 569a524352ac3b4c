package plan

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/health"
	"github.com/tandem-addons/tandem/pkg/text"
)

// makers are the kinds that create pods by a selector.
var makers = []schema.GroupKind{
	{Group: "apps", Kind: "Deployment"},
	{Group: "apps", Kind: "StatefulSet"},
	{Group: "apps", Kind: "DaemonSet"},
	{Group: "apps", Kind: "ReplicaSet"},
	{Group: "batch", Kind: "Job"},
}

// AwaitedPods returns the object that ApplyOutcome names, the first failed one or else the first that it waits for, if it creates pods, and the
// selector of these pods.
func AwaitedPods(objects []Object) (workload *unstructured.Unstructured, pods labels.Selector) {
	awaited := slices.IndexFunc(objects, func(o Object) bool { return o.Live == nil || o.health().Status == health.Failed })
	if awaited < 0 {
		awaited = slices.IndexFunc(objects, func(o Object) bool { return o.health().Status != health.Healthy })
	}
	if awaited < 0 || objects[awaited].Live == nil {
		return nil, nil
	}
	if pods = PodSelector(objects[awaited].Live); pods == nil {
		return nil, nil
	}
	return objects[awaited].Live, pods
}

// HasPods reports whether an object in the inventory is a pod or creates pods.
func HasPods(entry kudo.InventoryEntry) bool {
	kind := schema.GroupKind{Group: entry.Group, Kind: entry.Kind}
	return kind == schema.GroupKind{Kind: "Pod"} || slices.Contains(makers, kind)
}

// PodSelector returns the selector of the pods that an object creates; nil if it creates none.
func PodSelector(live *unstructured.Unstructured) labels.Selector {
	written, selects, _ := unstructured.NestedMap(live.Object, "spec", "selector")
	if !selects || !slices.Contains(makers, live.GroupVersionKind().GroupKind()) {
		return nil
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(written, selector); err != nil {
		return nil // the API server rejects such a selector
	}
	pods, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil
	}
	return pods
}

// PodsOf returns the pods that a workload controls. A selector can match pods of other workloads in the same namespace. The ReplicaSets of a Deployment
// are not read: their names are those of the Deployment and the hash of the pod's template.
func PodsOf(workload *unstructured.Unstructured, pods []unstructured.Unstructured) []unstructured.Unstructured {
	isDeployment := workload.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "apps", Kind: "Deployment"}
	var controlled []unstructured.Unstructured
	for _, pod := range pods {
		owner := metav1.GetControllerOfNoCopy(&pod)
		switch {
		case owner == nil:
		case isDeployment:
			group, _ := schema.ParseGroupVersion(owner.APIVersion)
			hash := pod.GetLabels()["pod-template-hash"]
			if hash != "" && group.Group == "apps" && owner.Kind == "ReplicaSet" && owner.Name == workload.GetName()+"-"+hash {
				controlled = append(controlled, pod)
			}
		case owner.UID == workload.GetUID() && owner.UID != "":
			controlled = append(controlled, pod)
		}
	}
	return controlled
}

// FirstUnhealthyPod returns the first unhealthy pod, failed ones before others and then by name, and a description of its problem; nil if
// all are healthy. Without a readiness probe, a container is ready while it runs, even if it fails repeatedly. Therefore, if all pods are
// healthy, a pod whose container was just restarted after a failure is described as if the container were still waiting for the restart.
func FirstUnhealthyPod(pods []unstructured.Unstructured, now time.Time) (pod *unstructured.Unstructured, message string) {
	pods = slices.SortedFunc(slices.Values(pods), func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	pods = slices.DeleteFunc(pods, func(p unstructured.Unstructured) bool { return p.GetDeletionTimestamp() != nil })
	for _, status := range []health.Status{health.Failed, health.Progressing, health.Unknown} {
		for i := range pods {
			if result := health.Of(&pods[i]); result.Status == status {
				return &pods[i], result.Message
			}
		}
	}
	for i := range pods {
		before := beforeRestart(&pods[i], now)
		if container, _ := health.FailedContainer(before); container != "" {
			return before, health.Of(before).Message
		}
	}
	return nil, ""
}

// FirstCrashLoop describes the first pod, by name, with a container that fails repeatedly; empty if there is none. A container that was just
// restarted counts as if it still waited for the restart.
func FirstCrashLoop(pods []unstructured.Unstructured, now time.Time) string {
	pods = slices.SortedFunc(slices.Values(pods), func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	for i := range pods {
		if pods[i].GetDeletionTimestamp() != nil {
			continue
		}
		if loop := health.CrashLoop(beforeRestart(&pods[i], now)); loop != "" {
			return loop
		}
	}
	return ""
}

// recently is the time after a restart in which a container that fails repeatedly may not have failed again yet.
const recently = 30 * time.Second

// beforeRestart returns a pod as it was before its containers were restarted recently.
func beforeRestart(pod *unstructured.Unstructured, now time.Time) *unstructured.Unstructured {
	before := pod.DeepCopy()
	unstructured.RemoveNestedField(before.Object, "status", "conditions")
	containers, _, _ := unstructured.NestedSlice(before.Object, "status", "containerStatuses")
	for _, c := range containers {
		container, _ := c.(map[string]any)
		started, _, _ := unstructured.NestedString(container, "state", "running", "startedAt")
		if at, err := time.Parse(time.RFC3339, started); err == nil && now.Sub(at) < recently {
			container["ready"] = false
		}
	}
	if containers != nil {
		_ = unstructured.SetNestedSlice(before.Object, containers, "status", "containerStatuses")
	}
	return before
}

const (
	// ReasonUnhealthy is the reason of the Events in which a kubelet reports that a probe failed.
	ReasonUnhealthy = "Unhealthy"
	// ReasonFailedCreate is the reason of the Events in which a controller reports that it could not create a pod.
	ReasonFailedCreate = "FailedCreate"
)

// ProbeFailure returns the message of the last of a pod's Events with ReasonUnhealthy; empty if there is none. A probe of readiness does not
// explain why a container is restarted.
func ProbeFailure(events []unstructured.Unstructured, restarted bool) string {
	return lastMessage(events, "", func(message string) bool { return !restarted || !strings.HasPrefix(message, "Readiness") })
}

// CreationFailure returns the message of the last of a workload's Events with ReasonFailedCreate; empty if there is none, or if a pod was created
// since.
func CreationFailure(events, pods []unstructured.Unstructured) string {
	since := ""
	for _, pod := range pods {
		created, _, _ := unstructured.NestedString(pod.Object, "metadata", "creationTimestamp")
		since = max(since, created)
	}
	return lastMessage(events, since, func(string) bool { return true })
}

// lastMessage returns the last message of Events that matches, from a time on in UTC and RFC 3339, which sorts; empty if there is none.
func lastMessage(events []unstructured.Unstructured, last string, matches func(message string) bool) (message string) {
	for _, event := range events {
		said, _, _ := unstructured.NestedString(event.Object, "message")
		if said == "" || !matches(said) {
			continue
		}
		if at, _, _ := unstructured.NestedString(event.Object, "lastTimestamp"); at >= last {
			last, message = at, text.Head(text.OneLine(said), maxForeign)
		}
	}
	return message
}

// noLog begins what kubelet returns instead of the log of a container whose log is gone: it is no line of the log.
const noLog = "unable to retrieve container logs for "

// LastLine returns the last line of a log that is not blank, quoted.
func LastLine(log string) string {
	lines := strings.FieldsFunc(log, func(r rune) bool { return r == '\n' || r == '\r' })
	for _, line := range slices.Backward(lines) {
		if line = text.OneLine(line); line != "" && !strings.HasPrefix(line, noLog) {
			return strconv.Quote(text.Head(strings.ToValidUTF8(line, "\uFFFD"), maxForeign))
		}
	}
	return ""
}

// ClaimsOf returns the names of the volume claims that a pod uses.
func ClaimsOf(pod *unstructured.Unstructured) []string {
	volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
	var names []string
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		if name, _, _ := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// FirstUnboundClaim returns the health of the first volume claim that is not bound, blocked ones before others; Healthy if all are bound.
func FirstUnboundClaim(claims []Object) health.Result {
	unbound := health.Result{Status: health.Healthy}
	for _, claim := range claims {
		if result := claim.health(); result.Blocked {
			return result
		}
		if result := health.Of(claim.Live); unbound.Status == health.Healthy {
			unbound = result
		}
	}
	return unbound
}
