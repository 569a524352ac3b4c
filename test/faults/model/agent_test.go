package model

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/mirror"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/report"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// mirror is one pass of the agent's mirror: what core/mirror decides.
func (w *world) mirror(name string, ago int) {
	o := mirror.Observation{Now: noon, Wanted: w.view(w.hub, name, ago), Mirror: w.mirrors.get(name), Known: map[mirror.Fact]bool{}}
	if mirror.NeedsLive(o.Wanted, o.Mirror) {
		if o.Wanted = w.hub.get(name); o.Wanted == nil {
			return
		}
	}
	o.Proof.Signed = isSigned(o.Mirror)
	decision := mirror.Decide(o)
	for ; decision.Need != ""; decision = mirror.Decide(o) {
		w.gather(&o, decision.Need, ago)
		o.Known[decision.Need] = true
	}
	if decision.Removed {
		w.gone[o.Wanted.UID] = true
	}
	var stored *kudo.Instance
	for _, write := range decision.Writes {
		if stored = write.Onto(stored); w.mirrorWrite(write, stored) {
			return
		}
	}
}

// gather adds a fact to what the mirror observes.
func (w *world) gather(o *mirror.Observation, fact mirror.Fact, ago int) {
	switch fact {
	case mirror.FactNamespace:
		o.Namespace = mirror.NamespaceActive
	case mirror.FactParent:
		o.Parent = w.view(w.hub, o.Wanted.Parent().Name, ago)
	case mirror.FactVersion:
		version := w.versions[o.Wanted.Spec.OperatorVersion.Name]
		o.Version = corev1.ObjectReference{Namespace: pushedTo, Name: version.Name, UID: version.UID}
	}
}

// mirrorWrite makes one write of the mirror, and reports a conflict. Another writer never changes a mirror in the model, so that one with a signature
// is signed.
func (w *world) mirrorWrite(write mirror.Write, changed *kudo.Instance) (conflict bool) {
	what := string(write.Kind) + " the mirror of Instance " + changed.Name
	switch write.Kind {
	case mirror.RestoreVersion:
		return false
	case mirror.Orphan:
		w.t.Fatalf("Instance %s is released on the hub, and its mirror is not removed", changed.Name)
	case mirror.Delete:
		w.drop(w.mirrors, what, changed.Name)
		return false
	case mirror.Update:
		changed.Annotations[kudo.AnnotationSignature] = "valid"
	}
	return w.store(w.mirrors, what, changed)
}

func isSigned(i *kudo.Instance) bool {
	return i != nil && i.Annotations[kudo.AnnotationSignature] != ""
}

// report is one pass of the agent's reporter: what core/report decides.
func (w *world) report(name string, ago int) {
	onHub, existing := w.hub.get(name), w.view(w.mirrors, name, ago)
	if onHub == nil {
		return
	}
	if !isSigned(existing) {
		existing = nil
	}
	want := report.Status(report.Observation{OnHub: onHub, Mirror: existing, Removed: w.gone[onHub.UID]})
	if want == nil {
		return
	}
	reported := onHub.DeepCopy()
	for i, c := range want.Conditions {
		want.Conditions[i], _ = apply.MergeCondition(onHub.Status.Conditions, c, noon)
		meta.SetStatusCondition(&reported.Status.Conditions, want.Conditions[i])
	}
	if report.IsUpToDate(onHub.Status, *want) {
		return
	}
	want.Children, want.Conditions = onHub.Status.Children, reported.Status.Conditions
	reported.Status = *want
	w.store(w.hub, "report Instance "+name, reported)
}

// execute is one pass of the agent's engine: rounds of observation, decision, action and commit.
func (w *world) execute(name string, ago int) {
	const maxRounds = 10
	i := w.view(w.mirrors, name, ago)
	if !isSigned(i) || !mirror.HandedOver(i) {
		return
	}
	for range maxRounds {
		o := w.observe(i)
		o.Departure = w.departure(i)
		r := w.act(o, plan.Decide(o))
		status := r.statusOf(o)
		if equality.Semantic.DeepEqual(i.Status, status) {
			return
		}
		i.Status = status
		if w.store(w.mirrors, "commit the status of Instance "+name, i) {
			return
		}
		if !r.again {
			return
		}
		i = w.mirrors.get(name)
	}
}

