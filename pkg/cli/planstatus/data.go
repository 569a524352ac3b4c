package planstatus

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// instanceStatus is what `plan status` shows of an Instance, for programs.
type instanceStatus struct {
	Instance        string `json:"instance"`
	Cluster         string `json:"cluster"`
	OperatorVersion string `json:"operatorVersion"`
	// LastPlan was started last, of the OperatorVersion in LastVersion.
	LastPlan    string `json:"lastPlan,omitempty"`
	LastVersion string `json:"lastVersion,omitempty"`
	// LastChange says what holds up the last change of the Instance, where none of its conditions does.
	LastChange string             `json:"lastChange,omitempty"`
	Conditions []metav1.Condition `json:"conditions"`
	// Plans are those that there are, and those that have run, sorted by name.
	Plans    []kudo.PlanStatus `json:"plans"`
	Children []instanceStatus  `json:"children,omitempty"`
	// SwitchedOff are the children that do not exist because a parameter says so.
	SwitchedOff []string `json:"switchedOff,omitempty"`
}

// addOnStatus is what `plan status` shows of an add-on without an Instance, for programs.
type addOnStatus struct {
	AddOn   string `json:"addOn"`
	Cluster string `json:"cluster"`
	// Removing says that it is being deleted.
	Removing   bool               `json:"removing,omitempty"`
	Conditions []metav1.Condition `json:"conditions"`
}

// The conditions that `plan status` shows, in their order.
var (
	instanceConditions = []string{kudo.ConditionResolved, kudo.ConditionReady}
	addOnConditions    = []string{addonv1alpha1.ConditionAvailable, addonv1alpha1.ConditionDegraded, addonv1alpha1.ConditionResolved}
)

func statusData(view View) instanceStatus {
	instance := view.Instance
	data := instanceStatus{
		Instance: instance.Name, Cluster: instance.Namespace, OperatorVersion: instance.Spec.OperatorVersion.Name,
		LastChange: lastChange(view),
		Conditions: conditionsOf(instance.Status.Conditions, instanceConditions),
		Plans:      []kudo.PlanStatus{},
	}
	if last := instance.Status.Execution; last != nil {
		data.LastPlan, data.LastVersion = last.Plan, last.OperatorVersion.Name
	}
	for _, name := range PlanNames(view) {
		data.Plans = append(data.Plans, view.planStatus(name))
	}
	if view.withChildren {
		for _, child := range view.children {
			data.Children = append(data.Children, statusData(child))
		}
		data.SwitchedOff = switchedOff(instance)
	}
	return data
}

// switchedOff are the children that a parameter of the Instance says not to exist.
func switchedOff(instance *kudo.Instance) []string {
	var names []string
	for _, child := range instance.Status.Children {
		if child.State == kudo.ChildRemoved {
			names = append(names, child.Instance)
		}
	}
	return names
}

func addOnData(addOn *addonv1alpha1.ManagedClusterAddOn) addOnStatus {
	return addOnStatus{
		AddOn: addOn.Name, Cluster: addOn.Namespace, Removing: !addOn.DeletionTimestamp.IsZero(),
		Conditions: conditionsOf(addOn.Status.Conditions, addOnConditions),
	}
}

// conditionsOf are the conditions of those types, in that order, as far as they are there.
func conditionsOf(conditions []metav1.Condition, kinds []string) []metav1.Condition {
	found := []metav1.Condition{}
	for _, kind := range kinds {
		if condition := meta.FindStatusCondition(conditions, kind); condition != nil {
			found = append(found, *condition)
		}
	}
	return found
}
