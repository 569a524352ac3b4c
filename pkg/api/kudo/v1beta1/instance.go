package v1beta1

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The plans that Tandem chooses by itself (KUDO's names).
const (
	DeployPlan  = "deploy"
	UpdatePlan  = "update"
	UpgradePlan = "upgrade"
	CleanupPlan = "cleanup"
)

// InstanceSpec is the desired state of an Instance.
type InstanceSpec struct {
	// operatorVersion refers to the OperatorVersion to run. An empty namespace means the Instance's own.
	// +optional
	OperatorVersion corev1.ObjectReference `json:"operatorVersion,omitzero"`

	// parameters set by the user, by name; the others have their defaults.
	// +optional
	// +nullable
	// +mapType=atomic
	Parameters map[string]string `json:"parameters,omitempty"`

	// planExecution runs a plan by hand.
	// +optional
	PlanExecution PlanExecution `json:"planExecution,omitzero"`

	// installNamespace is the namespace on the managed cluster that the resources go to; the Instance's own namespace if
	// empty. It is immutable, also while it is empty. Addition.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	InstallNamespace string `json:"installNamespace,omitempty"`

	// serviceAccountName is a service account in the install namespace on the managed cluster, as which the agent carries plans out: they
	// can do what it may, and no more. If empty, it does so as itself. Children have their parent's. Addition.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// PlanExecution asks for a run of a plan by hand.
type PlanExecution struct {
	// planName is the plan to run.
	// +optional
	PlanName string `json:"planName,omitempty"`

	// uid identifies the request: one that was handled is inert and may stay. A request without one (KUDO's clients) gets
	// hub.PLAN.UUID from the hub, which removes planExecution once such a request was handled.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// status is kept for KUDO's clients and not used.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`

	// cancel ends the running execution of that uid. Addition.
	// +optional
	Cancel bool `json:"cancel,omitempty"`
}

// ExecutionStatus is the state of a plan, phase, step or task (KUDO's values).
//
// +kubebuilder:validation:Enum=NEVER_RUN;PENDING;IN_PROGRESS;COMPLETE;ERROR;FATAL_ERROR;""
type ExecutionStatus string

const (
	// NeverRun means that it never ran.
	NeverRun ExecutionStatus = "NEVER_RUN"
	// Pending means that it waits for its turn.
	Pending ExecutionStatus = "PENDING"
	// InProgress means that it runs.
	InProgress ExecutionStatus = "IN_PROGRESS"
	// Complete means that it ended well.
	Complete ExecutionStatus = "COMPLETE"
	// Error means that it failed in a way that may pass; it is retried.
	Error ExecutionStatus = "ERROR"
	// FatalError means that it failed for good; it ends the plan.
	FatalError ExecutionStatus = "FATAL_ERROR"
)

// Terminal says whether nothing more happens by itself.
func (s ExecutionStatus) Terminal() bool { return s == Complete || s == FatalError }

// Running says whether an execution has started and not ended.
func (s ExecutionStatus) Running() bool { return s == Pending || s == InProgress || s == Error }

// The condition types of an Instance.
const (
	// ConditionResolved is True when everything that the Instance refers to exists and is valid. Written by the hub.
	ConditionResolved = "Resolved"
	// ConditionReady is True when the last plan is complete and everything it applied is healthy and still there. Written by
	// the agent.
	ConditionReady = "Ready"
)

// The reasons of ConditionResolved.
const (
	// ReasonResolved: the OperatorVersion and the parameters are valid.
	ReasonResolved = "Resolved"
	// ReasonOperatorVersionNotFound: the OperatorVersion does not exist.
	ReasonOperatorVersionNotFound = "OperatorVersionNotFound"
	// ReasonOperatorVersionInvalid: the OperatorVersion exists and cannot be run; its message lists every fault.
	ReasonOperatorVersionInvalid = "OperatorVersionInvalid"
	// ReasonNamespaceNotAllowed: the OperatorVersion stands in a namespace that agents may not read.
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	// ReasonParametersInvalid: parameters are unknown, missing, or of the wrong type.
	ReasonParametersInvalid = "ParametersInvalid"
	// ReasonRequestInvalid: spec.planExecution asks for a plan that the OperatorVersion does not have.
	ReasonRequestInvalid = "RequestInvalid"
	// ReasonNameCollision: another Instance would use the same names on the managed cluster.
	ReasonNameCollision = "NameCollision"
	// ReasonNameInvalid: the Instance's name does not make a DNS label.
	ReasonNameInvalid = "NameInvalid"
	// ReasonChildVersionNotFound: the OperatorVersion of a child operator, or of one further below, does not exist.
	ReasonChildVersionNotFound = "ChildVersionNotFound"
	// ReasonCircularOperators: an operator is a child of its own children; the message names the way round.
	ReasonCircularOperators = "CircularOperators"
	// ReasonChildrenInvalid: child Instances cannot have the names that they would get, or there are too many of them.
	ReasonChildrenInvalid = "ChildrenInvalid"
)

// The reasons of ConditionReady.
const (
	// ReasonHealthy: the last plan is complete and its objects are healthy.
	ReasonHealthy = "Healthy"
	// ReasonPlanPending: a plan is about to start.
	ReasonPlanPending = "PlanPending"
	// ReasonPlanInProgress: a plan runs; the message says what it waits for.
	ReasonPlanInProgress = "PlanInProgress"
	// ReasonPlanError: a task of the running plan fails and is retried.
	ReasonPlanError = "PlanError"
	// ReasonPlanFailed: the last plan ended with FATAL_ERROR.
	ReasonPlanFailed = "PlanFailed"
	// ReasonUnhealthy: an object that the Instance applied is missing or not healthy.
	ReasonUnhealthy = "Unhealthy"
	// ReasonNotMirrored: the agent cannot bring the Instance to the managed cluster; the message says why.
	ReasonNotMirrored = "NotMirrored"
	// ReasonRemoved: the Instance's resources are gone from the managed cluster, and the hub may let the object go.
	ReasonRemoved = "Removed"
	// ReasonRemoving: the Instance is being removed; the message says what is waited for.
	ReasonRemoving = "Removing"
)

// InstanceStatus is the observed state of an Instance.
type InstanceStatus struct {
	// planStatus maps each plan's name to the state of its last execution.
	// +optional
	PlanStatus map[string]PlanStatus `json:"planStatus,omitempty"`

	// conditions of the Instance.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation on the hub that the agent has acted on. Addition.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// execution is what was last started. Addition.
	// +optional
	Execution *Execution `json:"execution,omitempty"`

	// inventory lists the objects on the managed cluster that tasks have applied, or are about to apply, and nobody has deleted
	// since. It is written before they are, so that none is ever lost. Addition.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Inventory []InventoryEntry `json:"inventory,omitempty"`

	// children are the hub's acknowledgements of KudoOperator tasks. Addition.
	// +optional
	// +listType=map
	// +listMapKey=task
	Children []ChildStatus `json:"children,omitempty"`
}

// Execution is what the agent last started. A running execution is rendered from here, never from a newer spec.
type Execution struct {
	// uid of the execution.
	UID types.UID `json:"uid"`

	// plan that was started.
	Plan string `json:"plan"`

	// generation of the Instance on the hub from which it was started.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// operatorVersion that it runs: namespace, name and uid on the hub.
	// +optional
	OperatorVersion corev1.ObjectReference `json:"operatorVersion,omitzero"`

	// parameters that it runs with, as the spec gave them.
	// +optional
	// +mapType=atomic
	Parameters map[string]string `json:"parameters,omitempty"`

	// restartPending says that pods must restart and have not all been restarted yet (KEP-27): it is set when an execution
	// that restarts pods starts, and cleared when one completes.
	// +optional
	RestartPending bool `json:"restartPending,omitempty"`

	// request is the uid of the last spec.planExecution that was handled.
	// +optional
	Request types.UID `json:"request,omitempty"`
}

// InventoryEntry is one object on the managed cluster that belongs to an Instance.
type InventoryEntry struct {
	// group of the object's kind; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// kind of the object.
	Kind string `json:"kind"`

	// namespace of the object; empty if it is cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	Name string `json:"name"`

	// task that applied it last.
	// +optional
	Task string `json:"task,omitempty"`
}

// ChildState is what the hub has done about a KudoOperator task.
//
// +kubebuilder:validation:Enum=Applied;Removed;Failed
type ChildState string

const (
	// ChildApplied means that the child Instance exists on the hub as the execution wants it.
	ChildApplied ChildState = "Applied"
	// ChildRemoved means that no child Instance exists on the hub.
	ChildRemoved ChildState = "Removed"
	// ChildFailed means that the child Instance cannot be what the execution wants; the message says why.
	ChildFailed ChildState = "Failed"
)

// ChildStatus acknowledges one KudoOperator task.
type ChildStatus struct {
	// task that asked for the child.
	Task string `json:"task"`

	// execution of the parent that this answers.
	// +optional
	Execution types.UID `json:"execution,omitempty"`

	// instance is the child's name.
	// +optional
	Instance string `json:"instance,omitempty"`

	// uid of the child on the hub.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// generation of the child on the hub.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// state that the hub has brought about.
	// +optional
	State ChildState `json:"state,omitempty"`

	// message says why the state is Failed.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
}

// PlanStatus is the state of a plan's last execution.
type PlanStatus struct {
	// name of the plan.
	// +optional
	Name string `json:"name,omitempty"`

	// status of the plan.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`

	// startedTimestamp is when its turn came. Addition.
	// +optional
	// +nullable
	StartedTimestamp *metav1.Time `json:"startedTimestamp,omitempty"`

	// message says why.
	// +optional
	Message string `json:"message,omitempty"`

	// lastUpdatedTimestamp is when status or message last changed.
	// +optional
	// +nullable
	LastUpdatedTimestamp *metav1.Time `json:"lastUpdatedTimestamp,omitempty"`

	// phases of the plan.
	// +optional
	// +listType=atomic
	Phases []PhaseStatus `json:"phases,omitempty"`

	// uid of the execution.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// PhaseStatus is the state of a phase.
type PhaseStatus struct {
	// name of the phase.
	// +optional
	Name string `json:"name,omitempty"`

	// status of the phase.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`

	// startedTimestamp is when its turn came. Addition.
	// +optional
	// +nullable
	StartedTimestamp *metav1.Time `json:"startedTimestamp,omitempty"`

	// message says why.
	// +optional
	Message string `json:"message,omitempty"`

	// steps of the phase.
	// +optional
	// +listType=atomic
	Steps []StepStatus `json:"steps,omitempty"`
}

// StepStatus is the state of a step.
type StepStatus struct {
	// name of the step.
	// +optional
	Name string `json:"name,omitempty"`

	// startedTimestamp is when its turn came. Addition.
	// +optional
	// +nullable
	StartedTimestamp *metav1.Time `json:"startedTimestamp,omitempty"`

	// message says why.
	// +optional
	Message string `json:"message,omitempty"`

	// status of the step.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`

	// tasks of the step, in their order. Addition.
	// +optional
	// +listType=atomic
	Tasks []TaskStatus `json:"tasks,omitempty"`
}

// TaskStatus is the state of a task of a step.
type TaskStatus struct {
	// name of the task.
	Name string `json:"name"`

	// status of the task.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`

	// message says what the task waits for, or why it failed.
	// +optional
	Message string `json:"message,omitempty"`
}

// In the rule below, `in` stands for `==`, whose cost the API server overestimates on optional fields so far that it refuses it.

// Instance is an operator that runs, or shall run, with parameters of its own. On the hub it stands in the namespace of the
// managed cluster that it runs on; on the managed cluster its mirror stands in the install namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=instances,scope=Namespaced,shortName=inst,categories=kudo
// +kubebuilder:validation:XValidation:rule=`oldSelf.?spec.?installNamespace.orValue("") in [self.?spec.?installNamespace.orValue("")]`,message="spec.installNamespace is immutable: delete the Instance and create it anew to move it",fieldPath=".spec.installNamespace"
// +kubebuilder:printcolumn:name="Operator-Version",type=string,JSONPath=`.spec.operatorVersion.name`
// +kubebuilder:printcolumn:name="Plan",type=string,JSONPath=`.status.execution.plan`
// +kubebuilder:printcolumn:name="Resolved",type=string,JSONPath=`.status.conditions[?(@.type=="Resolved")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Instance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec InstanceSpec `json:"spec,omitzero"`
	// +optional
	Status InstanceStatus `json:"status,omitzero"`
}

// InstanceList is a list of Instances.
//
// +kubebuilder:object:root=true
type InstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Instance `json:"items"`
}

// TargetNamespace is the namespace on the managed cluster that the Instance's resources go to, and where its mirror stands.
func (i *Instance) TargetNamespace() string {
	if i.Spec.InstallNamespace != "" {
		return i.Spec.InstallNamespace
	}
	return i.Namespace
}

// Parent is the owner reference to the Instance that this one is a child of (KEP-29); nil if it is none's. A child's name begins with its
// parent's: what somebody has made an owner otherwise is no parent, and no Instance is below itself.
func (i *Instance) Parent() *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(i)
	if owner == nil || owner.Kind != "Instance" || owner.APIVersion != GroupVersion.String() || !strings.HasPrefix(i.Name, owner.Name+".") {
		return nil
	}
	return owner
}

