package audit

import (
	"encoding/json"
	"slices"
	"time"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/compatibility"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
)

// OrderViolations returns what a managed cluster ran or removed against the order of dependencies, from the complete logs of the hub and of the cluster: versions
// that ran together although a package or a ClusterManagementAddOn excludes that, and removals before those of dependents. The policy must log the bodies of
// addon-agent's writes, and the responses with ClusterManagementAddOns and ManagedClusters.
//
// It leaves out what the logs do not decide: a dependency with alternatives counts where none of the others is enabled, one with a selector where it selects the
// cluster in all of its states, and a constraint that each declaration of the add-on has.
func OrderViolations(hub, managed []Entry, cluster string) []string {
	f, versions := fleetOf(hub, cluster), releasesOf(mirroredVersions(managed))
	excluded := Exclusions(managed, func(dependent, other Running) bool {
		byPackage := versions.exclude(dependent, other)
		return f.alwaysNeeds(dependent.Instance, func(n addonv1alpha1.AddonDependency) bool {
			return n.Type != addonv1alpha1.DependencyTypeOptional && f.selects(n.Clusters) && (byPackage || versions.violates(n.Version, other)) &&
				isAlone(other.Instance, n, func(name string) bool { return len(f.enabled[name]) > 0 })
		})
	})
	return append(excluded, EarlyRemovals(managed, Deletions(hub, cluster), func(dependent, other string, at time.Time) bool {
		return slices.ContainsFunc(f.needsAt(dependent, at), func(n addonv1alpha1.AddonDependency) bool {
			return f.selects(n.Clusters) && isAlone(other, n, func(name string) bool { return f.isEnabled(name, at) })
		})
	})...)
}

// ExcludedBy returns what the constraints of packages exclude, whatever add-ons declare.
func ExcludedBy(versions []kudo.OperatorVersionSpec) Excludes { return releasesOf(versions).exclude }

// release is a version of an operator, and releases are the packages of some.
type release struct{ operator, version string }

type releases map[release]kudo.OperatorVersionSpec

func releasesOf(versions []kudo.OperatorVersionSpec) releases {
	specs := releases{}
	for _, v := range versions {
		specs[release{v.Operator.Name, v.Version}] = v
	}
	return specs
}

// exclude reports whether a constraint of the dependent's package excludes the other version.
func (r releases) exclude(dependent, other Running) bool {
	return slices.ContainsFunc(r[release{dependent.Operator, dependent.Version}].Dependencies, func(c kudo.DependencyConstraint) bool {
		return c.Name == other.Instance && r.violates(c.Version, other)
	})
}

// violates reports whether a version does not satisfy a constraint; an empty one is satisfied.
func (r releases) violates(constraint string, other Running) bool {
	if constraint == "" {
		return false
	}
	compared := other.Version
	if spec, known := r[release{other.Operator, other.Version}]; known {
		compared = dependency.VersionOf(&spec)
	}
	satisfied, err := compatibility.Satisfies(compared, constraint)
	return err != nil || !satisfied
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
