package dependency

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// maxShownExclusions limits the constraints that a message names.
const maxShownExclusions = 5

// maxShownField limits the part of a name, a constraint or a problem that a message shows, in bytes: a valid name is not longer.
const maxShownField = 253

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
	opening := changeOpening
	if len(on[name].Runs) == 0 {
		opening = installOpening
	}
	if len(exclusions) == 0 {
		if first := preventsText(name, on); first != "" {
			return opening + wants.Name + first
		}
		return ""
	}
	why := fmt.Sprintf("%s%s: %s", opening, wants.Name, exclusionTexts(exclusions, name, *wants))
	end := settle(on)
	if end[name].Wants == nil {
		return why + firstText(exclusions, name, on)
	}
	// What remains is what the others cannot resolve by themselves.
	remaining := Exclusions(name, *wants, end)
	blocked := blockOf(name, end)
	switch {
	case blocked.circular:
		return why + deadlockText(remaining, name, end, available)
	case blocked.addOn == name:
		return why + standstillText(*blocked.by, name)
	case blocked.by != nil:
		return why + firstText(remaining, name, end) + ", which waits, too" + standstillText(*blocked.by, blocked.addOn)
	default: // others wait for each other
		return why + firstText(remaining, name, end) + ", which waits, too"
	}
}

// The beginnings of a text of WaitReason.
const (
	changeOpening  = "waiting to change to "
	installOpening = "waiting to install "
)

// IsWaitReason reports whether a message begins with a text of WaitReason.
func IsWaitReason(message string) bool {
	return strings.HasPrefix(message, changeOpening) || strings.HasPrefix(message, installOpening)
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

// AvailabilityOpening is the beginning of the message about an add-on that is not installed because required add-ons are not available; their names follow.
const AvailabilityOpening = "waiting for required add-ons to become available on the cluster: "

// Texts of WaitReason that name add-ons.
var (
	namesFirst    = regexp.MustCompile(`(?m); (?:first changes|deadlock:) ([^;\n]+?)(?: and \d+ more)?(?:, which waits, too| cannot change before it|;|$)`)
	namesChanging = regexp.MustCompile(`(?m); ([^;\n]+?)(?: and \d+ more)? (?:is|are) changing$`)
	namesChange   = regexp.MustCompile(`(?m); change (\S+) to `)
)

// AwaitedIn returns the add-ons that a message of condition Resolved names, with reason WaitingForDependencies: those that have to change first, and those that have to
// be installed first. Add-ons that the message omits are missing.
func AwaitedIn(message string) (change, install []string) {
	for _, names := range []*regexp.Regexp{namesFirst, namesChanging, namesChange} {
		for _, found := range names.FindAllStringSubmatch(message, -1) {
			for name := range strings.SplitSeq(found[1], ", ") {
				if !slices.Contains(change, name) {
					change = append(change, name)
				}
			}
		}
	}
	for line := range strings.Lines(message) {
		names, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), AvailabilityOpening)
		if !is {
			continue
		}
		for name := range strings.SplitSeq(names, ", ") {
			if name, rest, _ := strings.Cut(name, " "); !strings.HasPrefix(rest, "or ") { // one of several is enough
				install = append(install, name)
			}
		}
	}
	return change, install
}

// settle returns what the add-ons run after each change that has started or can start has ended, one after the other. Those that still want a release never
// change by themselves. Which of them goes first makes no difference if all that they want can run together, unless a dependency has alternatives (see
// TestOrderIsSafe): then it is an order in which the most change.
func settle(on map[string]Member) map[string]Member {
	end := finish(on)
	if HasAlternatives(end) {
		return newOrders().best(end)
	}
	for again := true; again; {
		again = false
		for _, name := range waitingIn(end) {
			if len(Exclusions(name, *end[name].Wants, end)) == 0 {
				end, again = after(name, end), true
			}
		}
	}
	return end
}

// finish returns what the add-ons run after the changes that have started.
func finish(on map[string]Member) map[string]Member {
	end := maps.Clone(on)
	for name, member := range on {
		target := slices.IndexFunc(member.Runs, func(r Release) bool { return r.Target })
		if target < 0 {
			continue
		}
		whole := member.Runs[target]
		if whole.Version != "" {
			whole.Problem = "" // it has been applied completely then
		}
		member.Runs = []Release{whole}
		end[name] = member
	}
	return end
}

// after returns what the add-ons run after the change of the one of that name.
func after(name string, on map[string]Member) map[string]Member {
	next, member := maps.Clone(on), on[name]
	member.Runs, member.Wants = []Release{*member.Wants}, nil
	next[name] = member
	return next
}

// waitingIn returns the add-ons that want another release, sorted.
func waitingIn(on map[string]Member) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(on)), func(name string) bool { return on[name].Wants == nil })
}

// HasAlternatives reports whether a required dependency of one of the add-ons has alternatives: then a change that violates no constraint can make others
// impossible, because it takes the candidate that was needed for them.
func HasAlternatives(on map[string]Member) bool {
	for _, member := range on {
		if slices.ContainsFunc(member.Needs, func(n addonv1alpha1.AddonDependency) bool {
			return n.Type != addonv1alpha1.DependencyTypeOptional && len(n.Alternatives) > 0
		}) {
			return true
		}
	}
	return false
}

