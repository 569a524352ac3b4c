// Command children measures the time until child Instances exist after the plans of their parents request them: it starts a sandbox in
// which parents deploy their children, rest, change one child each and are deleted, and reads all times and counts from the audit logs of
// both API servers. It touches only the clusters that it starts. docs/scale.md describes the method.
package main

import (
	"flag"
	"fmt"
	"time"

	"github.com/tandem-addons/tandem/test/bench/program"
)

func main() { program.Main(&settings{}) }

// settings holds the values of the flags.
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
	fs.IntVar(&s.fleet.children, "children", 3, "number of child Instances of each")
	fs.IntVar(&s.fleet.namespaces, "namespaces", 10, "namespaces of the managed cluster that they are spread over")
	s.limits.Bind(fs, "addon-agent", "hub-api")
	fs.DurationVar(&s.rest, "rest", 30*time.Second, "how long to watch the fleet at rest")
}

// maxPods is the capacity of the sandbox's nodes.
const maxPods = 1500

// Check rejects settings that cannot be measured.
func (s *settings) Check() error {
	switch {
	case s.fleet.parents < 1 || s.fleet.children < 1 || s.fleet.namespaces < 1:
		return fmt.Errorf("-parents, -children and -namespaces are %d, %d and %d: want 1 or more", s.fleet.parents, s.fleet.children, s.fleet.namespaces)
	case s.fleet.pods() > maxPods:
		return fmt.Errorf("%d parents with %d children each need %d pods: want %d at most", s.fleet.parents, s.fleet.children, s.fleet.pods(), maxPods)
	case s.rest <= 0:
		return fmt.Errorf("-rest is %s: want more than 0", s.rest)
	}
	return s.limits.Check()
}
