package inspect

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/notice"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/text"
)

// addOnList is the output of `get`. Instances are those that belong to no add-on.
type addOnList struct {
	AddOns    []addOnItem    `json:"addOns"`
	Instances []instanceItem `json:"instances"`
}

// addOnItem is an add-on on one cluster.
type addOnItem struct {
	Cluster string `json:"cluster"`
	AddOn   string `json:"addOn"`
	// OperatorVersion is the configured OperatorVersion or, until a rollout has reached the cluster, the one before; empty if the add-on is not
	// plan-based, or it is unknown.
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// InstalledVersion is the OperatorVersion that was last installed completely if it is another one.
	InstalledVersion string `json:"installedVersion,omitempty"`
	// Available and Degraded are the statuses of the conditions; empty if a condition is missing.
	Available metav1.ConditionStatus `json:"available,omitempty"`
	Degraded  metav1.ConditionStatus `json:"degraded,omitempty"`
	fleet.Glimpse
	// Message is the message of the condition that has the reason.
	Message string `json:"message,omitempty"`
	// Notices are what else to know about the Instance: it has drifted, is suspended, waits for a window, and so on.
	Notices []notice.Kind `json:"notices,omitempty"`
	Created metav1.Time   `json:"created"`
}

// instanceItem is an Instance on one cluster.
type instanceItem struct {
	Cluster         string `json:"cluster"`
	Instance        string `json:"instance"`
	OperatorVersion string `json:"operatorVersion"`
	// Ready is the status of the condition; empty if it is missing.
	Ready metav1.ConditionStatus `json:"ready,omitempty"`
	fleet.Glimpse
	// Message is the message of the condition that has the reason.
	Message string `json:"message,omitempty"`
	// Notices are what else to know about the Instance: it has drifted, is suspended, waits for a window, and so on.
	Notices []notice.Kind `json:"notices,omitempty"`
	Created metav1.Time   `json:"created"`
}

// lacks reports whether nothing was found under a name that was given.
func (l addOnList) lacks(name string) bool { return name != "" && len(l.AddOns)+len(l.Instances) == 0 }

func (l addOnList) sort() {
	slices.SortFunc(l.AddOns, func(a, b addOnItem) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.AddOn, b.AddOn))
	})
	slices.SortFunc(l.Instances, func(a, b instanceItem) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Instance, b.Instance))
	})
}

// sortBy sorts the add-ons and the Instances by a field. It returns an error if none has it.
func (l addOnList) sortBy(field terminal.Field) error {
	ofAddOns, err := terminal.SortBy(l.AddOns, field)
	if err != nil {
		return fmt.Errorf("sorting by %s: %w", field.String(), err)
	}
	ofInstances, err := terminal.SortBy(l.Instances, field)
	if err != nil {
		return fmt.Errorf("sorting by %s: %w", field.String(), err)
	}
	if !ofAddOns && !ofInstances && len(l.AddOns)+len(l.Instances) > 0 {
		return fmt.Errorf("sorting by %s: no item has that field; see the fields with -o json", field.String())
	}
	return nil
}

// itemOf returns the item of an add-on, given the report of its Instance and the notices about that.
func itemOf(addOn *addonv1alpha1.ManagedClusterAddOn, definition fleet.Definition, report fleet.Report, notices []notice.Kind) addOnItem {
	addOn = fleet.Current(addOn, report)
	item := addOnItem{Cluster: addOn.Namespace, AddOn: addOn.Name, Glimpse: fleet.GlimpseOf(addOn), Notices: notices, Created: addOn.CreationTimestamp}
	item.Message = item.Glimpse.Message(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	if definition.PlanManaged {
		item.OperatorVersion = install.VersionInUse(definition.Object, addOn).Name
	}
	if item.OperatorVersion != report.Installed && item.OperatorVersion != "" {
		item.InstalledVersion = report.Installed
	}
	if condition := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable); condition != nil {
		item.Available = condition.Status
	}
	if condition := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionDegraded); condition != nil {
		item.Degraded = condition.Status
	}
	return item
}

func instanceItemOf(instance *kudo.Instance) instanceItem {
	item := instanceItem{
		Cluster: instance.Namespace, Instance: instance.Name, OperatorVersion: instance.Spec.OperatorVersion.Name,
		Glimpse: fleet.GlimpseOfInstance(instance), Notices: notice.KindsOf(instance), Created: instance.CreationTimestamp,
	}
	item.Message = item.Glimpse.Message(instance.Status.Conditions, kudo.ConditionReady)
	if condition := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionReady); condition != nil {
		item.Ready = condition.Status
	}
	return item
}

func (l addOnList) names() []string {
	names := make([]string, 0, len(l.AddOns)+len(l.Instances))
	for _, i := range l.AddOns {
		names = append(names, text.ObjectName(addonv1alpha1.GroupVersion.Group, "ManagedClusterAddOn", i.AddOn))
	}
	for _, i := range l.Instances {
		names = append(names, text.ObjectName(kudo.GroupVersion.Group, "Instance", i.Instance))
	}
	return names
}

// items returns the add-ons, then the Instances.
func (l addOnList) items() []any {
	items := make([]any, 0, len(l.AddOns)+len(l.Instances))
	for _, i := range l.AddOns {
		items = append(items, i)
	}
	for _, i := range l.Instances {
		items = append(items, i)
	}
	return items
}
