package v1beta1

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OperatorVersionSpec describes a version of an operator: its parameters, templates, tasks and plans.
type OperatorVersionSpec struct {
	// operator is a reference to the Operator of this version.
	// Defaults to the name of the OperatorVersion, without the versions that it ends with.
	// +optional
	Operator corev1.ObjectReference `json:"operator,omitzero"`

	// version is the version of the package, a semantic version.
	// +optional
	Version string `json:"version,omitempty"`

	// appVersion is the version of the application that the package installs.
	// +optional
	AppVersion string `json:"appVersion,omitempty"`

	// dependencyVersion is the version with which other add-ons compare their constraints on this one, a semantic version.
	// Defaults to appVersion, or else to version. Not part of KUDO's API.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	DependencyVersion string `json:"dependencyVersion,omitempty"`

	// dependencies are constraints of this version on the versions of other add-ons, in addition to those of its ClusterManagementAddOn. An add-on
	// changes to this version once they hold, and no dependency changes to a version that they exclude while this version runs. They only apply to
	// dependencies that the ClusterManagementAddOn declares. Not part of KUDO's API.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Dependencies []DependencyConstraint `json:"dependencies,omitempty"`

	// kubernetesVersion is the Kubernetes version of clusters that can run the package: the lowest one, such as 1.25.0, or a constraint, such as
	// >=1.25.0-0 <1.40.0-0. No plan but cleanup starts on a cluster of another version. Set by 'kubectl addon package push'. Not part of KUDO's
	// API.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// templates is a map of file names, by which tasks refer to templates, to the templates' text.
	// +optional
	// +nullable
	Templates map[string]string `json:"templates,omitempty"`

	// tasks is the list of tasks that the steps of plans refer to by name.
	// +optional
	// +nullable
	// +listType=atomic
	Tasks []Task `json:"tasks,omitempty"`

	// parameters is the list of parameters that an Instance can set.
	// +optional
	// +nullable
	// +listType=atomic
	Parameters []Parameter `json:"parameters,omitempty"`

	// plans is a map of plan names to plans. deploy, update, upgrade and cleanup run automatically, by KUDO's rules.
	// +optional
	// +nullable
	Plans map[string]Plan `json:"plans,omitempty"`

	// connectionString is the template of a string with which clients connect to an Instance of the operator.
	// +optional
	ConnectionString string `json:"connectionString,omitempty"`

	// upgradableFrom is the list of OperatorVersions that can be upgraded to this one.
	// +optional
	// +nullable
	// +listType=atomic
	UpgradableFrom []corev1.ObjectReference `json:"upgradableFrom,omitempty"`

	// content lists the charts of the package, and the templates that are too large for the OperatorVersion. They are stored in
	// OperatorContents, and not in templates. Set by 'kubectl addon package push'. Not part of KUDO's API.
	// +optional
	// +nullable
	// +listType=map
	// +listMapKey=file
	// +kubebuilder:validation:MaxItems=256
	Content []ContentFile `json:"content,omitempty"`

	// health are rules by which objects of custom kinds are judged, instead of by their conditions. A step waits until its objects are healthy,
	// and condition Ready depends on them. Not part of KUDO's API.
	// +optional
	// +nullable
	// +listType=map
	// +listMapKey=group
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=16
	Health []HealthRule `json:"health,omitempty"`

	// drift says which changes of applied objects by other writers are no drift. Not part of KUDO's API.
	// +optional
	Drift *PackageDrift `json:"drift,omitempty"`

	// returnable declares that going back from this version to the one that ran before loses nothing, also if its plan has run only in part. Without it, an
	// Instance whose plan for this version fails does not return (spec.onFailure). Not part of KUDO's API.
	// +optional
	Returnable bool `json:"returnable,omitempty"`

	// permissions are the permissions that plans need on the managed cluster. If it is set, plans have exactly these permissions; otherwise
	// they have those of the parent, of a service account, or of the agent. Not part of KUDO's API.
	// +optional
	Permissions *Permissions `json:"permissions,omitempty"`
}

