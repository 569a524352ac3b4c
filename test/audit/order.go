package audit

import (
	"encoding/json"
	"slices"
	"time"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/compatibility"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/selector"
)

// OrderViolations returns what a managed cluster ran or removed against the order of dependencies, from the complete logs of the hub and of the cluster: versions
// that ran together although a package excludes that, and removals before those of dependents. The policy must log the bodies of addon-agent's writes, and the
// responses with ClusterManagementAddOns. Dependencies with alternatives or a selector of clusters are left out, because other states decide these.
func OrderViolations(hub, managed []Entry, cluster string) []string {
	declared := declarations(hub)
	needs := func(dependent, other string, required bool, at time.Time) bool {
		return slices.ContainsFunc(declared.at(dependent, at), func(n addonv1alpha1.AddonDependency) bool {
			return n.Name == other && len(n.Alternatives) == 0 && selector.SelectsAll(n.Clusters) &&
				(!required || n.Type != addonv1alpha1.DependencyTypeOptional)
		})
	}
	excludes := ExcludedBy(mirroredVersions(managed))
	excluded := Exclusions(managed, func(dependent, other Running) bool {
		return excludes(dependent, other) && needs(dependent.Instance, other.Instance, true, time.Time{})
	})
	return append(excluded, EarlyRemovals(managed, Deletions(hub, cluster), func(dependent, other string, at time.Time) bool {
		return needs(dependent, other, false, at)
	})...)
}

// ExcludedBy returns what the constraints of packages exclude, whatever add-ons declare.
func ExcludedBy(versions []kudo.OperatorVersionSpec) Excludes {
	type release struct{ operator, version string }
	specs := map[release]kudo.OperatorVersionSpec{}
	for _, v := range versions {
		specs[release{v.Operator.Name, v.Version}] = v
	}
	return func(dependent, other Running) bool {
		compared := other.Version
		if spec, known := specs[release{other.Operator, other.Version}]; known {
			compared = dependency.VersionOf(&spec)
		}
		return slices.ContainsFunc(specs[release{dependent.Operator, dependent.Version}].Dependencies, func(c kudo.DependencyConstraint) bool {
			satisfied, err := compatibility.Satisfies(compared, c.Version)
			return c.Name == other.Instance && (err != nil || !satisfied)
		})
	}
}

// mirroredVersions returns the OperatorVersions that were written to a managed cluster.
func mirroredVersions(managed []Entry) []kudo.OperatorVersionSpec {
	var versions []kudo.OperatorVersionSpec
	for i := range managed {
		var written kudo.OperatorVersion
		if e := &managed[i]; e.Is("operatorversions", "") && e.IsSuccess() && json.Unmarshal(e.RequestObject, &written) == nil && written.Spec.Version != "" {
			versions = append(versions, written.Spec)
		}
	}
	return versions
}

// declaration is what a ClusterManagementAddOn declared from a time on; nothing once it is deleted.
type declaration struct {
	from  time.Time
	needs []addonv1alpha1.AddonDependency
}

type history map[string][]declaration

// declarations returns what the log of the hub says that add-ons declared.
func declarations(hub []Entry) history {
	declared := history{}
	for i := range hub {
		e := &hub[i]
		if !e.Is("clustermanagementaddons", "") || !e.IsSuccess() || !e.writes() {
			continue
		}
		var stored addonv1alpha1.ClusterManagementAddOn
		if e.Verb == "delete" {
			declared[e.ObjectRef.Name] = append(declared[e.ObjectRef.Name], declaration{from: e.RequestTime()})
		} else if json.Unmarshal(e.ResponseObject, &stored) == nil && stored.Name != "" {
			declared[stored.Name] = append(declared[stored.Name], declaration{e.RequestTime(), dependency.Needs(&stored)})
		}
	}
	return declared
}

// at returns what an add-on declared at a time; at no time, what it first declared.
func (h history) at(addOn string, at time.Time) []addonv1alpha1.AddonDependency {
	declared := h[addOn]
	if at.IsZero() && len(declared) > 0 {
		return declared[0].needs
	}
	var needs []addonv1alpha1.AddonDependency
	for _, d := range declared {
		if !d.from.After(at) {
			needs = d.needs
		}
	}
	return needs
}
