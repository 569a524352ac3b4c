package stack

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/selector"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Finding is a result of checking a dependency that an add-on declares.
type Finding struct {
	AddOn string
	// Index is the index of the dependency.
	Index   int
	Message string
}

// Definitions are ClusterManagementAddOns by name.
type Definitions map[string]*addonv1alpha1.ClusterManagementAddOn

// CheckDependencies checks the dependencies of add-ons that are written together, beside those that exist on the hub: refused lists dependencies on
// no add-on, dependencies that are declared twice, and cycles, each of them once. Optional dependencies on no add-on are only warnings.
func CheckDependencies(written []*addonv1alpha1.ClusterManagementAddOn, existing Definitions) (refused, warnings []Finding) {
	all := maps.Clone(existing)
	if all == nil {
		all = Definitions{}
	}
	for _, definition := range written {
		all[definition.Name] = definition
	}
	c := &dependencyCheck{all: all, cycles: map[string]bool{}}
	for _, definition := range written {
		c.check(definition)
	}
	return c.refused, c.warnings
}

// dependencyCheck checks the dependencies of add-ons.
type dependencyCheck struct {
	all Definitions
	// cycles are those that were found, by their members.
	cycles            map[string]bool
	refused, warnings []Finding
}

// check checks the dependencies of one add-on.
func (c *dependencyCheck) check(definition *addonv1alpha1.ClusterManagementAddOn) {
	met := map[string]bool{}
	for i, need := range definition.Spec.Dependencies {
		found := Finding{AddOn: definition.Name, Index: i}
		cycle := c.cycle(definition.Name, need)
		problem := dependency.Problem(need)
		switch {
		case problem != "":
			found.Message = "add-on " + problem
			c.refused = append(c.refused, found)
		case met[need.Name]:
			found.Message = fmt.Sprintf("add-on %s is listed twice: remove one of the entries", text.Quote(need.Name))
			c.refused = append(c.refused, found)
		case cycle != nil:
			c.addCycle(found, cycle)
		case slices.ContainsFunc(dependency.Candidates(need), func(name string) bool { return c.all[name] != nil }):
		case need.Type == addonv1alpha1.DependencyTypeOptional:
			found.Message = fmt.Sprintf("ClusterManagementAddOn %s does not exist yet", text.Quote(need.Name))
			c.warnings = append(c.warnings, found)
		default:
			found.Message = unknownText(need.Name, c.all)
			c.refused = append(c.refused, found)
		}
		met[need.Name] = true
	}
}

// cycle returns the cycle that a dependency or an alternative of it leads into on every cluster; nil if there is none. addon-manager warns of cycles on
// some clusters.
func (c *dependencyCheck) cycle(addOn string, need addonv1alpha1.AddonDependency) []string {
	needsOf := func(name string) []addonv1alpha1.AddonDependency {
		return dependency.Everywhere(dependency.Needs(c.all[name]))
	}
	for _, name := range dependency.Candidates(need) {
		if !selector.SelectsAll(need.Clusters) && name != addOn {
			continue
		}
		if cycle := dependency.Cycle(addOn, name, needsOf); cycle != nil {
			return cycle
		}
	}
	return nil
}

// addCycle adds a cycle, unless another of its members has it already.
func (c *dependencyCheck) addCycle(found Finding, cycle []string) {
	if members := membersOf(cycle); !c.cycles[members] {
		c.cycles[members] = true
		found.Message = cycleText(cycle)
		c.refused = append(c.refused, found)
	}
}

// membersOf returns the sorted names of the add-ons of a cycle.
func membersOf(cycle []string) string {
	return strings.Join(slices.Sorted(slices.Values(cycle[1:])), "\n")
}

func cycleText(cycle []string) string {
	if len(cycle) == 2 {
		return fmt.Sprintf("add-on %s depends on itself: remove the entry", text.Quote(cycle[0]))
	}
	return fmt.Sprintf("circular dependency: %s: remove the entry, or another dependency of this cycle", dependency.Way(cycle))
}

func unknownText(name string, all Definitions) string {
	names := slices.Sorted(maps.Keys(all))
	if meant := text.DidYouMean(name, names); meant != "" {
		return fmt.Sprintf("required add-on %s does not exist%s", text.Quote(name), meant)
	}
	return fmt.Sprintf("required add-on %s does not exist: create it first ('kubectl addon create'), or make the dependency optional", text.Quote(name))
}
