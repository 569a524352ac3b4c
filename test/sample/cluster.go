// Package sample has clusters, add-ons, Instances and packages for tests of the packages that decide about them.
package sample

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/selector"
)

// Now is the time at which conditions of samples have changed.
var Now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var onceUponATime = metav1.NewTime(Now)

// Define returns the definition of the add-on "a" for "a: b c? d|e f@gpu": ? marks an optional dependency, | precedes alternatives, and @ a label of the
// clusters on which the dependency exists.
func Define(line string) *addonv1alpha1.ClusterManagementAddOn {
	name, needs, _ := strings.Cut(line, ":")
	d := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for need := range strings.FieldsSeq(needs) {
		need, isOptional := strings.CutSuffix(need, "?")
		t := addonv1alpha1.DependencyTypeRequired
		if isOptional {
			t = addonv1alpha1.DependencyTypeOptional
		}
		need, label, selects := strings.Cut(need, "@")
		candidates := strings.Split(need, "|")
		dependency := addonv1alpha1.AddonDependency{Name: candidates[0], Type: t}
		if len(candidates) > 1 {
			dependency.Alternatives = candidates[1:]
		}
		if selects {
			dependency.Clusters = &addonv1alpha1.ClusterSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "true"}}}
		}
		d.Spec.Dependencies = append(d.Spec.Dependencies, dependency)
	}
	return d
}

// Cluster is a cluster with test add-ons.
type Cluster struct{ fleet.Cluster }

// Labelled sets labels of the cluster to "true".
func (v Cluster) Labelled(labels ...string) Cluster {
	v.Selected = &selector.Cluster{Name: v.Name, Labels: map[string]string{}}
	for _, label := range labels {
		v.Selected.Labels[label] = "true"
	}
	return v
}

// NewCluster returns a cluster with the definitions of all lines.
func NewCluster(lines ...string) Cluster {
	view := Cluster{fleet.Cluster{
		Name: "cluster1", Definitions: map[string]fleet.Definition{}, AddOns: map[string]*addonv1alpha1.ManagedClusterAddOn{},
	}}
	for _, line := range lines {
		d := Define(line)
		view.Definitions[d.Name] = fleet.DefinitionOf(d)
	}
	return view
}

// With adds an add-on to the cluster.
func (v Cluster) With(name string, conditions ...metav1.Condition) Cluster {
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: v.Name}}
	for i := range conditions {
		conditions[i].LastTransitionTime = onceUponATime
	}
	addOn.Status.Conditions = conditions
	v.AddOns[name] = addOn
	return v
}

// WithVerdicts sets the conditions of each add-on as addon-manager and the agent do, repeatedly until they settle.
func (v Cluster) WithVerdicts() Cluster {
	for range v.AddOns {
		for name, addOn := range v.AddOns {
			verdict := v.Judge(name).Condition()
			if verdict == nil {
				continue
			}
			conditions := []metav1.Condition{*verdict}
			for _, c := range addOn.Status.Conditions {
				if c.Type == addonv1alpha1.ConditionAvailable && verdict.Reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied &&
					c.Status != metav1.ConditionUnknown {
					c.Status, c.Reason, c.Message = metav1.ConditionFalse, verdict.Reason, verdict.Message
				}
				if c.Type != addonv1alpha1.ConditionDegraded {
					conditions = append(conditions, c)
				}
			}
			addOn.Status.Conditions = conditions
		}
	}
	return v
}

// WithDeletion marks an add-on as being deleted.
func (v Cluster) WithDeletion(name string, finalizers ...string) Cluster {
	v.AddOns[name].DeletionTimestamp = &onceUponATime
	v.AddOns[name].Finalizers = finalizers
	return v
}

// WithNeedMessage sets the message about the loss of a dependency.
func (v Cluster) WithNeedMessage(name, need, message string) Cluster {
	needs := v.Needs(name)
	for i := range needs {
		if needs[i].Name == need {
			needs[i].Message = message
		}
	}
	return v
}

// WithConstraint sets the constraint of a dependency on the version of what an add-on needs.
func (v Cluster) WithConstraint(name, need, constraint string) Cluster {
	needs := v.Needs(name)
	for i := range needs {
		if needs[i].Name == need {
			needs[i].Version = constraint
		}
	}
	return v
}

// Protecting makes an add-on protect what it needs.
func (v Cluster) Protecting(name, need string) Cluster {
	needs := v.Needs(name)
	for i := range needs {
		if needs[i].Name == need {
			needs[i].Removal = addonv1alpha1.RemovalProtect
		}
	}
	return v
}

// WithVersion labels the definition of an add-on that runs no package.
func (v Cluster) WithVersion(name, version string) Cluster {
	v.Definitions[name].Object.Labels = map[string]string{"app.kubernetes.io/version": version}
	return v
}

// WithWhole sets the version that the plans of an add-on have applied completely.
func (v Cluster) WithWhole(name, version string) Cluster {
	v = v.Plans(name).WithExecution(name, kudo.DeployPlan)
	owner := metav1.OwnerReference{Kind: "ManagedClusterAddOn", Name: name, Controller: new(true)}
	v.Instances[name].Name, v.Instances[name].OwnerReferences = name, []metav1.OwnerReference{owner}
	v.Instances[name].Status.Whole = &kudo.WholeVersion{AppVersion: version}
	return v
}

