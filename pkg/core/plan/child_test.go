package plan_test

import (
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// childStatus returns the hub's status for execution x about a child with uid u at generation 2.
func childStatus(state kudo.ChildState, change ...func(*kudo.ChildStatus)) kudo.ChildStatus {
	status := kudo.ChildStatus{Task: "bb", Execution: "x", Instance: "aa.bb", UID: "u", Generation: 2, State: state}
	for _, c := range change {
		c(&status)
	}
	return status
}

// newMirror returns a child's mirror with that uid and generation, observed generation and condition Ready.
func newMirror(uid types.UID, generation, observed int64, ready metav1.Condition, marks ...string) *kudo.Instance {
	mirror := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "aa.bb", Annotations: map[string]string{
		kudo.AnnotationHubUID: string(uid), kudo.AnnotationHubGeneration: strconv.FormatInt(generation, 10),
	}}}
	for _, mark := range marks {
		mirror.Annotations[mark] = "true"
	}
	mirror.Status.ObservedGeneration = observed
	mirror.Status.Conditions = []metav1.Condition{ready}
	return mirror
}

var (
	childReady    = plan.Condition(metav1.ConditionTrue, kudo.ReasonHealthy, "all is well")
	childRuns     = plan.Condition(metav1.ConditionFalse, kudo.ReasonPlanInProgress, "waits for a Deployment")
	childFailed   = plan.Condition(metav1.ConditionFalse, kudo.ReasonPlanFailed, `plan "deploy" failed: no image`)
	childRemoving = plan.Condition(metav1.ConditionFalse, kudo.ReasonRemoving, "waiting for 2 objects to be deleted")
)

