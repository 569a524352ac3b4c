package dependency

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Release is a version of an add-on.
type Release struct {
	// Name is the name of its OperatorVersion; empty for an add-on that runs no package.
	Name string
	// Version is what constraints are compared with. Problem is why it is unknown.
	Version, Problem string
	// Constraints are those of the OperatorVersion on the versions of other add-ons.
	Constraints []kudo.DependencyConstraint
	// Target is true if it is the one to which the add-on is changing: its Instance names it.
	Target bool
}

// ReleaseOf returns the release of an OperatorVersion.
func ReleaseOf(version *kudo.OperatorVersion) Release {
	release := Release{Name: version.Name, Version: VersionOf(&version.Spec), Constraints: version.Spec.Dependencies}
	if release.Version == "" {
		release.Problem = fmt.Sprintf("OperatorVersion %s has none", text.Quote(version.Name))
	}
	return release
}

// Member is an add-on on a cluster with everything that the order of upgrades depends on.
type Member struct {
	// Needs are the dependencies that it declares and has on the cluster.
	Needs []addonv1alpha1.AddonDependency
	// Runs are the releases that are installed, that a plan applies, or that its Instance names; empty if it is not installed.
	Runs []Release
	// Wants is the release that it is configured to change to; nil if there is none.
	Wants *Release
}

// RunningReleases returns the releases of an add-on that runs a package: that which is installed, that which a plan applies, and that which its
// Instance names, whose OperatorVersion is named; nil if it does not exist.
func RunningReleases(instance *kudo.Instance, named *kudo.OperatorVersion) []Release {
	installed := InstalledVersions(instance)
	whole, last := instance.Status.Whole, instance.Status.Execution
	first := Release{Version: installed.Installed, Problem: installed.Problem}
	var known []corev1.ObjectReference
	if whole != nil {
		first.Name, first.Constraints = whole.OperatorVersion.Name, whole.Dependencies
		known = append(known, whole.OperatorVersion)
	}
	releases := []Release{first}
	if applies(instance) {
		releases = append(releases, Release{
			Name: last.OperatorVersion.Name, Version: last.DependencyVersion, Problem: installed.Problem, Constraints: last.Dependencies,
		})
		known = append(known, last.OperatorVersion)
	}
	isNamed := func(r corev1.ObjectReference) bool {
		return r.Name == instance.Spec.OperatorVersion.Name && r.Namespace == instance.Spec.OperatorVersion.Namespace
	}
	if named != nil && !slices.ContainsFunc(known, isNamed) {
		releases = append(releases, ReleaseOf(named))
	}
	for i := range releases {
		releases[i].Target = len(releases) > 1 && releases[i].Name == instance.Spec.OperatorVersion.Name
	}
	return releases
}

// applies reports whether the last plan applies, or has failed to apply, another OperatorVersion than the one that is installed.
func applies(instance *kudo.Instance) bool {
	whole, last := instance.Status.Whole, instance.Status.Execution
	return last != nil && (whole == nil || last.OperatorVersion.UID != whole.OperatorVersion.UID)
}

// RunningConstraints returns what the releases of an add-on that are installed, or that a plan applies, require of the versions of others, by their names.
func RunningConstraints(instance *kudo.Instance) map[string][]string {
	var releases [][]kudo.DependencyConstraint
	if whole := instance.Status.Whole; whole != nil {
		releases = append(releases, whole.Dependencies)
	}
	if applies(instance) {
		releases = append(releases, instance.Status.Execution.Dependencies)
	}
	return ByName(releases...)
}

// ByName groups the constraints by the add-on that they constrain; nil if there are none.
func ByName(of ...[]kudo.DependencyConstraint) map[string][]string {
	var constraints map[string][]string
	for _, constraint := range slices.Concat(of...) {
		if constraints == nil {
			constraints = map[string][]string{}
		}
		if !slices.Contains(constraints[constraint.Name], constraint.Version) {
			constraints[constraint.Name] = append(constraints[constraint.Name], constraint.Version)
		}
	}
	return constraints
}

// LabelledRelease returns the release of an add-on that runs no package, from its definition.
func LabelledRelease(definition *addonv1alpha1.ClusterManagementAddOn) Release {
	versions := LabelledVersion(definition)
	return Release{Version: versions.Installed, Problem: versions.Problem}
}