// ForceReleased says whether the Instance is being deleted and nobody shall wait for the removal of its resources.
func (i *Instance) ForceReleased() bool {
	return i.DeletionTimestamp != nil && i.Annotations[AnnotationForceRelease] == "true"
}

// Removed says whether the agent has reported that nothing of the Instance is left on the managed cluster.
func (i *Instance) Removed() bool {
	ready := meta.FindStatusCondition(i.Status.Conditions, ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == ReasonRemoved
}

// Removing says whether a mirror is being removed: the hub has deleted its Instance, and not let go of it since. A deletion that only the
// managed cluster has seen destroys nothing.
func (i *Instance) Removing() bool {
	_, deleted := i.Annotations[AnnotationHubDeleted]
	_, orphaned := i.Annotations[AnnotationOrphaned]
	return deleted && !orphaned
}

// IsMirror tells a mirror by either of its marks: if the other one was edited away, the agent puts it back. On a hub that is a managed
// cluster of its own, Instances of the hub and mirrors stand side by side.
func IsMirror(o metav1.Object) bool {
	_, identified := o.GetAnnotations()[AnnotationHubUID]
	_, copied := o.GetAnnotations()[AnnotationHubGeneration]
	return identified || copied
}

// HubGeneration is the generation on the hub that a mirror was copied from; zero if none was.
func (i *Instance) HubGeneration() int64 {
	generation, _ := strconv.ParseInt(i.Annotations[AnnotationHubGeneration], 10, 64)
	return generation
}

// String names the object as messages do: `Deployment ns/name`.
func (e InventoryEntry) String() string {
	return e.Kind + " " + strings.TrimPrefix(e.Namespace+"/"+e.Name, "/")
}