// HealthRule judges the objects of a custom kind by CEL expressions over the variable self, the object. They see texts
// without sensitive values. An object whose status.observedGeneration is below its generation is not judged. Not part of KUDO's API.
type HealthRule struct {
	// group is the API group of the kind. Kubernetes' own kinds, such as Secrets, and Instances cannot be judged by expressions.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`

	// kind is the kind, in any version.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// healthy is true if the object is healthy. It is false if it reads a field that the object does not have yet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Healthy string `json:"healthy"`

	// failed is true if the object does not become healthy without a change: the plan that applies it ends. It is evaluated first, and false if it
	// reads a field that the object does not have.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Failed string `json:"failed,omitempty"`

	// message returns a string that explains why the object is not healthy. A fixed text is a literal in quotes.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
}

// ContentFile is a file of a package that OperatorContents hold.
type ContentFile struct {
	// file is the name of the file: of a template as tasks refer to it, or of the archive of a chart.
	// +kubebuilder:validation:MaxLength=253
	File string `json:"file"`

	// digest is the SHA-256 of the file, as sha256:HEX.
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest"`

	// size is the size of the file, in bytes.
	Size int64 `json:"size"`

	// kubeVersion is the constraint on the Kubernetes version of clusters in Chart.yaml, if the file is a chart.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	KubeVersion string `json:"kubeVersion,omitempty"`

	// parts lists the digests of the file's parts, in order, each in an OperatorContent.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Parts []string `json:"parts"`
}

// Ordering is the order of execution of the phases of a plan or the steps of a phase.
//
// +kubebuilder:validation:Enum=serial;parallel;""
type Ordering string

const (
	// Serial runs phases or steps one after another: each starts when the previous one is complete. This is the default.
	Serial Ordering = "serial"

	// Parallel runs phases or steps in parallel.
	Parallel Ordering = "parallel"
)

