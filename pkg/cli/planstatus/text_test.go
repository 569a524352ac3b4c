package planstatus

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/test/sample"
)

func TestStatusText(t *testing.T) {
	for name, view := range map[string]progress.View{
		"status-never-run":  {Instance: sample.Instance(), Version: sample.Version()},
		"status-running":    {Instance: runningInstance(), Version: sample.Version()},
		"status-failed":     {Instance: failedInstance(), Version: sample.Version()},
		"status-timed-out":  {Instance: timedOutInstance(), Version: sample.Version()},
		"status-hook":       {Instance: hookedInstance(kudo.HookRunning, ""), Version: sample.Version()},
		"status-hook-fails": {Instance: hookedInstance(kudo.HookFailed, "container \"migrate\" exited with code 3: no database"), Version: sample.Version()},
		"status-resumed":    {Instance: resumedInstance(), Version: sample.Version()},
		"status-retried":    {Instance: retriedInstance(), Version: sample.Version()},
		"status-deleted-ns": {Instance: notMirrored(), Version: sample.Version()},
		"status-waiting":    {Instance: waitingFor("cleanup"), Version: sample.Version()},
		"status-restarting": {Instance: waitingFor("deploy"), Version: sample.Version()},
		"status-unseen":     {Instance: unseenBy(), Version: sample.Version()},
		"status-removing":   {Instance: heldUp(unseenBy()), Version: sample.Version()},
		"status-tree":       family(),
		"status-facts":      {Instance: relabelled(), Version: sample.Version()},
		"status-unreadable": {Instance: runningInstance(), Unreadable: errors.New(`operatorversions.kudo.dev "kafka-3.9.0-1.0.0" not found`)},
	} {
		t.Run(name, func(t *testing.T) { clitest.Golden(t, name, Text(view)) })
	}
}

func TestAddOnText(t *testing.T) {
	held := addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "kafka", Namespace: "cluster1"}}
	const lacks = "Required addon 'zookeeper' is not installed or not available. Brokers cannot read their metadata."
	held.Status.Conditions = []metav1.Condition{
		sample.Condition(addonv1alpha1.ConditionAvailable, "False", addonv1alpha1.ReasonRequiredDependencyNotSatisfied, lacks),
		sample.Condition(addonv1alpha1.ConditionDegraded, "True", addonv1alpha1.ReasonRequiredDependencyNotSatisfied, lacks+"\nOptional addon 'monitoring' …"),
		sample.Condition(addonv1alpha1.ConditionResolved, "False", addonv1alpha1.ReasonWaitingForDependencies, "waits for zookeeper"),
	}
	removed := held
	removed.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	unknown := addonv1alpha1.ManagedClusterAddOn{ObjectMeta: held.ObjectMeta}
	for name, addOn := range map[string]addonv1alpha1.ManagedClusterAddOn{
		"addon-held": held, "addon-removed": removed, "addon-unknown": unknown,
	} {
		t.Run(name, func(t *testing.T) { clitest.Golden(t, name, addOnText(&addOn)) })
	}
}

// resumedInstance returns an Instance with a resumed plan, of which a step was skipped and another one runs again.
func resumedInstance() *kudo.Instance {
	instance := runningInstance()
	ran := instance.Status.PlanStatus["deploy"]
	ran.Phases[0].Steps[0].Tasks = []kudo.TaskStatus{{Name: "config", Status: kudo.Complete, Rendered: "a", Skipped: true}}
	ran.Phases[0].Steps[1].RerunReason = "task \"brokers\": StatefulSet kafka/kafka: is\nmissing"
	return instance
}

// relabelled returns an Instance on a cluster whose labels and claims have changed since its last plan.
func relabelled() *kudo.Instance {
	i := runningInstance()
	i.Spec.Cluster = &kudo.ClusterFacts{Name: "cluster1", Labels: map[string]string{"region": "us"}, Claims: map[string]string{"id\x1b[2J": "x"}}
	i.Status.Execution.Cluster = &kudo.ClusterFacts{Name: "cluster1", Labels: map[string]string{"region": "eu"}}
	return i
}

func runningInstance() *kudo.Instance {
	i := sample.Instance()
	i.Status = kudo.InstanceStatus{
		Execution: &kudo.Execution{Plan: "deploy", OperatorVersion: corev1.ObjectReference{Name: "kafka-3.8.0-0.9.0"}},
		Conditions: []metav1.Condition{
			sample.Condition(kudo.ConditionResolved, "True", kudo.ReasonResolved, ""),
			sample.Condition(kudo.ConditionReady, "False", kudo.ReasonPlanInProgress, "plan deploy: "+sample.Waiting),
		},
		PlanStatus: map[string]kudo.PlanStatus{"deploy": {
			Name: "deploy", Status: kudo.InProgress, Message: `phase "brokers": step "brokers": task "brokers": ` + sample.Waiting,
			LastUpdatedTimestamp: &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
			Phases: []kudo.PhaseStatus{
				{Name: "brokers", Status: kudo.InProgress, Message: `step "brokers": task "brokers": ` + sample.Waiting, Steps: []kudo.StepStatus{
					{Name: "config", Status: kudo.Complete, Tasks: []kudo.TaskStatus{{Name: "config", Status: kudo.Complete}}},
					{Name: "brokers", Status: kudo.InProgress, Message: `task "brokers": ` + sample.Waiting, Tasks: []kudo.TaskStatus{
						{Name: "service", Status: kudo.Complete},
						{Name: "brokers", Status: kudo.InProgress, Message: sample.Waiting},
					}},
				}},
				{Name: "of-an-earlier-version", Status: kudo.Pending, Steps: []kudo.StepStatus{{Name: "setup", Status: kudo.Pending}}},
			},
		}},
	}
	return i
}