func TestChildOutcome(t *testing.T) {
	earlier := func(s *kudo.ChildStatus) { s.Execution = "w" }
	because := func(s *kudo.ChildStatus) { s.Message = "no such parameter" }
	for name, test := range map[string]struct {
		action plan.TaskAction
		said   kudo.ChildStatus
		mirror *kudo.Instance
		due    bool
		want   kudo.ExecutionStatus
		says   string
	}{
		"nothing was said yet":                           {plan.ApplyChild, kudo.ChildStatus{}, nil, false, kudo.InProgress, "Instance apps/aa.bb: waiting for the hub to apply it"},
		"a word to an earlier execution does not count":  {plan.ApplyChild, childStatus(kudo.ChildApplied, earlier), newMirror("u", 2, 2, childReady), false, kudo.InProgress, "waiting for the hub to apply it"},
		"a child that was made is not there yet":         {plan.ApplyChild, childStatus(kudo.ChildApplied), nil, false, kudo.InProgress, "has not been mirrored yet"},
		"the mirror is that of the one before":           {plan.ApplyChild, childStatus(kudo.ChildApplied), newMirror("t", 9, 9, childReady), false, kudo.InProgress, "has not been mirrored yet"},
		"the mirror is of an older generation":           {plan.ApplyChild, childStatus(kudo.ChildApplied), newMirror("u", 1, 1, childReady), false, kudo.InProgress, "generation 2 has not been mirrored yet"},
		"the generation has not been acted on":           {plan.ApplyChild, childStatus(kudo.ChildApplied), newMirror("u", 2, 1, childReady), false, kudo.InProgress, "generation 2 has not been observed yet"},
		"a failure before the generation does not count": {plan.ApplyChild, childStatus(kudo.ChildApplied), newMirror("u", 2, 1, childFailed), false, kudo.InProgress, "generation 2 has not been observed yet"},
		"another plan is still to run":                   {plan.ApplyChild, childStatus(kudo.ChildApplied), newMirror("u", 2, 2, childReady), true, kudo.InProgress, "a plan is about to start"},
		"nor has it failed while another plan is to run": {plan.ApplyChild, childStatus(kudo.ChildApplied), newMirror("u", 2, 2, childFailed), true, kudo.InProgress, "a plan is about to start"},
		"its plan runs": {plan.ApplyChild, childStatus(kudo.ChildApplied), newMirror("u", 2, 2, childRuns), false, kudo.InProgress, "waits for a Deployment"},
		"it is ready":   {plan.ApplyChild, childStatus(kudo.ChildApplied), newMirror("u", 2, 2, childReady), false, kudo.Complete, ""},
		"it is ready at a generation that a user made": {plan.ApplyChild, childStatus(kudo.ChildApplied), newMirror("u", 3, 3, childReady), false, kudo.Complete, ""},
		"its plan has failed":                          {plan.ApplyChild, childStatus(kudo.ChildApplied), newMirror("u", 2, 2, childFailed), false, kudo.FatalError, `Instance apps/aa.bb: PlanFailed: plan "deploy" failed: no image`},
		"it cannot be":                                 {plan.ApplyChild, childStatus(kudo.ChildFailed, because), nil, false, kudo.FatalError, "Instance apps/aa.bb: no such parameter"},
		"it could not be in an earlier execution":      {plan.ApplyChild, childStatus(kudo.ChildFailed, because, earlier), nil, false, kudo.InProgress, "waiting for the hub to apply it"},
		"the one before is on its way out":             {plan.ApplyChild, childStatus(kudo.ChildRemoved, earlier), newMirror("t", 2, 2, childRemoving, kudo.AnnotationHubDeleted), false, kudo.InProgress, "is being removed: waiting for 2 objects to be deleted"},
		"its removal was not carried out yet":          {plan.DeleteChild, childStatus(kudo.ChildApplied, earlier), newMirror("u", 2, 2, childReady), false, kudo.InProgress, "waiting for the hub to remove it"},
		"its removal continues":                        {plan.DeleteChild, childStatus(kudo.ChildApplied, earlier), newMirror("u", 2, 2, childRemoving, kudo.AnnotationHubDeleted), false, kudo.InProgress, "is being removed: waiting for 2 objects to be deleted"},
		"it is gone from the hub and not from here":    {plan.DeleteChild, childStatus(kudo.ChildRemoved), newMirror("u", 2, 2, childRemoving, kudo.AnnotationHubDeleted), false, kudo.InProgress, "is being removed"},
		"it is gone":                                 {plan.DeleteChild, childStatus(kudo.ChildRemoved), nil, false, kudo.Complete, ""},
		"it was gone in an earlier execution":        {plan.DeleteChild, childStatus(kudo.ChildRemoved, earlier), nil, false, kudo.InProgress, "waiting for the hub to remove it"},
		"the hub has released it":                    {plan.DeleteChild, childStatus(kudo.ChildRemoved), newMirror("u", 2, 2, childRemoving, kudo.AnnotationHubDeleted, kudo.AnnotationOrphaned), false, kudo.Complete, ""},
		"an Instance that is no child has its name":  {plan.DeleteChild, childStatus(kudo.ChildRemoved), newMirror("v", 1, 1, childReady), false, kudo.Complete, ""},
		"an acknowledged removal does not create it": {plan.ApplyChild, childStatus(kudo.ChildRemoved), nil, false, kudo.InProgress, "waiting for the hub to apply it"},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan.ChildOutcome(test.action, "x", plan.Child{
				Name: types.NamespacedName{Namespace: "apps", Name: "aa.bb"}, Acknowledged: test.said, Mirror: test.mirror, Due: test.due,
			})
			if got.Status != test.want || !strings.Contains(got.Message, test.says) {
				t.Errorf("got %s %q", got.Status, got.Message)
			}
		})
	}
}

