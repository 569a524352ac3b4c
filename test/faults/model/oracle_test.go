package model

import (
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/mirror"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
)

// controller is a controller of one of the two programs.
type controller string

const (
	resolver  controller = "addon-manager: resolve"
	parenting controller = "addon-manager: children"
	mirrorer  controller = "addon-agent: mirror"
	executor  controller = "addon-agent: engine"
	reporter  controller = "addon-agent: report"
)

// programs are the controllers of each program, in the order in which a round runs them.
var programs = []struct {
	name        string
	controllers []controller
}{
	{"addon-manager", []controller{resolver, parenting}},
	{"addon-agent", []controller{mirrorer, executor, reporter}},
}

// memory is what the oracles remember.
type memory struct {
	running controller
	// revisions holds the latest version of each Instance that a controller has seen or written since its program started.
	revisions map[sight]int
	// gone are the Instances without objects that the mirror has noticed being deleted.
	gone map[types.UID]bool
	// complete are the tasks that a committed status records as complete, done those whose completion the engine has observed.
	complete, done map[position]bool
	// ended are the executions that a committed status records as ended, requested the number of starts of each manual request.
	ended     map[types.UID]bool
	requested map[types.UID]int
	// due are the workloads whose pods must restart, excused those whose plan another version's plan has replaced, which omits them: they
	// may restart.
	due     map[kudo.InventoryEntry]types.UID
	excused map[kudo.InventoryEntry]bool
	// counted are the events that make a run worth while.
	counted map[string]int
}

type sight struct {
	controller
	name string
}

type position struct {
	execution types.UID
	plan.Task
}

func newMemory() memory {
	return memory{
		revisions: map[sight]int{}, gone: map[types.UID]bool{}, complete: map[position]bool{}, done: map[position]bool{},
		ended: map[types.UID]bool{}, requested: map[types.UID]int{}, due: map[kudo.InventoryEntry]types.UID{},
		excused: map[kudo.InventoryEntry]bool{}, counted: map[string]int{},
	}
}

// view returns an Instance as the running controller sees it: some versions ago, but never before what it has seen or written since its
// program started. What the agent reads of its own cluster is current after a start; what is read of the hub may be older.
func (w *world) view(s *shelf, name string, ago int) *kudo.Instance {
	since, known := w.revisions[sight{w.running, name}]
	if !known && (w.running == executor || w.running == reporter) {
		since = math.MaxInt
	}
	i := s.view(name, ago, since)
	if i != nil {
		w.see(s, i)
	}
	return i
}

// see notes which version the running controller has seen or written. A controller reads Instances of one side only.
func (w *world) see(s *shelf, i *kudo.Instance) {
	if w.running == "" || (s == w.mirrors) != (w.running == executor || w.running == reporter) {
		return
	}
	w.revisions[sight{w.running, i.Name}] = max(w.revisions[sight{w.running, i.Name}], revisionOf(i))
}

// restart forgets what a program holds in memory.
func (w *world) restart(program int) {
	w.counted["restart of "+programs[program].name]++
	for seen := range w.revisions {
		if slices.Contains(programs[program].controllers, seen.controller) {
			delete(w.revisions, seen)
		}
	}
	if programs[program].name == "addon-agent" {
		clear(w.gone)
	}
}

// runs is called before a task runs: it must not be recorded as complete, its execution must not have ended, and everything that the
// plan's strategies put before it must be complete.
func (w *world) runs(x *execution, at plan.Task) {
	switch {
	case w.complete[position{x.UID, at}]:
		w.t.Fatalf("plan %s: task %v of execution %s runs again although it is recorded as complete", x.Plan, at, x.UID)
	case w.ended[x.UID]:
		w.t.Fatalf("plan %s: task %v of execution %s runs although the execution has ended", x.Plan, at, x.UID)
	}
	for _, before := range predecessors(x.version.Plans[x.Plan], at) {
		if !w.done[position{x.UID, before}] {
			w.t.Fatalf("plan %s: task %v of execution %s runs before task %v is complete", x.Plan, at, x.UID, before)
		}
	}
}

// markDone is called when a task of an execution is observed to be complete.
func (w *world) markDone(execution types.UID, at plan.Task) { w.done[position{execution, at}] = true }