func failedInstance() *kudo.Instance {
	i := runningInstance()
	i.Status.Execution.OperatorVersion = i.Spec.OperatorVersion
	i.Status.Conditions = []metav1.Condition{
		sample.Condition(kudo.ConditionResolved, "False", kudo.ReasonParametersInvalid, "parameter \"A\": not defined\nparameter \"B\": not defined"),
		sample.Condition(kudo.ConditionReady, "False", kudo.ReasonPlanFailed, `plan deploy failed`),
	}
	plan := i.Status.PlanStatus["deploy"]
	plan.Status, plan.Message = kudo.FatalError, `phase "brokers": step "brokers": task "brokers": template "x.yaml": line 3: unknown field`
	phase := &plan.Phases[0]
	phase.Status, phase.Message = kudo.FatalError, `step "brokers": task "brokers": template "x.yaml": line 3: unknown field`
	phase.Steps[1].Status, phase.Steps[1].Message = kudo.FatalError, `task "brokers": template "x.yaml": line 3: unknown field`
	phase.Steps[1].Tasks[1] = kudo.TaskStatus{Name: "brokers", Status: kudo.FatalError, Message: `template "x.yaml": line 3: unknown field`}
	i.Status.PlanStatus["deploy"] = plan
	return i
}

// hookedInstance returns an Instance whose plan runs the second hook of a chart.
func hookedInstance(state kudo.HookState, message string) *kudo.Instance {
	i := runningInstance()
	i.Status.Execution.UID, i.Status.Execution.OperatorVersion = "ran", i.Spec.OperatorVersion
	const name = "hook pre-install: Job kafka/migrate: "
	plan, status, why := i.Status.PlanStatus["deploy"], kudo.InProgress, name+"0 of 1 pods succeeded"
	if state == kudo.HookFailed {
		status, why = kudo.FatalError, name+message
	}
	plan.UID, plan.Status, plan.Message = "ran", status, `phase "brokers": step "brokers": task "brokers": `+why
	plan.Phases = plan.Phases[:1]
	phase := &plan.Phases[0]
	phase.Status, phase.Message = status, `step "brokers": task "brokers": `+why
	phase.Steps[1].Status, phase.Steps[1].Message = status, `task "brokers": `+why
	phase.Steps[1].Tasks = []kudo.TaskStatus{{Name: "brokers", Status: status, Message: why}}
	i.Status.PlanStatus["deploy"] = plan
	i.Status.Tasks = []kudo.TaskRecord{
		{Task: "brokers", Execution: "ran", HooksOf: "ran", Hooks: []kudo.HookRecord{
			{Event: "pre-install", Kind: "ClusterRole", Name: "migrate", State: kudo.HookSucceeded},
			{Event: "pre-install", Kind: "Job", Namespace: "kafka", Name: "migrate", State: state, Message: message},
		}},
		{Task: "service", HooksOf: "before", Hooks: []kudo.HookRecord{{Event: "pre-delete", Kind: "Job", Name: "other", State: kudo.HookSucceeded}}},
	}
	return i
}

// timedOutInstance returns an Instance whose step failed with a message.
func timedOutInstance() *kudo.Instance {
	i := failedInstance()
	plan := i.Status.PlanStatus["deploy"]
	plan.Message = `phase "brokers": step "brokers": timed out after 5m0s: task "brokers": ` + sample.Waiting
	plan.Phases[0].Message = `step "brokers": timed out after 5m0s: task "brokers": ` + sample.Waiting
	plan.Phases[0].Steps[1].Message = `timed out after 5m0s: task "brokers": ` + sample.Waiting
	plan.Phases[0].Steps[1].Tasks[1] = kudo.TaskStatus{Name: "brokers", Status: kudo.InProgress, Message: sample.Waiting}
	i.Status.PlanStatus["deploy"] = plan
	return i
}

// retriedInstance returns an Instance whose plan timed out and starts again by itself.
func retriedInstance() *kudo.Instance {
	i := timedOutInstance()
	i.Status.Execution.Owed = []kudo.OwedPlan{{Plan: "deploy", Outcome: kudo.OwedFailed, Retries: 1,
		RetryTime: &metav1.Time{Time: time.Date(2026, 1, 2, 3, 6, 5, 0, time.UTC)}}}
	return i
}

