package model

import (
	"cmp"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

// execution is status.execution together with its OperatorVersion, and the inventory as updated by a pass.
type execution struct {
	*kudo.Execution
	owner     plan.Owner
	instance  *kudo.Instance
	version   *kudo.OperatorVersionSpec
	inventory []kudo.InventoryEntry
	// rounds holds the first round of this pass that applied or deleted each object.
	rounds map[kudo.InventoryEntry]int
}

func executionOf(o plan.Observation) *execution {
	return &execution{
		Execution: o.Instance.Status.Execution, owner: o.Owner, instance: o.Instance, version: o.Running,
		inventory: o.Instance.Status.Inventory, rounds: map[kudo.InventoryEntry]int{},
	}
}

func (x *execution) aside() bool { return plan.IsAside(kudo.InstanceStatus{Execution: x.Execution}) }

// asks returns the action of a task, and its objects.
func (x *execution) asks(placed plan.Placed) (plan.TaskAction, []*unstructured.Unstructured, error) {
	action, err := plan.TaskActionOf(placed.Task, x.version, x.Parameters)
	if err != nil || !action.HasObjects() {
		return action, nil, err
	}
	wants, err := render.Objects(x.context(placed), placed.Task.Spec.Resources...)
	for _, want := range wants {
		if want.GetKind() != "ClusterRole" && want.GetKind() != "CustomResourceDefinition" {
			want.SetNamespace(cmp.Or(want.GetNamespace(), cluster))
		}
	}
	return action, wants, err
}

func (x *execution) context(placed plan.Placed) render.Context {
	return render.Context{
		Version: x.version, OperatorVersion: x.version.Version, Instance: x.instance.Name, Namespace: cluster, Parameters: x.Parameters,
		Plan: placed.Plan, Phase: placed.Phase, Step: placed.Step, Execution: x.UID,
	}
}

// renderPlan lists the objects of the execution's plan, those of the other plans that it affects, and the tasks that cannot be rendered.
func (x *execution) renderPlan() (own, owed []kudo.InventoryEntry, unrenderable map[string]bool, distorted error) {
	affected := plan.AffectedPlans(x.Execution)
	unrenderable = map[string]bool{}
	for _, placed := range plan.Everywhere(x.version) {
		if !affected[placed.Plan] {
			continue
		}
		action, wants, err := x.asks(placed)
		if changes := (*render.StructureError)(nil); distorted == nil && placed.Plan == x.Plan && errors.As(err, &changes) {
			distorted = err
		}
		switch {
		case !action.Makes():
		case err != nil:
			unrenderable[placed.Task.Name] = true
		case placed.Plan == x.Plan:
			own = plan.Track(own, placed.Task.Name, x.aside(), wants)
		default:
			owed = plan.Track(owed, placed.Task.Name, x.aside(), wants)
		}
	}
	return own, owed, unrenderable, distorted
}

// listPending lists the objects of the next tasks that have not started.
func (x *execution) listPending(status kudo.PlanStatus) bool {
	before := len(x.inventory)
	for _, at := range plan.PendingOf(status, plan.Next(x.version.Plans[x.Plan], status)) {
		placed, _ := plan.Find(x.version, x.Plan, at)
		if action, wants, err := x.asks(placed); err == nil && action.Makes() {
			x.inventory = plan.Track(x.inventory, placed.Task.Name, x.aside(), wants)
		}
	}
	return len(x.inventory) > before
}

// claim reports whether a task may write the objects: no earlier round of this pass has.
func (x *execution) claim(round int, wants []*unstructured.Unstructured) bool {
	for _, want := range wants {
		if first, known := x.rounds[plan.Entry(want, "")]; known && first < round {
			return false
		}
		x.rounds[plan.Entry(want, "")] = round
	}
	return true
}

// carryOut runs a task once, and returns its outcome.
func (w *world) carryOut(x *execution, at plan.Task, round int) plan.Outcome {
	placed, _ := plan.Find(x.version, x.Plan, at)
	w.runs(x, at)
	action, wants, err := x.asks(placed)
	if err != nil {
		return plan.Outcome{Status: kudo.FatalError, Message: err.Error()}
	}
	var outcome plan.Outcome
	refused := try(func() {
		switch {
		case action.OfChild():
			outcome = w.childOutcome(x, placed.Task, action)
		case action.Makes():
			outcome = w.applyAll(x, placed, at, wants, round)
		default:
			outcome = w.deleteAll(x, placed, wants, round)
		}
	})
	switch {
	case refused == nil:
		return outcome
	case refused.final:
		return plan.Outcome{Status: kudo.FatalError, Message: refused.Error()}
	default:
		return plan.Outcome{Status: kudo.Error, Message: refused.Error()}
	}
}

func (w *world) childOutcome(x *execution, task kudo.Task, action plan.TaskAction) plan.Outcome {
	return plan.ChildOutcome(action, x.UID, w.child(tree.Acknowledged(x.instance, task)))
}

func (w *world) applyAll(x *execution, placed plan.Placed, at plan.Task, wants []*unstructured.Unstructured, round int) plan.Outcome {
	state := x.instance.Status.PlanStatus[x.Plan].Phases[at.Phase].Steps[at.Step].Tasks[at.Task].Status
	started := state == kudo.InProgress
	if len(plan.UnlistedObjects(x.instance.Status.Inventory, wants)) > 0 || !x.claim(round, wants) {
		return plan.Outcome{Status: kudo.Pending}
	}
	var objects []plan.Object
	for _, want := range wants {
		object := plan.Object{Want: want, Live: w.live(plan.Entry(want, ""))}
		if err := x.owner.Claim(object); err != nil {
			return plan.Outcome{Status: kudo.FatalError, Message: err.Error()}
		}
		if !started || !object.AppliedBy(x.UID) {
			desired := render.RestartPods(want, object.Live, x.UID, plan.RequiredRestart(x.inventory, plan.Entry(want, "")))
			object.Live = w.apply(desired, object.Live)
		}
		x.inventory = plan.MarkApplied(x.inventory, plan.Entry(want, ""), plan.Keeps(want))
		objects = append(objects, object)
	}
	x.inventory = plan.MarkSurplus(x.inventory, plan.Surplus(x.inventory, placed.Task.Name, wants)...)
	return plan.ApplyOutcome(objects)
}

// apply stores an object like server-side apply with a single manager: status and identity stay.
func (w *world) apply(desired, live *unstructured.Unstructured) *unstructured.Unstructured {
	stored := desired.DeepCopy()
	stored.SetGeneration(1)
	if replicas, given, _ := unstructured.NestedFieldNoCopy(stored.Object, "spec", "replicas"); given && replicas == nil {
		unstructured.RemoveNestedField(stored.Object, "spec", "replicas") // an API server drops null
	}
	if live != nil {
		if live.GetDeletionTimestamp() != nil {
			return live
		}
		stored.SetUID(live.GetUID())
		stored.SetGeneration(live.GetGeneration())
		if status, found := live.Object["status"]; found {
			stored.Object["status"] = status
		}
		if equality.Semantic.DeepEqual(stored.Object, live.Object) {
			return live
		}
		if !equality.Semantic.DeepEqual(stored.Object["spec"], live.Object["spec"]) {
			stored.SetGeneration(live.GetGeneration() + 1)
		}
	} else {
		stored.SetUID(w.uid("object"))
	}
	w.write("apply "+plan.Describe(desired), func() {
		w.restarts(live, stored)
		w.objects[plan.Entry(stored, "")] = stored
	})
	return stored.DeepCopy()
}

func (w *world) deleteAll(x *execution, placed plan.Placed, wants []*unstructured.Unstructured, round int) plan.Outcome {
	if !x.claim(round, wants) {
		return plan.Outcome{Status: kudo.Pending}
	}
	var entries []kudo.InventoryEntry
	for _, want := range wants {
		entries = append(entries, plan.Entry(want, ""))
	}
	left := w.deleteListed(x, entries)
	return plan.DeleteOutcome(append(left, w.prune(x, plan.Surplus(x.instance.Status.Inventory, placed.Task.Name, wants))...))
}

// prune deletes objects that their task no longer applies, and returns those that still exist.
func (w *world) prune(x *execution, surplus []kudo.InventoryEntry) []plan.Object {
	if len(surplus) == 0 {
		return nil
	}
	var applied []kudo.InventoryEntry
	for _, placed := range plan.Everywhere(x.version) {
		action, wants, err := x.asks(placed)
		if !action.Makes() {
			continue
		}
		if err != nil {
			return nil
		}
		applied = plan.Track(applied, placed.Task.Name, false, wants)
	}
	inherited, surplus := plan.Inherit(surplus, applied)
	x.inventory = plan.List(x.inventory, inherited...)
	return w.deleteListed(x, surplus)
}

func byName(a, b kudo.InventoryEntry) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
