// Package fleet summarizes the add-ons of a fleet as the hub has them: of one cluster, with the verdict on their dependencies, and of all
// clusters, by state and reason. It is pure and touches no cluster.
package fleet

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/selector"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Cluster holds the add-ons of a cluster and their dependencies.
type Cluster struct {
	Name string
	// Definitions and AddOns are keyed by name; Definitions has the definitions of the whole hub.
	Definitions map[string]Definition
	AddOns      map[string]*addonv1alpha1.ManagedClusterAddOn
	// Selected is what selectors of dependencies read of the ManagedCluster; nil if it was not read.
	Selected *selector.Cluster
	// Instances holds the cluster's Instances by name; nil if they were not read.
	Instances map[string]*kudo.Instance
	Rollouts
}

// Definition holds the declarations of a ClusterManagementAddOn. It is parsed once, because evaluations of dependencies use it often.
type Definition struct {
	Needs []addonv1alpha1.AddonDependency
	// Malformed is the problem of a declaration that cannot be evaluated.
	Malformed error
	// PlanManaged is set if the add-on is plan-based.
	PlanManaged bool
	Object      *addonv1alpha1.ClusterManagementAddOn
}

// DefinitionOf parses the declarations of a ClusterManagementAddOn.
func DefinitionOf(object *addonv1alpha1.ClusterManagementAddOn) Definition {
	needs, problem := dependency.DeclaredBy(object)
	return Definition{Needs: needs, Malformed: problem, PlanManaged: install.IsPlanManaged(object), Object: object}
}

// CheckAddOn returns an error if neither the hub nor the cluster has an add-on of the name.
func (v Cluster) CheckAddOn(name string) error {
	if _, defined := v.Definitions[name]; defined || v.AddOns[name] != nil {
		return nil
	}
	if v.Instances[name] != nil {
		return fmt.Errorf("%q is an Instance without an add-on: run 'kubectl addon plan status %s --cluster %s'", name, name, v.Name)
	}
	return fmt.Errorf("add-on %q not found; add-ons of cluster %q: %s; ClusterManagementAddOns: %s",
		name, v.Name, text.ListOrNone(v.AddOnNames()), text.ListOrNone(slices.Sorted(maps.Keys(v.Definitions))))
}

// AddOnNames returns the sorted names of the add-ons on the cluster.
func (v Cluster) AddOnNames() []string { return slices.Sorted(maps.Keys(v.AddOns)) }

// Needs returns the dependencies that an add-on has on the cluster. If it is not known whether a selector selects the cluster, the last verdict decides:
// what it does not name is satisfied or does not exist.
func (v Cluster) Needs(name string) []addonv1alpha1.AddonDependency {
	needs := v.Definitions[name].Needs
	switch {
	case !dependency.SelectClusters(needs):
		return needs
	case v.Selected != nil:
		return dependency.On(needs, *v.Selected)
	}
	var last []string
	if addOn := v.AddOns[name]; addOn != nil {
		last = dependency.Names(dependency.UnmetFrom(meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionDegraded)))
	}
	return slices.DeleteFunc(slices.Clone(needs), func(n addonv1alpha1.AddonDependency) bool {
		return !selector.SelectsAll(n.Clusters) && !slices.Contains(last, n.Name)
	})
}

// Elsewhere returns the dependencies of an add-on that exist on other clusters only; none if that is not known.
func (v Cluster) Elsewhere(name string) []addonv1alpha1.AddonDependency {
	if v.Selected == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(v.Definitions[name].Needs), func(n addonv1alpha1.AddonDependency) bool {
		return selector.Matches(n.Clusters, *v.Selected)
	})
}

// Nearest returns the dependencies of an add-on on the cluster, each on the candidate that satisfies it or comes closest.
func (v Cluster) Nearest(name string) []addonv1alpha1.AddonDependency {
	var needs []addonv1alpha1.AddonDependency
	for _, j := range v.Judge(name) {
		needs = append(needs, addonv1alpha1.AddonDependency{Name: j.By, Type: j.Type})
	}
	return needs
}

// See returns the state of an add-on as evaluated by dependency.
func (v Cluster) See(name string) dependency.Seen {
	seen := dependency.See(nil, v.AddOns[name])
	definition, defined := v.Definitions[name]
	seen.Defined, seen.Placed = defined, dependency.IsPlaced(definition.Object)
	seen.Versions = v.versionsOf(name)
	seen.Deferred = v.isDeferred(name)
	return seen
}

// isDeferred reports whether the removal of an add-on that is being deleted has not started. If Instances were not read, its condition decides.
func (v Cluster) isDeferred(name string) bool {
	addOn := v.AddOns[name]
	switch {
	case addOn == nil || addOn.DeletionTimestamp.IsZero() || !slices.Contains(addOn.Finalizers, kudo.Finalizer):
		return false
	case v.Instances == nil:
		remaining := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAddOnsRemaining)
		return remaining != nil && remaining.Reason == addonv1alpha1.ReasonWaitingForDependents
	default:
		instance := v.InstanceOf(addOn)
		return instance != nil && instance.DeletionTimestamp.IsZero()
	}
}

// Removal returns the place of an add-on in the order of removal, if it is deleted now. Only add-ons that run packages are removed in that order.
func (v Cluster) Removal(name string) dependency.Removal {
	if !v.Definitions[name].PlanManaged {
		return dependency.Removal{}
	}
	on := make(map[string]dependency.Installed, len(v.AddOns))
	for other := range v.AddOns {
		installed := dependency.Installed{Seen: v.See(other), Needs: v.Needs(other)}
		installed.Deleting = installed.Deleting || other == name
		on[other] = installed
	}
	return dependency.RemovalOf(name, on)
}

