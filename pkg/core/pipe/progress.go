package pipe

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tandem-addons/tandem/pkg/core/health"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Stage is the progress of a pod.
type Stage string

const (
	// Working pods become ready without intervention.
	Working Stage = "Working"
	// Retrying pods have failed, and Kubernetes restarts their containers.
	Retrying Stage = "Retrying"
	// Ready pods have created their files, which can be read.
	Ready Stage = "Ready"
	// Lost pods have ended for a reason outside of the package: another pod may succeed.
	Lost Stage = "Lost"
	// Failed pods have failed permanently.
	Failed Stage = "Failed"
)

// Progress returns the progress of a live pod. The message names it and what is waited for or what failed.
func Progress(live *unstructured.Unstructured) (Stage, string) {
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, pod); err != nil {
		return Working, fmt.Sprintf("Pod %s/%s: its status cannot be read: %v", live.GetNamespace(), live.GetName(), err)
	}
	say := func(format string, args ...any) string {
		return fmt.Sprintf("Pod %s/%s: ", pod.Namespace, pod.Name) + fmt.Sprintf(format, args...)
	}
	failure := failureOf(pod.Status.InitContainerStatuses)
	switch {
	// If the pod has its own reason, such as Evicted, its containers were not ended by the package.
	case pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == "" && failure != "":
		return Failed, say("init %s", failure)
	case pod.Status.Phase == corev1.PodFailed:
		return Lost, say("failed: %s", tail(strings.TrimPrefix(pod.Status.Reason+": "+pod.Status.Message, ": ")))
	case pod.Status.Phase == corev1.PodSucceeded:
		return Lost, say("ended before its files were read")
	case waits(pod):
		return Ready, ""
	case failure != "":
		return Retrying, say("init %s; it is restarted", failure)
	}
	if failure = failureOf(pod.Status.ContainerStatuses); failure != "" {
		return Retrying, say("%s; its image must have sleep and head (--pipe-image of addon-agent)", failure)
	}
	return Working, health.Of(live).Message + imageHint(pod.Status.ContainerStatuses)
}

// waits reports whether the waiting container runs. It starts once the init container has succeeded.
func waits(pod *corev1.Pod) bool {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == Container {
			return status.State.Running != nil && pod.DeletionTimestamp == nil
		}
	}
	return false
}

// failureOf describes the last failure of a container; empty if none failed.
func failureOf(statuses []corev1.ContainerStatus) string {
	for _, status := range statuses {
		ended := status.State.Terminated
		if ended == nil && status.State.Running == nil {
			ended = status.LastTerminationState.Terminated
		}
		if ended == nil || ended.ExitCode == 0 {
			continue
		}
		said := ""
		if message := tail(ended.Message); message != "" {
			said = ": " + message
		}
		return fmt.Sprintf("container %s ended with exit code %d (%s)%s", status.Name, ended.ExitCode, ended.Reason, said)
	}
	return ""
}

// imageHint says which flag sets the image that the agent adds to every pod: the package's author does not know it.
func imageHint(statuses []corev1.ContainerStatus) string {
	for _, status := range statuses {
		if waiting := status.State.Waiting; waiting != nil && strings.Contains(waiting.Reason, "Image") {
			return " (--pipe-image of addon-agent)"
		}
	}
	return ""
}

// tail shortens a message of a container or a kubelet to one line. It keeps the end, which is the most relevant part.
func tail(message string) string {
	const maxRunes = 512
	return text.Tail(text.OneLine(message), maxRunes)
}
