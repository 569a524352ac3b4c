package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

func workload(name, task string) kudo.InventoryEntry {
	return kudo.InventoryEntry{Group: "apps", Kind: "StatefulSet", Namespace: "apps", Name: name, Task: task}
}

func asAvailable(entry kudo.InventoryEntry) kudo.InventoryEntry {
	entry.Available = true
	return entry
}

// statefulSet returns a StatefulSet of the owner with that many of two pods ready.
func statefulSet(t *testing.T, name string, ready int) plan.Object {
	live := parseObject(t, fmt.Sprintf("{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: %s, namespace: apps, labels: {heritage: kudo, kudo.dev/instance: kafka}}, "+
		"spec: {replicas: 2, selector: {matchLabels: {app: a}}}, status: {replicas: 2, updatedReplicas: 2, readyReplicas: %d, observedGeneration: 1}}", name, ready))
	return plan.Object{Want: live, Live: live}
}

// goneStatefulSet returns a StatefulSet that no longer exists.
func goneStatefulSet(t *testing.T, name string) plan.Object {
	return plan.Object{Want: statefulSet(t, name, 0).Want}
}

func availableIs(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kudo.ConditionAvailable, Status: status, Reason: reason, Message: message}
}

// A child of the plan that is being installed or removed does not count.
func TestUpdatingAvailable(t *testing.T) {
	var (
		owner     = plan.Owner{Namespace: "apps", Name: "kafka"}
		timed     = kudo.Plan{Timeout: &metav1.Duration{Duration: time.Hour}}
		installed = func(i *kudo.Instance) *kudo.Instance {
			i.Status.Whole = &kudo.WholeVersion{}
			return i
		}
		child = func(mirror *kudo.Instance) []plan.Child {
			return []plan.Child{{Acknowledged: childStatus(kudo.ChildApplied), Mirror: mirror}}
		}
		updating = newMirror("u", 2, 2, childRuns)
	)
	updating.Status.Conditions = append(updating.Status.Conditions, availableIs(metav1.ConditionTrue, kudo.ReasonUpdating, ""))
	hidden, foreign := statefulSet(t, "a", 0), statefulSet(t, "a", 1)
	hidden.Opaque = true
	foreign.Live = foreign.Live.DeepCopy()
	foreign.Live.SetLabels(nil)
	for name, test := range map[string]struct {
		spec      kudo.Plan
		workloads []plan.Workload
		children  []plan.Child
		after     time.Duration
		want      string // a part of the message; empty if it is available
		reason    string
	}{
		"nothing to guard":                            {},
		"workloads with a ready pod":                  {workloads: []plan.Workload{{Object: statefulSet(t, "a", 1)}, {Object: statefulSet(t, "b", 2)}}},
		"one without a ready pod":                     {workloads: []plan.Workload{{Object: statefulSet(t, "a", 1)}, {Object: statefulSet(t, "b", 0)}}, want: "StatefulSet apps/b: is not available: no pod is ready"},
		"one that is missing, such as a replaced one": {workloads: []plan.Workload{{Object: goneStatefulSet(t, "a")}}, want: "StatefulSet apps/a: is missing"},
		"one with a pod that crash-loops":             {workloads: []plan.Workload{{Object: statefulSet(t, "a", 1), CrashLoop: "Pod apps/a-1: loops"}}, want: "StatefulSet apps/a: Pod apps/a-1: loops"},
		"one that another program has replaced":       {workloads: []plan.Workload{{Object: foreign}}, want: "StatefulSet apps/a: already exists"},
		"one whose messages are not shown":            {workloads: []plan.Workload{{Object: hidden}}, want: "StatefulSet apps/a: is not available, and the message is not shown"},
		"a child that is updated":                     {children: child(installed(updating.DeepCopy()))},
		"a child that is ready":                       {children: child(installed(newMirror("u", 2, 2, childReady)))},
		"a child that is not available":               {children: child(installed(newMirror("u", 2, 2, childFailed))), want: `is not available: plan "deploy" failed: no image`},
		"a child that is being installed":             {children: child(newMirror("u", 2, 2, childRuns))},
		"a child that is being removed":               {children: child(installed(newMirror("u", 2, 2, childRuns, kudo.AnnotationHubDeleted)))},
		"a child that has not been mirrored":          {children: child(nil)},
		"almost ten minutes":                          {after: 10 * time.Minute},
		"more than ten minutes": {after: 10*time.Minute + time.Second, reason: kudo.ReasonPlanInProgress,
			want: `plan "upgrade" has been running for more than 10m0s: phase "p": waits`},
		"more than ten minutes, with a timeout": {spec: timed, after: 59 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			started := metav1.NewTime(noon)
			status := kudo.PlanStatus{Name: "upgrade", Status: kudo.InProgress, Message: `phase "p": waits`, StartedTimestamp: &started}
			got, again := plan.UpdatingAvailable(owner, test.spec, status, test.workloads, test.children, noon.Add(test.after))
			want := availableIs(metav1.ConditionTrue, kudo.ReasonUpdating, `plan "upgrade" is running`)
			if test.want != "" {
				if !strings.HasPrefix(got.Message, test.want) && !strings.Contains(got.Message, test.want+`; plan "upgrade" is running: phase "p": waits`) {
					t.Errorf("got %q, want %q", got.Message, test.want)
				}
				want = availableIs(metav1.ConditionFalse, kudo.ReasonUnhealthy, got.Message)
			}
			if test.reason != "" {
				want.Reason = test.reason
			}
			if diff := cmp.Diff(want, *got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if overdue := test.reason != ""; again.IsZero() != overdue || !overdue && !again.After(noon.Add(test.after)) {
				t.Errorf("evaluated again at %v", again)
			}
		})
	}
}