func TestReadyOfAnInstanceWithChildren(t *testing.T) {
	for name, test := range map[string]struct {
		child  plan.Child
		status metav1.ConditionStatus
		says   string
	}{
		"a child that is ready":                       {plan.Child{Acknowledged: childStatus(kudo.ChildApplied), Mirror: newMirror("u", 2, 2, childReady)}, metav1.ConditionTrue, "all applied objects are healthy"},
		"a generation that leads to nothing":          {plan.Child{Acknowledged: childStatus(kudo.ChildApplied), Mirror: newMirror("u", 3, 2, childReady)}, metav1.ConditionTrue, "all applied objects are healthy"},
		"a generation that leads to a plan":           {plan.Child{Acknowledged: childStatus(kudo.ChildApplied), Mirror: newMirror("u", 3, 2, childReady), Due: true}, metav1.ConditionFalse, "a plan is about to start"},
		"a child that a user's plan runs for":         {plan.Child{Acknowledged: childStatus(kudo.ChildApplied), Mirror: newMirror("u", 3, 3, childRuns)}, metav1.ConditionFalse, "waits for a Deployment"},
		"a child that has failed":                     {plan.Child{Acknowledged: childStatus(kudo.ChildApplied), Mirror: newMirror("u", 3, 3, childFailed)}, metav1.ConditionFalse, "no image"},
		"a child that is gone":                        {plan.Child{Acknowledged: childStatus(kudo.ChildApplied)}, metav1.ConditionFalse, "Instance apps/aa.bb: is missing"},
		"a child that was replaced":                   {plan.Child{Acknowledged: childStatus(kudo.ChildApplied), Mirror: newMirror("v", 2, 2, childReady)}, metav1.ConditionFalse, "Instance apps/aa.bb: is missing"},
		"a child that the hub has released":           {plan.Child{Acknowledged: childStatus(kudo.ChildApplied), Mirror: newMirror("u", 2, 2, childReady, kudo.AnnotationOrphaned)}, metav1.ConditionFalse, "Instance apps/aa.bb: is missing"},
		"a child that is on its way out":              {plan.Child{Acknowledged: childStatus(kudo.ChildApplied), Mirror: newMirror("u", 2, 2, childRemoving, kudo.AnnotationHubDeleted)}, metav1.ConditionFalse, "is being removed: waiting for 2 objects"},
		"a child that no task makes any more":         {plan.Child{Acknowledged: childStatus(kudo.ChildApplied), Mirror: newMirror("u", 2, 2, childReady), Vanished: true}, metav1.ConditionFalse, "waiting for the hub to remove it"},
		"a child that is not to be":                   {plan.Child{Acknowledged: childStatus(kudo.ChildRemoved)}, metav1.ConditionTrue, "all applied objects are healthy"},
		"a child that was not to be, and has no task": {plan.Child{Acknowledged: childStatus(kudo.ChildRemoved), Vanished: true}, metav1.ConditionTrue, "all applied objects are healthy"},
		"another Instance of such a one's name":       {plan.Child{Acknowledged: childStatus(kudo.ChildRemoved), Mirror: newMirror("v", 2, 2, childFailed)}, metav1.ConditionTrue, "all applied objects are healthy"},
	} {
		t.Run(name, func(t *testing.T) {
			child := test.child
			child.Name = types.NamespacedName{Namespace: "apps", Name: "aa.bb"}
			got := plan.Ready(owner, nil, []plan.Child{child})
			if got.Status != test.status || !strings.Contains(got.Message, test.says) {
				t.Errorf("got %s %q", got.Status, got.Message)
			}
		})
	}
}

func TestReadyOfAnInstanceWithAFormerChild(t *testing.T) {
	for name, test := range map[string]struct {
		child plan.Child
		says  string
	}{
		"a former child that is on its way out":       {plan.Child{Former: true, Mirror: newMirror("u", 2, 2, childRemoving, kudo.AnnotationHubDeleted)}, "Instance apps/aa.bb: is being removed: waiting for 2 objects"},
		"a former child that the hub has not deleted": {plan.Child{Former: true, Mirror: newMirror("u", 2, 2, childReady)}, "waiting for the hub to remove it"},
		"a former child that is on the hub only":      {plan.Child{Former: true}, "waiting for the hub to remove it"},
	} {
		t.Run(name, func(t *testing.T) {
			test.child.Name = types.NamespacedName{Namespace: "apps", Name: "aa.bb"}
			got := plan.Ready(owner, nil, []plan.Child{test.child})
			if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, test.says) {
				t.Errorf("got %s %q", got.Status, got.Message)
			}
		})
	}
}

