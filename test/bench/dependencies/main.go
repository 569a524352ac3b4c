// Command dependencies measures how addon-manager evaluates dependencies on a large fleet: it starts an API server, creates the fleet, runs
// addon-manager as a separate process, makes changes, and reads all times and counts from the API server's audit log. It touches only the
// cluster that it starts. docs/scale.md describes the method.
package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tandem-addons/tandem/test/bench/program"
)

func main() { program.Main(&settings{}) }

// settings holds the values of the flags.
type settings struct {
	program string
	// plugin is the program whose commands are measured instead of addon-manager; if empty, addon-manager is measured.
	plugin string
	// viewers is the number of viewers of the dashboard, which is measured instead of the controllers; if 0, they are measured.
	viewers int
	// first is true if first installations of packages are measured, and nothing else.
	first  bool
	fleet  fleet
	limits limits
	pairs  int
	flips  int
	rest   time.Duration
	// scenarios are the names of those to run, separated by commas; all if empty.
	scenarios string
	// heap is a file for a profile of addon-manager's heap after the last scenario; none if empty.
	heap string
}

// limits holds the limits of addon-manager's clients and of the bare loop.
type limits struct {
	program.Limits
	Concurrency int `json:"concurrency"`
}

// Bind adds the flags.
func (s *settings) Bind(fs *flag.FlagSet) {
	fs.StringVar(&s.program, "addon-manager", "bin/addon-manager", "the program to measure")
	fs.StringVar(&s.plugin, "kubectl-addon", "", "measure the commands of this program on the fleet, and nothing else")
	fs.IntVar(&s.viewers, "viewers", 0, "measure addon-manager ui with this number of viewers, and nothing else")
	fs.BoolVar(&s.first, "first-installations", false, "measure first installations of add-ons that run a package, and nothing else")
	fs.IntVar(&s.fleet.clusters, "clusters", 100, "managed clusters")
	fs.IntVar(&s.fleet.addOns, "addons", 20, "add-ons on each of them")
	fs.BoolVar(&s.fleet.selective, "selective", false, "give each dependency a version and a selector of clusters")
	s.limits.Bind(fs, "addon-manager", "kube-api")
	fs.IntVar(&s.limits.Concurrency, "concurrency", 10, "addon-manager's --concurrency, and how many patches the bare loop has in flight")
	fs.IntVar(&s.pairs, "pairs", 5, "how often each change of the whole fleet is measured, by addon-manager and by the bare loop in turn")
	fs.IntVar(&s.flips, "flips", 300, "number of times that an add-on of one cluster becomes unavailable and available again")
	fs.DurationVar(&s.rest, "rest", 30*time.Second, "how long to watch the fleet at rest")
	fs.StringVar(&s.scenarios, "scenarios", "", "comma-separated names of the scenarios to run; all if empty")
	fs.StringVar(&s.heap, "heap", "", "file for a profile of addon-manager's heap after the last scenario")
}

// Check rejects settings that cannot be measured.
func (s *settings) Check() error {
	switch {
	case s.fleet.clusters < 1:
		return fmt.Errorf("-clusters is %d: want 1 or more", s.fleet.clusters)
	case s.fleet.addOns < smallestFleet:
		return fmt.Errorf("-addons is %d: want %d or more, for dependencies to have some depth", s.fleet.addOns, smallestFleet)
	case s.limits.Concurrency < 1 || s.pairs < 1 || s.flips < 1 || s.rest <= 0:
		return fmt.Errorf("-concurrency, -pairs, -flips and -rest are %d, %d, %d and %s: want more than 0",
			s.limits.Concurrency, s.pairs, s.flips, s.rest)
	}
	for _, name := range s.selectedScenarios() {
		if !slices.Contains(scenarioNames(), name) {
			return fmt.Errorf("-scenarios has %q: want some of %s", name, strings.Join(scenarioNames(), ", "))
		}
	}
	return s.limits.Check()
}

// selectedScenarios returns the names of the scenarios to run.
func (s *settings) selectedScenarios() []string {
	if s.scenarios == "" {
		return scenarioNames()
	}
	return strings.Split(s.scenarios, ",")
}