// An Instance stays available from one plan to the next; one that was not available becomes so at the end of the plan.
func TestStartOfAnUpdate(t *testing.T) {
	ready := plan.Condition(metav1.ConditionTrue, kudo.ReasonHealthy, "")
	runs := plan.Condition(metav1.ConditionFalse, kudo.ReasonPlanInProgress, "")
	failed := plan.Condition(metav1.ConditionFalse, kudo.ReasonPlanFailed, "")
	updating := availableIs(metav1.ConditionTrue, kudo.ReasonUpdating, "")
	down := availableIs(metav1.ConditionFalse, kudo.ReasonUnhealthy, "")
	overdue := availableIs(metav1.ConditionFalse, kudo.ReasonPlanInProgress, "")
	for name, test := range map[string]struct {
		state      kudo.ExecutionStatus
		before     bool // the last execution updates an available Instance
		conditions []metav1.Condition
		plan       string
		notWhole   bool
		want       bool
		kept       bool // old marks
	}{
		"of one at rest":                                    {state: kudo.Complete, conditions: []metav1.Condition{ready}, want: true},
		"of one that waited for it":                         {state: kudo.Complete, conditions: []metav1.Condition{runs, updating}, want: true},
		"of one that is unhealthy":                          {state: kudo.Complete, conditions: []metav1.Condition{runs}},
		"after a failure":                                   {state: kudo.FatalError, before: true, conditions: []metav1.Condition{failed}},
		"that supersedes another":                           {state: kudo.InProgress, before: true, conditions: []metav1.Condition{runs, updating}, want: true, kept: true},
		"that supersedes another, while a workload is down": {state: kudo.InProgress, before: true, conditions: []metav1.Condition{runs, down}, want: true, kept: true},
		"that supersedes one that has errors":               {state: kudo.Error, before: true, conditions: []metav1.Condition{runs}, want: true, kept: true},
		"that supersedes one that takes too long":           {state: kudo.InProgress, before: true, conditions: []metav1.Condition{runs, overdue}},
		"that supersedes one of an unavailable Instance":    {state: kudo.InProgress, conditions: []metav1.Condition{runs}},
		"before the first installation":                     {state: kudo.Complete, conditions: []metav1.Condition{ready}, notWhole: true},
		"that removes everything":                           {state: kudo.Complete, conditions: []metav1.Condition{ready}, plan: kudo.CleanupPlan},
		"that is not owed":                                  {state: kudo.Complete, conditions: []metav1.Condition{ready}, plan: "backup"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObservation(test.state)
			status := o.Instance.Status
			status.Conditions, status.Execution.Available = test.conditions, test.before
			if test.notWhole {
				status.Whole, status.Execution.Owed = nil, []kudo.OwedPlan{{Plan: "deploy", Whole: true}}
			}
			status.Inventory = []kudo.InventoryEntry{asAvailable(workload("down", "one")), workload("up", "one"), config("c", "one")}
			choice := plan.Choice{Version: o.Running, Start: &kudo.Execution{Plan: "deploy", OperatorVersion: one, Owed: []kudo.OwedPlan{{Plan: "deploy", Whole: true}}}}
			switch test.plan {
			case kudo.CleanupPlan:
				choice.Start.Plan = test.plan
			case "backup":
				choice.Start = &kudo.Execution{Plan: test.plan, UID: "r", Request: "r", OperatorVersion: one}
			}
			started := plan.Start(status, choice, "y", noon)
			if started.Execution.Available != test.want {
				t.Errorf("available: got %v, want %v", started.Execution.Available, test.want)
			}
			marked := plan.MarkAvailable(status, status.Inventory, []plan.Object{statefulSet(t, "up", 1), statefulSet(t, "down", 0)})
			want := []kudo.InventoryEntry{workload("down", "one"), asAvailable(workload("up", "one")), config("c", "one")}
			want[0].Available = test.kept
			if diff := cmp.Diff(want, marked); diff != "" {
				t.Errorf("marks (-want +got)\n%s", diff)
			}
			if !status.Inventory[0].Available || status.Inventory[1].Available {
				t.Error("the inventory was changed")
			}
		})
	}
}