// WithCustomHealth marks an add-on whose own controller reports its health.
func (v Cluster) WithCustomHealth(name string) Cluster {
	v.AddOns[name].Status.HealthCheck.Mode = upstream.HealthCheckModeCustomized
	return v
}

// WithExecution sets the last started plan of the add-on's Instance.
func (v Cluster) WithExecution(name, plan string) Cluster {
	if v.Instances == nil {
		v.Instances = map[string]*kudo.Instance{}
	}
	v.Instances[name] = &kudo.Instance{Status: kudo.InstanceStatus{Execution: &kudo.Execution{Plan: plan}}}
	return v
}

// WithChangedSpec marks the add-on's Instance as changed since its agent observed it.
func (v Cluster) WithChangedSpec(name string) Cluster {
	v = v.WithExecution(name, kudo.DeployPlan)
	v.Instances[name].Generation, v.Instances[name].Status.ObservedGeneration = 2, 1
	v.Instances[name].Status.Conditions = []metav1.Condition{Condition(kudo.ConditionResolved, "True", kudo.ReasonResolved, "")}
	return v
}

// Plans marks an add-on whose plans Tandem runs.
func (v Cluster) Plans(name string) Cluster {
	d := v.Definitions[name]
	d.PlanManaged = true
	v.Definitions[name] = d
	return v
}

// In sets the installation namespace of an add-on.
func (v Cluster) In(name, namespace string) Cluster {
	v.AddOns[name].Spec.InstallNamespace = namespace
	return v
}

// WithHosting marks an add-on whose agent runs on another cluster.
func (v Cluster) WithHosting(name string) Cluster {
	v.AddOns[name].Annotations = map[string]string{upstream.HostingClusterNameAnnotationKey: "hosting"}
	return v
}

// WithAnnotation declares the dependencies of an add-on by the annotation instead of the field.
func (v Cluster) WithAnnotation(name, text string) Cluster {
	v.Definitions[name] = fleet.DefinitionOf(&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{addonv1alpha1.AnnotationDependencies: text},
	}})
	return v
}

// RolledOut adds an add-on of another cluster that OCM has included in a rollout, with these conditions.
func (v Cluster) RolledOut(name, cluster string, conditions ...metav1.Condition) Cluster {
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cluster}}
	addOn.Status.Conditions = append(conditions, Condition(addonv1alpha1.ConditionConfigured, "True", "ConfigurationsConfigured", ""))
	if v.Peers == nil {
		v.Peers = map[string][]fleet.Peer{}
	}
	v.Peers[name] = append(v.Peers[name], fleet.Peer{AddOn: addOn})
	return v
}

// Stuck adds rollouts of which all slots are occupied, and that wait for each other: "kafka cluster1: shop" is a cluster that occupies a slot of kafka, and waits there for shop, which has not reached it.
func (v Cluster) Stuck(slots ...string) Cluster {
	var unfinished []dependency.Unfinished
	occupied := map[string]int{}
	for _, slot := range slots {
		subject, others, _ := strings.Cut(slot, ":")
		addOn, cluster, _ := strings.Cut(subject, " ")
		occupied[addOn]++
		unfinished = append(unfinished, dependency.Unfinished{AddOn: addOn, Cluster: cluster, WaitsFor: strings.Fields(others)})
		for other := range strings.FieldsSeq(others) {
			unfinished = append(unfinished, dependency.Unfinished{AddOn: other, Cluster: cluster, Queued: true})
		}
	}
	for i, u := range unfinished {
		unfinished[i].Stage.Slots = max(1, occupied[u.AddOn])
	}
	v.Deadlocks = dependency.SlotDeadlocks(unfinished)
	return v
}

// PlacedBy marks an add-on that OCM enables by a Placement.
func (v Cluster) PlacedBy(name, placement string) Cluster {
	v.Definitions[name].Object.Spec.InstallStrategy = upstream.InstallStrategy{
		Type:       upstream.AddonInstallStrategyPlacements,
		Placements: []upstream.PlacementStrategy{{PlacementRef: upstream.PlacementRef{Namespace: "default", Name: placement}}},
	}
	return v
}

// VersionPlacedBy marks an add-on whose OperatorVersion OCM applies to all clusters that a Placement selects.
func (v Cluster) VersionPlacedBy(name, placement, version string) Cluster {
	resource := upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions}
	config := upstream.ConfigReferent{Namespace: "addon-packages", Name: version}
	v.PlacedBy(name, placement).Definitions[name].Object.Spec.InstallStrategy.Placements[0].Configs = []upstream.AddOnConfig{{
		ConfigGroupResource: resource, ConfigReferent: config,
	}}
	if addOn := v.AddOns[name]; addOn != nil {
		addOn.Status.ConfigReferences = append(addOn.Status.ConfigReferences, upstream.ConfigReference{
			ConfigGroupResource: resource, DesiredConfig: &upstream.ConfigSpecHash{ConfigReferent: config, SpecHash: "hash"},
		})
	}
	return v
}

// Progressive makes OCM roll out an add-on that a Placement enables to a number of clusters at a time.
func (v Cluster) Progressive(name string, maxConcurrency int32) Cluster {
	v.PlacedBy(name, "everywhere").Definitions[name].Object.Spec.InstallStrategy.Placements[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(maxConcurrency)},
	}
	return v
}
