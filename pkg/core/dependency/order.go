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
	// Missing is true if its OperatorVersion does not exist: it may have any version and constraints.
	Missing bool
}

// ReleaseOf returns the release of an OperatorVersion.
func ReleaseOf(version *kudo.OperatorVersion) Release {
	release := Release{Name: version.Name, Version: VersionOf(&version.Spec), Constraints: version.Spec.Dependencies}
	if release.Version == "" {
		release.Problem = fmt.Sprintf("OperatorVersion %s has none", text.Quote(version.Name))
	}
	return release
}

// MissingRelease returns the release of an OperatorVersion that does not exist.
func MissingRelease(name string) Release {
	return Release{Name: name, Problem: fmt.Sprintf("OperatorVersion %s does not exist", text.Quote(name)), Missing: true}
}

// Member is an add-on on a cluster with everything that the order of upgrades depends on.
type Member struct {
	// Needs are the dependencies that it declares and has on the cluster.
	Needs []addonv1alpha1.AddonDependency
	// Runs are the releases that are installed, that a plan applies, or that its Instance names; empty if it is not installed.
	Runs []Release
	// Wants is the release that it is configured to change to; nil if there is none.
	Wants *Release
	// Deleting is true if it is being deleted. It runs until then, but does not replace an add-on that stays.
	Deleting bool
}

// NeedsOf returns the dependencies of an add-on with a malformed declaration that the constraints of its releases imply: each is required.
func NeedsOf(releases []Release) []addonv1alpha1.AddonDependency {
	var needs []addonv1alpha1.AddonDependency
	for _, release := range releases {
		for _, constraint := range release.Constraints {
			if !slices.ContainsFunc(needs, func(n addonv1alpha1.AddonDependency) bool { return n.Name == constraint.Name }) {
				needs = append(needs, addonv1alpha1.AddonDependency{Name: constraint.Name, Type: addonv1alpha1.DependencyTypeRequired})
			}
		}
	}
	return needs
}

// RunningReleases returns the releases of an add-on that runs a package: that which is installed, that which a plan applies, and that which its
// Instance names, whose OperatorVersion is named; nil if that is not read.
func RunningReleases(instance *kudo.Instance, named *kudo.OperatorVersion) []Release {
	installed := InstalledVersions(instance)
	whole, last := instance.Status.Whole, instance.Status.Execution
	first := Release{Version: installed.Installed, Problem: installed.Problem}
	if whole != nil {
		first.Name, first.Constraints = whole.OperatorVersion.Name, whole.Dependencies
	}
	releases := []Release{first}
	if applies(instance) {
		releases = append(releases, Release{
			Name: last.OperatorVersion.Name, Version: last.DependencyVersion, Problem: installed.Problem, Constraints: last.Dependencies,
		})
	}
	if named != nil && !RunsNamed(instance) {
		releases = append(releases, ReleaseOf(named))
	}
	for i := range releases {
		releases[i].Target = len(releases) > 1 && releases[i].Name == instance.Spec.OperatorVersion.Name
	}
	return releases
}

// RunsNamed reports whether the OperatorVersion that the Instance names is installed, or a plan applies it: its agent has reported the constraints.
func RunsNamed(instance *kudo.Instance) bool {
	named := instance.Spec.OperatorVersion
	isNamed := func(r corev1.ObjectReference) bool { return r.Name == named.Name && r.Namespace == named.Namespace }
	whole := instance.Status.Whole
	return whole != nil && isNamed(whole.OperatorVersion) || applies(instance) && isNamed(instance.Status.Execution.OperatorVersion)
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
	// What is not known of the add-on itself satisfies its dependents no less.
	member.Runs = slices.DeleteFunc(slices.Clone(member.Runs), func(r Release) bool { return r.Missing })
	on = maps.Clone(on)
	on[name] = member
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
// installed: that never keeps an add-on from changing. A candidate that is being deleted counts only while none stays.
func exclusionOf(addOn string, need addonv1alpha1.AddonDependency, release Release, on map[string]Member) (first *Exclusion) {
	if need.Type == addonv1alpha1.DependencyTypeOptional {
		return nil
	}
	for _, candidate := range installedOf(Candidates(need), on) {
		exclusion := excludes(addOn, need, release, candidate, on[candidate].Runs)
		if exclusion == nil {
			return nil
		}
		first = cmp.Or(first, exclusion)
	}
	return first
}

// installedOf returns the candidates that are installed: those that stay, or if there are none, those that are being deleted.
func installedOf(candidates []string, on map[string]Member) []string {
	var staying, leaving []string
	for _, candidate := range candidates {
		switch member := on[candidate]; {
		case len(member.Runs) == 0:
		case member.Deleting:
			leaving = append(leaving, candidate)
		default:
			staying = append(staying, candidate)
		}
	}
	if len(staying) > 0 {
		return staying
	}
	return leaving
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

// MissingReason describes why the constraints on a change of the add-on of that name are unknown: a dependent runs, or changes to, an OperatorVersion that does
// not exist. It is empty if there is none, or if nothing changes.
func MissingReason(name string, on map[string]Member) string {
	wants := on[name].Wants
	if wants == nil {
		return ""
	}
	for _, other := range slices.Sorted(maps.Keys(on)) {
		at := slices.IndexFunc(on[other].Runs, func(r Release) bool { return r.Missing })
		if other == name || at < 0 || !mayConstrain(on[other].Needs, name) {
			continue
		}
		return fmt.Sprintf("waiting to change to %s: %s depends on this add-on and is changing to a version whose constraints are unknown, because %s; "+
			"change %[2]s to a version that exists", wants.Name, other, on[other].Runs[at].Problem)
	}
	return ""
}

// mayConstrain reports whether one of the dependencies requires the add-on of that name.
func mayConstrain(needs []addonv1alpha1.AddonDependency, name string) bool {
	return slices.ContainsFunc(needs, func(need addonv1alpha1.AddonDependency) bool {
		return need.Type != addonv1alpha1.DependencyTypeOptional && slices.Contains(Candidates(need), name)
	})
}

// HasConstraints reports whether a constraint applies to what the add-on with these dependencies requires if it changes to a release, whatever runs.
func HasConstraints(needs []addonv1alpha1.AddonDependency, to Release) bool {
	return slices.ContainsFunc(needs, func(need addonv1alpha1.AddonDependency) bool {
		return need.Type != addonv1alpha1.DependencyTypeOptional && slices.ContainsFunc(Candidates(need), func(candidate string) bool {
			return len(constraintsOn(need, to, candidate)) > 0
		})
	})
}