func TestSettledAvailable(t *testing.T) {
	ready := plan.Condition(metav1.ConditionTrue, kudo.ReasonHealthy, "")
	pending := plan.PendingCondition("update")
	updated := newMirror("u", 2, 2, childRuns)
	updated.Status.Conditions = append(updated.Status.Conditions, availableIs(metav1.ConditionTrue, kudo.ReasonUpdating, ""))
	child := func(mirror *kudo.Instance, change ...func(*plan.Child)) []plan.Child {
		c := plan.Child{Acknowledged: childStatus(kudo.ChildApplied), Mirror: mirror}
		for _, f := range change {
			f(&c)
		}
		return []plan.Child{c}
	}
	const tidying = "objects that no task applies any longer are being deleted"
	now := metav1.NewTime(noon)
	terminating, deleted := statefulSet(t, "surplus", 2), statefulSet(t, "a", 2)
	for _, o := range []plan.Object{terminating, deleted} {
		o.Live.SetDeletionTimestamp(&now)
	}
	for name, test := range map[string]struct {
		recorded metav1.Condition
		objects  []plan.Object
		children []plan.Child
		pending  bool
		ended    time.Duration // since the end of the last plan
		want     string        // its message; empty if condition Ready applies
		down     bool          // it is False, reason Unhealthy
	}{
		"at rest":             {recorded: ready, objects: []plan.Object{statefulSet(t, "a", 2)}},
		"an unhealthy object": {recorded: ready, objects: []plan.Object{statefulSet(t, "a", 1)}},
		"a plan is next":      {recorded: ready, objects: []plan.Object{statefulSet(t, "a", 1)}, pending: true, want: `plan "update" is next`},
		"a plan is next, a workload down": {recorded: ready, objects: []plan.Object{statefulSet(t, "a", 0)}, pending: true, down: true,
			want: `StatefulSet apps/a: is not available: no pod is ready; plan "update" is next`},
		"a plan is next, a workload gone": {recorded: ready, objects: []plan.Object{goneStatefulSet(t, "a")}, pending: true, down: true,
			want: `StatefulSet apps/a: is missing; plan "update" is next`},
		"a plan is next, after a failure":             {recorded: childFailed, objects: []plan.Object{statefulSet(t, "a", 2)}, pending: true},
		"a child is updated":                          {recorded: ready, children: child(updated), want: "child Instances are being updated"},
		"a child's plan is next":                      {recorded: ready, children: child(newMirror("u", 2, 2, childReady), func(c *plan.Child) { c.Due = true }), want: "child Instances are being updated"},
		"a child is updated, another problem":         {recorded: ready, objects: []plan.Object{statefulSet(t, "a", 1)}, children: child(updated)},
		"a child has failed":                          {recorded: ready, children: child(newMirror("u", 2, 2, childFailed))},
		"a former object is deleted":                  {recorded: ready, objects: []plan.Object{statefulSet(t, "a", 2), terminating}, want: tidying},
		"a former object is deleted, another problem": {recorded: ready, objects: []plan.Object{statefulSet(t, "a", 1), terminating}},
		"a former object hangs":                       {recorded: ready, objects: []plan.Object{statefulSet(t, "a", 2), terminating}, ended: 11 * time.Minute},
		"another object is deleted":                   {recorded: ready, objects: []plan.Object{deleted}},
		"a former child is removed":                   {recorded: ready, children: child(updated, func(c *plan.Child) { c.Vanished = true }), want: tidying},
		"a child is missing":                          {recorded: ready, children: child(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObservation(kudo.Complete)
			o.Instance.Status.Conditions = []metav1.Condition{test.recorded}
			ended := metav1.NewTime(noon.Add(-test.ended))
			deploy := o.Instance.Status.PlanStatus["deploy"]
			deploy.LastUpdatedTimestamp = &ended
			o.Instance.Status.PlanStatus["deploy"] = deploy
			surplus := workload("surplus", "one")
			surplus.Surplus = true
			o.Instance.Status.Inventory = []kudo.InventoryEntry{workload("a", "one"), surplus}
			conditionReady := o.SettledReady(test.objects, test.children)
			if test.pending {
				conditionReady = pending
			}
			got := ""
			available, again := o.SettledAvailable(conditionReady, test.objects, test.children)
			if tidying := strings.HasPrefix(test.want, "objects"); again.IsZero() == tidying {
				t.Errorf("evaluated again at %v", again)
			}
			if available != nil {
				want := availableIs(metav1.ConditionTrue, kudo.ReasonUpdating, available.Message)
				if test.down {
					want = availableIs(metav1.ConditionFalse, kudo.ReasonUnhealthy, available.Message)
				}
				if diff := cmp.Diff(want, *available); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				got = available.Message
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Whatever a plan waits for says nothing about what runs.
func TestHeldAvailable(t *testing.T) {
	ready := plan.Condition(metav1.ConditionTrue, kudo.ReasonHealthy, "")
	unhealthy := plan.Condition(metav1.ConditionFalse, kudo.ReasonUnhealthy, "")
	waits := plan.Condition(metav1.ConditionFalse, kudo.ReasonNotMirrored, "")
	const message = "waiting for its mirror"
	held := availableIs(metav1.ConditionTrue, kudo.ReasonUpdating, message)
	down := func(problem string) *metav1.Condition {
		condition := availableIs(metav1.ConditionFalse, kudo.ReasonUnhealthy, problem+"; "+message)
		return &condition
	}
	overdue := availableIs(metav1.ConditionFalse, kudo.ReasonPlanInProgress, "")
	const noPod, degraded = "StatefulSet apps/b: is not available: no pod is ready", "StatefulSet apps/a: 1 of 2 pods ready"
	updating := newMirror("u", 2, 2, childRuns)
	updating.Status.Conditions = append(updating.Status.Conditions, held)
	claim := parseObject(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: apps, labels: {heritage: kudo, kudo.dev/instance: kafka}}, status: {phase: Pending}}")
	pending := plan.Object{Want: claim, Live: claim}
	failed := newMirror("u", 2, 2, childFailed)
	failed.Status.Whole = &kudo.WholeVersion{}
	for name, test := range map[string]struct {
		recorded []metav1.Condition
		objects  []plan.Object
		children []plan.Child
		want     *metav1.Condition
	}{
		"an Instance at rest":                   {recorded: []metav1.Condition{ready}, objects: []plan.Object{statefulSet(t, "a", 1)}, want: &held},
		"one that has waited before":            {recorded: []metav1.Condition{waits, held}, objects: []plan.Object{statefulSet(t, "a", 2)}, want: &held},
		"one without workloads":                 {recorded: []metav1.Condition{ready}, want: &held},
		"one that was not available":            {recorded: []metav1.Condition{waits}, objects: []plan.Object{statefulSet(t, "a", 2)}},
		"one whose plan has failed":             {recorded: []metav1.Condition{childFailed}, objects: []plan.Object{statefulSet(t, "a", 2)}},
		"one whose plan took too long":          {recorded: []metav1.Condition{waits, overdue}, objects: []plan.Object{statefulSet(t, "a", 2)}},
		"one that was never evaluated":          {objects: []plan.Object{statefulSet(t, "a", 2)}},
		"a workload is down":                    {recorded: []metav1.Condition{ready}, objects: []plan.Object{statefulSet(t, "a", 2), statefulSet(t, "b", 0)}, want: down(noPod)},
		"a workload goes down meanwhile":        {recorded: []metav1.Condition{waits, held}, objects: []plan.Object{statefulSet(t, "b", 0)}, want: down(noPod)},
		"a workload stays down":                 {recorded: []metav1.Condition{waits, *down(noPod)}, objects: []plan.Object{statefulSet(t, "b", 0)}, want: down(noPod)},
		"a workload is not up again completely": {recorded: []metav1.Condition{waits, *down(noPod)}, objects: []plan.Object{statefulSet(t, "a", 1)}, want: down(degraded)},
		"a workload is up again":                {recorded: []metav1.Condition{waits, *down(noPod)}, objects: []plan.Object{statefulSet(t, "b", 2)}, want: &held},
		"one that was down before":              {recorded: []metav1.Condition{unhealthy}, objects: []plan.Object{statefulSet(t, "b", 0)}, want: down(noPod)},
		"one that was unhealthy before":         {recorded: []metav1.Condition{unhealthy}, objects: []plan.Object{statefulSet(t, "a", 1)}, want: down(degraded)},
		"one with another unhealthy object":     {recorded: []metav1.Condition{unhealthy}, objects: []plan.Object{statefulSet(t, "a", 2), pending}, want: down("PersistentVolumeClaim apps/c: is not bound yet (no StorageClass)")},
		"one that is healthy again":             {recorded: []metav1.Condition{unhealthy}, objects: []plan.Object{statefulSet(t, "a", 2)}, want: &held},
		"one that is healthy, with a child that is updated": {recorded: []metav1.Condition{unhealthy},
			children: []plan.Child{{Acknowledged: childStatus(kudo.ChildApplied), Mirror: updating}}, want: &held},
		"a workload is gone": {recorded: []metav1.Condition{waits, held}, objects: []plan.Object{goneStatefulSet(t, "a")},
			want: down("StatefulSet apps/a: is missing")},
		"a child that was installed has failed": {recorded: []metav1.Condition{ready}, want: down(`Instance /: is not available: plan "deploy" failed: no image`),
			children: []plan.Child{{Acknowledged: childStatus(kudo.ChildApplied), Mirror: failed}}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObservation(kudo.Complete, func(o *plan.Observation) { o.Desired, o.Running = nil, nil })
			o.Instance.Status.Conditions = test.recorded
			if diff := cmp.Diff(test.want, o.HeldAvailable(message, test.objects, test.children)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// What the plan deletes does not have to stay available, unless the plan applies it again.
func TestWorkloadsThatThePlanDeletes(t *testing.T) {
	status := plan.Begin("upgrade", kudo.Plan{Phases: []kudo.Phase{{Steps: []kudo.Step{{Tasks: []string{"before", "delete", "apply"}}}}}}, "x", noon)
	status.Phases[0].Steps[0].Tasks[0].Status = kudo.Complete
	inventory := []kudo.InventoryEntry{asAvailable(workload("a", "apply")), asAvailable(workload("b", "before")), asAvailable(workload("c", "delete")), workload("d", "apply")}
	for name, want := range map[string]bool{"a": true, "b": false, "c": false, "d": false, "e": false} {
		if got := plan.Replaces(status, "delete", inventory, workload(name, "")); got != want {
			t.Errorf("%s is replaced: got %v, want %v", name, got, want)
		}
	}
	dismissed := plan.Dismiss(inventory, workload("b", ""))
	if diff := cmp.Diff([]kudo.InventoryEntry{inventory[0], inventory[2]}, plan.GuardedWorkloads(dismissed)); diff != "" {
		t.Errorf("dismissed (-want +got)\n%s", diff)
	}
	retracted := plan.Retract(inventory, workload("a", ""))
	if diff := cmp.Diff([]kudo.InventoryEntry{asPending(inventory[0])}, retracted[:1]); diff != "" {
		t.Errorf("retracted (-want +got)\n%s", diff)
	}
	listed := plan.List(retracted, asPending(workload("a", "apply")))
	if diff := cmp.Diff(retracted, listed); diff != "" {
		t.Errorf("listed again (-want +got)\n%s", diff)
	}
}

func TestFirstCrashLoop(t *testing.T) {
	const loops = "{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: ns%s}, status: {containerStatuses: [{name: app, ready: %t, restartCount: 4, " +
		"state: {running: {startedAt: '%s'}}, lastState: {terminated: {exitCode: 1}}}]}}"
	pod := func(name, more string, ready bool, age time.Duration) unstructured.Unstructured {
		return *parseObject(t, fmt.Sprintf(loops, name, more, ready, noon.Add(-age).UTC().Format(time.RFC3339)))
	}
	for name, test := range map[string]struct {
		pods []unstructured.Unstructured
		want string
	}{
		"none":                      {},
		"the first by name":         {pods: []unstructured.Unstructured{pod("b", "", false, time.Hour), pod("a", "", false, time.Hour)}, want: "Pod ns/a: "},
		"one just restarted":        {pods: []unstructured.Unstructured{pod("a", "", true, time.Second)}, want: "Pod ns/a: "},
		"one that has recovered":    {pods: []unstructured.Unstructured{pod("a", "", true, time.Hour)}},
		"one that is being deleted": {pods: []unstructured.Unstructured{pod("a", ", deletionTimestamp: '2026-01-01T00:00:00Z'", false, time.Hour)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.FirstCrashLoop(test.pods, noon); got == "" != (test.want == "") || !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