// DisabledAfter returns the add-ons that addon-manager disables once an add-on is gone, because it has enabled them for that one.
func (v Cluster) DisabledAfter(name string) []string {
	on := make(map[string]dependency.Enabled, len(v.AddOns))
	for other, addOn := range v.AddOns {
		on[other] = dependency.EnabledOf(addOn, v.Definitions[other].Object, v.Needs(other))
	}
	var gone []string
	for next := []string{name}; len(next) > 0; next = dependency.AutomaticOf(on, nil).Disable {
		for _, removed := range next {
			delete(on, removed)
		}
		gone = append(gone, next...)
	}
	return gone[1:]
}

// versionsOf returns the versions of an add-on that run.
func (v Cluster) versionsOf(name string) dependency.Versions {
	switch definition := v.Definitions[name]; {
	case !definition.PlanManaged:
		return dependency.LabelledVersion(definition.Object)
	case v.Instances == nil:
		return dependency.Versions{Unread: true}
	case v.AddOns[name] == nil:
		return dependency.InstalledVersions(nil)
	default:
		return dependency.InstalledVersions(v.InstanceOf(v.AddOns[name]))
	}
}

// constraintsOf returns what the running releases of an add-on require of the versions of others, by their names.
func (v Cluster) constraintsOf(name string) map[string][]string {
	addOn := v.AddOns[name]
	if addOn == nil || v.InstanceOf(addOn) == nil {
		return nil
	}
	return dependency.RunningConstraints(v.InstanceOf(addOn))
}

// Members returns the add-ons with what they run, as the order of upgrades depends on it. The Instances must have been read.
func (v Cluster) Members() map[string]dependency.Member {
	members := make(map[string]dependency.Member, len(v.AddOns))
	for name, addOn := range v.AddOns {
		member := dependency.Member{Needs: v.Needs(name), Deleting: !addOn.DeletionTimestamp.IsZero()}
		if instance := v.InstanceOf(addOn); instance != nil {
			member.Runs = dependency.RunningReleases(instance, nil)
		} else if definition := v.Definitions[name]; !definition.PlanManaged {
			member.Runs = []dependency.Release{dependency.LabelledRelease(definition.Object)}
		}
		members[name] = member
	}
	return members
}

// InstanceOf returns the Instance of an add-on; nil if it has none.
func (v Cluster) InstanceOf(addOn *addonv1alpha1.ManagedClusterAddOn) *kudo.Instance {
	if instance := v.Instances[addOn.Name]; instance != nil && IsOfAddOn(instance) {
		return instance
	}
	return nil
}

// IsOfAddOn reports whether the Instance belongs to the add-on of its name.
func IsOfAddOn(instance *kudo.Instance) bool {
	owner := metav1.GetControllerOfNoCopy(instance)
	return owner != nil && owner.Kind == "ManagedClusterAddOn" && owner.Name == instance.Name
}

// Judge evaluates the dependencies of an add-on as addon-manager does.
func (v Cluster) Judge(name string) dependency.Verdict {
	needs, constraints := v.Needs(name), v.constraintsOf(name)
	seen := make(map[string]dependency.Seen, len(needs))
	for _, candidate := range dependency.CandidatesOf(needs) {
		s := v.See(candidate)
		s.Cycle, s.Constraints = dependency.Cycle(name, candidate, v.Needs), constraints[candidate]
		seen[candidate] = s
	}
	addOn := v.AddOns[name]
	if addOn == nil {
		return dependency.Evaluate(needs, seen, nil)
	}
	for _, other := range dependency.EnabledOf(addOn, nil, nil).With {
		if s, needed := seen[other]; needed {
			s.Declined = true
			seen[other] = s
		}
	}
	return dependency.Evaluate(needs, seen, meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionDegraded))
}

// Once returns a function that caches the results of a function by name.
func Once[T any](of func(name string) T) func(name string) T {
	known := map[string]T{}
	return func(name string) T {
		if _, asked := known[name]; !asked {
			known[name] = of(name)
		}
		return known[name]
	}
}

// Dependents returns the dependents of an add-on on the cluster, except those that are being deleted. An alternative satisfies a dependent as addon-manager
// judges it, also by its version. If it is not known whether a selector selects the cluster, its dependency counts.
func (v Cluster) Dependents(name string) []dependency.Dependent {
	needs := make(map[string][]addonv1alpha1.AddonDependency, len(v.Definitions))
	for of, definition := range v.Definitions {
		needs[of] = definition.Needs
		if v.Selected != nil {
			needs[of] = v.Needs(of)
		}
	}
	return dependency.Dependents(name, dependency.Direct(needs), func(other string) bool {
		there := v.AddOns[other]
		return there != nil && there.DeletionTimestamp.IsZero()
	}, func(dependent, addOn, other string) bool {
		seen := v.See(other)
		seen.Constraints = v.constraintsOf(dependent)[other]
		return !slices.ContainsFunc(needs[dependent], func(n addonv1alpha1.AddonDependency) bool {
			candidates := dependency.Candidates(n)
			return slices.Contains(candidates, addOn) && slices.Contains(candidates, other) && !seen.Replaces(n, other)
		})
	})
}

// Undecided returns the required dependencies of an add-on of which it is not known whether they exist on the cluster.
func (v Cluster) Undecided(name string) []string {
	var names []string
	for _, need := range v.Definitions[name].Needs {
		if v.Selected == nil && need.Type == addonv1alpha1.DependencyTypeRequired && !selector.SelectsAll(need.Clusters) {
			names = append(names, need.Name)
		}
	}
	return names
}
