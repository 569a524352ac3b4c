package dependency

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tandem-addons/tandem/pkg/text"
)

// maxShownExclusions limits the constraints that a message names.
const maxShownExclusions = 5

// WaitReason describes why the add-on of that name cannot change to the release that it wants, and what has to happen first: an add-on that changes first by
// itself, one that has to be upgraded, or a release in between without which add-ons wait for each other. It is empty if the add-on can change.
//
// available returns the releases of an add-on that exist on the hub.
func WaitReason(name string, on map[string]Member, available func(addOn string) []Release) string {
	wants := on[name].Wants
	if wants == nil {
		return ""
	}
	exclusions := Exclusions(name, *wants, on)
	if len(exclusions) == 0 {
		return ""
	}
	why := fmt.Sprintf("waiting to change to %s: %s", wants.Name, exclusionTexts(exclusions, name, *wants))
	end := settle(on)
	if end[name].Wants == nil {
		return why + firstText(exclusions, name, on)
	}
	// What remains is what the others cannot resolve by themselves.
	remaining := Exclusions(name, *wants, end)
	if !anyStuck(remaining, name, end) {
		return why + standstillText(remaining[0], name)
	}
	return why + deadlockText(remaining, name, end, available)
}

// change finds, in a text of WaitReason, the add-on that has to change, and the release if there is one.
var change = regexp.MustCompile(`(?m); change (\S+) to (?:(\S+) first$|a version )`)

// ChangeFirst returns the add-on that a text of WaitReason says to change, and the OperatorVersion if it names one; both are empty if it names none.
func ChangeFirst(waiting string) (addOn, release string) {
	if found := change.FindStringSubmatch(waiting); found != nil {
		return found[1], found[2]
	}
	return "", ""
}

// settle returns what the add-ons run after each change that can start has ended, one after the other. Those that still want a release never change by
// themselves. Which
// of them goes first makes no difference if all that they want can run together, unless a dependency has alternatives; see TestOrderIsSafe.
func settle(on map[string]Member) map[string]Member {
	end := maps.Clone(on)
	names := slices.Sorted(maps.Keys(on))
	for again := true; again; {
		again = false
		for _, name := range names {
			member := end[name]
			if member.Wants == nil || len(Exclusions(name, *member.Wants, end)) > 0 {
				continue
			}
			member.Runs, member.Wants = []Release{*member.Wants}, nil
			end[name], again = member, true
		}
	}
	return end
}

// other returns the add-on on which a change of the add-on of that name waits.
func (e Exclusion) other(name string) string {
	if e.AddOn == name {
		return e.On
	}
	return e.AddOn
}

func exclusionTexts(exclusions []Exclusion, name string, to Release) string {
	texts := make([]string, 0, len(exclusions))
	for _, e := range exclusions[:min(len(exclusions), maxShownExclusions)] {
		texts = append(texts, e.text(name, to))
	}
	if more := len(exclusions) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("%d more constraints do not hold", more))
	}
	return strings.Join(texts, "; ")
}

// text describes the constraint, and the version that it excludes; to is the release to which the add-on of that name is to change.
func (e Exclusion) text(name string, to Release) string {
	subject := e.Release
	if subject == "" {
		subject = "ClusterManagementAddOn " + e.AddOn
	}
	version := "version " + text.Truncate(oneLine(e.Version), maxShownVersion)
	if e.Problem != "" {
		version = "an unknown version (" + e.Problem + ")"
	}
	if e.AddOn == name {
		return fmt.Sprintf("%s requires %s %s, which runs %s", subject, e.On, e.Constraint, version)
	}
	return fmt.Sprintf("%s runs, %s requires %s %s, and %s has %s", e.AddOn, subject, e.On, e.Constraint, to.Name, version)
}

// firstText names the add-ons that change first by themselves.
func firstText(exclusions []Exclusion, name string, on map[string]Member) string {
	var first []string
	for _, e := range exclusions {
		if other := e.other(name); on[other].Wants != nil && !slices.Contains(first, other) {
			first = append(first, other)
		}
	}
	if len(first) == 0 { // they are changing
		return ""
	}
	return "; first changes " + text.List(first, maxShownExclusions)
}

// standstillText names the add-on that has to be upgraded.
func standstillText(e Exclusion, name string) string {
	if e.AddOn == name {
		return fmt.Sprintf("; change %s to a version that satisfies %s", e.On, e.Constraint)
	}
	return fmt.Sprintf("; change %s to a version that accepts %s %s, or disable it", e.AddOn, e.On, e.Version)
}

// anyStuck reports whether an add-on that is waited for waits itself.
func anyStuck(exclusions []Exclusion, name string, end map[string]Member) bool {
	return slices.ContainsFunc(exclusions, func(e Exclusion) bool { return end[e.other(name)].Wants != nil })
}

// deadlockText names the add-ons that wait for each other, and a release in between with which they can change, if there is one.
func deadlockText(exclusions []Exclusion, name string, end map[string]Member, available func(addOn string) []Release) string {
	var others []string
	for _, e := range exclusions {
		if other := e.other(name); end[other].Wants != nil && !slices.Contains(others, other) {
			others = append(others, other)
		}
	}
	deadlock := fmt.Sprintf("; deadlock: %s cannot change before it", text.List(others, maxShownExclusions))
	if addOn, release := between(name, end, available); release != "" {
		return fmt.Sprintf("%s; change %s to %s first", deadlock, addOn, release)
	}
	return fmt.Sprintf("%s, and no OperatorVersion in between accepts what runs and what is wanted: push one, or change what is wanted", deadlock)
}

// between returns the add-on and its release to change to first, so that the add-on of that name can change in the end. It tries the add-on itself last.
func between(name string, end map[string]Member, available func(addOn string) []Release) (addOn, release string) {
	stuck := slices.DeleteFunc(slices.Sorted(maps.Keys(end)), func(other string) bool { return end[other].Wants == nil || other == name })
	for _, addOn := range append(stuck, name) {
		for _, candidate := range available(addOn) {
			if candidate.Name == end[addOn].Wants.Name || len(Exclusions(addOn, candidate, end)) > 0 {
				continue
			}
			via := maps.Clone(end)
			member := end[addOn]
			member.Runs = []Release{candidate}
			via[addOn] = member
			if settle(via)[name].Wants == nil {
				return addOn, candidate.Name
			}
		}
	}
	return "", ""
}