// observe gathers what plan.Decide depends on.
func (w *world) observe(i *kudo.Instance) plan.Observation {
	o := plan.Observation{Now: noon, Instance: i, Owner: plan.Owner{Namespace: cluster, Name: render.InstanceName(i.Name)}}
	if desired := w.versionOf(i.Spec.OperatorVersion); desired != nil { // a mirror that was lost before its removal refers to none
		o.Reference, o.Desired = i.Spec.OperatorVersion, &desired.Spec
	}
	if last := i.Status.Execution; last != nil {
		o.Running = &w.versionOf(last.OperatorVersion).Spec
		return o.Normalize()
	}
	return o
}

// departure returns the part of an Instance in the removal of an ancestor.
func (w *world) departure(i *kudo.Instance) plan.Departure {
	for above := i; above != nil && !i.IsRemoving(); above = w.mirrors.get(above.Annotations[kudo.AnnotationParent]) {
		if !above.IsRemoving() {
			continue
		}
		if departure := w.tree(above).Departure(i.Name); departure.Stage != "" {
			return departure
		}
	}
	return plan.Departure{}
}

// tree returns an Instance and its descendants.
func (w *world) tree(root *kudo.Instance) plan.Tree {
	branch := func(i *kudo.Instance) plan.Branch {
		return plan.Branch{Instance: i, Clean: plan.IsClean(w.observe(i).State())}
	}
	found := plan.Tree{Root: branch(root)}
	for parents := []string{root.Name}; len(parents) > 0; parents = parents[1:] {
		for _, name := range w.mirrors.names() {
			if i := w.mirrors.get(name); i.Annotations[kudo.AnnotationParent] == parents[0] && mirror.HandedOver(i) {
				found.Descendants = append(found.Descendants, branch(i))
				parents = append(parents, name)
			}
		}
	}
	return found
}

// result is the result of a round.
type result struct {
	status kudo.InstanceStatus
	ready  metav1.Condition
	again  bool
}

func (r result) statusOf(o plan.Observation) kudo.InstanceStatus {
	status := r.status
	status.ObservedGeneration = o.Instance.HubGeneration()
	set := func(c metav1.Condition) {
		c.ObservedGeneration = status.ObservedGeneration
		settled, _ := apply.MergeCondition(status.Conditions, c, noon)
		status.Conditions = slices.Clone(status.Conditions)
		meta.SetStatusCondition(&status.Conditions, settled)
	}
	set(r.ready)
	if request := plan.LastRequest(status); request != nil {
		set(*request)
	}
	return status
}

// act executes an action.
func (w *world) act(o plan.Observation, action plan.Action) result {
	switch action.Kind {
	case plan.ActionStart:
		return w.start(o, action.Start)
	case plan.ActionStep:
		return w.step(o, action.Tasks)
	case plan.ActionSettle:
		return w.settle(o, action.Prune)
	case plan.ActionHold, plan.ActionWithdraw, plan.ActionRemove:
		return w.removeObjects(o)
	default:
		return resultOf(action)
	}
}

func resultOf(action plan.Action) result {
	return result{status: action.Status, ready: action.Ready, again: action.Kind == plan.ActionCancel || action.Kind == plan.ActionAdopt || action.Kind == plan.ActionHalt}
}

// start records an execution and all objects that it is going to apply.
func (w *world) start(o plan.Observation, choice plan.Choice) result {
	status := plan.Start(o.Instance.Status, choice, w.uid("execution"), noon)
	x := executionOf(o)
	x.Execution, x.version = status.Execution, choice.Version
	own, owed, unrenderable, distorted := x.renderPlan()
	rendered := slices.Concat(owed, own)
	for _, entry := range plan.PendingExcept(x.inventory, rendered) {
		if object := w.liveOf(entry); object.Live == nil || !x.owner.Owns(object.Live) {
			x.inventory = plan.Forget(x.inventory, entry)
		}
	}
	if choice.Restart {
		x.inventory = plan.MarkRestart(x.inventory, rendered, unrenderable, x.UID)
	}
	if distorted != nil {
		status.Inventory = x.inventory
		o.Running = choice.Version
		return w.end(o, plan.FailExecution(choice.Version, status, distorted.Error(), noon))
	}
	x.inventory = plan.List(x.inventory, own...)
	status.Inventory = x.inventory
	return result{status: status, ready: w.readyBeside(o, status), again: true}
}

