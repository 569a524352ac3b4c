package v1beta1

// DriftMode is what the agent does about drift.
//
// +kubebuilder:validation:Enum=Warn;Repair;Off;""
type DriftMode string

const (
	// DriftWarn means that drift is reported in condition Drifted.
	DriftWarn DriftMode = "Warn"
	// DriftRepair means that drift is put back as well, unless the Instance is suspended.
	DriftRepair DriftMode = "Repair"
	// DriftOff means that applied objects are not compared.
	DriftOff DriftMode = "Off"
)

// DriftPolicy is what the agent does about drift: differences between what it has applied and what exists, in fields that it owns.
type DriftPolicy struct {
	// mode is Warn, which reports drift in condition Drifted, Repair, which puts it back as well, or Off. Defaults to Warn.
	// +optional
	Mode DriftMode `json:"mode,omitempty"`

	// ignore lists fields whose changes are no drift.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Ignore []IgnoredFields `json:"ignore,omitempty"`
}

// PackageDrift is what a package knows about drift.
type PackageDrift struct {
	// ignore lists fields that others are expected to change, in addition to those of the Instance.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Ignore []IgnoredFields `json:"ignore,omitempty"`
}

// IgnoredFields are fields of objects whose changes are no drift.
type IgnoredFields struct {
	// kind is the kind of the objects. If empty, they have any kind.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// name is the name of the object. If empty, it has any name.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// paths are the fields, with everything in them, as condition Drifted names them: JSON pointers such as /data/config or
	// /spec/template/spec/containers/web/image, where an item of a list has its keys, such as its name, in place of an index. * is any one field or
	// item.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^(/([^/~]|~[01])+)+$`
	Paths []string `json:"paths"`
}

// DriftModeOrDefault returns the mode of the Instance; Warn if it has none.
func (s InstanceSpec) DriftModeOrDefault() DriftMode {
	if s.Drift == nil || s.Drift.Mode == "" {
		return DriftWarn
	}
	return s.Drift.Mode
}

// DriftedObject is an object that differs from what was applied.
type DriftedObject struct {
	// group is the API group of the object.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// kind is the kind of the object.
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// namespace is the namespace of the object on the managed cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Namespace string `json:"namespace,omitempty"`

	// name is the name of the object.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// gone is true if the object does not exist.
	// +optional
	Gone bool `json:"gone,omitempty"`

	// fields lists the fields that differ.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Fields []DriftedField `json:"fields,omitempty"`

	// more is the number of other fields that differ.
	// +optional
	More int `json:"more,omitempty"`

	// repairs is how often the agent has put the object back lately. It waits longer before each further repair.
	// +optional
	Repairs int `json:"repairs,omitempty"`
}

// DriftedField is a field that another writer has changed or removed.
type DriftedField struct {
	// path is the field as a JSON pointer, in which an item of a list has its keys in place of an index. A long path is shortened.
	// +kubebuilder:validation:MaxLength=256
	Path string `json:"path"`

	// applied is what was applied, and live what exists. Both are absent unless they are numbers, booleans or images: other values may be secret.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Applied string `json:"applied,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Live string `json:"live,omitempty"`

	// removed is true if the field does not exist any more.
	// +optional
	Removed bool `json:"removed,omitempty"`

	// managers are the field managers that own the field now. Kubernetes does not record all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=128
	Managers []string `json:"managers,omitempty"`
}
