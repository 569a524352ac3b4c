// Command charts measures Helm tasks: it starts sandboxes, deploys Instances of a package with a chart on a managed cluster, and installs the same
// chart as often by Helm's SDK on the same cluster. Then it compares the memory of addon-agent and addon-manager with charts and with templates that
// render the same objects. It touches only the clusters that it starts. docs/scale.md describes the method.
package main

import (
	"flag"
	"fmt"

	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/test/bench/program"
)

func main() {
	chart.ServeChild()
	program.Main(&settings{})
}

// settings holds the values of the flags.
type settings struct {
	programs, helm, folder string
	instances, runs        int
	concurrency            int
	packages               int
	limits                 program.Limits
}

// Bind adds the flags.
func (s *settings) Bind(fs *flag.FlagSet) {
	fs.StringVar(&s.programs, "programs", "bin", "folder of addon-manager, of addon-agent, which is measured, and of kubectl-addon")
	fs.StringVar(&s.helm, "helm", "bin/bench-helm", "program that installs releases by Helm's SDK, of hack/helm/releases")
	fs.StringVar(&s.folder, "package", "test/bench/charts/package", "folder of the package, with its chart in folder "+chartName)
	fs.IntVar(&s.instances, "instances", 100, "how many Instances to deploy at a time, and how many releases to install; 0 skips this comparison")
	fs.IntVar(&s.concurrency, "concurrency", mirror.Workers,
		"how many releases Helm installs at a time; addon-agent handles as many Instances at a time as the default")
	fs.IntVar(&s.runs, "runs", 3, "how often to measure addon-agent and Helm in turn")
	fs.IntVar(&s.packages, "packages", 20, "with how many packages to measure the memory; 0 skips this comparison")
	s.limits.Bind(fs, "addon-agent", "kube-api")
}

// maxInstances is the number of Instances, with three pods each, that fit on the sandbox's nodes.
const maxInstances = 450

// Check rejects settings that cannot be measured.
func (s *settings) Check() error {
	switch {
	case s.instances < 0 || s.instances > maxInstances:
		return fmt.Errorf("-instances is %d: want a number from 0 to %d", s.instances, maxInstances)
	case s.packages < 0 || s.packages > maxInstances:
		return fmt.Errorf("-packages is %d: want a number from 0 to %d", s.packages, maxInstances)
	case s.instances == 0 && s.packages == 0:
		return fmt.Errorf("-instances and -packages are 0: nothing is measured")
	case s.concurrency < 1:
		return fmt.Errorf("-concurrency is %d: want 1 or more", s.concurrency)
	case s.runs < 1:
		return fmt.Errorf("-runs is %d: want 1 or more", s.runs)
	}
	return s.limits.Check()
}