// maxOrders limits the changes that a search for the best order tries: beyond it, the first one that can start is taken.
const maxOrders = 500

// orders searches the orders of the changes on one cluster.
type orders struct {
	// left is the number of changes that the search may still try.
	left int
	// ends holds the best end by the add-ons that wait: those that have changed are the others, in whatever order.
	ends map[string]map[string]Member
}

func newOrders() *orders { return &orders{left: maxOrders, ends: map[string]map[string]Member{}} }

// best returns what the add-ons run after an order in which the most of them change.
func (o *orders) best(on map[string]Member) map[string]Member {
	waiting := waitingIn(on)
	key := strings.Join(waiting, " ")
	if end, known := o.ends[key]; known {
		return end
	}
	best := on
	for _, name := range waiting {
		fewest := len(waitingIn(best))
		if fewest == 0 || o.left <= 0 && fewest < len(waiting) {
			break
		}
		if len(Exclusions(name, *on[name].Wants, on)) > 0 {
			continue
		}
		o.left--
		if end := o.best(after(name, on)); len(waitingIn(end)) < fewest {
			best = end
		}
	}
	o.ends[key] = best
	return best
}

// preventsText describes which changes have to precede that of the add-on of that name, because some would be impossible after it; empty if there are none.
func preventsText(name string, on map[string]Member) string {
	if !HasAlternatives(on) {
		return ""
	}
	now, search := finish(on), newOrders()
	fewest := len(waitingIn(search.best(now)))
	keeps := func(first string) bool { return len(waitingIn(search.best(after(first, now)))) <= fewest }
	if keeps(name) {
		return ""
	}
	var first []string
	for _, other := range waitingIn(now) {
		if other != name && len(Exclusions(other, *now[other].Wants, now)) == 0 && keeps(other) {
			first = append(first, other)
		}
	}
	if len(first) == 0 || search.left <= 0 { // what the search has not tried is not known to be impossible
		return ""
	}
	return ": because of dependencies with alternatives, not all changes are possible after it; first changes " + text.List(first, maxShownExclusions)
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
	e = e.quoted()
	subject := e.Release
	if subject == "" {
		subject = "ClusterManagementAddOn " + e.AddOn
	}
	version := "version " + e.Version
	if e.Problem != "" {
		version = "an unknown version (" + e.Problem + ")"
	}
	if e.AddOn == name {
		return fmt.Sprintf("%s requires %s %s, which runs %s", subject, e.On, e.Constraint, version)
	}
	return fmt.Sprintf("%s runs, %s requires %s %s, and %s has %s", e.AddOn, subject, e.On, e.Constraint, to.Name, version)
}

// quoted returns the exclusion without what would read as another part of the text: agents and packages write versions and constraints.
func (e Exclusion) quoted() Exclusion {
	for _, field := range []*string{&e.Release, &e.Version, &e.Constraint, &e.Problem} {
		*field = strings.ReplaceAll(text.Truncate(oneLine(*field), maxShownField), ";", ",")
	}
	e.Version = text.Truncate(e.Version, maxShownVersion)
	return e
}

// firstText names the add-ons that change first by themselves, or are changing.
func firstText(exclusions []Exclusion, name string, on map[string]Member) string {
	var first, changing []string
	for _, e := range exclusions {
		switch other := e.other(name); {
		case slices.Contains(first, other), slices.Contains(changing, other):
		case on[other].Wants != nil:
			first = append(first, other)
		default:
			changing = append(changing, other)
		}
	}
	switch names := text.List(changing, maxShownExclusions); {
	case len(first) > 0:
		return "; first changes " + text.List(first, maxShownExclusions)
	case len(changing) == 1:
		return "; " + names + " is changing"
	default:
		return "; " + names + " are changing"
	}
}

// standstillText names the add-on that has to be upgraded.
func standstillText(e Exclusion, name string) string {
	e = e.quoted()
	if e.AddOn == name {
		return fmt.Sprintf("; change %s to a version that satisfies %s", e.On, e.Constraint)
	}
	return fmt.Sprintf("; change %s to a version that accepts %s %s, or disable it", e.AddOn, e.On, e.Version)
}

// block is what a change waits for in the end.
type block struct {
	// circular is true if the change waits for itself.
	circular bool
	// by is the nearest constraint that no change lifts, on a change of addOn; nil if others wait for each other.
	by    *Exclusion
	addOn string
}

// blockOf follows what the change of the add-on of that name waits for; end is what settle returns.
func blockOf(name string, end map[string]Member) block {
	var found block
	met := map[string]bool{name: true}
	for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
		waiting := queue[0]
		for _, e := range Exclusions(waiting, *end[waiting].Wants, end) {
			switch other := e.other(waiting); {
			case other == name:
				found.circular = true
			case end[other].Wants == nil && found.by == nil:
				found.by, found.addOn = &e, waiting
			case end[other].Wants != nil && !met[other]:
				met[other] = true
				queue = append(queue, other)
			}
		}
	}
	return found
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
