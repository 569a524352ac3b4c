package planstatus

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/test/sample"
)

// deploymentViews returns the successive reports of a deployment of kafka.
func deploymentViews() []progress.View {
	started := sample.Instance()
	started.Generation = 1
	var views []progress.View
	report := func(change func(*kudo.InstanceStatus)) {
		next := started.DeepCopy()
		if len(views) > 0 {
			next = views[len(views)-1].Instance.DeepCopy()
		}
		change(&next.Status)
		views = append(views, progress.View{Instance: next, Version: sample.Version()})
	}
	report(func(*kudo.InstanceStatus) {})
	report(func(s *kudo.InstanceStatus) {
		resolved := sample.Condition(kudo.ConditionResolved, "True", kudo.ReasonResolved, "")
		resolved.ObservedGeneration = 1
		s.Conditions = []metav1.Condition{resolved}
		s.ObservedGeneration = 1
		s.Execution = &kudo.Execution{UID: "1", Plan: "deploy"}
		s.PlanStatus = map[string]kudo.PlanStatus{"deploy": {UID: "1", Status: kudo.InProgress, Phases: []kudo.PhaseStatus{
			{Name: "brokers", Status: kudo.InProgress, Steps: []kudo.StepStatus{
				{Name: "config", Status: kudo.InProgress, Tasks: []kudo.TaskStatus{{Name: "config", Status: kudo.InProgress}}},
				{Name: "brokers", Status: kudo.Pending, Tasks: []kudo.TaskStatus{{Name: "brokers", Status: kudo.Pending}}},
			}},
			{Name: "topics", Status: kudo.Pending, Steps: []kudo.StepStatus{{Name: "setup", Status: kudo.Pending}}},
		}}}
	})
	report(func(s *kudo.InstanceStatus) {
		steps := s.PlanStatus["deploy"].Phases[0].Steps
		steps[0].Status, steps[0].Tasks[0].Status = kudo.Complete, kudo.Complete
		steps[1].Status, steps[1].Tasks[0] = kudo.InProgress, kudo.TaskStatus{Name: "brokers", Status: kudo.InProgress, Message: sample.Waiting}
	})
	report(func(s *kudo.InstanceStatus) {
		steps := s.PlanStatus["deploy"].Phases[0].Steps
		steps[1].Status, steps[1].Tasks[0] = kudo.Error, kudo.TaskStatus{Name: "brokers", Status: kudo.Error, Message: "the API server does not answer"}
	})
	report(func(s *kudo.InstanceStatus) {
		plan := s.PlanStatus["deploy"]
		plan.Status, plan.Phases[0].Status, plan.Phases[1].Status = kudo.Complete, kudo.Complete, kudo.Complete
		plan.Phases[0].Steps[1].Status, plan.Phases[0].Steps[1].Tasks[0] = kudo.Complete, kudo.TaskStatus{Name: "brokers", Status: kudo.Complete}
		plan.Phases[1].Steps[0].Status = kudo.Complete
		s.PlanStatus["deploy"] = plan
	})
	return views
}

// shownAs returns the output of a progress for these views, with escape characters made visible.
func shownAs(t *testing.T, on func(io.Writer) *terminal.Progress, views []progress.View) string {
	t.Helper()
	var out bytes.Buffer
	p := on(&out)
	for i, view := range views {
		fmt.Fprintf(&out, "--- report %d\n", i)
		if err := p.Show(InstanceProgress(view)...); err != nil {
			t.Fatal(err)
		}
	}
	return strings.ReplaceAll(out.String(), "\x1b", "ESC")
}

func TestProgress(t *testing.T) {
	screen := func(width, height int, colors bool) func(io.Writer) *terminal.Progress {
		return func(out io.Writer) *terminal.Progress {
			return terminal.NewProgressOn(out, colors, func() (int, int) { return width, height })
		}
	}
	views := deploymentViews()
	parent := family()
	parent.Instance.Status.Execution = &kudo.Execution{Plan: "deploy"}
	parent.Instance.Status.PlanStatus["deploy"] = kudo.PlanStatus{Status: kudo.InProgress, Message: "Instance aa.bb: plan deploy failed"}
	for name, test := range map[string]struct {
		on    func(io.Writer) *terminal.Progress
		views []progress.View
	}{
		"progress-lines":              {terminal.NewProgress, views},
		"progress-lines-unchanged":    {terminal.NewProgress, []progress.View{views[2], views[2]}},
		"progress-lines-ended":        {terminal.NewProgress, []progress.View{views[4]}},
		"progress-lines-children":     {terminal.NewProgress, []progress.View{parent}},
		"progress-terminal":           {screen(100, 24, false), views},
		"progress-terminal-narrow":    {screen(40, 6, false), views},
		"progress-terminal-unchanged": {screen(100, 24, false), []progress.View{views[2], views[2]}},
		"progress-colors":             {screen(100, 24, true), views[3:]},
	} {
		t.Run(name, func(t *testing.T) { clitest.Golden(t, name, shownAs(t, test.on, test.views)) })
	}
}

func TestProgressWithoutATerminalHasNoColors(t *testing.T) {
	lines := strings.Split(shownAs(t, terminal.NewProgress, deploymentViews()), "\n")
	if at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "ESC") }); at >= 0 {
		t.Errorf("escape characters in %q", lines[at])
	}
}
