package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// settle prunes objects that the current version no longer applies, and judges the objects in the inventory. live are those that the pass has
// applied.
func (p *pass) settle(ctx context.Context, o plan.Observation, surplus []kudo.InventoryEntry, live liveObjects) (result, error) {
	x := p.executionOf(ctx, o)
	surplus, waiting := p.removeCharts(ctx, x, surplus)
	if _, err := p.prune(ctx, x, surplus); err != nil && unreadable(err) == "" { // what cannot be read stays listed, and is judged below
		return result{}, err
	}
	status := *o.Instance.Status.DeepCopy()
	status.Inventory, status.Tasks = x.inventory.entries, x.inventory.records
	judged, err := p.judge(ctx, o, status.Inventory, live)
	if waiting != "" && judged.ready.Status == metav1.ConditionTrue {
		judged.ready = plan.Condition(metav1.ConditionFalse, kudo.ReasonUnhealthy, waiting)
	}
	compared := p.compare(ctx, o, x, live)
	if compared.stopped != "" && judged.ready.Status == metav1.ConditionTrue {
		judged.ready, judged.available = plan.Condition(metav1.ConditionFalse, kudo.ReasonUnhealthy, compared.stopped), nil
	}
	changed := !equality.Semantic.DeepEqual(status.Tasks, o.Instance.Status.Tasks)
	after := soonest(p.until(judged.until), p.until(compared.again))
	if waiting != "" {
		after = soonest(after, recheckInterval)
	}
	return result{status: status, judgement: judged, compared: compared, after: after, again: changed}, err
}

// removeCharts deletes what the charts of Helm tasks have applied that the version does not have, with their hooks. It returns what it waits for, and the
// surplus of other tasks.
func (p *pass) removeCharts(ctx context.Context, x *execution, surplus []kudo.InventoryEntry) (rest []kudo.InventoryEntry, waiting string) {
	if x.version == nil || !plan.IsWhole(x.instance.Status) {
		return surplus, ""
	}
	last := x.Execution
	defer func() { x.Execution = last }()
	for _, record := range x.instance.Status.Tasks {
		isOf := func(t kudo.Task) bool { return t.Name == record.Task && t.Kind == kudo.TaskHelm }
		if slices.ContainsFunc(x.version.Tasks, isOf) {
			continue
		}
		surplus = slices.DeleteFunc(slices.Clone(surplus), func(e kudo.InventoryEntry) bool { return e.Task == record.Task })
		key := fmt.Sprintf("%s/%s/removal", x.instance.UID, record.Task)
		x.Execution = p.attemptOf(x, []kudo.TaskRecord{record}, string(last.UID)+"-removal-", key)
		switch outcome := p.deleteChart(ctx, x, plan.Placed{Task: kudo.Task{Name: record.Task, Kind: kudo.TaskHelm}}); outcome.Status {
		case kudo.Complete:
			p.backoff.DeleteEntry(key)
			continue
		case kudo.FatalError:
			p.failAgain(key, p.clock())
			fallthrough
		default:
			waiting = fmt.Sprintf("removing task %q, which the version does not have: %s", record.Task, p.view.Masker().Text(outcome.Message))
		}
	}
	return surplus, waiting
}

// judge evaluates the applied objects in the inventory and the children. Objects that only manually requested plans have applied do not
// influence it. live are objects that the cache may lack.
func (p *pass) judge(
	ctx context.Context, o plan.Observation, inventory []kudo.InventoryEntry, live liveObjects,
) (judgement, error) {
	objects, children, err := p.effects(ctx, o, inventory, live)
	if err != nil {
		return judgement{}, err
	}
	ready, again := p.explainSettled(ctx, o, o.SettledReady(objects, children), objects)
	judged := judgement{ready: ready}
	judged.available, judged.until = o.SettledAvailable(judged.ready, objects, children)
	if !again.IsZero() && (judged.until.IsZero() || again.Before(judged.until)) {
		judged.until = again
	}
	switch {
	case judged.ready.Reason == kudo.ReasonKubernetesVersionUnsupported:
		judged.until = o.Now.Add(p.holdInterval)
	case slices.ContainsFunc(objects, func(o plan.Object) bool { return o.Unread != "" }) && judged.until.IsZero():
		judged.until = o.Now.Add(maxBackoff)
	}
	return judged, nil
}

// hold records why a plan does not start or continue, which is tried again after a while.
func (p *pass) hold(ctx context.Context, o plan.Observation, reason, message string) (result, error) {
	judged, err := p.judgeDuringWait(ctx, o, plan.Condition(metav1.ConditionFalse, reason, message))
	if err != nil {
		return result{}, err
	}
	return result{status: *o.Instance.Status.DeepCopy(), judgement: judged, after: soonest(p.holdInterval, p.until(judged.until))}, nil
}

// wait records why nothing is done, until something changes. What runs is judged if that says nothing about it.
func (p *pass) wait(ctx context.Context, o plan.Observation, action plan.Action) (result, error) {
	if !action.Holds {
		return resultOf(action), nil
	}
	held, err := p.hold(ctx, o, action.Ready.Reason, action.Ready.Message)
	held.after = p.until(held.until)
	return held, err
}

