// Command plans measures how addon-agent executes plans: it starts a sandbox, deploys Instances on its managed cluster, and then applies
// the same objects again by a bare client that waits for the same health. Times and counts of addon-agent come from the API server's audit
// log. It touches only the clusters that it starts. docs/scale.md describes the method.
package main

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-addons/tandem/test/bench/program"
)

func main() { program.Main(&settings{}) }

// settings holds the values of the flags.
type settings struct {
	programs  string
	instances numbers
	runs      int
	// rest is how long Instances, and charts many with a chart, are measured at rest; zero measures plans.
	rest   time.Duration
	charts int
	// limits holds the limits of addon-agent's client for the managed cluster, and of the bare client.
	limits program.Limits
}

// numbers is a flag value: a list of numbers.
type numbers []int

func (n *numbers) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(*n), " ", ","), "[]")
}

func (n *numbers) Set(text string) error {
	*n = nil
	for part := range strings.SplitSeq(text, ",") {
		number, err := strconv.Atoi(part)
		if err != nil {
			return fmt.Errorf("%q is no number", part)
		}
		*n = append(*n, number)
	}
	return nil
}

// Bind adds the flags.
func (s *settings) Bind(fs *flag.FlagSet) {
	fs.StringVar(&s.programs, "programs", "bin", "folder of addon-manager and of addon-agent, which is measured")
	s.instances = numbers{1, 10, 100}
	fs.Var(&s.instances, "instances", "how many Instances to deploy at a time, a row of the report for each number")
	fs.IntVar(&s.runs, "runs", 5, "how often to measure each row, addon-agent and the bare client in turn; the report has the median")
	fs.DurationVar(&s.rest, "rest", 0, "how long to measure the Instances at rest in each mode of drift, instead of their plans")
	fs.IntVar(&s.charts, "charts", 20, "how many Instances with a chart to measure at rest, too")
	s.limits.Bind(fs, "addon-agent", "kube-api")
}

// maxInstances is the number of Instances, with two pods each, that fit on the sandbox's nodes.
const maxInstances = 700

// Check rejects settings that cannot be measured.
func (s *settings) Check() error {
	switch {
	case slices.Min(s.instances) < 1 || slices.Max(s.instances) > maxInstances:
		return fmt.Errorf("-instances is %s: want numbers from 1 to %d", &s.instances, maxInstances)
	case s.rest < 0 || s.charts < 0:
		return fmt.Errorf("-rest is %s and -charts is %d: want 0 or more", s.rest, s.charts)
	case s.runs < 1:
		return fmt.Errorf("-runs is %d: want 1 or more", s.runs)
	}
	return s.limits.Check()
}
