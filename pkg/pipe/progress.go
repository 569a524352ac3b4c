package pipe

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tandem-addons/tandem/pkg/health"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Stage is how far a pod is.
type Stage string

const (
	// Working pods get ready by themselves.
	Working Stage = "Working"
	// Retrying pods failed, and Kubernetes starts their containers again.
	Retrying Stage = "Retrying"
	// Ready pods have made their files, which can be read.
	Ready Stage = "Ready"
	// Lost pods have ended for a reason that is not the package's: another one may get further.
	Lost Stage = "Lost"
	// Failed pods have ended for good.
	Failed Stage = "Failed"
)

// Progress says how far a pod is, as it stands on the cluster. The message names it and says what is waited for or what failed.
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
	// With a reason of the pod's own, such as Evicted, something else than the package has ended its containers.
	case pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == "" && failure != "":
		return Failed, say("init %s", failure)
	case pod.Status.Phase == corev1.PodFailed:
		return Lost, say("failed: %s", bounded(strings.TrimPrefix(pod.Status.Reason+": "+pod.Status.Message, ": ")))
	case pod.Status.Phase == corev1.PodSucceeded:
		return Lost, say("ended before its files were read")
	case waits(pod):
		return Ready, ""
	case failure != "":
		return Retrying, say("init %s; it is started again", failure)
	}
	if failure = failureOf(pod.Status.ContainerStatuses); failure != "" {
		return Retrying, say("%s; its image must have sleep and head (--pipe-image of addon-agent)", failure)
	}
	return Working, health.Of(live).Message + unpulled(pod.Status.ContainerStatuses)
}

// waits reports whether the container that waits beside the files runs. It starts once the init container has succeeded.
func waits(pod *corev1.Pod) bool {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == Container {
			return status.State.Running != nil && pod.DeletionTimestamp == nil
		}
	}
	return false
}

// failureOf tells how a container that failed ended last, empty if none did.
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
		if message := bounded(ended.Message); message != "" {
			said = ": " + message
		}
		return fmt.Sprintf("container %s ended with exit code %d (%s)%s", status.Name, ended.ExitCode, ended.Reason, said)
	}
	return ""
}

// unpulled says where the image comes from that the agent adds to every pod: the package's author knows nothing of it.
func unpulled(statuses []corev1.ContainerStatus) string {
	for _, status := range statuses {
		if waiting := status.State.Waiting; waiting != nil && strings.Contains(waiting.Reason, "Image") {
			return fmt.Sprintf(" for %s (--pipe-image of addon-agent)", status.Image)
		}
	}
	return ""
}

// bounded makes what a container or a kubelet said a line of bounded length. Its end is what matters.
func bounded(message string) string {
	const most = 512
	return text.Tail(text.OneLine(message), most)
}
