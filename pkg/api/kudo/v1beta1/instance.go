package v1beta1

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The plans that run automatically (KUDO's names).
const (
	DeployPlan  = "deploy"
	UpdatePlan  = "update"
	UpgradePlan = "upgrade"
	CleanupPlan = "cleanup"
)

// InstanceSpec is the desired state of an Instance.
type InstanceSpec struct {
	// operatorVersion is a reference to the OperatorVersion to run. Its namespace defaults to the Instance's namespace.
	// +optional
	OperatorVersion corev1.ObjectReference `json:"operatorVersion,omitzero"`

	// parameters is a map of parameter names to values. Parameters that are not set have their default values.
	// +optional
	// +nullable
	// +mapType=atomic
	Parameters map[string]string `json:"parameters,omitempty"`

	// parametersFrom gives sensitive parameters their values by reference. Not part of KUDO's API.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	ParametersFrom []ParameterFrom `json:"parametersFrom,omitempty"`

	// planExecution requests a manual run of a plan.
	// +optional
	PlanExecution PlanExecution `json:"planExecution,omitzero"`

	// installNamespace is the namespace on the managed cluster to install the resources into. It is immutable, even if it is empty.
	// Not part of KUDO's API.
	// Defaults to the Instance's namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	InstallNamespace string `json:"installNamespace,omitempty"`

	// serviceAccountName is the name of a service account in the install namespace on the managed cluster. The agent impersonates it to
	// run plans, so that plans have only its permissions. If empty, plans have the permissions of the agent. Children use the service
	// account of their parent. Not part of KUDO's API.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// imageRegistries lists registries whose images are pulled from mirrors: the agent replaces them in all objects that it applies. If several
	// sources match an image, the last one applies. Children use the registries of their parent. Not part of KUDO's API.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ImageRegistries []ImageRegistry `json:"imageRegistries,omitempty"`

	// cluster describes the managed cluster to templates, as .Cluster. addon-manager sets it if templates of the OperatorVersion use it, and reverts
	// other changes. A change starts no plan: the next one takes it. Not part of KUDO's API.
	// +optional
	Cluster *ClusterFacts `json:"cluster,omitempty"`

	// suspend specifies that no plan starts. A running plan finishes the steps that it has started, starts no others, and its timeouts stop. Health is
	// judged, plans can be cancelled, and the Instance can be removed. Users set it, addon-manager never does. Not part of KUDO's API.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// suspendedBy names the objects on the hub that suspend the Instance like suspend does, with their reasons: the ConfigMap tandem-suspend of addon-manager,
	// the ManagedCluster, the ClusterManagementAddOn. addon-manager sets it, also on children, and reverts other changes. Not part of KUDO's API.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	SuspendedBy string `json:"suspendedBy,omitempty"`

	// changedBy is who has changed the OperatorVersion, the parameters or the image registries last: for an add-on the writer of the object that addon-manager
	// takes them from, for a child its parent, else the writer of the Instance. It is for the history, and affects no plan. addon-manager sets it together with a
	// change, and corrects one that does not match it. Not part of KUDO's API.
	// +optional
	ChangedBy *ChangeAuthor `json:"changedBy,omitempty"`

	// requestedBy is who has requested the plan of planExecution. It is for the history, and affects no plan. addon-manager sets it while the request is not
	// handled. Not part of KUDO's API.
	// +optional
	RequestedBy *ChangeAuthor `json:"requestedBy,omitempty"`

	// windows are the maintenance windows in which plans may start, in YAML: see docs/operations.md. A plan that has started continues, and the Instance can
	// always be removed. addon-manager sets it on the Instance of an add-on, from the annotation of its AddOnDeploymentConfig; users set it on others. It does not
	// apply to children. Not part of KUDO's API.
	// +optional
	// +kubebuilder:validation:MaxLength=17000
	Windows string `json:"windows,omitempty"`

	// clusterWindows are the maintenance windows of the managed cluster: plans start in both. addon-manager sets it from the annotation of the
	// ManagedCluster, and reverts other changes. Not part of KUDO's API.
	// +optional
	// +kubebuilder:validation:MaxLength=17000
	ClusterWindows string `json:"clusterWindows,omitempty"`

	// ignoreWindowsUntil is the time until which plans start outside of windows and clusterWindows, at most a day ahead. The windows that the
	// administrator of the managed cluster sets there apply in any case. Users set it, addon-manager never does. Not part of KUDO's API.
	// +optional
	IgnoreWindowsUntil *metav1.Time `json:"ignoreWindowsUntil,omitempty"`

	// onFailure specifies what the agent does if the plan that applies another version fails: Stop, the default, leaves everything as the plan has left it,
	// and Return applies the former version again, with its parameters, if the package of the failed version is returnable. It does not apply to children,
	// which follow the plans of their parent. addon-manager sets it on the Instance of an add-on, from an annotation; users set it on others. Not part of
	// KUDO's API.
	// +optional
	OnFailure FailurePolicy `json:"onFailure,omitempty"`

	// drift specifies what the agent does about changes that other writers make to applied objects. Users set it, addon-manager never does. Not part
	// of KUDO's API.
	// +optional
	Drift *DriftPolicy `json:"drift,omitempty"`

	// healthyFor is how long the Instance has to be healthy after a plan before condition Soaked is True, at most a day: Ready, without drift, without a
	// failed plan, and without a restart of its containers. A rollout counts the cluster as done only then. addon-manager sets it on the Instance of an
	// add-on, from annotation kudo.dev/healthy-for; users set it on others. A change starts no plan. Not part of KUDO's API.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(ms|s|m|h)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('24h')",message="must be at most 24h"
	HealthyFor *metav1.Duration `json:"healthyFor,omitempty"`
}

// FailurePolicy is what the agent does if the plan that applies another version fails.
//
// +kubebuilder:validation:Enum=Stop;Return;""
type FailurePolicy string

const (
	// FailureStop leaves everything as the failed plan has left it. It is the default.
	FailureStop FailurePolicy = "Stop"
	// FailureReturn applies the former version again, with its parameters.
	FailureReturn FailurePolicy = "Return"
)

// ClusterFacts are what the hub knows about a managed cluster. Users of the hub and the cluster itself write them.
type ClusterFacts struct {
	// name is the name of the ManagedCluster.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// labels are the labels of the ManagedCluster, except those of OCM's features, feature.open-cluster-management.io/.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`

	// claims are the values of the cluster's ClusterClaims, by name.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Claims map[string]string `json:"claims,omitempty"`
}

// ImageRegistry replaces the beginning of the names of images, as registries of OCM's AddOnDeploymentConfigs do.
type ImageRegistry struct {
	// source is the beginning of the names to replace: a registry with or without a path, or a whole image. If empty, everything before the
	// last slash of each image of a container is replaced.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^([-._:@a-zA-Z0-9\[\]]+(/[-._:@a-zA-Z0-9\[\]]+)*/?)?$`
	Source string `json:"source,omitempty"`

	// mirror is what replaces source.
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[-._:@a-zA-Z0-9\[\]]+(/[-._:@a-zA-Z0-9\[\]]+)*/?$`
	Mirror string `json:"mirror"`
}

// ParameterFrom gives a sensitive parameter its value by reference.
type ParameterFrom struct {
	// name is the name of the parameter.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// secretKeyRef refers to the value: a key of a Secret in the install namespace on the managed cluster.
	SecretKeyRef SecretKeyRef `json:"secretKeyRef"`
}

// SecretKeyRef refers to a key of a Secret in the install namespace on the managed cluster.
type SecretKeyRef struct {
	// name is the name of the Secret.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// key is the key of the value.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// StartedParameterFrom is a ParameterFrom as an execution uses it. It identifies the value and never contains it.
type StartedParameterFrom struct {
	ParameterFrom `json:",inline"`

	// digest is a keyed digest (HMAC) of the value. Its key never leaves the managed cluster.
	// +optional
	Digest string `json:"digest,omitempty"`

	// digestKey identifies the key of the digest. Digests with different keys are not compared.
	// +optional
	DigestKey string `json:"digestKey,omitempty"`
}

// PlanExecution requests a manual run of a plan.
type PlanExecution struct {
	// planName is the name of the plan to run.
	// +optional
	PlanName string `json:"planName,omitempty"`

	// uid identifies the request. A handled request has no further effect and can stay in the spec. If a request has no uid (KUDO's
	// clients), the hub sets it to hub.PLAN.UUID, and removes planExecution when the request was handled.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// status is not used. It exists for KUDO's clients.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`

	// cancel specifies that the running execution with this uid is cancelled. Not part of KUDO's API.
	// +optional
	Cancel bool `json:"cancel,omitempty"`

	// resume is the uid of the last execution, which has failed or was cancelled: its plan, planName, runs again without the steps that have completed,
	// if they would render the same and their objects are healthy and unchanged. If it is empty, the whole plan runs. Not part of KUDO's API.
	// +optional
	Resume types.UID `json:"resume,omitempty"`
}

// ExecutionStatus is the state of a plan, phase, step or task (KUDO's values).
//
// +kubebuilder:validation:Enum=NEVER_RUN;PENDING;IN_PROGRESS;COMPLETE;ERROR;FATAL_ERROR;""
type ExecutionStatus string

const (
	// NeverRun means that it has never run.
	NeverRun ExecutionStatus = "NEVER_RUN"
	// Pending means that it has not started yet.
	Pending ExecutionStatus = "PENDING"
	// InProgress means that it is running.
	InProgress ExecutionStatus = "IN_PROGRESS"
	// Complete means that it has succeeded.
	Complete ExecutionStatus = "COMPLETE"
	// Error means that it failed with an error that may be transient. It is retried.
	Error ExecutionStatus = "ERROR"
	// FatalError means that it failed permanently. The plan ends.
	FatalError ExecutionStatus = "FATAL_ERROR"
)

// IsTerminal reports whether the status is final: Complete or FatalError.
func (s ExecutionStatus) IsTerminal() bool { return s == Complete || s == FatalError }

// IsRunning reports whether an execution has started and not ended.
func (s ExecutionStatus) IsRunning() bool { return s == Pending || s == InProgress || s == Error }

// The condition types of an Instance.
const (
	// ConditionResolved is True if everything that the Instance refers to exists and is valid. Set by the hub.
	ConditionResolved = "Resolved"
	// ConditionReady is True if no plan is owed and all applied objects exist and are healthy. Set by the agent.
	ConditionReady = "Ready"
	// ConditionStalled is True if a plan has failed and does not start again by itself: the Instance needs another spec. It is absent otherwise, as
	// kstatus expects. Set by the agent.
	ConditionStalled = "Stalled"
	// ConditionAvailable is True (ReasonUpdating) while a plan updates the Instance, or one of its children, or waits to do so, and its workloads
	// stay available, and False while one of them is not, or if the plan takes too long. At other times it is absent: the Instance is available if it
	// is Ready. Written by the agent, on the managed cluster only.
	ConditionAvailable = "Available"
	// ConditionLastRequestSucceeded is True if the last manually requested plan (spec.planExecution) is complete, False if it failed, and
	// Unknown while it runs. It is False, too, with ReasonRequestInvalid, while spec.planExecution names an execution that cannot be resumed. Written by
	// the agent.
	ConditionLastRequestSucceeded = "LastRequestSucceeded"
	// ConditionWaiting is True while plans wait for something that a user decides, which is no failure: Ready stays as the last execution left it. At
	// other times it is absent. Written by the agent.
	ConditionWaiting = "Waiting"
	// ConditionDrifted is True if applied objects are gone, or another writer has changed fields of them, and False if a comparison has found no such
	// difference. It is absent before the first comparison, and if spec.drift.mode is Off. Written by the agent.
	ConditionDrifted = "Drifted"
	// ConditionSigned is False on an object that claims to be a mirror and lacks the agent's signature. The agent ignores it. Written by the
	// agent, on the managed cluster only; no other mirror has it.
	ConditionSigned = "Signed"
)

// ReasonNotSigned is the reason of ConditionSigned.
const ReasonNotSigned = "NotSigned"

// The reasons of ConditionResolved.
const (
	// ReasonResolved means that the OperatorVersion and the parameters are valid.
	ReasonResolved = "Resolved"
	// ReasonManagedClusterNotFound means that the namespace does not belong to a managed cluster.
	ReasonManagedClusterNotFound = "ManagedClusterNotFound"
	// ReasonOperatorVersionNotFound means that the OperatorVersion does not exist, or that it was replaced since the parent of a child
	// Instance has chosen it.
	ReasonOperatorVersionNotFound = "OperatorVersionNotFound"
	// ReasonOperatorVersionInvalid means that the OperatorVersion exists but cannot be run. The message lists every problem.
	ReasonOperatorVersionInvalid = "OperatorVersionInvalid"
	// ReasonOperatorVersionNotSigned means that the hub requires signatures of packages (--require-signed-packages), and that the OperatorVersion, or that
	// of a child operator, has none by one of its keys that covers its name and content.
	ReasonOperatorVersionNotSigned = "OperatorVersionNotSigned"
	// ReasonContentIncomplete means that OperatorContents of the OperatorVersion are missing or altered. The message names them, and the file of
	// the package that they store.
	ReasonContentIncomplete = "ContentIncomplete"
	// ReasonPlanMissing means that the OperatorVersion does not have the plan that has to run, such as deploy for a first installation.
	ReasonPlanMissing = "PlanMissing"
	// ReasonNamespaceNotAllowed means that the OperatorVersion is in a namespace that agents may not read, or that the install namespace is
	// reserved. The message names the namespace.
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	// ReasonParametersInvalid means that parameters are unknown, missing, or of the wrong type.
	ReasonParametersInvalid = "ParametersInvalid"
	// ReasonRequestInvalid means that spec.planExecution requests a plan that the OperatorVersion does not have. In ConditionLastRequestSucceeded, it
	// means that the execution that spec.planExecution.resume names cannot be resumed.
	ReasonRequestInvalid = "RequestInvalid"
	// ReasonClusterFactsInvalid means that the OperatorVersion uses facts of the cluster, and that its ManagedCluster has too many labels and claims.
	ReasonClusterFactsInvalid = "ClusterFactsInvalid"
	// ReasonFieldNotStored means that the CustomResourceDefinition of Instances on the hub lacks a field that the OperatorVersion needs.
	ReasonFieldNotStored = "FieldNotStored"
	// ReasonNameCollision means that another Instance would use the same names on the managed cluster.
	ReasonNameCollision = "NameCollision"
	// ReasonNameInvalid means that the Instance's name cannot be converted to a DNS label.
	ReasonNameInvalid = "NameInvalid"
	// ReasonChildVersionNotFound means that the OperatorVersion of a direct or indirect child operator does not exist.
	ReasonChildVersionNotFound = "ChildVersionNotFound"
	// ReasonCircularOperators means that an operator is a child of its own children. The message names the cycle.
	ReasonCircularOperators = "CircularOperators"
	// ReasonChildrenInvalid means that child Instances would have invalid names, or that there are too many of them.
	ReasonChildrenInvalid = "ChildrenInvalid"
)

// ReasonPlanComplete is a reason of ConditionLastRequestSucceeded, beside ReasonPlanInProgress and ReasonPlanFailed: the plan is complete.
const ReasonPlanComplete = "PlanComplete"

// The reasons of ConditionReady.
const (
	// ReasonHealthy means that all plans are complete and all applied objects are healthy.
	ReasonHealthy = "Healthy"
	// ReasonPlanPending means that a plan is about to start.
	ReasonPlanPending = "PlanPending"
	// ReasonPlanInProgress means that a plan is running. The message names what it is waiting for.
	ReasonPlanInProgress = "PlanInProgress"
	// ReasonPlanError means that a task of the running plan fails and is retried.
	ReasonPlanError = "PlanError"
	// ReasonPlanFailed means that a plan failed or was cancelled that is still owed. The message states whether it will be retried.
	ReasonPlanFailed = "PlanFailed"
	// ReasonReturned means that a version has failed, and that the former one was applied again (spec.onFailure). In ConditionAvailable, it means that this
	// one is available.
	ReasonReturned = "Returned"
	// ReasonSecretNotFound means that a plan waits for the value of a sensitive parameter: a Secret or its key is missing, or the plan may not
	// get it. The message names the Secret.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonKubernetesVersionUnsupported means that a plan waits until the managed cluster has a Kubernetes version that the package and its charts
	// support. The message names both versions.
	ReasonKubernetesVersionUnsupported = "KubernetesVersionUnsupported"
	// ReasonNameCollision means, too, that a plan waits because the release name of a Helm task is in use in the install namespace.
	// ReasonContentIncomplete means, too, that content of the OperatorVersion is lost on the managed cluster: plans wait for it.

	// ReasonUnhealthy means that an object applied by the Instance is missing or not healthy.
	ReasonUnhealthy = "Unhealthy"
	// ReasonNotMirrored means that the agent cannot create the Instance's mirror on the managed cluster. The message gives the cause.
	ReasonNotMirrored = "NotMirrored"
	// ReasonRemoved means that the Instance's resources are removed from the managed cluster, and the hub can remove its finalizer.
	ReasonRemoved = "Removed"
	// ReasonRemoving means that the Instance is being removed. The message names what the removal is waiting for.
	ReasonRemoving = "Removing"
)

// ReasonSuspended is the reason of ConditionWaiting if spec.suspend is true or spec.suspendedBy is set. The message names the plan or the step that does not
// start, and the objects of spec.suspendedBy.
const ReasonSuspended = "Suspended"

// ReasonWindow is the reason of ConditionWaiting if a plan does not start because a maintenance window is closed. The message names whose window it is, and
// when the plan can start.
const ReasonWindow = "Window"

// The reasons of ConditionDrifted.
const (
	// ReasonDrifted means that objects differ from what was applied. The message names them, the fields, and the field managers that own these now.
	ReasonDrifted = "Drifted"
	// ReasonInSync means that all objects are as they were applied, in the fields that Tandem owns.
	ReasonInSync = "InSync"
	// ReasonComparisonFailed means that it is not known, because an object could not be compared. The message is the error of the API server.
	ReasonComparisonFailed = "ComparisonFailed"
)

// ReasonUpdating is the reason of ConditionAvailable if it is True: a plan updates the Instance, or one of its children. If it is False, the
// reason is ReasonUnhealthy or, if the plan takes too long, ReasonPlanInProgress.
const ReasonUpdating = "Updating"

// InstanceStatus is the observed state of an Instance.
type InstanceStatus struct {
	// planStatus is a map of plan names to the state of their last execution.
	// +optional
	PlanStatus map[string]PlanStatus `json:"planStatus,omitempty"`

	// conditions is the list of conditions of the Instance, such as Resolved and Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation on the hub that the agent observed. Not part of KUDO's API.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// execution is the execution that was last started. Not part of KUDO's API.
	// +optional
	Execution *Execution `json:"execution,omitempty"`

	// whole is the OperatorVersion whose complete plan (deploy, upgrade or update) completed last. Before that it is absent, and plan
	// deploy still has to complete. Not part of KUDO's API.
	// +optional
	Whole *WholeVersion `json:"whole,omitempty"`

	// former is what was completely applied before a plan for another version started. It is dropped once that plan is complete. Not part of KUDO's API.
	// +optional
	Former *FormerVersion `json:"former,omitempty"`

	// returned records that a version has failed, and that the former one was applied again, or is being applied. Until the version, a parameter, a
	// reference to a Secret or an image registry in the spec changes, the failed version does not start again. Not part of KUDO's API.
	// +optional
	Returned *Return `json:"returned,omitempty"`

	// handledRequests lists the uids of the last manual plan requests (spec.planExecution) that were started, oldest first. A uid in the
	// list starts nothing again. Not part of KUDO's API.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	HandledRequests []types.UID `json:"handledRequests,omitempty"`

	// inventory is the list of objects on the managed cluster that tasks have applied, or are about to apply, and that were not deleted
	// since. It is written before the objects, so that none is ever untracked. Not part of KUDO's API.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Inventory []InventoryEntry `json:"inventory,omitempty"`

	// tasks lists what later executions need to know of Helm tasks. Not part of KUDO's API.
	// +optional
	// +listType=map
	// +listMapKey=task
	// +kubebuilder:validation:MaxItems=256
	Tasks []TaskRecord `json:"tasks,omitempty"`

	// history lists the last executions, oldest first. Not part of KUDO's API.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	History []HistoryEntry `json:"history,omitempty"`

	// diagnosis is the answer to the last request of annotation kudo.dev/diagnose. Its content is dropped one hour after it was made. Not part of
	// KUDO's API.
	// +optional
	Diagnosis *Diagnosis `json:"diagnosis,omitempty"`

	// drift lists the objects that condition Drifted is about, with their fields. Not part of KUDO's API.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Drift []DriftedObject `json:"drift,omitempty"`

	// soak records how long the Instance has been healthy since its plan: see spec.healthyFor. Not part of KUDO's API.
	// +optional
	Soak *SoakStatus `json:"soak,omitempty"`

	// children is the list of the hub's acknowledgements of KudoOperator tasks. Not part of KUDO's API.
	// +optional
	// +listType=map
	// +listMapKey=task
	Children []ChildStatus `json:"children,omitempty"`
}

// Execution is the execution that the agent last started. While it runs, its objects are rendered from these fields, never from a
// newer spec.
type Execution struct {
	// uid is the uid of the execution.
	UID types.UID `json:"uid"`

	// plan is the name of the plan.
	Plan string `json:"plan"`

	// generation is the generation of the Instance on the hub from which the execution was started.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// operatorVersion is the OperatorVersion of the execution: namespace, name and uid on the hub.
	// +optional
	OperatorVersion corev1.ObjectReference `json:"operatorVersion,omitzero"`

	// dependencyVersion is the version with which other add-ons compare their constraints: dependencyVersion of the OperatorVersion, else appVersion,
	// else version.
	// +optional
	DependencyVersion string `json:"dependencyVersion,omitempty"`

	// dependencies are constraints on the versions of other add-ons, as in the OperatorVersion.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Dependencies []DependencyConstraint `json:"dependencies,omitempty"`

	// parameters is a map of parameter names to values, as in the spec from which the execution was started.
	// +optional
	// +mapType=atomic
	Parameters map[string]string `json:"parameters,omitempty"`

	// parametersFrom lists the references of sensitive parameters, as in the spec from which the execution was started, with digests of the
	// values that the execution uses.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	ParametersFrom []StartedParameterFrom `json:"parametersFrom,omitempty"`

	// imageRegistries lists the registries whose images are pulled from mirrors, as in the spec from which the execution was started.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ImageRegistries []ImageRegistry `json:"imageRegistries,omitempty"`

	// cluster describes the managed cluster to templates, as in the spec when a plan that takes changes of it was last started.
	// +optional
	Cluster *ClusterFacts `json:"cluster,omitempty"`

	// kubernetesVersion is the version of the managed cluster, for templates that use .Capabilities.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// owed lists the plans that still have to complete, in the order in which they start. Only a plan that completes is removed.
	// +optional
	// +listType=map
	// +listMapKey=plan
	// +kubebuilder:validation:MaxItems=256
	Owed []OwedPlan `json:"owed,omitempty"`

	// restartPending is set in statuses of earlier releases if the execution still has to restart pods. It is replaced by restart of the
	// inventory.
	// +optional
	RestartPending bool `json:"restartPending,omitempty"`

	// request is the uid of the last manual plan request (spec.planExecution) that was started. It is equal to uid if that request started
	// this execution.
	// +optional
	Request types.UID `json:"request,omitempty"`

	// resume is the uid of the execution that this one resumes.
	// +optional
	Resume types.UID `json:"resume,omitempty"`

	// returns is true if the Instance was to return to its former version if the execution fails, when it started.
	// +optional
	Returns bool `json:"returns,omitempty"`

	// return is true if the execution applies the former version because another one has failed.
	// +optional
	Return bool `json:"return,omitempty"`

	// available is true if the Instance was available when the execution started: it then stays available as long as the workloads marked as
	// available in the inventory are.
	// +optional
	Available bool `json:"available,omitempty"`
}

// OwedPlan is a plan that still has to complete for the current OperatorVersion and parameters.
type OwedPlan struct {
	// plan is the name of the plan.
	Plan string `json:"plan"`

	// whole is true if the plan applies the complete OperatorVersion with all parameters: while it is owed, every change of the spec starts
	// it again.
	// +optional
	Whole bool `json:"whole,omitempty"`

	// outcome of the last execution of the plan for the current spec, if it ended without completing. The plan does not start again before
	// the spec changes, the plan is requested manually, or retryTime passes.
	// +optional
	Outcome OwedOutcome `json:"outcome,omitempty"`

	// retryTime is when the plan starts again by itself. It is set if the last execution ended for a reason that may pass, such as a timeout.
	// +optional
	RetryTime *metav1.Time `json:"retryTime,omitempty"`

	// retries is how often the plan has started again by itself for the current spec.
	// +optional
	Retries int32 `json:"retries,omitempty"`
}

// OwedOutcome is how an execution ended without completing.
//
// +kubebuilder:validation:Enum=Failed;Cancelled
type OwedOutcome string

const (
	// OwedFailed is the outcome of an execution that ended with FATAL_ERROR.
	OwedFailed OwedOutcome = "Failed"
	// OwedCancelled is the outcome of an execution that was cancelled.
	OwedCancelled OwedOutcome = "Cancelled"
)

// FormerVersion is what was completely applied before a plan for another version started.
type FormerVersion struct {
	// operatorVersion is its namespace, name and uid on the hub.
	OperatorVersion corev1.ObjectReference `json:"operatorVersion"`

	// version of the operator, as in the OperatorVersion.
	// +optional
	Version string `json:"version,omitempty"`

	// parameters is a map of parameter names to values, as in the execution that applied them.
	// +optional
	// +mapType=atomic
	Parameters map[string]string `json:"parameters,omitempty"`

	// parametersFrom lists the references of sensitive parameters, with digests of the values.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	ParametersFrom []StartedParameterFrom `json:"parametersFrom,omitempty"`

	// imageRegistries lists the registries whose images are pulled from mirrors.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ImageRegistries []ImageRegistry `json:"imageRegistries,omitempty"`

	// cluster describes the managed cluster to templates.
	// +optional
	Cluster *ClusterFacts `json:"cluster,omitempty"`

	// kubernetesVersion is the version of the managed cluster, for templates that use .Capabilities.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
}

// Return records that a version has failed, and that the former one is applied again.
type Return struct {
	// operatorVersion is the OperatorVersion that has failed: namespace, name and uid on the hub.
	OperatorVersion corev1.ObjectReference `json:"operatorVersion"`

	// from is the version that has failed, and to the former one, as in their OperatorVersions.
	// +optional
	From string `json:"from,omitempty"`
	// +optional
	To string `json:"to,omitempty"`

	// plan and execution identify the execution that has failed.
	Plan      string    `json:"plan"`
	Execution types.UID `json:"execution"`

	// cause is why it has failed.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Cause string `json:"cause,omitempty"`

	// content is a digest of the content of the version that has failed, and wanted one of the parameters, references and image registries in the spec.
	// +kubebuilder:validation:MaxLength=64
	Content string `json:"content"`
	// +kubebuilder:validation:MaxLength=64
	Wanted string `json:"wanted"`

	// time is when the former version started to be applied again.
	Time metav1.Time `json:"time"`
}

// WholeVersion is an OperatorVersion that was applied completely.
type WholeVersion struct {
	// operatorVersion is its namespace, name and uid on the hub.
	OperatorVersion corev1.ObjectReference `json:"operatorVersion"`

	// version of the operator, as in the OperatorVersion.
	// +optional
	Version string `json:"version,omitempty"`

	// appVersion is the version of the application, as in the OperatorVersion.
	// +optional
	AppVersion string `json:"appVersion,omitempty"`

	// dependencyVersion is the version with which other add-ons compare their constraints, as in the OperatorVersion.
	// +optional
	DependencyVersion string `json:"dependencyVersion,omitempty"`

	// dependencies are constraints on the versions of other add-ons, as in the OperatorVersion.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Dependencies []DependencyConstraint `json:"dependencies,omitempty"`
}

// InventoryEntry identifies an object on the managed cluster that belongs to an Instance.
type InventoryEntry struct {
	// group is the API group of the object. It is empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// kind is the kind of the object.
	Kind string `json:"kind"`

	// namespace is the namespace of the object. It is empty for cluster-scoped objects.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name is the name of the object.
	Name string `json:"name"`

	// task is the name of the task that last applied the object.
	// +optional
	Task string `json:"task,omitempty"`

	// restart is the uid of the execution that last required a restart of the object's pods (KEP-27). The pod template has it as annotation
	// kudo.dev/last-plan-execution-uid once it is applied.
	// +optional
	Restart types.UID `json:"restart,omitempty"`

	// manual is true if only plans that were requested manually have applied the object: its health does not influence the Instance.
	// +optional
	Manual bool `json:"manual,omitempty"`

	// pending is true until the object is applied for the first time: an execution lists all of its objects when it starts.
	// +optional
	Pending bool `json:"pending,omitempty"`

	// surplus is true if the task that last applied the object no longer renders it: it is deleted once no plan is owed.
	// +optional
	Surplus bool `json:"surplus,omitempty"`

	// available is true for a workload that was available when the last execution started, and that its plan does not delete.
	// +optional
	Available bool `json:"available,omitempty"`

	// keep is true for an object that stays when the Instance is removed, and when a version no longer renders it: the package requested that
	// when the object was last applied.
	// +optional
	Keep bool `json:"keep,omitempty"`

	// hook is true for a hook of a chart: its health does not influence the Instance, and no plan deletes it as surplus.
	// +optional
	Hook bool `json:"hook,omitempty"`

	// fields is a digest of the names of the fields that the agent owned after it applied the object: as long as it is the same, no other writer has
	// changed one.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Fields string `json:"fields,omitempty"`
}

// TaskRecord is what later executions need to know of a Helm task.
type TaskRecord struct {
	// task is the name of the task.
	Task string `json:"task"`

	// execution is the uid of the execution that last rendered the chart.
	// +optional
	Execution types.UID `json:"execution,omitempty"`

	// upgrade is true if the task had completed before that execution.
	// +optional
	Upgrade bool `json:"upgrade,omitempty"`

	// release is the name of the release, as templates read it. It cannot change while the task has objects.
	// +optional
	Release string `json:"release,omitempty"`

	// revision is the number of executions that have rendered the chart.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// installed is true once the task has completed, until its objects are removed.
	// +optional
	Installed bool `json:"installed,omitempty"`

	// digest is the SHA-256 of what the chart rendered, as sha256:HEX. The agent keeps that on the managed cluster.
	// +optional
	Digest string `json:"digest,omitempty"`

	// applied is true once the execution has applied all manifests.
	// +optional
	Applied bool `json:"applied,omitempty"`

	// hooksOf is the uid of the execution that ran the listed hooks: the one in execution, or a later one that removes the objects.
	// +optional
	HooksOf types.UID `json:"hooksOf,omitempty"`

	// hooks lists the hooks that were started.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Hooks []HookRecord `json:"hooks,omitempty"`
}

// HookState is the state of a hook of a chart.
//
// +kubebuilder:validation:Enum=Running;Succeeded;Failed
type HookState string

const (
	// HookRunning means that the hook's object is applied.
	HookRunning HookState = "Running"
	// HookSucceeded means that the hook has succeeded. It does not run again in the same execution.
	HookSucceeded HookState = "Succeeded"
	// HookFailed means that the hook has failed.
	HookFailed HookState = "Failed"
)

// HookRecord is the state of a hook in an execution.
type HookRecord struct {
	// event is what the hook runs at, such as pre-install.
	Event string `json:"event"`

	// kind is the kind of the hook's object.
	Kind string `json:"kind"`

	// namespace is the namespace of the hook's object. It is empty for cluster-scoped objects.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name is the name of the hook's object.
	Name string `json:"name"`

	// state is Running, Succeeded or Failed.
	State HookState `json:"state"`

	// message is why the hook has failed.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
}

// ChildState is the result of a KudoOperator task on the hub.
//
// +kubebuilder:validation:Enum=Applied;Removed;Failed
type ChildState string

const (
	// ChildApplied means that the child Instance exists on the hub with the spec that the execution requires.
	ChildApplied ChildState = "Applied"
	// ChildRemoved means that no child Instance exists on the hub.
	ChildRemoved ChildState = "Removed"
	// ChildFailed means that the hub cannot create, update or delete the child Instance as required. The message gives the cause.
	ChildFailed ChildState = "Failed"
)

// ChildStatus acknowledges one KudoOperator task.
type ChildStatus struct {
	// task is the name of the task.
	Task string `json:"task"`

	// execution is the uid of the acknowledged execution of the parent.
	// +optional
	Execution types.UID `json:"execution,omitempty"`

	// instance is the name of the child Instance.
	// +optional
	Instance string `json:"instance,omitempty"`

	// uid is the uid of the child Instance on the hub.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// generation is the generation of the child Instance on the hub.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// state is the result on the hub: Applied, Removed or Failed.
	// +optional
	State ChildState `json:"state,omitempty"`

	// message is the cause of state Failed.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`

	// former lists the names of child Instances that the task created under another name, and that are not removed yet.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Former []string `json:"former,omitempty"`
}

// PlanStatus is the state of a plan's last execution.
type PlanStatus struct {
	// name is the name of the plan.
	// +optional
	Name string `json:"name,omitempty"`

	// status is the status of the plan.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`

	// startedTimestamp is the time at which it started. Not part of KUDO's API.
	// +optional
	// +nullable
	StartedTimestamp *metav1.Time `json:"startedTimestamp,omitempty"`

	// suspendedSeconds is how long it was suspended while it ran, in seconds, which its timeout does not include. Not part of KUDO's API.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SuspendedSeconds int64 `json:"suspendedSeconds,omitempty"`

	// suspendedSince is since when the running execution is suspended. Not part of KUDO's API.
	// +optional
	SuspendedSince *metav1.Time `json:"suspendedSince,omitempty"`

	// message describes the cause of the status.
	// +optional
	Message string `json:"message,omitempty"`

	// lastUpdatedTimestamp is the time at which status or message last changed.
	// +optional
	// +nullable
	LastUpdatedTimestamp *metav1.Time `json:"lastUpdatedTimestamp,omitempty"`

	// phases is the list of the states of the plan's phases.
	// +optional
	// +listType=atomic
	Phases []PhaseStatus `json:"phases,omitempty"`

	// uid is the uid of the execution.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// PhaseStatus is the state of a phase.
type PhaseStatus struct {
	// name is the name of the phase.
	// +optional
	Name string `json:"name,omitempty"`

	// status is the status of the phase.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`

	// startedTimestamp is the time at which it started. Not part of KUDO's API.
	// +optional
	// +nullable
	StartedTimestamp *metav1.Time `json:"startedTimestamp,omitempty"`

	// suspendedSeconds is how long it was suspended while it ran, in seconds, which its timeout does not include. Not part of KUDO's API.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SuspendedSeconds int64 `json:"suspendedSeconds,omitempty"`

	// message describes the cause of the status.
	// +optional
	Message string `json:"message,omitempty"`

	// steps is the list of the states of the phase's steps.
	// +optional
	// +listType=atomic
	Steps []StepStatus `json:"steps,omitempty"`
}

// StepStatus is the state of a step.
type StepStatus struct {
	// name is the name of the step.
	// +optional
	Name string `json:"name,omitempty"`

	// startedTimestamp is the time at which it started. Not part of KUDO's API.
	// +optional
	// +nullable
	StartedTimestamp *metav1.Time `json:"startedTimestamp,omitempty"`

	// suspendedSeconds is how long it was suspended while it ran, in seconds, which its timeout does not include. Not part of KUDO's API.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SuspendedSeconds int64 `json:"suspendedSeconds,omitempty"`

	// message describes the cause of the status.
	// +optional
	Message string `json:"message,omitempty"`

	// status is the status of the step.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`

	// rerunReason is why a resumed execution runs tasks of the step again that had completed. Not part of KUDO's API.
	// +optional
	RerunReason string `json:"rerunReason,omitempty"`

	// tasks is the list of the states of the step's tasks, in order. Not part of KUDO's API.
	// +optional
	// +listType=atomic
	Tasks []TaskStatus `json:"tasks,omitempty"`
}

// TaskStatus is the state of a task of a step.
type TaskStatus struct {
	// name is the name of the task.
	Name string `json:"name"`

	// status is the status of the task.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`

	// message describes what the task is waiting for, or why it failed.
	// +optional
	Message string `json:"message,omitempty"`

	// rendered is a digest of what the task has rendered. It is empty if that is another each time, and before the task is complete, unless a resumed
	// execution has yet to compare it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Rendered string `json:"rendered,omitempty"`

	// skipped is true if the task was not executed, because it is complete since an execution that this one resumes.
	// +optional
	Skipped bool `json:"skipped,omitempty"`
}

// The rule below uses `in` instead of `==`: the API server overestimates the cost of `==` on optional fields and rejects the rule.

// Instance is an installation of an operator with its own parameters. On the hub, an Instance is in the namespace of the managed
// cluster that it runs on. Its mirror on the managed cluster is in the install namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=instances,scope=Namespaced,shortName=inst,categories=kudo
// +kubebuilder:validation:XValidation:rule=`oldSelf.?spec.?installNamespace.orValue("") in [self.?spec.?installNamespace.orValue("")]`,message="spec.installNamespace is immutable: delete and re-create the Instance to move it",fieldPath=".spec.installNamespace"
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
	// status is the observed state. The default makes tools that use kstatus, such as Flux, wait until the agent has observed a new Instance.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
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

// TargetNamespace returns the namespace of the Instance's resources and of its mirror on the managed cluster.
func (i *Instance) TargetNamespace() string {
	if i.Spec.InstallNamespace != "" {
		return i.Spec.InstallNamespace
	}
	return i.Namespace
}

// IsSuspended reports whether no plan of the Instance starts, because of itself or of an object on the hub that suspends many.
func (i *Instance) IsSuspended() bool { return i.Spec.Suspend || i.Spec.SuspendedBy != "" }

// Parent returns the owner reference to the parent Instance (KEP-29), or nil if the Instance is not a child. The name of a child
// starts with the name of its parent: an owner with another name is not a parent, and no Instance is its own ancestor.
func (i *Instance) Parent() *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(i)
	if owner == nil || owner.Kind != "Instance" || owner.APIVersion != GroupVersion.String() || !strings.HasPrefix(i.Name, owner.Name+".") {
		return nil
	}
	return owner
}

// VersionUID returns the uid of the OperatorVersion that the parent of a child Instance has chosen; empty if the Instance is not a child, or
// if an earlier release of the hub created it. Another OperatorVersion of the same name does not belong to the Instance.
func (i *Instance) VersionUID() types.UID {
	if i.Parent() == nil {
		return ""
	}
	return i.Spec.OperatorVersion.UID
}

// IsForceReleased reports whether the Instance is being deleted without waiting for the removal of its resources.
func (i *Instance) IsForceReleased() bool {
	return i.DeletionTimestamp != nil && i.Annotations[AnnotationForceRelease] == "true"
}

// SkipsCleanup reports whether the resources of the Instance are removed without its cleanup plan.
func (i *Instance) SkipsCleanup() bool { return i.Annotations[AnnotationSkipCleanup] == "true" }

// IsRemoved reports whether the agent has reported the removal of all of the Instance's resources from the managed cluster.
func (i *Instance) IsRemoved() bool {
	ready := meta.FindStatusCondition(i.Status.Conditions, ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == ReasonRemoved
}

// IsRemoving reports whether a mirror is being removed: its Instance was deleted on the hub, and not released since. Deleting only the
// mirror on the managed cluster removes no resources.
func (i *Instance) IsRemoving() bool {
	_, deleted := i.Annotations[AnnotationHubDeleted]
	return deleted && !i.IsOrphaned()
}

// IsOrphaned reports whether the hub no longer has the Instance of a mirror, or has released it: the mirror's resources stay.
func (i *Instance) IsOrphaned() bool {
	_, orphaned := i.Annotations[AnnotationOrphaned]
	return orphaned
}

// IsMirror reports whether an object claims to be a mirror, which only the agent's signature proves. Either of the two annotations is enough:
// if a user has removed the other, the agent restores it. A hub that is also a managed cluster contains both Instances and mirrors.
func IsMirror(o metav1.Object) bool {
	_, identified := o.GetAnnotations()[AnnotationHubUID]
	_, copied := o.GetAnnotations()[AnnotationHubGeneration]
	return identified || copied
}

// HubUID returns the uid on the hub of a mirror's Instance. It outlives the mirror; that of an Instance that is no mirror is its own.
func (i *Instance) HubUID() types.UID {
	if uid := i.Annotations[AnnotationHubUID]; uid != "" {
		return types.UID(uid)
	}
	return i.UID
}

// HubGeneration returns the generation on the hub that a mirror was copied from, or zero if it has none.
func (i *Instance) HubGeneration() int64 {
	generation, _ := strconv.ParseInt(i.Annotations[AnnotationHubGeneration], 10, 64)
	return generation
}

// String returns the object's name as used in messages: `Deployment ns/name`.
func (e InventoryEntry) String() string {
	return e.Kind + " " + strings.TrimPrefix(e.Namespace+"/"+e.Name, "/")
}