// predecessors lists the tasks that must be complete before a task runs: a naive reading of the strategies.
func predecessors(spec kudo.Plan, at plan.Task) []plan.Task {
	var before []plan.Task
	for p, phase := range spec.Phases {
		for s, step := range phase.Steps {
			for t := range step.Tasks {
				earlierPhase := p < at.Phase && spec.Strategy != kudo.Parallel
				earlierStep := p == at.Phase && s < at.Step && phase.Strategy != kudo.Parallel
				earlierTask := p == at.Phase && s == at.Step && t < at.Task
				if earlierPhase || earlierStep || earlierTask {
					before = append(before, plan.Task{Phase: p, Step: s, Task: t})
				}
			}
		}
	}
	return before
}

// recordCommit is called when a mirror was written.
func (w *world) recordCommit(before, after *kudo.Instance) {
	w.checkResolved(after)
	last := after.Status.Execution
	if last == nil {
		return
	}
	status := after.Status.PlanStatus[last.Plan]
	for p, phase := range status.Phases {
		for s, step := range phase.Steps {
			for t, task := range step.Tasks {
				if task.Status == kudo.Complete {
					w.complete[position{last.UID, plan.Task{Phase: p, Step: s, Task: t}}] = true
				}
			}
		}
	}
	w.ended[last.UID] = status.Status.IsTerminal()
	w.checkHistory(after)
	if before == nil || before.Status.Execution == nil || before.Status.Execution.UID != last.UID {
		w.recordStart(before, last)
	}
}

// checkResolved fails if the engine may execute a mirror of a generation that the hub has not resolved. A removal needs none: deletion makes a generation, which
// an unsigned mirror has when it is marked for its removal.
func (w *world) checkResolved(copied *kudo.Instance) {
	isSource := func(i *kudo.Instance) bool {
		return mirror.Mirrors(copied, i) && i.Generation == copied.HubGeneration() && isValid(i.Status.Conditions, i.Generation)
	}
	if copied.HubGeneration() > 0 && mirror.HandedOver(copied) && !copied.IsRemoving() && !slices.ContainsFunc(w.hub.of[copied.Name], isSource) {
		w.t.Fatalf("the mirror of Instance %s has generation %d, which the hub has not resolved", copied.Name, copied.HubGeneration())
	}
}

// isValid reports whether the hub has found the desired state of a generation to be valid: a naive reading of condition Resolved.
func isValid(conditions []metav1.Condition, generation int64) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool {
		return c.Type == kudo.ConditionResolved && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation
	})
}

// checkHistory fails unless the last execution of a mirror is in its history, each execution is there once, and what has no outcome runs.
func (w *world) checkHistory(mirror *kudo.Instance) {
	last, count := mirror.Status.Execution, map[types.UID]int{}
	for _, e := range mirror.Status.History {
		count[e.UID]++
		if runs := e.UID == last.UID && !w.ended[last.UID]; runs != (e.Outcome == "") {
			w.t.Fatalf("plan %s of Instance %s has outcome %q in the history; it runs: %t\n%s", e.Plan, mirror.Name, e.Outcome, runs, w.describe())
		}
	}
	if count[last.UID] != 1 || len(count) != len(mirror.Status.History) {
		w.t.Fatalf("execution %s of Instance %s is %d times in a history of %d entries", last.UID, mirror.Name, count[last.UID], len(mirror.Status.History))
	}
}

// recordStart is called when the start of an execution was committed.
func (w *world) recordStart(before *kudo.Instance, last *kudo.Execution) {
	w.counted["plan "+last.Plan]++
	if before != nil && before.Name != root {
		w.counted["plan of a child"]++
	}
	if last.UID == last.Request {
		if w.requested[last.UID]++; w.requested[last.UID] > 1 {
			w.t.Fatalf("the manual request %s starts plan %s again", last.UID, last.Plan)
		}
	}
	if before == nil || before.Status.Execution == nil || before.IsRemoving() {
		return
	}
	if sameHub := before.Annotations[kudo.AnnotationHubUID]; sameHub == w.hubUID(before.Name) && last.Generation < before.Status.Execution.Generation {
		w.t.Fatalf("plan %s starts for generation %d of Instance %s, after one for generation %d", last.Plan, last.Generation, before.Name,
			before.Status.Execution.Generation)
	}
	was, version := before.Status.Execution, &w.versionOf(last.OperatorVersion).Spec
	if !requiresRestart(was, last, &w.versionOf(was.OperatorVersion).Spec, version) {
		return
	}
	w.expectRestarts(before, was, last, version)
}

