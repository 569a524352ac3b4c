package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// HistoryCause is why an execution started.
//
// +kubebuilder:validation:Enum=Install;Version;Parameters;ImageRegistries;Request;Parent;Retry;Owed;Removal;Return;""
type HistoryCause string

const (
	// CauseInstall is the cause of the first execution of an Instance.
	CauseInstall HistoryCause = "Install"
	// CauseVersion means that the Instance got another OperatorVersion.
	CauseVersion HistoryCause = "Version"
	// CauseParameters means that values of parameters changed.
	CauseParameters HistoryCause = "Parameters"
	// CauseImageRegistries means that the image registries changed.
	CauseImageRegistries HistoryCause = "ImageRegistries"
	// CauseRequest means that the plan was requested manually (spec.planExecution).
	CauseRequest HistoryCause = "Request"
	// CauseParent means that the parent of a child ran the child's failed plan again.
	CauseParent HistoryCause = "Parent"
	// CauseRetry means that a failed plan started again by itself, and that its first execution is no longer in the history.
	CauseRetry HistoryCause = "Retry"
	// CauseOwed means that the plan was owed by an earlier change.
	CauseOwed HistoryCause = "Owed"
	// CauseRemoval means that the Instance, or an ancestor, is being removed.
	CauseRemoval HistoryCause = "Removal"
	// CauseReturn means that another version has failed, and that the former one is applied again.
	CauseReturn HistoryCause = "Return"
)

// HistoryOutcome is how an execution ended.
//
// +kubebuilder:validation:Enum=Complete;Failed;Cancelled;Superseded;""
type HistoryOutcome string

const (
	// HistoryComplete means that the plan completed.
	HistoryComplete HistoryOutcome = "Complete"
	// HistoryFailed means that the plan failed.
	HistoryFailed HistoryOutcome = "Failed"
	// HistoryCancelled means that the plan was cancelled.
	HistoryCancelled HistoryOutcome = "Cancelled"
	// HistorySuperseded means that another execution started before the plan ended.
	HistorySuperseded HistoryOutcome = "Superseded"
)

// HistoryEntry is an execution in the history of an Instance. It contains no values of parameters.
type HistoryEntry struct {
	// revision is the number of the entry: one more than that of the entry before.
	Revision int64 `json:"revision"`

	// uid is the uid of the execution; of a plan that started again by itself, that of the last one.
	UID types.UID `json:"uid"`

	// plan is the name of the plan.
	Plan string `json:"plan"`

	// cause is why the execution started.
	// +optional
	Cause HistoryCause `json:"cause,omitempty"`

	// by is the field manager on the hub that made the change, and the object that it wrote: MANAGER (KIND NAME). The manager is named as the writer named itself:
	// any writer can choose any name, and only the audit log of the API server has users. It is empty if it is not known, and for causes that are no change.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	By string `json:"by,omitempty"`

	// operatorVersion is the OperatorVersion of the execution: namespace, name and uid on the hub.
	// +optional
	OperatorVersion corev1.ObjectReference `json:"operatorVersion,omitzero"`

	// from is the name of the OperatorVersion of the execution before; empty if it is the same, or if there was none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	From string `json:"from,omitempty"`

	// parameters lists the names of the parameters whose values the execution changed, in the package's order; at the first execution, those
	// that differ from their defaults. A long list is shortened.
	// +optional
	// +listType=atomic
	Parameters []string `json:"parameters,omitempty"`

	// moreParameters is the number of parameters that the list omits.
	// +optional
	MoreParameters int32 `json:"moreParameters,omitempty"`

	// startedTimestamp is the time at which the plan started for the first time.
	// +optional
	StartedTimestamp *metav1.Time `json:"startedTimestamp,omitempty"`

	// endedTimestamp is the time at which the execution ended. It is absent while the plan runs.
	// +optional
	EndedTimestamp *metav1.Time `json:"endedTimestamp,omitempty"`

	// outcome is how the execution ended. It is empty while the plan runs.
	// +optional
	Outcome HistoryOutcome `json:"outcome,omitempty"`

	// retries is how often the plan started again by itself.
	// +optional
	Retries int32 `json:"retries,omitempty"`

	// message is why the execution did not complete. A long message is shortened.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// ChangeAuthor is who has made a change on the hub, according to the managed fields of the object.
type ChangeAuthor struct {
	// manager is the field manager, as the writer named itself: any writer can choose any name. It is empty if the object is the parent of a child, whose
	// spec addon-manager writes.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Manager string `json:"manager,omitempty"`

	// kind is the kind of the object that was changed.
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// name is the name of the object that was changed, after its namespace and a slash if it has one.
	// +kubebuilder:validation:MaxLength=317
	Name string `json:"name"`

	// time is the time of the manager's last write of these fields.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// change is a digest of what was changed, and of the other fields: addon-manager determines the author again if it does not match.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Change string `json:"change,omitempty"`
}
