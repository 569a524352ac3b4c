package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ConditionSoaked is True once the Instance has been healthy for spec.healthyFor after its plan: Ready, without drift, without a failed plan, and without
// a restart of its containers. It then stays True until another execution changes the Instance. It is absent without spec.healthyFor. Written by the agent.
const ConditionSoaked = "Soaked"

// The reasons of ConditionSoaked.
const (
	// ReasonHealthyLongEnough means that the Instance has been healthy for spec.healthyFor.
	ReasonHealthyLongEnough = "HealthyLongEnough"
	// ReasonSoaking means that it is healthy. The message states since when, and when it will be for long enough.
	ReasonSoaking = "Soaking"
	// ReasonRestarted means that a container of the Instance has restarted: the time counts from there. The message names the container.
	ReasonRestarted = "Restarted"
	// ReasonSoakFailed means that the Instance was unhealthy for too long in total, or that its containers restart again and again. It can still recover.
	ReasonSoakFailed = "SoakFailed"
	// ReasonDrifted means, too, that no time counts because applied objects differ. ReasonUnhealthy means the same for condition Ready, ReasonPlanFailed
	// for a plan that has failed, and ReasonPlanPending that a plan has to complete first.
)

// SoakStatus records how long an Instance has been healthy after its plan. What is recorded cannot be observed: the time of the last interruption.
type SoakStatus struct {
	// execution is the uid of the execution after which the Instance has to be healthy.
	Execution types.UID `json:"execution"`

	// since is since when the Instance is healthy without an interruption. It is absent while it is not.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// completionTime is when the Instance had been healthy for long enough. It stays until another execution changes the Instance.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// reset is the last interruption; absent if there was none.
	// +optional
	Reset *SoakReset `json:"reset,omitempty"`

	// restarts counts the restarts of containers that were found since the end of the plan. Restarts that are found together count as one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Restarts int32 `json:"restarts,omitempty"`

	// firstRestart is when the first of these was found.
	// +optional
	FirstRestart *metav1.Time `json:"firstRestart,omitempty"`

	// lastRestart is the latest restart of a container that is known, by the clock of its node. It may be older than the end of the plan.
	// +optional
	LastRestart *metav1.Time `json:"lastRestart,omitempty"`

	// unhealthySeconds is how long the Instance was not Ready since the end of the plan, without the current interruption.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UnhealthySeconds int64 `json:"unhealthySeconds,omitempty"`

	// unhealthySince is since when the Instance is not Ready. It is absent while it is Ready.
	// +optional
	UnhealthySince *metav1.Time `json:"unhealthySince,omitempty"`

	// failure is why the Instance has not proved healthy. It is absent if it did not fail, and once it has recovered.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Failure string `json:"failure,omitempty"`
}

// SoakReset is an interruption of the time in which an Instance has to be healthy.
type SoakReset struct {
	// time is when it was found, by the clock of the agent.
	Time metav1.Time `json:"time"`

	// reason is one of the reasons of condition Soaked: Restarted, Drifted, Unhealthy or PlanFailed.
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// message names the object, and what has happened to it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}
