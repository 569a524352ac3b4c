package fleet

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/progress"
)

// Current returns the cluster with the add-ons as their Instances report them, see Current.
func (v Cluster) Current() Cluster {
	addOns := make(map[string]*addonv1alpha1.ManagedClusterAddOn, len(v.AddOns))
	for name, addOn := range v.AddOns {
		addOns[name] = Current(addOn, ReportOf(v.InstanceOf(addOn)))
	}
	v.AddOns = addOns
	return v
}

// Report is what the Instance of an add-on reports about its plans.
type Report struct {
	// Ready is nil if it is not reported.
	Ready *metav1.Condition
	// Waiting is nil unless its plans wait for something that a user decides.
	Waiting *metav1.Condition
	// Updated is when the status of the last plan changed; nil if there is none.
	Updated *metav1.Time
	// Installed is the OperatorVersion that was last installed completely; empty if there is none.
	Installed string
}

// ReportOf returns what an Instance, which may be nil, reports.
func ReportOf(instance *kudo.Instance) Report {
	if instance == nil {
		return Report{}
	}
	report := Report{}
	if ready := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionReady); ready != nil {
		report.Ready = new(*ready) // does not keep the other conditions in memory
	}
	if waiting := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionWaiting); waiting != nil {
		report.Waiting = new(*waiting)
	}
	if last := instance.Status.Execution; last != nil {
		report.Updated = instance.Status.PlanStatus[last.Plan].LastUpdatedTimestamp
	}
	if whole := instance.Status.Whole; whole != nil {
		report.Installed = whole.OperatorVersion.Name
	}
	return report
}

// Current returns the add-on with the condition Available that its agent is about to write, if its Instance already reports a later change:
// right after a change of the add-on, the agent delays the write. It has condition Waiting of the Instance, too.
func Current(addOn *addonv1alpha1.ManagedClusterAddOn, report Report) *addonv1alpha1.ManagedClusterAddOn {
	available := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	if addOn.DeletionTimestamp != nil {
		return addOn
	}
	var later *metav1.Condition
	if available != nil {
		later = laterAvailable(*available, report)
	}
	current := addOn
	for _, condition := range []*metav1.Condition{later, report.Waiting} {
		if condition != nil {
			current = current.DeepCopy()
			meta.RemoveStatusCondition(&current.Status.Conditions, condition.Type)
			current.Status.Conditions = append(current.Status.Conditions, *condition)
		}
	}
	return current
}

// Waits has what the Instances of add-ons report that wait, by their keys. Others are absent: there are many.
type Waits map[types.NamespacedName]Report

// Note adds the Instance of an add-on if it waits.
func (w Waits) Note(instance *kudo.Instance) {
	if waiting := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionWaiting); waiting != nil && IsOfAddOn(instance) {
		w[types.NamespacedName{Namespace: instance.Namespace, Name: instance.Name}] = Report{Waiting: new(*waiting)}
	}
}

// GlimpseOf returns the status of an add-on, with what its Instance waits for.
func (w Waits) GlimpseOf(addOn *addonv1alpha1.ManagedClusterAddOn) Glimpse {
	return GlimpseOf(Current(addOn, w[types.NamespacedName{Namespace: addOn.Namespace, Name: addOn.Name}]))
}

// changed returns when a report with condition Ready last changed.
func (r Report) changed() metav1.Time {
	if r.Updated != nil && r.Ready.LastTransitionTime.Before(r.Updated) { // a plan that fails changes the reason of Ready only
		return *r.Updated
	}
	return r.Ready.LastTransitionTime
}

// laterAvailable returns condition Available according to an Instance that has completed or failed since the add-on's was written; nil if it has
// not. While a plan runs, only the agent knows whether the workloads stay available.
func laterAvailable(available metav1.Condition, report Report) *metav1.Condition {
	ready := report.Ready
	if ready == nil || available.Status == metav1.ConditionUnknown || available.Reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied {
		return nil
	}
	changed := report.changed()
	if changed.Before(&available.LastTransitionTime) {
		return nil
	}
	available.LastTransitionTime, available.Message = changed, ready.Message
	switch {
	case ready.Status == metav1.ConditionTrue && (available.Status != metav1.ConditionTrue || available.Reason == addonv1alpha1.ReasonUpdating):
		available.Status, available.Reason = metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete
	case ready.Reason == kudo.ReasonPlanFailed && available.Reason != kudo.ReasonPlanFailed:
		available.Status, available.Reason = metav1.ConditionFalse, ready.Reason
	default:
		return nil
	}
	return &available
}

// InstanceList returns the Instances of the cluster, by name.
func (v Cluster) InstanceList() []kudo.Instance {
	var instances []kudo.Instance
	for _, name := range slices.Sorted(maps.Keys(v.Instances)) {
		instances = append(instances, *v.Instances[name])
	}
	return instances
}

// Running returns the Instance if a plan of it runs, else those of its descendants that run one.
func (v Cluster) Running(root *kudo.Instance) []*kudo.Instance {
	if progress.RunningPlan(root) != "" {
		return []*kudo.Instance{root}
	}
	var running []*kudo.Instance
	for _, child := range Descendants(root, v.InstanceList()) {
		if progress.RunningPlan(&child) != "" {
			running = append(running, &child)
		}
	}
	return running
}

// Descendants returns the Instance's descendants among instances, each before its own children.
func Descendants(root *kudo.Instance, instances []kudo.Instance) []kudo.Instance {
	var found []kudo.Instance
	met := map[types.UID]bool{root.UID: true} // stops at owner references that form a cycle
	var add func(parent *kudo.Instance)
	add = func(parent *kudo.Instance) {
		for i := range instances {
			if child := &instances[i]; metav1.IsControlledBy(child, parent) && !met[child.UID] {
				met[child.UID] = true
				found = append(found, *child)
				add(child)
			}
		}
	}
	add(root)
	return found
}
