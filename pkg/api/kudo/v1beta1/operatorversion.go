package v1beta1

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OperatorVersionSpec is one version of an operator: its parameters, templates, tasks and plans.
type OperatorVersionSpec struct {
	// operator refers to the Operator that this is a version of.
	// +optional
	Operator corev1.ObjectReference `json:"operator,omitzero"`

	// version of the package, a semantic version.
	// +optional
	Version string `json:"version,omitempty"`

	// appVersion is the version of the application that the package installs.
	// +optional
	AppVersion string `json:"appVersion,omitempty"`

	// templates maps a file name, as tasks refer to it, to the template's text.
	// +optional
	// +nullable
	Templates map[string]string `json:"templates,omitempty"`

	// tasks are the units of work that the steps of plans refer to by name.
	// +optional
	// +nullable
	// +listType=atomic
	Tasks []Task `json:"tasks,omitempty"`

	// parameters are what an Instance may set.
	// +optional
	// +nullable
	// +listType=atomic
	Parameters []Parameter `json:"parameters,omitempty"`

	// plans maps a plan's name to the plan; deploy, update, upgrade and cleanup are chosen by themselves (KUDO's rules).
	// +optional
	// +nullable
	Plans map[string]Plan `json:"plans,omitempty"`

	// connectionString is a template for a string that connects to an Instance of the operator.
	// +optional
	ConnectionString string `json:"connectionString,omitempty"`

	// upgradableFrom lists the OperatorVersions that can be upgraded to this one.
	// +optional
	// +nullable
	// +listType=atomic
	UpgradableFrom []corev1.ObjectReference `json:"upgradableFrom,omitempty"`
}

// Ordering says how the phases of a plan or the steps of a phase follow each other.
//
// +kubebuilder:validation:Enum=serial;parallel;""
type Ordering string

const (
	// Serial runs one after the other, each only when the one before is complete; the default.
	Serial Ordering = "serial"

	// Parallel runs them side by side.
	Parallel Ordering = "parallel"
)