func TestDue(t *testing.T) {
	all := versionOf("deploy", "update", "upgrade", "backup")
	last := &kudo.Execution{UID: "x", Plan: "deploy", OperatorVersion: one, Parameters: map[string]string{"PLAIN": "a"}}
	for name, test := range map[string]struct {
		state plan.State
		want  string
	}{
		"nothing has changed":                       {plan.State{Version: all, Reference: one, Parameters: last.Parameters, Last: last}, ""},
		"a default that is spelled out":             {plan.State{Version: all, Reference: one, Last: last}, ""},
		"nothing was ever started":                  {plan.State{Version: all, Reference: one}, "deploy"},
		"another version":                           {plan.State{Version: all, Reference: two, Parameters: last.Parameters, Last: last, Whole: &kudo.WholeVersion{OperatorVersion: one}}, "upgrade"},
		"another version before deploy is complete": {plan.State{Version: all, Reference: two, Parameters: last.Parameters, Last: last}, "deploy"},
		"a parameter":                               {plan.State{Version: all, Reference: one, Parameters: map[string]string{"BACKUP": "b"}, Last: last}, "backup"},
		"a parameter while another plan runs":       {plan.State{Version: all, Reference: one, Parameters: map[string]string{"BACKUP": "b"}, Last: last, LastStatus: kudo.InProgress, LastVersion: all}, "backup"},
		"a request":                                 {plan.State{Version: all, Reference: one, Last: last, Request: kudo.PlanExecution{PlanName: "backup", UID: "r"}}, "backup"},
		"a plan that does not exist":                {plan.State{Version: versionOf("deploy"), Reference: one, Last: last, Request: kudo.PlanExecution{PlanName: "backup", UID: "r"}}, ""},
		"a version that is not there":               {plan.State{Reference: two, Last: last}, ""},
		"an Instance that is being removed":         {plan.State{Version: all, Reference: two, Last: last, Removing: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.Due(test.state); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A manually requested plan that is not owed influences neither the Instance nor its parent while it is queued.
func TestDueForReady(t *testing.T) {
	all := versionOf("deploy", "update", "backup", "cleanup")
	whole := &kudo.WholeVersion{OperatorVersion: one}
	last := &kudo.Execution{UID: "x", Plan: "deploy", OperatorVersion: one}
	for name, want := range map[string]string{"backup": "", "deploy": "deploy", "cleanup": "cleanup"} {
		s := plan.State{Version: all, Reference: one, Last: last, Whole: whole, Request: kudo.PlanExecution{PlanName: name, UID: "r"}}
		if got := plan.DueForReady(s); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestAsksForChild(t *testing.T) {
	child, other := kudo.Task{Name: "bb", Kind: kudo.TaskKudoOperator}, kudo.Task{Name: "config", Kind: kudo.TaskApply}
	version := &kudo.OperatorVersionSpec{Tasks: []kudo.Task{other, child, {Name: "cc", Kind: kudo.TaskOperator}}}
	status := func(execution types.UID, tasks ...kudo.TaskStatus) kudo.InstanceStatus {
		step := kudo.StepStatus{Name: "main", Tasks: tasks}
		return kudo.InstanceStatus{
			Execution: &kudo.Execution{UID: execution, Plan: kudo.DeployPlan},
			PlanStatus: map[string]kudo.PlanStatus{
				kudo.DeployPlan: {UID: execution, Phases: []kudo.PhaseStatus{{Name: "main", Steps: []kudo.StepStatus{step}}}},
			},
		}
	}
	at := func(task string, status kudo.ExecutionStatus) kudo.TaskStatus {
		return kudo.TaskStatus{Name: task, Status: status}
	}
	for name, test := range map[string]struct {
		reported, next kudo.InstanceStatus
		want           bool
	}{
		"nothing was ever started":            {kudo.InstanceStatus{}, kudo.InstanceStatus{}, false},
		"a task of another kind begins":       {status("x"), status("x", at("config", kudo.InProgress)), false},
		"a child is queued":                   {status("x"), status("x", at("config", kudo.InProgress), at("bb", kudo.Pending)), false},
		"a child is next":                     {status("x", at("bb", kudo.Pending)), status("x", at("bb", kudo.InProgress)), true},
		"it is the first report to the hub":   {kudo.InstanceStatus{}, status("x", at("cc", kudo.InProgress)), true},
		"the hub knows":                       {status("x", at("bb", kudo.InProgress)), status("x", at("bb", kudo.InProgress), at("config", kudo.Complete)), false},
		"the hub knows of another execution":  {status("w", at("bb", kudo.InProgress)), status("x", at("bb", kudo.InProgress)), true},
		"it asks again after it was complete": {status("x", at("bb", kudo.Complete)), status("x", at("bb", kudo.Error)), true},
		"the next one has started as well":    {status("x", at("bb", kudo.InProgress)), status("x", at("bb", kudo.Complete), at("cc", kudo.InProgress)), true},
		"the child has failed":                {status("x", at("bb", kudo.InProgress)), status("x", at("bb", kudo.FatalError)), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.AsksForChild(version, test.reported, test.next); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
