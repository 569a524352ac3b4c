package progress

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// DriftState is what is known about the drift of an Instance. It is not the reason of condition Drifted, which an agent can choose.
type DriftState string

const (
	// DriftFound means that objects differ from what was applied.
	DriftFound DriftState = kudo.ReasonDrifted
	// DriftNone means that all objects are as they were applied.
	DriftNone DriftState = kudo.ReasonInSync
	// DriftUnknown means that objects could not be compared.
	DriftUnknown DriftState = kudo.ReasonComparisonFailed
	// DriftNotCompared means that no comparison is reported: there was none yet, or the agent is of a version that makes none.
	DriftNotCompared DriftState = "NotCompared"
	// DriftOff means that spec.drift.mode of the Instance is Off.
	DriftOff DriftState = "Off"
)

// Drift is the output of `drift` about one Instance.
type Drift struct {
	Instance string     `json:"instance"`
	Cluster  string     `json:"cluster"`
	State    DriftState `json:"state"`
	// Mode is what the agent does about drift. It repairs nothing while the Instance is suspended.
	Mode      kudo.DriftMode `json:"mode"`
	Suspended bool           `json:"suspended,omitempty"`
	// Since is when condition Drifted got its status; nil if it is missing.
	Since *metav1.Time `json:"since,omitempty"`
	// Message is the message of the condition.
	Message string `json:"message,omitempty"`
	// Objects lists those that differ, as in status.drift.
	Objects []kudo.DriftedObject `json:"objects,omitempty"`
}

// DriftOf returns the drift of an Instance.
func DriftOf(instance *kudo.Instance) Drift {
	drift := Drift{
		Instance: instance.Name, Cluster: instance.Namespace, State: DriftNotCompared,
		Mode: instance.Spec.DriftModeOrDefault(), Suspended: instance.IsSuspended(),
	}
	condition := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionDrifted)
	switch {
	case drift.Mode == kudo.DriftOff:
		drift.State = DriftOff
		return drift
	case condition == nil:
		return drift
	}
	drift.Since, drift.Message = &condition.LastTransitionTime, condition.Message
	switch condition.Status {
	case metav1.ConditionTrue:
		drift.State, drift.Objects = DriftFound, instance.Status.Drift
	case metav1.ConditionFalse:
		drift.State = DriftNone
	default:
		drift.State = DriftUnknown
	}
	return drift
}

// Gone returns the number of objects that do not exist.
func (d Drift) Gone() int {
	gone := 0
	for _, object := range d.Objects {
		if object.Gone {
			gone++
		}
	}
	return gone
}

// Fields returns the number of fields that differ.
func (d Drift) Fields() int {
	fields := 0
	for _, object := range d.Objects {
		fields += len(object.Fields) + max(object.More, 0)
	}
	return fields
}

// FleetDrift is the output of `drift` for several Instances.
type FleetDrift struct {
	// Instances lists those that have drifted or could not be compared, sorted by cluster and name.
	Instances []Drift `json:"instances"`
	// InSync, NotCompared and ModeOff are the numbers of all others by state.
	InSync      int `json:"inSync"`
	NotCompared int `json:"notCompared"`
	ModeOff     int `json:"modeOff"`
}

// FleetDriftOf summarizes the drift of Instances.
func FleetDriftOf(drifts []Drift) FleetDrift {
	fleet := FleetDrift{Instances: []Drift{}}
	for _, drift := range drifts {
		switch drift.State {
		case DriftNone:
			fleet.InSync++
		case DriftNotCompared:
			fleet.NotCompared++
		case DriftOff:
			fleet.ModeOff++
		default:
			fleet.Instances = append(fleet.Instances, drift)
		}
	}
	slices.SortFunc(fleet.Instances, func(a, b Drift) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Instance, b.Instance))
	})
	return fleet
}