// step runs the next tasks, and those after them that may run before the progress is recorded.
func (w *world) step(o plan.Observation, tasks []plan.Task) result {
	const maxRounds = 10
	x := executionOf(o)
	before, status := o.Instance.Status.PlanStatus[x.Plan], o.Instance.Status
	for round := 0; len(tasks) > 0 && round < maxRounds; round++ {
		outcomes := map[plan.Task]plan.Outcome{}
		for _, at := range tasks {
			outcomes[at] = w.carryOut(x, at, round)
			if outcomes[at].Status == kudo.Complete {
				w.markDone(x.UID, at)
			}
			if outcomes[at].Status == kudo.FatalError {
				break
			}
		}
		status = o.Advance(status, outcomes)
		tasks = plan.EarlyTasks(x.version, status, outcomes)
	}
	progress := status.PlanStatus[x.Plan]
	listed := x.listPending(progress)
	status.Inventory = x.inventory
	if progress.Status.IsTerminal() {
		return w.end(o, status)
	}
	return result{status: status, ready: w.readyBeside(o, status), again: listed || plan.HasProgressed(before, progress)}
}

func (w *world) readyBeside(o plan.Observation, status kudo.InstanceStatus) metav1.Condition {
	if !plan.IsAside(status) {
		return plan.RunningCondition(status.PlanStatus[status.Execution.Plan])
	}
	return w.judge(o, status.Inventory)
}

// end settles an Instance after its plan has ended.
func (w *world) end(o plan.Observation, status kudo.InstanceStatus) result {
	o.Instance = o.Instance.DeepCopy()
	o.Instance.Status = status
	rest := o.Rest()
	ended := resultOf(rest)
	if rest.Kind == plan.ActionSettle {
		refused := try(func() { ended = w.settle(o, rest.Prune) })
		if refused != nil {
			ended = result{status: status, ready: plan.RunningCondition(status.PlanStatus[status.Execution.Plan])}
		}
	}
	ended.again = true
	return ended
}

// settle prunes objects that the current version no longer applies, and judges the objects in the inventory.
func (w *world) settle(o plan.Observation, surplus []kudo.InventoryEntry) result {
	x := executionOf(o)
	w.prune(x, surplus)
	status := *o.Instance.Status.DeepCopy()
	status.Inventory = x.inventory
	return result{status: status, ready: w.judge(o, status.Inventory)}
}

// judge returns condition Ready for the applied objects in the inventory and the children.
func (w *world) judge(o plan.Observation, inventory []kudo.InventoryEntry) metav1.Condition {
	var objects []plan.Object
	for _, entry := range inventory {
		if !entry.Manual && !entry.Pending {
			objects = append(objects, w.liveOf(entry))
		}
	}
	return o.SettledReady(objects, w.childrenOf(o))
}

// childrenOf returns the children of an idle Instance.
func (w *world) childrenOf(o plan.Observation) []plan.Child {
	var children []plan.Child
	for _, said := range o.Instance.Status.Children {
		child := w.child(said)
		child.Vanished = plan.IsWhole(o.Instance.Status) && !hasTask(o.Running, said.Task)
		children = append(children, child)
	}
	return children
}

func hasTask(version *kudo.OperatorVersionSpec, name string) bool {
	return slices.ContainsFunc(version.Tasks, func(t kudo.Task) bool { return t.Name == name })
}

// child observes the mirror of a child.
func (w *world) child(said kudo.ChildStatus) plan.Child {
	child := plan.Child{Name: types.NamespacedName{Namespace: cluster, Name: said.Instance}, Acknowledged: said, Mirror: w.mirrors.get(said.Instance)}
	if child.Mirror != nil {
		child.Due = plan.DueForReady(w.observe(child.Mirror).State()) != ""
	}
	return child
}