// Exclusion is a constraint that does not hold if an add-on changes to a release.
type Exclusion struct {
	// AddOn is the add-on that has the constraint, and Release its release with the constraint; empty if its ClusterManagementAddOn has it.
	AddOn, Release string
	// On is the add-on whose version the constraint excludes, and Version that version; Problem is why it is unknown.
	On, Version, Problem string
	Constraint           string
}

// Exclusions returns the constraints that keep the add-on of that name from changing to a release: its own on what runs, and those of its
// dependents that run on the release. Only required dependencies count. A constraint of a dependent that does not hold now either keeps nothing back.
// They are in the declared order, then by the dependents' names.
func Exclusions(name string, to Release, on map[string]Member) []Exclusion {
	var found []Exclusion
	member := on[name]
	for _, need := range member.Needs {
		if exclusion := exclusionOf(name, need, to, on); exclusion != nil {
			found = append(found, *exclusion)
		}
	}
	changed := maps.Clone(on)
	member.Runs = append(slices.Clip(member.Runs), to)
	changed[name] = member
	for _, other := range slices.Sorted(maps.Keys(on)) {
		if other != name {
			found = append(found, newExclusions(other, name, on, changed)...)
		}
	}
	return found
}

// newExclusions returns the constraints of a dependent that runs and of which on, but not changed, satisfies all that a dependency requires.
func newExclusions(dependent, changes string, on, changed map[string]Member) []Exclusion {
	var found []Exclusion
	for _, need := range on[dependent].Needs {
		if !slices.Contains(Candidates(need), changes) {
			continue
		}
		for _, release := range on[dependent].Runs {
			if exclusionOf(dependent, need, release, on) != nil {
				continue
			}
			if exclusion := exclusionOf(dependent, need, release, changed); exclusion != nil {
				found = append(found, *exclusion)
				break
			}
		}
	}
	return found
}

// exclusionOf returns the first constraint on a required dependency of a release that no installed candidate satisfies; nil if one does, or if none is
// installed: that never keeps an add-on from changing.
func exclusionOf(addOn string, need addonv1alpha1.AddonDependency, release Release, on map[string]Member) (first *Exclusion) {
	if need.Type == addonv1alpha1.DependencyTypeOptional {
		return nil
	}
	for _, candidate := range Candidates(need) {
		runs := on[candidate].Runs
		if len(runs) == 0 {
			continue
		}
		exclusion := excludes(addOn, need, release, candidate, runs)
		if exclusion == nil {
			return nil
		}
		first = cmp.Or(first, exclusion)
	}
	return first
}

// excludes returns the first constraint on a candidate that one of its running releases does not satisfy.
func excludes(addOn string, need addonv1alpha1.AddonDependency, release Release, candidate string, runs []Release) *Exclusion {
	for _, run := range runs {
		for _, constraint := range constraintsOn(need, release, candidate) {
			exclusion := &Exclusion{AddOn: addOn, Release: constraint.Name, On: candidate, Version: run.Version, Problem: run.Problem,
				Constraint: constraint.Version}
			if run.Problem != "" || versionProblem(run.Version, constraint.Version) != "" {
				return exclusion
			}
		}
	}
	return nil
}

// constraintsOn returns the constraints of an add-on on a candidate of a dependency, each with the release that has it.
func constraintsOn(need addonv1alpha1.AddonDependency, release Release, candidate string) []kudo.DependencyConstraint {
	var constraints []kudo.DependencyConstraint
	if need.Version != "" {
		constraints = append(constraints, kudo.DependencyConstraint{Version: need.Version})
	}
	for _, own := range release.Constraints {
		if own.Name == candidate {
			constraints = append(constraints, kudo.DependencyConstraint{Name: release.Name, Version: own.Version})
		}
	}
	return constraints
}

// HasConstraints reports whether any constraint applies to the version of the add-on of that name, or to those that it depends on if it changes to a release.
func HasConstraints(name string, to Release, on map[string]Member) bool {
	for _, need := range on[name].Needs {
		for _, candidate := range Candidates(need) {
			if len(on[candidate].Runs) > 0 && len(constraintsOn(need, to, candidate)) > 0 {
				return true
			}
		}
	}
	for _, other := range on {
		for _, need := range other.Needs {
			if slices.Contains(Candidates(need), name) &&
				slices.ContainsFunc(other.Runs, func(r Release) bool { return len(constraintsOn(need, r, name)) > 0 }) {
				return true
			}
		}
	}
	return false
}