// notMirrored returns an Instance that the agent cannot copy to the managed cluster yet.
func notMirrored() *kudo.Instance {
	i := sample.Instance()
	i.Generation = 2
	ready := sample.Condition(kudo.ConditionReady, "False", kudo.ReasonNotMirrored, `namespace "kafka" of the managed cluster is being deleted`)
	ready.ObservedGeneration = 2
	i.Status.Conditions = []metav1.Condition{sample.Condition(kudo.ConditionResolved, "True", kudo.ReasonResolved, ""), ready}
	return i
}

// waitingFor returns an Instance that runs deploy and has a manual request for another plan.
func waitingFor(plan string) *kudo.Instance {
	i := runningInstance()
	i.Status.Execution.OperatorVersion = corev1.ObjectReference{}
	i.Spec.PlanExecution = kudo.PlanExecution{PlanName: plan, UID: "by-hand"}
	return i
}

// heldUp returns the Instance during a blocked removal.
func heldUp(i *kudo.Instance) *kudo.Instance {
	i.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	i.Status.Conditions = []metav1.Condition{
		{Type: kudo.ConditionResolved, Status: metav1.ConditionTrue, Reason: kudo.ReasonResolved},
		{Type: kudo.ConditionReady, Status: metav1.ConditionFalse, Reason: kudo.ReasonRemoving, Message: "deleting Deployment data/x: forbidden"},
	}
	return i
}

// unseenBy returns an Instance whose agent has not observed its last change.
func unseenBy() *kudo.Instance {
	i := runningInstance()
	i.Generation, i.Status.ObservedGeneration = 2, 1
	return i
}

// family returns an Instance with a failing child that has a child itself, a child without a verdict, and a switched-off child.
func family() progress.View {
	child := func(name string, conditions ...metav1.Condition) progress.View {
		instance := sample.Instance()
		instance.Name = name
		instance.Status.Conditions = conditions
		version := sample.Version()
		version.Spec.Plans = map[string]kudo.Plan{"deploy": {}, "cleanup": {}}
		instance.Status.PlanStatus = map[string]kudo.PlanStatus{"deploy": {Name: "deploy", Status: kudo.FatalError}}
		return progress.View{Instance: instance, Version: version, WithChildren: true}
	}
	root := child("aa")
	root.Instance.Status.Children = []kudo.ChildStatus{
		{Task: "dd", Instance: "aa.dd", State: kudo.ChildRemoved}, {Task: "bb", Instance: "aa.bb", State: kudo.ChildApplied},
	}
	bb := child("aa.bb", sample.Condition(kudo.ConditionResolved, "True", kudo.ReasonResolved, ""),
		sample.Condition(kudo.ConditionReady, "False", kudo.ReasonPlanFailed, "plan deploy failed"))
	bb.Children = []progress.View{child("aa.bb.ee", sample.Condition(kudo.ConditionResolved, "False", kudo.ReasonParametersInvalid, "parameter X is not defined"))}
	root.Children = []progress.View{bb, child("aa.cc")}
	return root
}

// TestHoldUpNamesWhatTheAgentReports covers an agent that runs and cannot begin: it is not blamed.
func TestHoldUpNamesWhatTheAgentReports(t *testing.T) {
	instance := notMirrored()
	instance.Status.Conditions[0].ObservedGeneration = 2
	want := `namespace "kafka" of the managed cluster is being deleted`
	if got := progress.HoldUp(progress.View{Instance: instance, Version: sample.Version()}); got != want {
		t.Errorf("got %q", got)
	}
	instance.Generation = 3
	instance.Status.Conditions[0].ObservedGeneration = 3
	want = progress.UnseenText("cluster1")
	if got := progress.HoldUp(progress.View{Instance: instance, Version: sample.Version()}); got != want {
		t.Errorf("about the change before it: %q", got)
	}
}

// TestWhatProgramsReadOfPlans pins the names of fields, because programs rely on them.
func TestWhatProgramsReadOfPlans(t *testing.T) {
	held := addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "kafka", Namespace: "cluster1"}}
	held.Status.Conditions = []metav1.Condition{sample.Condition(addonv1alpha1.ConditionResolved, "False", addonv1alpha1.ReasonWaitingForDependencies, "waits for zookeeper")}
	for name, s := range map[string]terminal.Shown{
		"status": shownOf(progress.View{Instance: failedInstance(), Version: sample.Version()}), "status-children": shownOf(family()),
		"status-hook": shownOf(progress.View{Instance: hookedInstance(kudo.HookFailed, "exit code 3"), Version: sample.Version()}),
		"addon":       {Data: progress.StatusOfAddOn(&held)}, "status-retried": shownOf(progress.View{Instance: retriedInstance(), Version: sample.Version()}),
	} {
		t.Run(name, func(t *testing.T) {
			text := clitest.Render(t, "yaml", s)
			if len(s.Names) > 0 {
				text += "---\n" + clitest.Render(t, "name", s)
			}
			clitest.Golden(t, "data-"+name, text)
		})
	}
}
