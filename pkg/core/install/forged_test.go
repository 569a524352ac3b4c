package install

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/test/forged"
)

// parentWithSecret returns a parent whose plan deploy passes the sensitive parameter PASSWORD on to its child, beside other plans.
func parentWithSecret() Parent {
	p := parentWithParameterFile("KEY: {{ .Params.PASSWORD }}\n", kudo.Parameter{Name: "KEY", Sensitive: new(true)})
	for _, name := range []string{kudo.UpdatePlan, kudo.CleanupPlan, "backup"} {
		p.Running.Spec.Plans[name] = kudo.Plan{}
	}
	p.Running.Spec.Parameters[0].Trigger = "backup"
	return p
}

// An agent writes the status, and may write anything.
func TestChildrenOfAForgedStatus(t *testing.T) {
	at := func(phase, step string, tasks ...string) kudo.PhaseStatus {
		s := kudo.StepStatus{Name: step}
		for _, name := range tasks {
			s.Tasks = append(s.Tasks, kudo.TaskStatus{Name: name, Status: kudo.InProgress})
		}
		return kudo.PhaseStatus{Name: phase, Steps: []kudo.StepStatus{s}}
	}
	phases := func(phases ...kudo.PhaseStatus) func(*kudo.Instance) {
		return func(aa *kudo.Instance) {
			status := aa.Status.PlanStatus[kudo.DeployPlan]
			status.Phases = phases
			aa.Status.PlanStatus[kudo.DeployPlan] = status
		}
	}
	for name, test := range map[string]struct {
		forge   func(*kudo.Instance)
		applied int
		problem string
	}{
		"a plain value of a sensitive parameter, without its reference": {
			forge: func(aa *kudo.Instance) {
				aa.Status.Execution.Parameters["PASSWORD"], aa.Status.Execution.ParametersFrom = "plain", nil
			},
			problem: `sensitive parameter "PASSWORD" cannot be passed on as parameter "KEY", because status.execution has a value instead of a ` +
				`reference to a Secret: set spec.parametersFrom of Instance "aa"`,
		},
		"the same task twice in a step":                 {forge: phases(at("main", "main", "child", "child")), applied: 1},
		"the same task in two phases":                   {forge: phases(at("main", "main", "child"), at("main", "main", "child")), applied: 1},
		"a task in a phase that the plan does not have": {forge: phases(at("other", "main", "child"))},
		"a task in a step that the plan does not have":  {forge: phases(at("main", "other", "child"))},
		"a task that the version does not have":         {forge: phases(at("main", "main", "other"))},
		"no phases":                                     {forge: phases()},
		"a plan that the version does not have": {forge: func(aa *kudo.Instance) {
			status := aa.Status.PlanStatus[kudo.DeployPlan]
			aa.Status.Execution.Plan, aa.Status.PlanStatus["other"] = "other", status
		}},
		"a plan that does not run the task": {forge: func(aa *kudo.Instance) {
			aa.Status.Execution.Plan, aa.Status.PlanStatus[kudo.UpdatePlan] = kudo.UpdatePlan, aa.Status.PlanStatus[kudo.DeployPlan]
		}},
		"no states of plans": {forge: func(aa *kudo.Instance) { aa.Status.PlanStatus = nil }},
		"an empty execution": {forge: func(aa *kudo.Instance) { aa.Status.Execution = &kudo.Execution{} }},
	} {
		t.Run(name, func(t *testing.T) {
			p := parentWithSecret()
			test.forge(p.Instance)
			var applied []string
			var problem string
			for _, step := range Children(p) {
				if step.Apply != nil {
					applied = append(applied, step.Apply.Name)
				}
				problem += step.Status.Message
			}
			if len(applied) != test.applied || problem != test.problem {
				t.Errorf("got children %q and problem %q, want %d and %q", applied, problem, test.applied, test.problem)
			}
		})
	}
}

