// Package whatif decides what a change that is not made would affect on a fleet: the removal of an add-on, another version of it, and another version of
// Kubernetes. It is pure and touches no cluster.
package whatif

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

// Cluster is a cluster with everything that the start of versions depends on.
type Cluster struct {
	fleet.Cluster
	Versions Versions
}

// Versions are the OperatorVersions of a hub.
type Versions struct {
	// Stored is nil if they were not read.
	Stored map[types.NamespacedName]*kudo.OperatorVersion
	// Unread has the namespaces in which the user may not list them.
	Unread map[string]bool
}

// lacks reports whether an OperatorVersion does not exist. One that was not read may.
func (v Versions) lacks(name types.NamespacedName) bool {
	return v.Stored != nil && v.Stored[name] == nil && !v.Unread[name.Namespace]
}

// Namespaces returns the sorted namespaces of the OperatorVersions that add-ons and Instances of clusters run or are configured with.
func Namespaces(clusters ...fleet.Cluster) []string {
	var found []string
	for _, view := range clusters {
		for name := range view.AddOns {
			found = append(found, configuredVersion(view, name).Namespace)
		}
		for _, instance := range view.Instances {
			found = append(found, install.VersionOf(instance).Namespace)
			if whole := instance.Status.Whole; whole != nil {
				found = append(found, whole.OperatorVersion.Namespace)
			}
		}
	}
	slices.Sort(found)
	return slices.DeleteFunc(slices.Compact(found), func(namespace string) bool { return namespace == "" })
}

// WaitReason describes why an add-on cannot change to a release, or be installed with it, and what has to happen first; empty if it can. It says what
// addon-manager reports, see dependency.MissingReason and dependency.WaitReason.
func (c Cluster) WaitReason(name string, to dependency.Release) string {
	members := c.members()
	member := members[name]
	member.Wants = &to
	members[name] = member
	return cmp.Or(dependency.MissingReason(name, members), dependency.WaitReason(name, members, c.releases))
}

// NeedsVersions reports whether what runs depends on the OperatorVersions of the hub: an agent has not reported the constraints of a version yet.
func (c Cluster) NeedsVersions() bool {
	for _, addOn := range c.AddOns {
		if instance := c.InstanceOf(addOn); instance != nil && !dependency.RunsNamed(instance) {
			return true
		}
	}
	return false
}

// members returns the add-ons with what they run and want.
func (c Cluster) members() map[string]dependency.Member {
	members := c.Members()
	for name, addOn := range c.AddOns {
		instance := c.InstanceOf(addOn)
		if instance == nil {
			continue
		}
		member, named := members[name], install.VersionOf(instance)
		member.Runs = dependency.RunningReleases(instance, c.Versions.Stored[named])
		if !dependency.RunsNamed(instance) && c.Versions.lacks(named) {
			member.Runs = append(member.Runs, dependency.MissingRelease(named.Name))
		}
		if c.Definitions[name].Malformed != nil {
			member.Needs = dependency.NeedsOf(member.Runs)
		}
		if wanted := c.Versions.Stored[configuredVersion(c.Cluster, name)]; wanted != nil && named != configuredVersion(c.Cluster, name) {
			member.Wants = new(dependency.ReleaseOf(wanted))
		}
		members[name] = member
	}
	return members
}

// releases returns the releases of the operator of an add-on, the lowest first.
func (c Cluster) releases(name string) []dependency.Release {
	key := configuredVersion(c.Cluster, name)
	current := c.Versions.Stored[key]
	if current == nil {
		return nil
	}
	var versions []*kudo.OperatorVersion
	for of, version := range c.Versions.Stored {
		if of.Namespace == key.Namespace && version.OperatorName() == current.OperatorName() {
			versions = append(versions, version)
		}
	}
	slices.SortFunc(versions, tree.Compare)
	releases := make([]dependency.Release, 0, len(versions))
	for _, version := range versions {
		releases = append(releases, dependency.ReleaseOf(version))
	}
	return releases
}

// configuredVersion returns the OperatorVersion that an add-on is configured with on a cluster; empty if it runs no package.
func configuredVersion(view fleet.Cluster, name string) types.NamespacedName {
	definition := view.Definitions[name]
	if !definition.PlanManaged || view.AddOns[name] == nil {
		return types.NamespacedName{}
	}
	return install.VersionInUse(definition.Object, view.AddOns[name])
}
