// Command agents measures what a fleet of agents costs the hub: it starts a sandbox, connects many agents to its hub, each with an identity,
// a connection, a lease and mirrors of its own, and takes them through the life of a chain of add-ons and the loss of the hub. A managed
// cluster is a namespace of one shared API server. It touches only the clusters that it starts. docs/scale.md describes the method.
package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/test/bench/program"
)

func main() {
	chart.ServeChild()
	program.Main(&settings{})
}

// settings holds the values of the flags.
type settings struct {
	programs   string
	agents     int
	addons     int
	rest, down time.Duration
	skip       string
	ocm        string
}

// Bind adds the flags.
func (s *settings) Bind(fs *flag.FlagSet) {
	fs.StringVar(&s.programs, "programs", "bin", "folder of addon-manager and addon-agent")
	fs.IntVar(&s.agents, "agents", 50, "number of agents")
	fs.IntVar(&s.addons, "addons", len(fullChain), "number of add-ons, each of which requires the previous one")
	fs.DurationVar(&s.rest, "rest", 2*time.Minute, "how long to watch the fleet at rest")
	fs.DurationVar(&s.down, "outage", time.Minute, "how long the hub's API server is down")
	fs.StringVar(&s.skip, "skip", "", "scenarios to skip, as a comma-separated list: a large fleet takes long")
	fs.StringVar(&s.ocm, "ocm", "", "folder of OCM's programs, which roll a version out by a Placement; without them, each wave is an edit of its add-ons")
}

// chain lists the add-ons.
func (s *settings) chain() []string { return fullChain[:s.addons] }

// last returns the last add-on of the chain.
func (s *settings) last() string { return fullChain[s.addons-1] }

// skips reports whether a scenario is skipped.
func (s *settings) skips(name string) bool { return slices.Contains(strings.Split(s.skip, ","), name) }

// Check rejects settings that cannot be measured.
func (s *settings) Check() error {
	switch {
	case s.agents < 1 || s.agents > maxAgents:
		return fmt.Errorf("-agents is %d: want 1 to %d", s.agents, maxAgents)
	case s.addons < 1 || s.addons > len(fullChain):
		return fmt.Errorf("-addons is %d: want 1 to %d", s.addons, len(fullChain))
	case s.rest < time.Second || s.down < time.Second:
		return fmt.Errorf("-rest and -outage are %s and %s: want a second or more", s.rest, s.down)
	case s.skips(connectScenario) || s.skips(enableScenario):
		return fmt.Errorf("-skip is %q: %s and %s cannot be skipped", s.skip, connectScenario, enableScenario)
	}
	return nil
}