// Plan is an ordered list of phases.
type Plan struct {
	// strategy is the order of execution of the phases: serial or parallel.
	// Defaults to serial.
	// +optional
	// +kubebuilder:default=serial
	Strategy Ordering `json:"strategy,omitempty"`

	// phases is the list of phases of the plan. A plan without phases completes immediately.
	// +optional
	// +nullable
	// +listType=atomic
	Phases []Phase `json:"phases,omitempty"`

	// timeout is the maximum duration of the plan. If it is exceeded, the plan ends with FATAL_ERROR. Not part of KUDO's API.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(ms|s|m|h)){1,4}$`
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// Phase is an ordered list of steps.
type Phase struct {
	// name is the name of the phase, unique in its plan.
	// +optional
	Name string `json:"name,omitempty"`

	// strategy is the order of execution of the steps: serial or parallel.
	// Defaults to serial.
	// +optional
	// +kubebuilder:default=serial
	Strategy Ordering `json:"strategy,omitempty"`

	// steps is the list of steps of the phase.
	// +optional
	// +nullable
	// +listType=atomic
	Steps []Step `json:"steps,omitempty"`

	// timeout is the maximum duration of the phase. If it is exceeded, the plan ends with FATAL_ERROR. Not part of KUDO's API.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,9})?(ms|s|m|h)){1,4}$`
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// Step is a list of tasks that run in order.
type Step struct {
	// name is the name of the step, unique in its phase.
	// +optional
	Name string `json:"name,omitempty"`

	// tasks is the list of names of tasks of the OperatorVersion.
	// +optional
	// +nullable
	// +listType=atomic
	Tasks []string `json:"tasks,omitempty"`

	// timeout is the maximum duration of the step. If it is exceeded, the plan ends with FATAL_ERROR. Not part of KUDO's API.
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
	// TaskToggle behaves like Apply or Delete, depending on the value of a boolean parameter (KEP-23).
	TaskToggle = "Toggle"
	// TaskPipe runs a pod that produces files, and stores the files in a Secret or ConfigMap.
	TaskPipe = "Pipe"
	// TaskDummy succeeds, fails or waits, as its spec requires.
	TaskDummy = "Dummy"
	// TaskKudoOperator creates or updates a child Instance (KEP-29).
	TaskKudoOperator = "KudoOperator"
	// TaskHelm applies a Helm chart: its definitions, hooks and manifests.
	TaskHelm = "Helm"
	// TaskOperator is an alias of TaskKudoOperator, its first name in KEP-29.
	TaskOperator = "Operator"
)

// Task is a unit of work. Its kind determines which fields of the spec are used.
type Task struct {
	// name is the name of the task, by which steps refer to it.
	// +optional
	Name string `json:"name,omitempty"`

	// kind is the kind of the task: Apply, Delete, Toggle, Pipe, Dummy, KudoOperator (alias Operator) or Helm.
	// +optional
	Kind string `json:"kind,omitempty"`

	// spec is the spec of the task.
	// +optional
	// +nullable
	Spec TaskSpec `json:"spec,omitzero"`
}

// TaskSpec has the fields of all kinds of tasks, as in KUDO.
type TaskSpec struct {
	ResourceTaskSpec     `json:",inline"`
	DummyTaskSpec        `json:",inline"`
	PipeTaskSpec         `json:",inline"`
	ToggleTaskSpec       `json:",inline"`
	KudoOperatorTaskSpec `json:",inline"`
	HelmTaskSpec         `json:",inline"`
}

// ResourceTaskSpec is the spec of Apply, Delete and Toggle tasks.
type ResourceTaskSpec struct {
	// resources is the list of names of templates, in the order in which they are applied.
	// +optional
	// +nullable
	// +listType=atomic
	Resources []string `json:"resources,omitempty"`
}

// ToggleTaskSpec is the spec of Toggle tasks (KEP-23).
type ToggleTaskSpec struct {
	// parameter is the name of the boolean parameter that selects Apply (true) or Delete (false).
	// +optional
	Parameter string `json:"parameter,omitempty"`
}

// DummyTaskSpec is the spec of Dummy tasks.
type DummyTaskSpec struct {
	// wantErr specifies that the task fails.
	// +optional
	WantErr bool `json:"wantErr,omitempty"`

	// fatal specifies that the failure ends the plan.
	// +optional
	Fatal bool `json:"fatal,omitempty"`

	// done specifies that the task completes. Otherwise it waits forever.
	// +optional
	Done bool `json:"done,omitempty"`
}

// PipeTaskSpec is the spec of Pipe tasks.
type PipeTaskSpec struct {
	// pod is the name of the template of the pod. The pod has exactly one init container, which produces the files.
	// +optional
	Pod string `json:"pod,omitempty"`

	// pipe is the list of files to store.
	// +optional
	// +nullable
	// +listType=atomic
	Pipe []PipeSpec `json:"pipe,omitempty"`
}

// PipeSpec describes a file of a Pipe task.
type PipeSpec struct {
	// file is the path of a file in the container.
	// +optional
	File string `json:"file,omitempty"`

	// envFile is the path of a file with NAME=VALUE lines in the container.
	// +optional
	EnvFile string `json:"envFile,omitempty"`

	// kind is the kind of the object that stores the file: Secret or ConfigMap.
	// +optional
	// +kubebuilder:validation:Enum=Secret;ConfigMap;""
	Kind string `json:"kind,omitempty"`

	// key is the key of the object's name in templates: .Pipes.KEY.
	// +optional
	Key string `json:"key,omitempty"`
}

// KudoOperatorTaskSpec is the spec of KudoOperator tasks (KEP-29, KEP-36).
type KudoOperatorTaskSpec struct {
	// package is the child's package. In a package on disk, it is a name in a repository, a local folder or the URL of a tarball;
	// in a pushed package, it is the operator's name.
	// +optional
	Package string `json:"package,omitempty"`

	// instanceName is the last part of the child Instance's name.
	// Defaults to the operator's name.
	// +optional
	InstanceName string `json:"instanceName,omitempty"`

	// appVersion is the application version of the child.
	// Defaults to the most recent one.
	// +optional
	AppVersion string `json:"appVersion,omitempty"`

	// operatorVersion is the version of the child's package.
	// Defaults to the most recent one.
	// +optional
	OperatorVersion string `json:"operatorVersion,omitempty"`

	// operatorVersionName is the name of the exact OperatorVersion of the child, set by 'kubectl addon package push'.
	// If it is set, no other OperatorVersion is used, whatever is pushed later. Not part of KUDO's API.
	// +optional
	OperatorVersionName string `json:"operatorVersionName,omitempty"`

	// parameterFile is the name of the template that renders the child's parameters.
	// +optional
	ParameterFile string `json:"parameterFile,omitempty"`

	// enablingParameter is the name of the boolean parameter that determines whether the child exists (KEP-36). Not part of KUDO's API.
	// +optional
	EnablingParameter string `json:"enablingParameter,omitempty"`
}

// CRDPolicy is what a Helm task does with the CustomResourceDefinitions in the folder crds of its chart.
//
// +kubebuilder:validation:Enum=Apply;Skip;""
type CRDPolicy string

const (
	// ApplyCRDs applies them at install and upgrade. This is the default.
	ApplyCRDs CRDPolicy = "Apply"
	// SkipCRDs applies none.
	SkipCRDs CRDPolicy = "Skip"
)

// ClaimPolicy is what happens to the volume claims of a chart's StatefulSets when the Instance is removed.
//
// +kubebuilder:validation:Enum=Keep;Delete;""
type ClaimPolicy string

const (
	// KeepClaims keeps them, as Helm does. This is the default.
	KeepClaims ClaimPolicy = "Keep"
	// DeleteClaims deletes them.
	DeleteClaims ClaimPolicy = "Delete"
)

// PostHookPolicy is when the post-install and post-upgrade hooks of a chart start.
//
// +kubebuilder:validation:Enum=Applied;Healthy;""
type PostHookPolicy string

const (
	// PostHooksApplied starts them once the manifests are applied, as Helm does without --wait. This is the default.
	PostHooksApplied PostHookPolicy = "Applied"
	// PostHooksHealthy starts them once the manifests are healthy.
	PostHooksHealthy PostHookPolicy = "Healthy"
)

// HelmTaskSpec is the spec of Helm tasks, which have enablingParameter too. Not part of KUDO's API.
type HelmTaskSpec struct {
	// chart is the path of the folder or archive (.tgz) of a Helm chart, relative to operator.yaml, the name of a chart in repository, or
	// oci://HOST/PATH/NAME. In a pushed package, it is the name of the archive in content: 'kubectl addon package push' fetches what is elsewhere.
	// +optional
	Chart string `json:"chart,omitempty"`

	// version is the version of a chart from a repository or a registry: an exact one, such as 1.2.3.
	// +optional
	Version string `json:"version,omitempty"`

	// repository is the URL of the Helm repository (https://) or the path in an OCI registry (oci://) that the chart is from.
	// +optional
	Repository string `json:"repository,omitempty"`

	// digest is the SHA-256 of the archive of a chart from a repository or a registry, as sha256:HEX. 'kubectl addon package push' refuses any
	// other archive.
	// +optional
	Digest string `json:"digest,omitempty"`

	// valuesFile is the name of the template that renders the chart's values. Without it, the chart has its default values.
	// +optional
	ValuesFile string `json:"valuesFile,omitempty"`

	// releaseName is what the chart reads as .Release.Name. It cannot be changed while the chart is installed.
	// Defaults to the name of the Instance, with dashes instead of dots.
	// +optional
	// +kubebuilder:validation:MaxLength=53
	ReleaseName string `json:"releaseName,omitempty"`

	// crds is what to do with the CustomResourceDefinitions in the folder crds of the chart: Apply or Skip.
	// Defaults to Apply.
	// +optional
	CRDs CRDPolicy `json:"crds,omitempty"`

	// claims is what happens to the volume claims of the chart's StatefulSets when the Instance is removed: Keep or Delete.
	// Defaults to Keep.
	// +optional
	Claims ClaimPolicy `json:"claims,omitempty"`

	// postHooks is when the post-install and post-upgrade hooks start: once the manifests are Applied, or Healthy.
	// Defaults to Applied.
	// +optional
	PostHooks PostHookPolicy `json:"postHooks,omitempty"`
}

// ParameterType is the type of a parameter's value.
//
// +kubebuilder:validation:Enum=string;integer;number;boolean;array;map;""
type ParameterType string

// The types of a parameter. In templates, array and map values are lists and maps; values of all other types are the text as given.
const (
	StringType  ParameterType = "string"
	IntegerType ParameterType = "integer"
	NumberType  ParameterType = "number"
	BooleanType ParameterType = "boolean"
	ArrayType   ParameterType = "array"
	MapType     ParameterType = "map"
)

// Parameter describes a parameter that an Instance can set.
type Parameter struct {
	// displayName is the name of the parameter in user interfaces.
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// name is the name by which templates (.Params.NAME) and Instances refer to the parameter.
	// +optional
	Name string `json:"name,omitempty"`

	// description describes the purpose of the parameter.
	// +optional
	Description string `json:"description,omitempty"`

	// required specifies that an Instance must set the parameter, unless it has a default.
	// +optional
	// +nullable
	Required *bool `json:"required,omitempty"`

	// default is the value of the parameter if the Instance does not set it.
	// +optional
	// +nullable
	Default *string `json:"default,omitempty"`

	// trigger is the name of the plan that runs when the parameter changes.
	// Defaults to update, or to deploy if there is no plan update.
	// +optional
	Trigger string `json:"trigger,omitempty"`

	// value-type is the type of the parameter's value: string, integer, number, boolean, array or map.
	// Defaults to string.
	// +optional
	// +kubebuilder:default=string
	Type ParameterType `json:"value-type,omitempty"`

	// immutable specifies that the parameter cannot change once the Instance exists.
	// +optional
	// +nullable
	Immutable *bool `json:"immutable,omitempty"`

	// enum is the list of allowed values.
	// +optional
	// +nullable
	// +listType=atomic
	Enum []string `json:"enum,omitempty"`

	// forcePodRestart specifies whether a change of the parameter restarts pods (KEP-27). Not part of KUDO's API.
	// Defaults to true.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Enum={true,false,"true","false"}
	ForcePodRestart *Flag `json:"forcePodRestart,omitempty"`

	// structure specifies that templates insert the value as YAML text. Otherwise a value that changes the structure of what a template
	// renders is rejected, unless the default does so too. Not part of KUDO's API.
	// +optional
	// +nullable
	Structure *bool `json:"structure,omitempty"`

	// sensitive specifies that the value is confidential: it is given by reference to a Secret on the managed cluster
	// (spec.parametersFrom of the Instance), and never leaves that cluster. Not part of KUDO's API.
	// +optional
	// +nullable
	Sensitive *bool `json:"sensitive,omitempty"`
}

// IsSensitive reports whether the value of the parameter is confidential.
func (p *Parameter) IsSensitive() bool { return p.Sensitive != nil && *p.Sensitive }

// Flag is a boolean that can be quoted in input, as in KEP-27. It is always marshaled without quotes.
type Flag bool

// UnmarshalJSON reads a boolean with or without quotes.
func (f *Flag) UnmarshalJSON(text []byte) error {
	value, err := strconv.ParseBool(strings.Trim(string(text), `"`))
	*f = Flag(value)
	return err
}

// OperatorVersionStatus is empty, as in KUDO.
type OperatorVersionStatus struct{}

// OperatorVersion is an immutable version of an operator. Its name is <operator>-<appVersion>-<version>, or
// <operator>-<version> if it has no appVersion.
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

// OperatorName returns the name of the operator: that in the spec, or else the name of the OperatorVersion without the versions that it
// ends with, because KUDO accepts an OperatorVersion that names none.
func (v *OperatorVersion) OperatorName() string {
	if v.Spec.Operator.Name != "" {
		return v.Spec.Operator.Name
	}
	for _, version := range []string{v.Spec.AppVersion + "-" + v.Spec.Version, v.Spec.Version} {
		if name, ends := strings.CutSuffix(v.Name, "-"+version); ends && name != "" {
			return name
		}
	}
	return v.Name
}

// NamedSpec returns the spec with the name of the operator. It shares its content with the OperatorVersion.
func (v *OperatorVersion) NamedSpec() *OperatorVersionSpec {
	if v.Spec.Operator.Name != "" {
		return &v.Spec
	}
	spec := v.Spec
	spec.Operator.Name = v.OperatorName()
	return &spec
}

// OperatorVersionList is a list of OperatorVersions.
//
// +kubebuilder:object:root=true
type OperatorVersionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OperatorVersion `json:"items"`
}

// DependencyConstraint is a constraint on the version of another add-on.
type DependencyConstraint struct {
	// name is the name of the other add-on.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// version is a constraint on its version, such as >=3.8 <5.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version"`
}