// judgeDuringWait evaluates an Instance whose plan does not start or continue, with condition Ready. A plan that has started is judged as during its
// steps, with the same limit of time, because it may have applied only a part of its changes. Before its start, what runs is judged as before the wait.
func (p *pass) judgeDuringWait(ctx context.Context, o plan.Observation, ready metav1.Condition) (judgement, error) {
	status := *o.Instance.Status.DeepCopy()
	if plan.IsInterrupted(status) {
		progress := status.PlanStatus[status.Execution.Plan]
		progress.Message = ready.Message
		status.PlanStatus[status.Execution.Plan] = progress
		judged, err := p.judgeDuringPlan(ctx, o, p.executionOf(ctx, o), status)
		if judged.ready = ready; judged.available != nil && judged.available.Status == metav1.ConditionTrue {
			judged.available.Message = ready.Message
		}
		return judged, err
	}
	objects, children, err := p.effects(ctx, o, status.Inventory, nil)
	if err != nil {
		return judgement{}, err
	}
	return judgement{ready: ready, available: o.HeldAvailable(ready.Message, objects, children)}, nil
}

// effects reads the objects in the inventory on which condition Ready depends, and the children.
func (p *pass) effects(
	ctx context.Context, o plan.Observation, inventory []kudo.InventoryEntry, live liveObjects,
) ([]plan.Object, []plan.Child, error) {
	objects := make([]plan.Object, 0, len(inventory))
	for _, entry := range inventory {
		if entry.Manual || entry.Pending || entry.Hook {
			continue
		}
		object, err := p.objects.readEntry(ctx, entry, asSeenOr(live))
		if object.Unread = unreadable(err); err != nil && object.Unread == "" {
			return nil, nil, err
		}
		objects = append(objects, object)
	}
	objects, err := p.objects.withClasses(ctx, objects)
	if err != nil {
		return nil, nil, err
	}
	children, err := p.children(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	return p.view.MaskObjects(p.probe(ctx, plan.WithRules(o.Running, objects))), children, nil
}

// isUnblocked reports whether the applied objects and children of an Instance are healthy, and were not when its plan had failed: then the
// plan starts again early. If they cannot be read, it starts when its retry is due.
func (p *pass) isUnblocked(ctx context.Context, o plan.Observation) bool {
	retry := plan.NextRetry(o.Instance.Status)
	if retry == nil || o.Instance.IsRemoving() {
		p.blocked.Remove(o.Instance.UID)
		return false
	}
	objects, children, err := p.effects(ctx, o, o.Instance.Status.Inventory, nil)
	if err != nil {
		return false
	}
	failed := o.Instance.Status.PlanStatus[retry.Plan].UID
	if plan.Ready(o.Owner, objects, children).Status != metav1.ConditionTrue {
		p.blocked.Add(o.Instance.UID, failed)
		return false
	}
	blocked, known := p.blocked.Get(o.Instance.UID)
	return known && blocked == failed
}

// guardedWorkloads returns the workloads that have to stay available.
func (p *pass) guardedWorkloads(ctx context.Context, x *execution, status kudo.InstanceStatus) ([]plan.Workload, error) {
	var objects []plan.Object
	for _, entry := range plan.GuardedWorkloads(status.Inventory) {
		object, err := p.objects.readEntry(ctx, entry, asSeenOr(x.inventory.live))
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	var workloads []plan.Workload
	for _, object := range p.view.MaskObjects(objects) {
		workloads = append(workloads, plan.Workload{Object: object, CrashLoop: p.crashLoop(ctx, x, status, object)})
	}
	return workloads, nil
}

// judgeDuringPlan evaluates an Instance while a plan runs: a plan that was requested manually and is not owed leaves it to the objects. During any
// other, the Instance is not ready, and is available as long as its workloads are.
func (p *pass) judgeDuringPlan(ctx context.Context, o plan.Observation, x *execution, status kudo.InstanceStatus) (judgement, error) {
	if plan.IsAside(status) {
		return p.judge(ctx, o, status.Inventory, nil)
	}
	judged := judgement{ready: plan.RunningCondition(status.PlanStatus[status.Execution.Plan])}
	if !plan.KeepsAvailable(status) {
		return judged, nil
	}
	workloads, err := p.guardedWorkloads(ctx, x, status)
	children, unread := p.children(ctx, o)
	if err := cmp.Or(err, unread); err != nil { // the progress of the plan is recorded all the same
		ctrl.LoggerFrom(ctx).Error(err, "failed to read what has to stay available during an update")
		judged.available, judged.until = plan.RecordedAvailable(status), o.Now.Add(recheckInterval)
		return judged, nil
	}
	var spec kudo.Plan // without its timeout if the OperatorVersion is lost
	if x.version != nil {
		spec = x.version.Plans[x.Plan]
	}
	judged.available, judged.until = plan.UpdatingAvailable(x.owner(), spec, status.PlanStatus[x.Plan], workloads, children, o.Now)
	return judged, nil
}

// end settles an Instance after its plan has ended, or was refused. The end of the plan is recorded even if settling fails. live are the
// objects that the pass has applied.
func (p *pass) end(ctx context.Context, o plan.Observation, status kudo.InstanceStatus, live liveObjects) result {
	if last := status.Execution.Plan; last == kudo.CleanupPlan && status.PlanStatus[last].Status == kudo.FatalError {
		p.failAgain(cleanupKey(o.Instance), o.Now)
	}
	o.Instance = o.Instance.DeepCopy()
	o.Instance.Status = status
	rest := o.Rest()
	ended, err := resultOf(rest), error(nil)
	if rest.Kind == plan.ActionSettle {
		ended, err = p.settle(ctx, o, rest.Prune, live)
	}
	if err != nil {
		ended = result{status: status, judgement: judgement{
			available: plan.RecordedAvailable(status), ready: plan.RunningCondition(status.PlanStatus[status.Execution.Plan]),
		}}
	}
	ended.again = true
	return ended
}

// cleanupKey returns the key of a cleanup plan in the recent failures.
func cleanupKey(instance *kudo.Instance) string { return string(instance.UID) + "/" + kudo.CleanupPlan }
