package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/tandem-addons/tandem/pkg/text"
)

// IsExact reports whether a version is one, and no constraint: 1.2.3, or v1.2.3.
func IsExact(version string) bool {
	_, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	return err == nil
}

// IsSame reports whether two versions are equal, apart from a v before them.
func IsSame(one, other string) bool {
	return strings.TrimPrefix(one, "v") == strings.TrimPrefix(other, "v")
}

// Choose returns the version of a chart that is wanted: an equal one, or the highest that satisfies a constraint; the highest release if none is wanted.
func Choose(name, wanted string, versions []string) (string, error) {
	if slices.Contains(versions, wanted) {
		return wanted, nil
	}
	sorted := sortVersions(versions)
	if IsExact(wanted) {
		for _, v := range sorted {
			if IsSame(v.Original(), wanted) {
				return v.Original(), nil
			}
		}
		return "", newAbsenceError(name, wanted, sorted)
	}
	constraint, err := semver.NewConstraint(anyIfEmpty(wanted))
	if err != nil {
		return "", fmt.Errorf("version %s is neither a version such as 1.2.3 nor a constraint such as 1.x", text.Quote(wanted))
	}
	for _, v := range sorted {
		if constraint.Check(v) {
			return v.Original(), nil
		}
	}
	return "", newAbsenceError(name, wanted, sorted)
}

// CheckRange returns an error for a text that is neither a version nor a range of versions.
func CheckRange(wanted string) error {
	if _, err := semver.NewConstraint(wanted); err != nil {
		return fmt.Errorf("%s is not a range of versions, such as >=1.0.0 <2", text.Quote(wanted))
	}
	return nil
}

// Highest returns the highest version in a range; empty if there is none. A pre-release counts only if the range names one.
func Highest(wanted string, versions []string) (string, error) {
	constraint, err := semver.NewConstraint(wanted)
	if err != nil {
		return "", CheckRange(wanted)
	}
	for _, v := range sortVersions(versions) {
		if constraint.Check(v) {
			return v.Original(), nil
		}
	}
	return "", nil
}

// Strict returns the versions that are written as semantic versions: 20261129 is a date, and latest names what moves. Of those that differ only in their build
// metadata, such as the appVersion of a package, the one with the highest metadata is first.
func Strict(versions []string) []string {
	var strict []string
	for _, version := range versions {
		if _, err := semver.StrictNewVersion(version); err == nil {
			strict = append(strict, version)
		}
	}
	slices.SortStableFunc(strict, func(a, b string) int { return compareMetadata(b, a) })
	return strict
}

// compareMetadata compares the build metadata of two versions: as versions if both are, else as texts.
func compareMetadata(a, b string) int {
	_, a, _ = strings.Cut(a, "+")
	_, b, _ = strings.Cut(b, "+")
	one, err := semver.NewVersion(a)
	other, err2 := semver.NewVersion(b)
	if err == nil && err2 == nil {
		return one.Compare(other)
	}
	return strings.Compare(a, b)
}

// Sorted returns at most so many of the versions, the highest first, without those that are none.
func Sorted(versions []string, limit int) []string {
	var sorted []string
	for _, v := range sortVersions(versions) {
		if len(sorted) == limit {
			break
		}
		sorted = append(sorted, v.Original())
	}
	return sorted
}

// IsHigher reports whether a version is higher than another one. A text that is no version is not.
func IsHigher(one, other string) bool {
	a, err := semver.NewVersion(one)
	b, err2 := semver.NewVersion(other)
	return err == nil && err2 == nil && a.GreaterThan(b)
}

func anyIfEmpty(version string) string {
	if version == "" {
		return "*"
	}
	return version
}

// sortVersions returns the versions, the highest first, without those that are none.
func sortVersions(versions []string) []*semver.Version {
	var sorted []*semver.Version
	for _, version := range versions {
		if v, err := semver.NewVersion(version); err == nil {
			sorted = append(sorted, v)
		}
	}
	slices.SortStableFunc(sorted, func(a, b *semver.Version) int { return b.Compare(a) })
	return sorted
}

// newAbsenceError returns the error for a version that does not exist, with those that are nearest.
func newAbsenceError(name, wanted string, sorted []*semver.Version) error {
	return &AbsenceError{absenceText(name, wanted, sorted)}
}

// AbsenceError is the error of a version that does not exist, or of a range without one.
type AbsenceError struct{ text string }

func (e *AbsenceError) Error() string { return e.text }

func absenceText(name, wanted string, sorted []*semver.Version) string {
	const near, shown = 2, 5
	what := fmt.Sprintf("chart %s has no version %s", text.Quote(name), text.Quote(wanted))
	switch {
	case len(sorted) == 0:
		return fmt.Sprintf("chart %s has no versions", text.Quote(name))
	case wanted == "":
		what = fmt.Sprintf("chart %s has only pre-releases: choose one with --version", text.Quote(name))
	case !IsExact(wanted):
		what = fmt.Sprintf("chart %s has no version that satisfies %s", text.Quote(name), text.Quote(wanted))
	}
	if !IsExact(wanted) {
		return fmt.Sprintf("%s: the highest are %s", what, listVersions(sorted[:min(len(sorted), shown)]))
	}
	parsed := semver.MustParse(wanted) // IsExact
	at := slices.IndexFunc(sorted, func(v *semver.Version) bool { return v.LessThan(parsed) })
	if at < 0 {
		at = len(sorted)
	}
	from, to := max(0, at-near), min(len(sorted), at+near)
	nearest := fmt.Sprintf("%s: the nearest are %s", what, listVersions(sorted[from:to]))
	if from > 0 {
		nearest += fmt.Sprintf("; the highest is %s", text.Escape(sorted[0].Original()))
	}
	return nearest
}

func listVersions(versions []*semver.Version) string {
	var names []string
	for _, v := range versions {
		names = append(names, text.Escape(v.Original()))
	}
	return strings.Join(names, ", ")
}
