package dependency

import (
	"cmp"
	"fmt"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/compatibility"
	"github.com/tandem-addons/tandem/pkg/text"
)

// labelVersion is the label of a ClusterManagementAddOn with the version of an add-on that runs no package.
const labelVersion = "app.kubernetes.io/version"

// maxShownVersion limits the part of a version that messages show, in bytes.
const maxShownVersion = 64

// Versions are the versions of an add-on that run on a cluster. A constraint has to hold for all of them. The zero value is an add-on whose version
// is unknown.
type Versions struct {
	// Installed is the version that was applied completely.
	Installed string
	// Starting is the version that a plan applies, or has failed to; empty if it is the one that is installed.
	Starting string
	// Problem is why a version is unknown; empty if it is known.
	Problem string
	// Unread is true if the reader did not read the versions: then the last verdict counts.
	Unread bool
}

// VersionOf returns the version with which constraints on an add-on that runs an OperatorVersion are compared.
func VersionOf(version *kudo.OperatorVersionSpec) string {
	if version == nil {
		return ""
	}
	return cmp.Or(version.DependencyVersion, version.AppVersion, version.Version)
}

// LabelledVersion returns the version of an add-on that runs no package, from its definition, which is nil if it does not exist.
func LabelledVersion(definition *addonv1alpha1.ClusterManagementAddOn) Versions {
	if definition == nil || definition.Labels[labelVersion] == "" {
		return Versions{Problem: "its ClusterManagementAddOn has no label " + labelVersion}
	}
	return Versions{Installed: definition.Labels[labelVersion]}
}

// InstalledVersions returns the versions of an add-on that runs a package, from its Instance on the cluster, which is nil if it does not exist.
func InstalledVersions(instance *kudo.Instance) Versions {
	if instance == nil || instance.Status.Whole == nil {
		return Versions{Problem: "none has been applied completely"}
	}
	whole, last := instance.Status.Whole, instance.Status.Execution
	versions := Versions{Installed: cmp.Or(whole.DependencyVersion, whole.AppVersion, whole.Version)}
	if versions.Installed == "" {
		versions.Problem = fmt.Sprintf("OperatorVersion %s has none", text.Quote(whole.OperatorVersion.Name))
	}
	if last != nil && last.OperatorVersion.UID != whole.OperatorVersion.UID {
		if versions.Starting = last.DependencyVersion; versions.Starting == "" { // that of an earlier release of the agent
			versions.Problem = fmt.Sprintf("the agent has not reported that of OperatorVersion %s, which it applies", text.Quote(last.OperatorVersion.Name))
		}
	}
	return versions
}

// mismatch describes why the versions do not satisfy a constraint, after the name of the add-on; empty if they do.
func (v Versions) mismatch(constraint string) string {
	switch _, err := compatibility.ParseConstraint(constraint); {
	case err != nil: // such a declaration is malformed, and is not judged
		return runs + "a version that cannot be compared with " + text.Quote(constraint)
	case v.Problem != "":
		return fmt.Sprintf("%san unknown version, and %s is required: %s", runs, constraint, v.Problem)
	}
	if problem := versionProblem(v.Installed, constraint); problem != "" {
		return runs + problem
	}
	if v.Starting == "" {
		return ""
	}
	if problem := versionProblem(v.Starting, constraint); problem != "" {
		return changes + problem
	}
	return ""
}

// A mismatch begins with one of these.
const (
	runs    = "runs "
	changes = "is changing to "
)

// versionProblem describes why a version does not satisfy a constraint; empty if it does.
func versionProblem(version, constraint string) string {
	switch satisfies, err := compatibility.Satisfies(version, constraint); {
	case err != nil:
		return fmt.Sprintf("version %s, which is not a semantic version, and %s is required", text.Quote(version), constraint)
	case !satisfies:
		return fmt.Sprintf("version %s, which does not satisfy %s", text.Truncate(version, maxShownVersion), constraint)
	default:
		return ""
	}
}
