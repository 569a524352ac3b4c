package tree

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Choose returns the version that a KudoOperator task refers to: a version of its operator with its appVersion and operatorVersion and, in a
// pushed package, its name. If several match, it returns the one with the highest appVersion, and among those the highest version, as in
// KUDO's repositories. It ignores candidates of other operators. If none matches, the error is an *AbsenceError, unless the task's operator
// name is invalid.
func Choose(task kudo.Task, candidates []kudo.OperatorVersion) (kudo.OperatorVersion, error) {
	var chosen *kudo.OperatorVersion
	var others []*kudo.OperatorVersion
	for i := range candidates {
		candidate := &candidates[i]
		switch {
		case candidate.OperatorName() != task.Spec.Package:
		case !isMeant(task, candidate):
			others = append(others, candidate)
		case chosen == nil || Compare(chosen, candidate) < 0:
			chosen = candidate
		}
	}
	if chosen == nil {
		return kudo.OperatorVersion{}, absence(task, others)
	}
	return *chosen, nil
}

// isMeant reports whether the task refers to the version of its operator.
func isMeant(task kudo.Task, candidate *kudo.OperatorVersion) bool {
	return matchesVersion(task.Spec.AppVersion, candidate.Spec.AppVersion) && matchesVersion(task.Spec.OperatorVersion, candidate.Spec.Version) &&
		matchesVersion(task.Spec.OperatorVersionName, candidate.Name)
}

// matchesVersion reports whether a version matches the task's; an empty one matches any.
func matchesVersion(asked, version string) bool { return asked == "" || asked == version }

// Compare orders versions of one operator like KUDO's repositories: by appVersion, then by version. Versions that are not semantic sort
// before all that are, and empty ones before those. Of two with the same versions, the one with KUDO's naming, which all pushed versions
// have, sorts after one created in another way.
func Compare(a, b *kudo.OperatorVersion) int {
	return cmp.Or(compareText(a.Spec.AppVersion, b.Spec.AppVersion), compareText(a.Spec.Version, b.Spec.Version),
		pushedRank(a)-pushedRank(b), cmp.Compare(a.Name, b.Name))
}

// pushedRank returns 1 if the version is named as by 'package push', else 0.
func pushedRank(v *kudo.OperatorVersion) int {
	if v.Name == joinParts(v.OperatorName(), v.Spec.AppVersion, v.Spec.Version) {
		return 1
	}
	return 0
}

// compareText orders two versions; different texts are never equal, so that the choice does not depend on the order of a list.
func compareText(a, b string) int {
	x, errA := semver.NewVersion(a)
	y, errB := semver.NewVersion(b)
	switch {
	case errA == nil && errB == nil:
		return cmp.Or(x.Compare(y), cmp.Compare(a, b))
	case errA == nil:
		return 1
	case errB == nil:
		return -1
	default:
		return cmp.Compare(a, b)
	}
}

// choiceLimit is the maximum number of available versions in a message.
const choiceLimit = 8

// AbsenceError reports that no version matches a task.
type AbsenceError struct {
	// Wanted is the OperatorVersion as far as the task specifies it.
	Wanted string
	// Others are the existing versions of its operator, the highest first; a long list is cut and ends with the number of others.
	Others []string
}

func (e *AbsenceError) Error() string {
	if len(e.Others) == 0 {
		return fmt.Sprintf("operator %q does not exist: push its package first (kubectl addon package push DIR)", e.Wanted)
	}
	return fmt.Sprintf("OperatorVersion %s does not exist: push its package first (kubectl addon package push DIR), "+
		"or use an existing version: %s",
		e.Wanted, strings.Join(e.Others, ", "))
}

// absence returns why no version matches the task.
func absence(task kudo.Task, others []*kudo.OperatorVersion) error {
	name := task.Spec.Package
	switch {
	case name == "":
		return errors.New("package is required")
	case strings.ContainsAny(name, "/:"):
		return fmt.Errorf("package %q is a location, not the name of an operator: "+
			"push the package that contains the task with 'kubectl addon package push', which resolves it", name)
	case len(others) == 0:
		return &AbsenceError{Wanted: name}
	}
	slices.SortFunc(others, func(a, b *kudo.OperatorVersion) int { return Compare(b, a) })
	names := make([]string, len(others))
	for i, other := range others {
		names[i] = other.Name
	}
	return &AbsenceError{Wanted: wantedName(task), Others: text.Limit(names, choiceLimit, "more")}
}

// wantedName returns the name of the OperatorVersion as far as the task specifies it.
func wantedName(task kudo.Task) string {
	return cmp.Or(task.Spec.OperatorVersionName, joinParts(task.Spec.Package, task.Spec.AppVersion, task.Spec.OperatorVersion))
}

func joinParts(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "-")
}
