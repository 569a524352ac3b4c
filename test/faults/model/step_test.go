package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/faults/history"
)

// step is one step of a history: a change by a user, or passes of the programs. It prints as the command that does the same.
type step struct {
	history.Change
	// controller and instance name a single pass, rounds is the number of passes of all or the index of a program, and ago how old the
	// views are.
	controller controller
	instance   string
	rounds     int
	fault      fault
	ago        int
}

// What steps do, beside changes of the Instance.
const (
	doReplace = "replace"
	doWebhook = "webhook"
	doRestart = "restart"
	doLose    = "lose"
	doWork    = "work"
	doPass    = "pass"
)

// changeStep, workStep and passStep return steps.
func changeStep(c history.Change) step { return step{Change: c} }

func workStep(rounds int) step { return step{Change: history.Change{Do: doWork}, rounds: rounds} }

func passStep(c controller, ago int) step {
	return step{Change: history.Change{Do: doPass}, controller: c, instance: root, ago: ago}
}

func (s step) String() string {
	switch s.Do {
	case doReplace:
		return fmt.Sprintf("kubectl delete operatorversion -n %s %s-%s; kubectl addon package push %s/%[2]s-%[3]s",
			pushedTo, root, s.Version, history.Folder)
	case doWebhook:
		return "# the admission webhook stops, or starts again"
	case doLose:
		return "# the managed cluster loses all mirrors, as with a restore from a backup"
	case doRestart:
		return fmt.Sprintf("# %s restarts", programs[s.rounds].name)
	case doPass:
		return fmt.Sprintf("# %s %s%s%s", s.controller, s.instance, s.view(), s.fault)
	case doWork:
		return fmt.Sprintf("# %d rounds of all controllers%s%s", s.rounds, s.view(), s.fault)
	default:
		return s.Change.String()
	}
}

func (s step) view() string {
	if s.ago == 0 {
		return ""
	}
	return fmt.Sprintf(", %d versions behind", s.ago)
}

// take takes one step.
func (w *world) take(s step) {
	switch s.Do {
	case doWork:
		w.fault = s.fault
		for range s.rounds {
			if !w.round(s.ago) && s.ago == 0 {
				break
			}
		}
		w.fault = fault{}
	case doPass:
		w.fault = s.fault
		w.pass(s.controller, s.instance, s.ago)
		w.fault = fault{}
	case doRestart:
		w.restart(s.rounds)
	case doLose:
		for _, name := range w.mirrors.names() {
			w.drop(w.mirrors, "lose the mirror of Instance "+name, name)
		}
	case doReplace:
		w.push(w.versions[root+"-"+s.Version])
	case doWebhook:
		w.webhookDown = !w.webhookDown
	case history.Uninstall:
		w.remove(root, "by a user")
	default:
		w.edit(s.Change)
	}
}

// edit changes the desired state, if the hub accepts it.
func (w *world) edit(c history.Change) (accepted bool) {
	before := w.hub.get(root)
	after, possible := c.Edit(before)
	if !possible {
		return false
	}
	if !w.admits(before, after) {
		w.counted["refused edit"]++
		return false
	}
	w.counted[c.Do]++
	w.store(w.hub, c.Do, after)
	return true
}

// round runs every controller for every Instance once, and then the managed cluster's own controllers. It reports whether there may be more
// to do.
func (w *world) round(ago int) (worked bool) {
	before := w.writes + w.faults
	for _, p := range programs {
		for _, c := range p.controllers {
			for _, name := range w.names() {
				w.pass(c, name, ago)
			}
		}
	}
	return w.workloads() || w.writes+w.faults > before
}

func (w *world) names() []string {
	names := append(w.hub.names(), w.mirrors.names()...)
	slices.Sort(names)
	return slices.Compact(names)
}

// pass runs one pass of a controller for an Instance. A program that stops starts again.
func (w *world) pass(c controller, name string, ago int) {
	stop := w.program(c, func() {
		map[controller]func(string, int){
			resolver: w.resolve, parenting: w.children, mirrorer: w.mirror, executor: w.execute, reporter: w.report,
		}[c](name, ago)
	})
	if !stop {
		return
	}
	for at, p := range programs {
		if slices.Contains(p.controllers, c) {
			w.restart(at)
		}
	}
}

// settleDown runs all controllers without faults until there is nothing left to do, and checks that it stays so.
func (w *world) settleDown() {
	w.t.Helper()
	const maxRounds = 150
	rounds := 0
	for ; w.round(0); rounds++ {
		if rounds > maxRounds {
			w.t.Fatalf("there is still something to do after %d rounds:\n%s", rounds, w.describe())
		}
	}
	for at := range programs {
		w.restart(at)
	}
	if w.round(0) {
		w.t.Fatalf("the programs write again after a restart at rest:\n%s", w.describe())
	}
	w.checkCause()
	w.checkRestarted()
}

// describe returns the state of all Instances, for messages.
func (w *world) describe() string {
	var text strings.Builder
	for _, name := range w.names() {
		if i := w.hub.get(name); i != nil {
			fmt.Fprintf(&text, "hub: %s generation %d, deleted %v, spec %+v\n", name, i.Generation, i.DeletionTimestamp != nil, i.Spec)
			for _, c := range i.Status.Conditions {
				fmt.Fprintf(&text, "    %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
			}
			for _, c := range i.Status.Children {
				fmt.Fprintf(&text, "    child %+v\n", c)
			}
		}
		if m := w.mirrors.get(name); m != nil {
			fmt.Fprintf(&text, "managed: %s generation %d, execution %+v\n", name, m.HubGeneration(), m.Status.Execution)
			for _, plan := range slices.Sorted(maps.Keys(m.Status.PlanStatus)) {
				if status := m.Status.PlanStatus[plan]; status.Status != kudo.NeverRun {
					fmt.Fprintf(&text, "    plan %s: %s %s %s\n", plan, status.Status, status.UID, status.Message)
				}
			}
		}
	}
	return text.String()
}
