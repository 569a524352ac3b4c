package progress

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// Status is the output of `plan status` of an Instance, for programs.
type Status struct {
	Instance        string `json:"instance"`
	Cluster         string `json:"cluster"`
	OperatorVersion string `json:"operatorVersion"`
	// LastPlan is the last started plan, and LastVersion its OperatorVersion.
	LastPlan    string `json:"lastPlan,omitempty"`
	LastVersion string `json:"lastVersion,omitempty"`
	// LastChange states what holds up the last change of the Instance if no condition reports it.
	LastChange string `json:"lastChange,omitempty"`
	// ClusterFacts states whether labels or claims of the cluster that templates use have changed since the last plan that took them.
	ClusterFacts string `json:"clusterFacts,omitempty"`
	// RetryTime is when a plan that failed starts again by itself.
	RetryTime  *metav1.Time       `json:"retryTime,omitempty"`
	Conditions []metav1.Condition `json:"conditions"`
	// Plans lists the existing plans and the plans that have run, sorted by name.
	Plans []kudo.PlanStatus `json:"plans"`
	// Hooks lists the hooks of charts that the last plan has started, by Helm task.
	Hooks    map[string][]Hook `json:"hooks,omitempty"`
	Children []Status          `json:"children,omitempty"`
	// Disabled lists the children that a parameter disables.
	Disabled []string `json:"disabled,omitempty"`
}

// AddOnStatus is the output of `plan status` of an add-on without an Instance, for programs.
type AddOnStatus struct {
	AddOn   string `json:"addOn"`
	Cluster string `json:"cluster"`
	// Removing is set if it is being deleted.
	Removing   bool               `json:"removing,omitempty"`
	Conditions []metav1.Condition `json:"conditions"`
}

// The conditions that `plan status` shows, in order.
var (
	InstanceConditions = []string{kudo.ConditionResolved, kudo.ConditionReady, kudo.ConditionWaiting, kudo.ConditionDrifted, kudo.ConditionSoaked}
	AddOnConditions    = []string{addonv1alpha1.ConditionAvailable, addonv1alpha1.ConditionDegraded, addonv1alpha1.ConditionResolved}
)

func StatusOf(view View) Status {
	instance := view.Instance
	data := Status{
		Instance: instance.Name, Cluster: instance.Namespace, OperatorVersion: instance.Spec.OperatorVersion.Name,
		LastChange: LastChange(view), ClusterFacts: FactsChange(instance),
		Conditions: conditionsOf(instance.Status.Conditions, InstanceConditions),
		Plans:      []kudo.PlanStatus{},
	}
	if last := instance.Status.Execution; last != nil {
		data.LastPlan, data.LastVersion = last.Plan, last.OperatorVersion.Name
		data.Hooks = view.Hooks(view.Plan(last.Plan))
	}
	if retry := plan.NextRetry(instance.Status); retry != nil {
		data.RetryTime = retry.RetryTime
	}
	for _, name := range PlanNames(view) {
		data.Plans = append(data.Plans, view.Plan(name))
	}
	if view.WithChildren {
		for _, child := range view.Children {
			data.Children = append(data.Children, StatusOf(child))
		}
		data.Disabled = switchedOff(instance)
	}
	return data
}

// switchedOff returns the children that a parameter of the Instance disables.
func switchedOff(instance *kudo.Instance) []string {
	var names []string
	for _, child := range instance.Status.Children {
		if child.State == kudo.ChildRemoved {
			names = append(names, child.Instance)
		}
	}
	return names
}

func StatusOfAddOn(addOn *addonv1alpha1.ManagedClusterAddOn) AddOnStatus {
	return AddOnStatus{
		AddOn: addOn.Name, Cluster: addOn.Namespace, Removing: !addOn.DeletionTimestamp.IsZero(),
		Conditions: conditionsOf(addOn.Status.Conditions, AddOnConditions),
	}
}

// conditionsOf returns the existing conditions of the given types, in the given order.
func conditionsOf(conditions []metav1.Condition, kinds []string) []metav1.Condition {
	found := []metav1.Condition{}
	for _, kind := range kinds {
		if condition := meta.FindStatusCondition(conditions, kind); condition != nil {
			found = append(found, *condition)
		}
	}
	return found
}
