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

// Choose is the version that a KudoOperator task means: of the operator that it names, in the appVersion and operatorVersion that it
// names. Where that leaves several it is the one with the highest appVersion, and among those the highest version, as in KUDO's
// repositories. Candidates of other operators do not count. Where there is none, the error is an *AbsenceError, unless the task names what
// cannot be an operator.
func Choose(task kudo.Task, candidates []kudo.OperatorVersion) (kudo.OperatorVersion, error) {
	var chosen *kudo.OperatorVersion
	var others []*kudo.OperatorVersion
	for i := range candidates {
		candidate := &candidates[i]
		switch {
		case candidate.Spec.Operator.Name != task.Spec.Package:
		case !means(task.Spec.AppVersion, candidate.Spec.AppVersion), !means(task.Spec.OperatorVersion, candidate.Spec.Version):
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

// means reports whether a version fits what a task asks for; it may ask for any.
func means(asked, version string) bool { return asked == "" || asked == version }

// Compare orders versions of one operator as KUDO's repositories do: by appVersion, then by version. Those that are no semantic versions
// stand below all that are, and none at all below these. Of two with the same versions the one that is named as KUDO names them, as all
// are that were pushed, comes after one that somebody else has made.
func Compare(a, b *kudo.OperatorVersion) int {
	return cmp.Or(compareText(a.Spec.AppVersion, b.Spec.AppVersion), compareText(a.Spec.Version, b.Spec.Version),
		isPushed(a)-isPushed(b), cmp.Compare(a.Name, b.Name))
}

// isPushed is 1 where the version is called as 'package push' calls it, else 0.
func isPushed(v *kudo.OperatorVersion) int {
	if v.Name == joined(v.Spec.Operator.Name, v.Spec.AppVersion, v.Spec.Version) {
		return 1
	}
	return 0
}

// compareText orders two versions; it never takes different texts for the same, so that the choice does not depend on the order of a list.
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

// choiceLimit is how many versions a message lists as the way out.
const choiceLimit = 8

// AbsenceError reports that no version is what a task means.
type AbsenceError struct {
	// Wanted is the OperatorVersion as far as the task says which.
	Wanted string
	// Others are the versions that there are of its operator, the highest first; of many some, and how many more.
	Others []string
}

func (e *AbsenceError) Error() string {
	if len(e.Others) == 0 {
		return fmt.Sprintf("operator %q does not exist: push its package first (kubectl addon package push DIR)", e.Wanted)
	}
	return fmt.Sprintf("OperatorVersion %s does not exist: push its package first (kubectl addon package push DIR), or name another one; there are %s",
		e.Wanted, strings.Join(e.Others, ", "))
}

// absence says why no version is what the task means.
func absence(task kudo.Task, others []*kudo.OperatorVersion) error {
	name := task.Spec.Package
	switch {
	case name == "":
		return errors.New("it names no package")
	case strings.ContainsAny(name, "/:"):
		return fmt.Errorf("package %q is a place and not the name of an operator: "+
			"push the package that holds the task with 'kubectl addon package push', which resolves it", name)
	case len(others) == 0:
		return &AbsenceError{Wanted: name}
	}
	slices.SortFunc(others, func(a, b *kudo.OperatorVersion) int { return Compare(b, a) })
	names := make([]string, len(others))
	for i, other := range others {
		names[i] = other.Name
	}
	return &AbsenceError{Wanted: wanted(task), Others: text.Limit(names, choiceLimit, "more")}
}

// wanted is the name of the OperatorVersion that the task means, as far as it says.
func wanted(task kudo.Task) string {
	return joined(task.Spec.Package, task.Spec.AppVersion, task.Spec.OperatorVersion)
}

func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "-")
}
