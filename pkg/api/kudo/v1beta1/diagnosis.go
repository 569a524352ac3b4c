package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Diagnosis is what the agent has read about the pods of an Instance, at the request of annotation kudo.dev/diagnose.
type Diagnosis struct {
	// request is the value of the annotation that it answers. A long value is shortened.
	// +kubebuilder:validation:MaxLength=64
	Request string `json:"request"`

	// time is when it was made, by the clock of the agent.
	Time metav1.Time `json:"time"`

	// message is why there is no answer, or what could not be read.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`

	// pods is the list of pods of the Instance's workloads.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Pods []DiagnosedPod `json:"pods,omitempty"`

	// events is the list of Events about the workloads and pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Events []DiagnosedEvent `json:"events,omitempty"`

	// truncated is true if pods, Events or lines were omitted.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
}

// DiagnosedPod is a pod with the last lines of its logs.
type DiagnosedPod struct {
	// namespace is the namespace of the pod on the managed cluster.
	// +kubebuilder:validation:MaxLength=256
	Namespace string `json:"namespace"`

	// name is the name of the pod.
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`

	// phase is the phase of the pod.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Phase string `json:"phase,omitempty"`

	// ready is the number of ready containers and of all, such as 1/2.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Ready string `json:"ready,omitempty"`

	// restarts is how often its containers were restarted.
	// +optional
	Restarts int64 `json:"restarts,omitempty"`

	// reason is why the pod is not healthy.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`

	// image is the image of the first container.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Image string `json:"image,omitempty"`

	// logs is the list of the last lines of its containers.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	Logs []DiagnosedLog `json:"logs,omitempty"`
}

// DiagnosedLog is the end of the log of a container.
type DiagnosedLog struct {
	// container is the name of the container.
	// +kubebuilder:validation:MaxLength=256
	Container string `json:"container"`

	// previous is true for the log of the container's previous run.
	// +optional
	Previous bool `json:"previous,omitempty"`

	// lines is the list of the last lines, the oldest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=256
	Lines []string `json:"lines,omitempty"`
}

// DiagnosedEvent is an Event about a workload or a pod.
type DiagnosedEvent struct {
	// time is when it was last seen.
	// +optional
	Time metav1.Time `json:"time,omitzero"`

	// object is the kind and name of the object.
	// +kubebuilder:validation:MaxLength=256
	Object string `json:"object"`

	// reason is the reason of the Event.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`

	// message is the message of the Event.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`

	// count is how often it was seen.
	// +optional
	Count int64 `json:"count,omitempty"`
}
