package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// newObservation returns an Instance with the plan "deploy", two parallel tasks, in the given state.
func newObservation(status kudo.ExecutionStatus, change ...func(*plan.Observation)) plan.Observation {
	version := versionOf("update", "backup")
	version.Tasks = []kudo.Task{{Name: "one"}, {Name: "two"}}
	steps := []kudo.Step{{Name: "s1", Tasks: []string{"one"}}, {Name: "s2", Tasks: []string{"two"}}}
	version.Plans["deploy"] = kudo.Plan{Phases: []kudo.Phase{{Name: "p", Strategy: kudo.Parallel, Steps: steps}}}
	instance := &kudo.Instance{}
	instance.Namespace, instance.Name = "apps", "kafka"
	instance.Annotations = map[string]string{kudo.AnnotationHubGeneration: "7"}
	instance.Spec.OperatorVersion.Name = "kafka-1.0.0-11111111"
	instance.Spec.Parameters = map[string]string{"PLAIN": "a"}
	deploy := plan.Begin("deploy", version.Plans["deploy"], "x", noon)
	if deploy.Status = status; status == kudo.FatalError {
		deploy.Message = "no image"
	}
	instance.Status = kudo.InstanceStatus{
		Execution:  &kudo.Execution{UID: "x", Plan: "deploy", OperatorVersion: one, Parameters: map[string]string{"PLAIN": "a"}},
		Whole:      &kudo.WholeVersion{OperatorVersion: one},
		PlanStatus: map[string]kudo.PlanStatus{"deploy": deploy},
		Inventory:  []kudo.InventoryEntry{config("kept", "one"), config("left", "three")},
	}
	switch {
	case status == kudo.FatalError:
		instance.Status.Execution.Owed = []kudo.OwedPlan{{Plan: "deploy", Outcome: kudo.OwedFailed}}
	case status.IsRunning():
		instance.Status.Execution.Owed = []kudo.OwedPlan{{Plan: "deploy"}}
	}
	o := plan.Observation{
		Now: noon, Instance: instance, Owner: plan.Owner{Namespace: "apps", Name: "kafka"},
		Desired: version, Reference: one, Running: version,
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func requestRemoval(o *plan.Observation) {
	o.Instance.Annotations[kudo.AnnotationHubDeleted] = "2026-01-01T12:00:00Z"
}

// withCleanup adds a cleanup plan to the running version; a non-empty status means that the plan has run to that state.
func withCleanup(status kudo.ExecutionStatus) func(*plan.Observation) {
	return func(o *plan.Observation) {
		o.Running.Plans["cleanup"] = kudo.Plan{}
		if status != "" {
			o.Instance.Status.Execution.Plan = "cleanup"
			o.Instance.Status.PlanStatus["cleanup"] = kudo.PlanStatus{Name: "cleanup", UID: "x", Status: status, Message: "no image"}
		}
	}
}

func parameter(name, value string) func(*plan.Observation) {
	return func(o *plan.Observation) { o.Instance.Spec.Parameters = map[string]string{"PLAIN": "a", name: value} }
}

func neverStarted(o *plan.Observation) {
	o.Running, o.Instance.Status = nil, kudo.InstanceStatus{}
}

func requestCancel(o *plan.Observation) {
	o.Instance.Spec.PlanExecution = kudo.PlanExecution{UID: "x", Cancel: true}
}

func TestDecide(t *testing.T) {
	missing := func(o *plan.Observation) { o.Desired = nil }
	lost := func(o *plan.Observation) { o.Running = nil }
	unread := func(o *plan.Observation) { o.Sensitive.Unresolved = "no Secret" }
	valueLost := func(o *plan.Observation) { o.Sensitive.Lost = "the copy is lost" }
	unplanned := func(name string) func(*plan.Observation) {
		return func(o *plan.Observation) { delete(o.Desired.Plans, name) }
	}
	for name, test := range map[string]struct {
		observed plan.Observation
		want     plan.ActionKind
		starts   string
		tasks    int
		prunes   int
		reason   string
		message  string
		after    time.Duration
		holds    bool // what runs is judged
	}{
		"the first plan starts":                     {observed: newObservation("", neverStarted), want: plan.ActionStart, starts: "deploy"},
		"a changed parameter starts its plan":       {observed: newObservation(kudo.Complete, parameter("BACKUP", "b")), want: plan.ActionStart, starts: "backup"},
		"it starts even after a failure":            {observed: newObservation(kudo.FatalError, parameter("PLAIN", "b")), want: plan.ActionStart, starts: "update"},
		"a plan that runs goes a step further":      {observed: newObservation(kudo.InProgress), want: plan.ActionStep, tasks: 2},
		"so does one with a task that failed":       {observed: newObservation(kudo.Error), want: plan.ActionStep, tasks: 2},
		"it does while another plan waits":          {observed: newObservation(kudo.InProgress, parameter("BACKUP", "b")), want: plan.ActionStep, tasks: 2},
		"it does while what is asked for is missed": {observed: newObservation(kudo.InProgress, missing), want: plan.ActionStep, tasks: 2},
		"it does while the next plan does not exist": {
			observed: newObservation(kudo.InProgress, parameter("BACKUP", "b"), unplanned("backup")), want: plan.ActionStep, tasks: 2,
		},
		"one that is cancelled ends": {
			observed: newObservation(kudo.InProgress, requestCancel), want: plan.ActionCancel, reason: kudo.ReasonPlanInProgress, message: `plan "deploy" is running: cancelled`,
		},
		"one that has ended cannot be cancelled": {observed: newObservation(kudo.Complete, requestCancel), want: plan.ActionSettle, prunes: 1},
		"a complete plan settles, and prunes what is of no task": {
			observed: newObservation(kudo.Complete), want: plan.ActionSettle, prunes: 1,
		},
		"a failed plan is only reported": {
			observed: newObservation(kudo.FatalError), want: plan.ActionWait, reason: kudo.ReasonPlanFailed, message: `plan "deploy" failed: no image`,
		},
		"a version that is missing is waited for": {
			observed: newObservation(kudo.Complete, missing), want: plan.ActionWait, holds: true, reason: kudo.ReasonNotMirrored,
			message: `OperatorVersion "kafka-1.0.0-11111111" is not on the managed cluster yet: waiting for its mirror`,
		},
		"so is one that is lost": {
			observed: newObservation(kudo.InProgress, lost), want: plan.ActionWait, holds: true, reason: kudo.ReasonNotMirrored,
			message: `OperatorVersion "kafka-1.0.0" of the last execution no longer exists`,
		},
		"a plan that does not exist is reported": {
			observed: newObservation(kudo.Complete, parameter("BACKUP", "b"), unplanned("backup")), want: plan.ActionWait, holds: true, reason: kudo.ReasonPlanFailed,
			message: `the OperatorVersion has no plan "backup"`,
		},
		"a plan waits for a value that cannot be read": {
			observed: newObservation(kudo.Complete, parameter("BACKUP", "b"), unread), want: plan.ActionWait, holds: true, reason: kudo.ReasonSecretNotFound,
			message: "plan backup waits for the values of sensitive parameters: no Secret",
		},
		"so does one that runs, if a value is lost": {
			observed: newObservation(kudo.InProgress, valueLost), want: plan.ActionWait, holds: true, reason: kudo.ReasonSecretNotFound, message: "the copy is lost",
		},
		"a cleanup plan that waits for it says nothing about what runs": {
			observed: newObservation(kudo.Complete, requestRemoval, withCleanup(kudo.InProgress), valueLost), want: plan.ActionWait, reason: kudo.ReasonRemoving,
			message: "the copy is lost",
		},
		"a removal deletes everything":      {observed: newObservation(kudo.Complete, requestRemoval), want: plan.ActionRemove},
		"a removal supersedes a plan":       {observed: newObservation(kudo.InProgress, requestRemoval), want: plan.ActionRemove},
		"a removal starts the cleanup plan": {observed: newObservation(kudo.InProgress, requestRemoval, withCleanup("")), want: plan.ActionStart, starts: "cleanup"},
		"a removal continues with it":       {observed: newObservation(kudo.Complete, requestRemoval, withCleanup(kudo.InProgress)), want: plan.ActionStep},
		"a removal follows it":              {observed: newObservation(kudo.Complete, requestRemoval, withCleanup(kudo.Complete)), want: plan.ActionRemove},
		"a cleanup plan that failed runs again": {
			observed: newObservation(kudo.Complete, requestRemoval, withCleanup(kudo.FatalError)), want: plan.ActionStart, starts: "cleanup",
		},
		"but not immediately": {
			observed: newObservation(kudo.Complete, requestRemoval, withCleanup(kudo.FatalError), func(o *plan.Observation) { o.CleanupWait = time.Minute }),
			want:     plan.ActionWait, reason: kudo.ReasonRemoving, after: time.Minute, message: `plan "cleanup" failed and will be retried: no image; ` +
				"if it cannot succeed, annotate the Instance on the hub with kudo.dev/skip-cleanup=true to remove its objects without the plan, " +
				"or run 'kubectl addon uninstall --release' to release the Instance and leave its objects",
		},
		"nothing was started, and nothing is left": {
			observed: newObservation("", neverStarted, requestRemoval), want: plan.ActionWait, reason: kudo.ReasonRemoved, message: plan.NothingLeft,
		},
		"nothing was started, and something is left": {
			observed: newObservation("", neverStarted, requestRemoval, func(o *plan.Observation) {
				o.Instance.Status.Inventory = []kudo.InventoryEntry{config("left", "one")}
			}),
			want: plan.ActionRemove,
		},
		"what is removed stays so": {
			observed: newObservation(kudo.Complete, requestRemoval, func(o *plan.Observation) {
				o.Instance.Status.Conditions = []metav1.Condition{plan.Condition(metav1.ConditionFalse, kudo.ReasonRemoved, plan.NothingLeft)}
			}),
			want: plan.ActionWait, reason: kudo.ReasonRemoved, message: plan.NothingLeft,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := *test.observed.Instance.DeepCopy()
			got := plan.Decide(test.observed)
			if diff := cmp.Diff(before, *test.observed.Instance); diff != "" {
				t.Errorf("Decide changed its input:\n%s", diff)
			}
			if got.Kind != test.want || len(got.Tasks) != test.tasks || len(got.Prune) != test.prunes || got.After != test.after {
				t.Errorf("want %s of %d tasks with %d to prune, after %v; got %+v", test.want, test.tasks, test.prunes, test.after, got)
			}
			if got.Ready.Reason != test.reason || got.Ready.Message != test.message {
				t.Errorf("want %s: %s\ngot %s: %s", test.reason, test.message, got.Ready.Reason, got.Ready.Message)
			}
			if got.Holds != test.holds {
				t.Errorf("holds what runs: want %v, got %v", test.holds, got.Holds)
			}
			if starts := got.Start.Start; (starts == nil) != (test.starts == "") || starts != nil && starts.Plan != test.starts {
				t.Errorf("want plan %q to start, got %+v", test.starts, starts)
			}
			if again := plan.Decide(test.observed); !cmp.Equal(got, again) {
				t.Errorf("it decides otherwise the second time:\n%s", cmp.Diff(got, again))
			}
		})
	}
}

func TestDecideRecordsWhatItSays(t *testing.T) {
	cancel := plan.Decide(newObservation(kudo.InProgress, requestCancel))
	if got := cancel.Status.PlanStatus["deploy"]; got.Status != kudo.FatalError || got.Message != "cancelled" {
		t.Errorf("a plan that is cancelled is recorded as %s: %s", got.Status, got.Message)
	}
	removed := newObservation(kudo.Complete, requestRemoval).FinishRemoval()
	if len(removed.Status.Inventory) > 0 || removed.Status.Execution == nil {
		t.Errorf("once nothing is left, the status says %+v", removed.Status)
	}
	failed := newObservation(kudo.FatalError)
	if diff := cmp.Diff(failed.Instance.Status, plan.Decide(failed).Status); diff != "" {
		t.Errorf("a wait changes the plans:\n%s", diff)
	}
}

func TestPodsOfPipesEndWithTheirExecution(t *testing.T) {
	pod := func(name string, execution types.UID, marks map[string]string) plan.Object {
		live := object("Pod", name)
		live.SetNamespace("apps")
		live.SetLabels(map[string]string{kudo.LabelHeritage: kudo.Heritage, kudo.LabelInstance: "kafka"})
		annotations := map[string]string{kudo.AnnotationExecution: string(execution)}
		for key, value := range marks {
			annotations[key] = value
		}
		live.SetAnnotations(annotations)
		return plan.Object{Want: live, Live: live}
	}
	ofPipe := map[string]string{kudo.AnnotationPipe: "true"}
	foreign := pod("foreign", "w", ofPipe)
	foreign.Live.SetLabels(nil)
	pods := func(o *plan.Observation) {
		o.Pods = []plan.Object{pod("now", "x", ofPipe), pod("earlier", "w", ofPipe), pod("workload", "w", nil), foreign}
	}
	for name, test := range map[string]struct {
		observed plan.Observation
		want     []string
	}{
		"the execution continues":          {newObservation(kudo.InProgress, pods), []string{"earlier"}},
		"it continues without its version": {newObservation(kudo.InProgress, pods, func(o *plan.Observation) { o.Running = nil }), []string{"earlier"}},
		"it is complete":                   {newObservation(kudo.Complete, pods), []string{"now", "earlier"}},
		"it has failed":                    {newObservation(kudo.FatalError, pods), []string{"now", "earlier"}},
		"it is cancelled":                  {newObservation(kudo.InProgress, pods, requestCancel), []string{"now", "earlier"}},
		"another one starts":               {newObservation(kudo.Error, pods, parameter("BACKUP", "b"), func(o *plan.Observation) { o.Instance.Annotations[kudo.AnnotationHubGeneration] = "8" }), []string{"now", "earlier"}},
		"the Instance is removed":          {newObservation(kudo.InProgress, pods, requestRemoval), []string{"now", "earlier"}},
		"nothing was started for it ever":  {newObservation("", pods, neverStarted), []string{"now", "earlier"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, pod := range plan.Decide(test.observed).Pods {
				got = append(got, pod.Live.GetName())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnInstanceAtRestIsNotReadyBeforeWhatIsDueHasRun(t *testing.T) {
	for name, test := range map[string]struct {
		observed plan.Observation
		reason   string
	}{
		"nothing is due":     {newObservation(kudo.Complete), kudo.ReasonHealthy},
		"a plan is due":      {newObservation(kudo.Complete, parameter("BACKUP", "b")), kudo.ReasonPlanPending},
		"its removal is due": {newObservation(kudo.Complete, requestRemoval), kudo.ReasonRemoving},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.observed.SettledReady(nil, nil); got.Reason != test.reason {
				t.Errorf("want %s, got %+v", test.reason, got)
			}
		})
	}
}
