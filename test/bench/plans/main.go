// Command plans measures how addon-agent carries out plans: it starts a sandbox, deploys Instances on its managed cluster, and then
// applies the same objects once more by a bare client that waits for the same health. Times and counts of addon-agent are those of
// the API server's audit log. It touches no cluster but those that it starts. docs/scale.md says how it measures.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tandem-addons/tandem/test/bench/program"
)

func main() { program.Main(run) }

// settings are the flags.
type settings struct {
	programs  string
	instances numbers
	runs      int
	limits    limits
	out       string
}

// limits are those of addon-agent's client to the managed cluster, and of the bare client.
type limits struct {
	QPS   float64 `json:"qps"`
	Burst int     `json:"burst"`
}

// numbers is a flag with a list of them.
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

func (s *settings) flags(errors io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(errors)
	fs.StringVar(&s.programs, "programs", "bin", "folder of addon-manager and of addon-agent, which is measured")
	s.instances = numbers{1, 10, 100}
	fs.Var(&s.instances, "instances", "how many Instances to deploy at a time, a row of the report for each number")
	fs.IntVar(&s.runs, "runs", 3, "how often to measure each row; the report has the median")
	fs.Float64Var(&s.limits.QPS, "qps", 400, "addon-agent's --kube-api-qps")
	fs.IntVar(&s.limits.Burst, "burst", 800, "addon-agent's --kube-api-burst")
	fs.StringVar(&s.out, "out", "", "file to write the report to, as JSON")
	return fs
}

// most is as many Instances as the sandbox's one node has room for, two pods each.
const most = 200

func (s *settings) check() error {
	switch {
	case slices.Min(s.instances) < 1 || slices.Max(s.instances) > most:
		return fmt.Errorf("-instances is %s: want numbers from 1 to %d", &s.instances, most)
	case s.runs < 1:
		return fmt.Errorf("-runs is %d: want 1 or more", s.runs)
	case s.limits.QPS <= 0 || s.limits.Burst < 1:
		return fmt.Errorf("-qps and -burst are %v and %d: want more than 0", s.limits.QPS, s.limits.Burst)
	}
	return nil
}

func run(ctx context.Context, arguments []string, out, progress io.Writer) error {
	var s settings
	if helped, err := program.Parse(s.flags(progress), arguments); helped || err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	ctrl.SetLogger(logr.Discard())
	measured, err := measure(ctx, s, progress)
	if err != nil {
		return err
	}
	measured.print(out)
	if s.out == "" {
		return nil
	}
	return program.Save(s.out, measured)
}