// Plan is an ordered list of phases.
type Plan struct {
	// strategy says how the phases follow each other; serial if empty.
	// +optional
	// +kubebuilder:default=serial
	Strategy Ordering `json:"strategy,omitempty"`

	// phases of the plan; a plan without phases completes at once.
	// +optional
	// +nullable
	// +listType=atomic
	Phases []Phase `json:"phases,omitempty"`

	// timeout ends the plan with FATAL_ERROR when it runs longer. Addition.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(ms|s|m|h)){1,4}$`
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// Phase is an ordered list of steps.
type Phase struct {
	// name of the phase, unique in its plan.
	// +optional
	Name string `json:"name,omitempty"`

	// strategy says how the steps follow each other; serial if empty.
	// +optional
	// +kubebuilder:default=serial
	Strategy Ordering `json:"strategy,omitempty"`

	// steps of the phase.
	// +optional
	// +nullable
	// +listType=atomic
	Steps []Step `json:"steps,omitempty"`

	// timeout ends the plan with FATAL_ERROR when the phase runs longer. Addition.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(ms|s|m|h)){1,4}$`
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// Step runs tasks in the order listed.
type Step struct {
	// name of the step, unique in its phase.
	// +optional
	Name string `json:"name,omitempty"`

	// tasks are names of the version's tasks.
	// +optional
	// +nullable
	// +listType=atomic
	Tasks []string `json:"tasks,omitempty"`

	// timeout ends the plan with FATAL_ERROR when the step runs longer. Addition.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(ms|s|m|h)){1,4}$`
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// The kinds of a task.
const (
	// TaskApply applies its resources and waits until they are healthy.
	TaskApply = "Apply"
	// TaskDelete deletes its resources and waits until they are gone.
	TaskDelete = "Delete"
	// TaskToggle behaves as Apply or Delete, by the value of a boolean parameter (KEP-23).
	TaskToggle = "Toggle"
	// TaskPipe runs a pod that produces files and keeps them as Secret or ConfigMap.
	TaskPipe = "Pipe"
	// TaskDummy succeeds, fails or waits as it is told.
	TaskDummy = "Dummy"
	// TaskKudoOperator ensures a child Instance (KEP-29).
	TaskKudoOperator = "KudoOperator"
	// TaskOperator is the name that KEP-29 first gave TaskKudoOperator; accepted as an alias.
	TaskOperator = "Operator"
)

// Task is one unit of work. Kind says which fields of the spec matter.
type Task struct {
	// name that steps refer to.
	// +optional
	Name string `json:"name,omitempty"`

	// kind is one of Apply, Delete, Toggle, Pipe, Dummy, KudoOperator (alias Operator).
	// +optional
	Kind string `json:"kind,omitempty"`

	// spec of the task.
	// +optional
	// +nullable
	Spec TaskSpec `json:"spec,omitzero"`
}

// TaskSpec joins the fields of all kinds of tasks, as KUDO does.
type TaskSpec struct {
	ResourceTaskSpec     `json:",inline"`
	DummyTaskSpec        `json:",inline"`
	PipeTaskSpec         `json:",inline"`
	ToggleTaskSpec       `json:",inline"`
	KudoOperatorTaskSpec `json:",inline"`
}

// ResourceTaskSpec belongs to Apply, Delete and Toggle.
type ResourceTaskSpec struct {
	// resources are names of templates, in the order in which they are applied.
	// +optional
	// +nullable
	// +listType=atomic
	Resources []string `json:"resources,omitempty"`
}

// ToggleTaskSpec belongs to Toggle (KEP-23).
type ToggleTaskSpec struct {
	// parameter is the boolean parameter that switches between Apply (true) and Delete (false).
	// +optional
	Parameter string `json:"parameter,omitempty"`
}

// DummyTaskSpec belongs to Dummy.
type DummyTaskSpec struct {
	// wantErr makes the task fail.
	// +optional
	WantErr bool `json:"wantErr,omitempty"`

	// fatal makes the failure end the plan.
	// +optional
	Fatal bool `json:"fatal,omitempty"`

	// done makes the task complete; otherwise it waits for ever.
	// +optional
	Done bool `json:"done,omitempty"`
}

// PipeTaskSpec belongs to Pipe.
type PipeTaskSpec struct {
	// pod is the template of the pod whose one init container produces the files.
	// +optional
	Pod string `json:"pod,omitempty"`

	// pipe lists the files to keep.
	// +optional
	// +nullable
	// +listType=atomic
	Pipe []PipeSpec `json:"pipe,omitempty"`
}

// PipeSpec is one file of a Pipe task.
type PipeSpec struct {
	// file is the path of a file in the container.
	// +optional
	File string `json:"file,omitempty"`

	// envFile is the path of a file of NAME=VALUE lines in the container.
	// +optional
	EnvFile string `json:"envFile,omitempty"`

	// kind of object that keeps the file: Secret or ConfigMap.
	// +optional
	// +kubebuilder:validation:Enum=Secret;ConfigMap;""
	Kind string `json:"kind,omitempty"`

	// key under which templates find the object's name: .Pipes.KEY.
	// +optional
	Key string `json:"key,omitempty"`
}

// KudoOperatorTaskSpec belongs to KudoOperator (KEP-29, KEP-36).
type KudoOperatorTaskSpec struct {
	// package is the child's operator: a repository name, a local folder or the URL of a tarball in a package on disk; the
	// operator's name once it is pushed.
	// +optional
	Package string `json:"package,omitempty"`

	// instanceName is the last part of the child Instance's name; the operator's name if empty.
	// +optional
	InstanceName string `json:"instanceName,omitempty"`

	// appVersion of the child; the most recent if empty.
	// +optional
	AppVersion string `json:"appVersion,omitempty"`

	// operatorVersion is the version of the child's package; the most recent if empty.
	// +optional
	OperatorVersion string `json:"operatorVersion,omitempty"`

	// parameterFile is the template from which the child's parameters are rendered.
	// +optional
	ParameterFile string `json:"parameterFile,omitempty"`

	// enablingParameter is the boolean parameter that says whether the child exists (KEP-36). Addition.
	// +optional
	EnablingParameter string `json:"enablingParameter,omitempty"`
}

// ParameterType is the type of a parameter's value.
//
// +kubebuilder:validation:Enum=string;integer;number;boolean;array;map;""
type ParameterType string

// The types of a parameter. Templates see array and map values as lists and maps, all others as the text that was given.
const (
	StringType  ParameterType = "string"
	IntegerType ParameterType = "integer"
	NumberType  ParameterType = "number"
	BooleanType ParameterType = "boolean"
	ArrayType   ParameterType = "array"
	MapType     ParameterType = "map"
)

// Parameter is what an Instance may set.
type Parameter struct {
	// displayName is for user interfaces.
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// name by which templates (.Params.NAME) and Instances refer to the parameter.
	// +optional
	Name string `json:"name,omitempty"`

	// description says what the parameter is good for.
	// +optional
	Description string `json:"description,omitempty"`

	// required parameters must be set by an Instance unless they have a default.
	// +optional
	// +nullable
	Required *bool `json:"required,omitempty"`

	// default value where the Instance sets none.
	// +optional
	// +nullable
	Default *string `json:"default,omitempty"`

	// trigger is the plan that runs when the parameter changes; update if empty, else deploy.
	// +optional
	Trigger string `json:"trigger,omitempty"`

	// value-type of the parameter; string if empty.
	// +optional
	// +kubebuilder:default=string
	Type ParameterType `json:"value-type,omitempty"`

	// immutable parameters cannot change once the Instance exists.
	// +optional
	// +nullable
	Immutable *bool `json:"immutable,omitempty"`

	// enum lists the allowed values.
	// +optional
	// +nullable
	// +listType=atomic
	Enum []string `json:"enum,omitempty"`

	// forcePodRestart says whether a change of the parameter restarts pods; true if unset (KEP-27). Addition.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Enum={true,false,"true","false"}
	ForcePodRestart *Flag `json:"forcePodRestart,omitempty"`
}

// Flag is a boolean that may be quoted, as KEP-27 writes it. It is always written without quotes.
type Flag bool

// UnmarshalJSON reads it with quotes or without.
func (f *Flag) UnmarshalJSON(text []byte) error {
	value, err := strconv.ParseBool(strings.Trim(string(text), `"`))
	*f = Flag(value)
	return err
}

// OperatorVersionStatus is empty, as in KUDO.
type OperatorVersionStatus struct{}

// OperatorVersion is one immutable version of an operator. Its name is <operator>-<appVersion>-<version>, or
// <operator>-<version> where there is no appVersion.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=operatorversions,scope=Namespaced,shortName=ov,categories=kudo
// +kubebuilder:validation:XValidation:rule="has(self.spec) == has(oldSelf.spec) && (!has(self.spec) || self.spec == oldSelf.spec)",message="the spec of an OperatorVersion is immutable: push a new version instead",fieldPath=".spec"
// +kubebuilder:printcolumn:name="Operator",type=string,JSONPath=`.spec.operator.name`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="App-Version",type=string,JSONPath=`.spec.appVersion`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OperatorVersion struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec OperatorVersionSpec `json:"spec,omitzero"`
	// +optional
	Status OperatorVersionStatus `json:"status,omitzero"`
}

// OperatorVersionList is a list of OperatorVersions.
//
// +kubebuilder:object:root=true
type OperatorVersionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OperatorVersion `json:"items"`
}