// expectRestarts notes the workloads whose pods have to restart by an execution, and excuses those that another version omits.
func (w *world) expectRestarts(before *kudo.Instance, was, last *kudo.Execution, version *kudo.OperatorVersionSpec) {
	concerned := map[string]bool{last.Plan: true}
	for _, owed := range last.Owed {
		if isWhole(last) {
			concerned[owed.Plan] = true
		}
	}
	for entry := range w.due {
		own := w.objects[entry].GetLabels()[kudo.LabelInstance] == render.InstanceName(before.Name)
		w.excused[entry] = w.excused[entry] || own && isWhole(last) && was.OperatorVersion != last.OperatorVersion
	}
	x := &execution{Execution: last, instance: before, version: version}
	for _, placed := range plan.Everywhere(version) {
		if !concerned[placed.Plan] {
			continue
		}
		_, wants, _ := x.asks(placed)
		for _, want := range wants {
			if entry := plan.Entry(want, ""); want.GetKind() == "Deployment" && w.live(entry) != nil {
				w.due[entry], w.excused[entry] = last.UID, false
			}
		}
	}
}

// isWhole reports whether the plan of an execution applies the complete OperatorVersion.
func isWhole(x *kudo.Execution) bool {
	return slices.ContainsFunc(x.Owed, func(o kudo.OwedPlan) bool { return o.Plan == x.Plan && o.Whole })
}

// requiresRestart reports whether the changes between two executions require a restart of pods (KEP-27): a naive reading of it.
func requiresRestart(was, is *kudo.Execution, from, to *kudo.OperatorVersionSpec) bool {
	if !equality.Semantic.DeepEqual(from, to) {
		return true
	}
	for _, p := range to.Parameters {
		quiet := p.ForcePodRestart != nil && !bool(*p.ForcePodRestart)
		if !quiet && valueOf(p, was.Parameters) != valueOf(p, is.Parameters) {
			return true
		}
	}
	return false
}

func valueOf(p kudo.Parameter, given map[string]string) string {
	value, set := given[p.Name]
	if !set && p.Default != nil {
		return *p.Default
	}
	return value
}

// restarts is called before an object replaces the live one: pods restart if and only if they must.
func (w *world) restarts(live, stored *unstructured.Unstructured) {
	if stored.GetKind() != "Deployment" {
		return
	}
	entry := plan.Entry(stored, "")
	was, is := podMark(live), podMark(stored)
	switch due := w.due[entry]; {
	case live == nil:
	case was == is:
		return
	case due == "":
		w.t.Fatalf("the pods of %s restart without a reason: %s replaces %s", plan.Describe(stored), is, was)
	default:
		w.counted["restart of pods"]++
	}
	delete(w.due, entry)
}

// podMark returns the annotation of a pod template whose change restarts pods.
func podMark(o *unstructured.Unstructured) string {
	if o == nil {
		return ""
	}
	mark, _, _ := unstructured.NestedString(o.Object, "spec", "template", "metadata", "annotations", kudo.AnnotationExecution)
	return mark
}

func (w *world) hubUID(name string) string {
	if i := w.hub.get(name); i != nil {
		return string(i.UID)
	}
	return ""
}

// checkCause fails if an Instance at rest is not Ready although its desired state is valid and no plan has failed or was cancelled.
func (w *world) checkCause() {
	for _, i := range w.onHub() {
		if m := w.mirrors.get(i.Name); !mirror.IsResolved(&i) || m != nil && plan.ReachedState(m.Status, nil).FailedOwed() != "" {
			return
		}
	}
	if !w.isHealthy() {
		w.t.Fatalf("the Instance is not healthy, and nothing explains it:\n%s", w.describe())
	}
}

// checkRestarted fails if pods of an existing workload still have to restart although no plan is owed.
func (w *world) checkRestarted() {
	for entry, due := range w.due {
		if o := w.live(entry); o != nil && !w.excused[entry] && w.owes(o.GetLabels()[kudo.LabelInstance]) == "" {
			w.t.Fatalf("the pods of %s have not been restarted as %s requires", plan.Describe(o), due)
		}
	}
}

// owes returns an owed plan of the Instance with that name on the managed cluster; empty if there is none.
func (w *world) owes(dashed string) string {
	for _, name := range w.mirrors.names() {
		m := w.mirrors.get(name)
		if w.observe(m).Owner.Name == dashed && m.Status.Execution != nil && len(m.Status.Execution.Owed) > 0 {
			return m.Status.Execution.Owed[0].Plan
		}
	}
	return ""
}

func noonTime() metav1.Time { return metav1.NewTime(noon) }