// FuzzForgedStatus lets the decisions of the hub read forged statuses: none fails, changes its input, or decides twice about the same child.
func FuzzForgedStatus(f *testing.F) {
	words := forged.Words{
		"":                {"x", "y"},
		"PlanStatus":      {kudo.DeployPlan, kudo.UpdatePlan, kudo.CleanupPlan, "backup", "other"},
		"Plan":            {kudo.DeployPlan, kudo.UpdatePlan, kudo.CleanupPlan, "backup", "other"},
		"Name":            {"main", "child", "PASSWORD", "TEXT", "aa-1.0.0", "bb-1.0.0"},
		"UID":             {"x", "aa-1.0.0", "bb-1.0.0", "bb"},
		"Namespace":       {packages, "cluster1", "other"},
		"Parameters":      {"TEXT", "ON", "PASSWORD", "OTHER"},
		"Task":            {"child", "other"},
		"Instance":        {"aa.bb", "aa", "other"},
		"State":           {string(kudo.ChildApplied), string(kudo.ChildFailed), string(kudo.ChildRemoved)},
		"Type":            {kudo.ConditionReady, kudo.ConditionResolved},
		"Status":          {"True", "False", "Unknown"},
		"Outcome":         {"", string(kudo.OwedFailed), string(kudo.OwedCancelled)},
		"Reason":          {kudo.ReasonPlanFailed, kudo.ReasonRemoved, kudo.ReasonUnhealthy},
		"Former":          {"aa.bb", "aa.cc"},
		"Kind":            {"Deployment"},
		"HandledRequests": {"x", "hub.deploy.x"},
	}
	f.Add(`{"execution":{"uid":"x","plan":"deploy","parameters":{"PASSWORD":"plain"}},"planStatus":{"deploy":{"uid":"x","status":"IN_PROGRESS",` +
		`"phases":[{"name":"main","steps":[{"name":"main","tasks":[{"name":"child","status":"IN_PROGRESS"}]}]}]}}}`)
	honest := []kudo.InstanceStatus{
		parentWithSecret().Instance.Status, deployingParent(completePlan).Status, deployingParent(completePlan, off).Status, bb(failedIn(kudo.DeployPlan, nil)).Status,
	}
	for _, seed := range forged.Seeds(500, words, honest...) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, encoded string) {
		status, ok := forged.Status(encoded)
		if !ok {
			return
		}
		before := *status.DeepCopy()
		cached := plan.MigrateStatus(status, nil) // as the hub's cache has it
		cached.PlanStatus, cached.Inventory = Progress(cached), nil
		for _, read := range []kudo.InstanceStatus{status, cached} {
			readAsParent(t, read)
			readAsInstance(t, read)
		}
		if diff := cmp.Diff(before, status); diff != "" {
			t.Errorf("the status is changed:\n%s", diff)
		}
	})
}

// readAsParent decides about the children of an Instance with that status, and of one that has a child with that status.
func readAsParent(t *testing.T, status kudo.InstanceStatus) {
	t.Helper()
	for _, change := range []func(p *Parent){
		func(*Parent) {},
		func(p *Parent) { markDeleted(p.Instance) },
		func(p *Parent) { p.Wanted, p.Running = p.Running, nil },
		func(p *Parent) { p.Running = nil },
		func(p *Parent) {
			child := bb()
			child.Status = status
			p.Instances = append(p.Instances, child)
		},
	} {
		p := parentWithSecret()
		p.Instance.Status = status
		change(&p)
		IsStale(p.Instance, deployingParent())
		IsStale(deployingParent(), p.Instance)
		p.Operators()
		var recorded []kudo.ChildStatus
		var children []string
		for _, step := range Children(p) {
			if current := step.Current; current != nil {
				children = append(children, current.Name)
			}
			if apply := step.Apply; apply != nil && NameProblem(apply.Name) != "" {
				t.Errorf("a child would have the name %q", apply.Name)
			}
			if len(step.Status.Message) > messageLimit {
				t.Errorf("a message has %d bytes", len(step.Status.Message))
			}
			if step.Status.State != "" {
				recorded = append(recorded, step.Status)
			}
		}
		acknowledged := Acknowledgements(p, recorded)
		if !isDistinct(children) || isDistinct(tasksOf(status.Children)) && !isDistinct(tasksOf(acknowledged)) {
			t.Errorf("got steps for children %.64q, and acknowledgements for tasks %.64q", children, tasksOf(acknowledged))
		}
	}
}

func tasksOf(children []kudo.ChildStatus) []string {
	var tasks []string
	for _, child := range children {
		tasks = append(tasks, child.Task)
	}
	return tasks
}

func isDistinct(names []string) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(names)))) == len(names)
}

// readAsInstance judges, forecasts and admits writes of an Instance and of an add-on whose Instance has that status.
func readAsInstance(t *testing.T, status kudo.InstanceStatus) {
	t.Helper()
	version := parentWithSecret().Running
	for _, started := range []*kudo.OperatorVersion{version, nil} {
		i := Instance{Instance: deployingParent(), Version: version, Started: started, PackagesNamespace: packages}
		i.Instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: packages, Name: version.Name}
		i.Instance.Status = status
		for _, request := range []kudo.PlanExecution{{}, {PlanName: "backup"}, {PlanName: "backup", UID: "x"}, {UID: "x", Cancel: true}} {
			i.Instance.Spec.PlanExecution = request
			Judge(i)
			Request(i.Instance)
			edited := i
			edited.Instance = i.Instance.DeepCopy()
			edited.Instance.Spec.Parameters = map[string]string{"TEXT": "other", "ON": "false"}
			_, _ = Admit(&i, edited)
			state := i.state()
			state.Request = request
			_, _ = plan.Choose(state)
			_, _ = plan.Forecast(state)
			plan.DueForReady(state)
		}
	}
	plan.LastRequest(status)
	plan.IsAside(status)
	plan.OnlyMessagesDiffer(status, *status.DeepCopy())
	config := variables("a", "", "TEXT", "one")
	a := ready(rolledOut(config, "version", DeploymentConfigHash(config)), "one", metav1.ConditionTrue, 7)
	a.Instances[0].Status = status
	Decide(a)
	RolloutOf(a, "mark")
}

func TestMayExist(t *testing.T) {
	for name, want := range map[types.NamespacedName]bool{
		{Namespace: "a", Name: "b"}: true, {Name: "b"}: true, {Namespace: "a"}: false, {Namespace: "a", Name: "b/c"}: false, {Namespace: "..", Name: "b"}: false,
	} {
		if got := MayExist(name); got != want {
			t.Errorf("%v: got %v", name, got)
		}
	}
}
