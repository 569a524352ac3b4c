package cli

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// deploying is how a deployment of kafka goes on, report by report.
func deploying() []statusView {
	begun := sampleInstance()
	begun.Generation = 1
	var views []statusView
	report := func(change func(*kudo.InstanceStatus)) {
		next := begun.DeepCopy()
		if len(views) > 0 {
			next = views[len(views)-1].instance.DeepCopy()
		}
		change(&next.Status)
		views = append(views, statusView{instance: next, version: sampleVersion()})
	}
	report(func(*kudo.InstanceStatus) {})
	report(func(s *kudo.InstanceStatus) {
		resolved := condition(kudo.ConditionResolved, "True", kudo.ReasonResolved, "")
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
		steps[1].Status, steps[1].Tasks[0] = kudo.InProgress, kudo.TaskStatus{Name: "brokers", Status: kudo.InProgress, Message: waiting}
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

// shownAs is all that a progress writes of these views, escape characters made visible.
func shownAs(t *testing.T, on func(io.Writer) *progress, views []statusView) string {
	t.Helper()
	var out bytes.Buffer
	p := on(&out)
	for i, view := range views {
		fmt.Fprintf(&out, "--- report %d\n", i)
		if err := p.show(goingOn(view)...); err != nil {
			t.Fatal(err)
		}
	}
	return strings.ReplaceAll(out.String(), "\x1b", "ESC")
}

func TestProgress(t *testing.T) {
	screen := func(width, height int, colors bool) func(io.Writer) *progress {
		return func(out io.Writer) *progress { return drawOn(out, colors, func() (int, int) { return width, height }) }
	}
	views := deploying()
	parent := family()
	parent.instance.Status.Execution = &kudo.Execution{Plan: "deploy"}
	parent.instance.Status.PlanStatus["deploy"] = kudo.PlanStatus{Status: kudo.InProgress, Message: "Instance aa.bb: plan deploy failed"}
	for name, test := range map[string]struct {
		on    func(io.Writer) *progress
		views []statusView
	}{
		"progress-lines":              {newProgress, views},
		"progress-lines-unchanged":    {newProgress, []statusView{views[2], views[2]}},
		"progress-lines-ended":        {newProgress, []statusView{views[4]}},
		"progress-lines-children":     {newProgress, []statusView{parent}},
		"progress-terminal":           {screen(100, 24, false), views},
		"progress-terminal-narrow":    {screen(40, 6, false), views},
		"progress-terminal-unchanged": {screen(100, 24, false), []statusView{views[2], views[2]}},
		"progress-colors":             {screen(100, 24, true), views[3:]},
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, shownAs(t, test.on, test.views)) })
	}
}

func TestProgressTellsNothingOldOfChildren(t *testing.T) {
	plan := func(part string, state kudo.ExecutionStatus, below ...node) node {
		return node{part: part, state: state, children: below}
	}
	child := func(state kudo.ExecutionStatus) node {
		return node{children: []node{plan("Instance shop.cache: plan deploy", state, plan("phase server", state))}}
	}
	var out bytes.Buffer
	p := progress{out: &out}
	for _, state := range []kudo.ExecutionStatus{kudo.Complete, kudo.InProgress, kudo.Complete} {
		fmt.Fprintln(&out, "---")
		if err := p.show(plan("shop: plan cache", kudo.InProgress, plan("phase cache", kudo.Complete), child(state))); err != nil {
			t.Fatal(err)
		}
	}
	want := `---
shop: plan cache: IN_PROGRESS
shop: plan cache: phase cache: COMPLETE
---
shop: plan cache: Instance shop.cache: plan deploy: IN_PROGRESS
shop: plan cache: Instance shop.cache: plan deploy: phase server: IN_PROGRESS
---
shop: plan cache: Instance shop.cache: plan deploy: phase server: COMPLETE
shop: plan cache: Instance shop.cache: plan deploy: COMPLETE
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestProgressOfManyFitsTheTerminal shows what goes on, and counts the rest.
func TestProgressOfManyFitsTheTerminal(t *testing.T) {
	var trees []node
	for i := range 30 {
		n := node{text: fmt.Sprintf("kafka on c%02d", i), state: kudo.Complete}
		if i%3 == 2 {
			n.state, n.children = kudo.InProgress, []node{{text: "phase"}, {text: "phase"}}
		}
		trees = append(trees, n)
	}
	want := []string{"kafka on c02", "kafka on c05", "kafka on c08", "kafka on c11", "… and 26 more"}
	if diff := cmp.Diff(want, fitting(trees, 5)); diff != "" {
		t.Error(diff)
	}
	if trees[0].text != "kafka on c00" || len(trees[2].children) != 2 {
		t.Error("the trees themselves were changed")
	}
}

func TestABufferIsNoTerminal(t *testing.T) {
	if p := newProgress(&bytes.Buffer{}); p.live() || p.colors {
		t.Errorf("live %v, colors %v", p.live(), p.colors)
	}
}

func TestProgressWithoutATerminalHasNoColors(t *testing.T) {
	lines := strings.Split(shownAs(t, newProgress, deploying()), "\n")
	if at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "ESC") }); at >= 0 {
		t.Errorf("escape characters in %q", lines[at])
	}
}

func TestATerminalShowsThatTheHubIsAway(t *testing.T) {
	p := drawOn(&bytes.Buffer{}, false, func() (int, int) { return 80, 24 })
	p.away = func() string { return "does not answer" }
	if lines := drawn(p.hubLine(), whole); len(lines) != 1 || !strings.HasPrefix(lines[0], "the hub does not answer") {
		t.Errorf("on a terminal stands %q", lines)
	}
}
