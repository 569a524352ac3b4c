package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// step is one step of a history: a change by a user, or passes of the programs. It prints as the command that does the same.
type step struct {
	do string
	// version, plan and set are arguments of commands; a nil value removes a parameter.
	version, plan string
	set           map[string]*string
	// controller and instance name a single pass, rounds is the number of passes of all or the index of a program, and ago how old the
	// views are.
	controller controller
	instance   string
	rounds     int
	fault      fault
	ago        int
}

const (
	doInstall   = "install"
	doUpdate    = "update"
	doUpgrade   = "upgrade"
	doRun       = "run"
	doCancel    = "cancel"
	doUninstall = "uninstall"
	doReplace   = "replace"
	doWebhook   = "webhook"
	doRestart   = "restart"
	doWork      = "work"
	doPass      = "pass"
)

func (s step) String() string {
	on := root + " --cluster " + cluster
	switch s.do {
	case doInstall:
		return fmt.Sprintf("kubectl addon install shop %s --version %s%s", on, s.version, s.parameters())
	case doUpdate:
		return strings.Join(append(s.removed(), "kubectl addon update "+on+s.parameters()), "\n")
	case doUpgrade:
		return fmt.Sprintf("kubectl addon upgrade %s --version %s", on, s.version)
	case doRun:
		return fmt.Sprintf("kubectl addon plan run %s %s --cluster %s", root, s.plan, cluster)
	case doCancel:
		return "kubectl addon plan cancel " + on
	case doUninstall:
		return "kubectl addon uninstall " + on + " --yes"
	case doReplace:
		return fmt.Sprintf("kubectl delete operatorversion -n %s shop-%s; kubectl addon package push test/faults/model/testdata/packages/shop-%[2]s", pushedTo, s.version)
	case doWebhook:
		return "# the admission webhook stops, or starts again"
	case doRestart:
		return fmt.Sprintf("# %s restarts", programs[s.rounds].name)
	case doPass:
		return fmt.Sprintf("# %s %s%s%s", s.controller, s.instance, s.view(), s.fault)
	default:
		return fmt.Sprintf("# %d rounds of all controllers%s%s", s.rounds, s.view(), s.fault)
	}
}

func (s step) view() string {
	if s.ago == 0 {
		return ""
	}
	return fmt.Sprintf(", %d versions behind", s.ago)
}

func (s step) parameters() string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.set)) {
		if value := s.set[name]; value != nil {
			fmt.Fprintf(&text, " -p '%s=%s'", name, *value)
		}
	}
	return text.String()
}

func (s step) removed() []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(s.set)) {
		if s.set[name] == nil {
			lines = append(lines, fmt.Sprintf(`kubectl patch instances.kudo.dev %s -n %s --type=json -p '[{"op":"remove","path":"/spec/parameters/%s"}]'`,
				root, cluster, name))
		}
	}
	return lines
}

// take takes one step.
func (w *world) take(s step) {
	switch s.do {
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
	case doReplace:
		w.push(w.versions["shop-"+s.version])
	case doWebhook:
		w.webhookDown = !w.webhookDown
	case doUninstall:
		w.remove(root, "by a user")
	default:
		w.edit(s)
	}
}

// edit changes the desired state, if the hub accepts it.
func (w *world) edit(s step) (accepted bool) {
	before := w.hub.get(root)
	if (before == nil) != (s.do == doInstall) || before != nil && !before.DeletionTimestamp.IsZero() {
		return false
	}
	after := &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: root},
		Spec:       kudo.InstanceSpec{Parameters: map[string]string{}, InstallNamespace: cluster},
	}
	if before != nil {
		after = before.DeepCopy()
	}
	switch s.do {
	case doInstall, doUpgrade:
		after.Spec.OperatorVersion = corev1.ObjectReference{Namespace: pushedTo, Name: "shop-" + s.version}
	case doRun:
		after.Spec.PlanExecution = kudo.PlanExecution{PlanName: s.plan}
	case doCancel:
		if before.Status.Execution == nil {
			return false
		}
		after.Spec.PlanExecution = kudo.PlanExecution{UID: before.Status.Execution.UID, Cancel: true}
	}
	if after.Spec.Parameters == nil {
		after.Spec.Parameters = map[string]string{}
	}
	for name, value := range s.set {
		if value == nil {
			delete(after.Spec.Parameters, name)
		} else {
			after.Spec.Parameters[name] = *value
		}
	}
	if !w.admits(before, after) {
		w.counted["refused edit"]++
		return false
	}
	w.counted[s.do]++
	w.store(w.hub, s.do, after)
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
	const most = 150
	rounds := 0
	for ; w.round(0); rounds++ {
		if rounds > most {
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
