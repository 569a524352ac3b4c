// Command children measures how soon children are brought about once the plans of their parents ask for them: it starts a sandbox, lets
// parents deploy their children, rest, change one child each and go, and takes every time and count from the audit logs of
// both API servers. It touches no cluster but those that it starts. docs/scale.md says how it measures.
package main

import (
	"flag"
	"fmt"
	"time"

	"github.com/tandem-addons/tandem/test/bench/program"
)

func main() { program.Main(&settings{}) }

// settings are the flags.
type settings struct {
	programs string
	fleet    fleet
	limits   program.Limits
	rest     time.Duration
}

// Bind adds the flags.
func (s *settings) Bind(fs *flag.FlagSet) {
	fs.StringVar(&s.programs, "programs", "bin", "folder of addon-manager and addon-agent, which are measured")
	fs.IntVar(&s.fleet.parents, "parents", 200, "Instances that bring others along")
	fs.IntVar(&s.fleet.children, "children", 3, "Instances that each of them brings along")
	fs.IntVar(&s.fleet.namespaces, "namespaces", 10, "namespaces of the managed cluster that they are spread over")
	s.limits = program.Limits{QPS: 400, Burst: 800}
	s.limits.Bind(fs, "addon-agent", "hub-api")
	fs.DurationVar(&s.rest, "rest", 30*time.Second, "how long to watch the fleet at rest")
}

// mostPods is as many as the nodes of the sandbox have room for.
const mostPods = 1500

// Check refuses what cannot be measured.
func (s *settings) Check() error {
	switch {
	case s.fleet.parents < 1 || s.fleet.children < 1 || s.fleet.namespaces < 1:
		return fmt.Errorf("-parents, -children and -namespaces are %d, %d and %d: want 1 or more", s.fleet.parents, s.fleet.children, s.fleet.namespaces)
	case s.fleet.pods() > mostPods:
		return fmt.Errorf("%d parents with %d children each need %d pods: want %d at most", s.fleet.parents, s.fleet.children, s.fleet.pods(), mostPods)
	case s.rest <= 0:
		return fmt.Errorf("-rest is %s: want more than 0", s.rest)
	}
	return s.limits.Check()
}
