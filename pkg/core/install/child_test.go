package install

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/author"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// operatorVersion returns a version of the operator of a child Instance.
func operatorVersion(operator, number string, plans ...string) kudo.OperatorVersion {
	version := kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: operator + "-" + number, UID: types.UID(operator + "-" + number)},
		Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: operator}, Version: number,
			Parameters: []kudo.Parameter{{Name: "TEXT"}}, Plans: map[string]kudo.Plan{},
		},
	}
	for _, name := range append(plans, kudo.DeployPlan) {
		version.Spec.Plans[name] = kudo.Plan{}
	}
	return version
}

// parentVersion returns a version with child operator bb, which parameter ON enables.
func parentVersion() *kudo.OperatorVersion {
	version := operatorVersion("aa", "1.0.0")
	version.Spec.Parameters = []kudo.Parameter{{Name: "TEXT"}, {Name: "ON", Default: ptr.To("true")}}
	version.Spec.Templates = map[string]string{"bb.yaml": "TEXT: {{ .Params.TEXT | quote }}\n"}
	task := kudo.Task{Name: "child", Kind: kudo.TaskKudoOperator}
	task.Spec.Package, task.Spec.ParameterFile, task.Spec.EnablingParameter = "bb", "bb.yaml", "ON"
	version.Spec.Tasks = []kudo.Task{task}
	version.Spec.Plans[kudo.DeployPlan] = kudo.Plan{Phases: []kudo.Phase{{
		Name: "main", Steps: []kudo.Step{{Name: "main", Tasks: []string{"child"}}},
	}}}
	return &version
}

// deployingParent returns the Instance aa, which runs plan deploy with the child's task in progress.
func deployingParent(change ...func(*kudo.Instance)) *kudo.Instance {
	aa := newInstance("aa", installedIn("apps"))
	aa.Status.Execution = &kudo.Execution{
		UID: "x", Plan: kudo.DeployPlan, Parameters: map[string]string{"TEXT": "t"},
		OperatorVersion: corev1.ObjectReference{Namespace: packages, Name: "aa-0.9.0"},
	}
	aa.Status.PlanStatus = map[string]kudo.PlanStatus{kudo.DeployPlan: {
		Name: kudo.DeployPlan, UID: "x", Status: kudo.InProgress, Phases: []kudo.PhaseStatus{{Name: "main", Steps: []kudo.StepStatus{{
			Name: "main", Tasks: []kudo.TaskStatus{{Name: "child", Status: kudo.InProgress}},
		}}}},
	}}
	for _, c := range change {
		c(aa)
	}
	return aa
}

// completePlan marks the plan as complete, with the child reported to the agent.
func completePlan(aa *kudo.Instance) {
	aa.Status.PlanStatus[kudo.DeployPlan] = kudo.PlanStatus{Name: kudo.DeployPlan, UID: "x", Status: kudo.Complete}
	aa.Status.Children = []kudo.ChildStatus{{Task: "child", Execution: "x", Instance: "aa.bb", UID: "bb", Generation: 3, State: kudo.ChildApplied}}
}

// off disables the child.
func off(aa *kudo.Instance) { aa.Status.Execution.Parameters["ON"] = "false" }

// acknowledgedFor records that the hub has acknowledged the child in that execution.
func acknowledgedFor(execution types.UID) func(*kudo.Instance) {
	return func(aa *kudo.Instance) {
		aa.Status.Children = []kudo.ChildStatus{{Task: "child", Execution: execution, Instance: "aa.bb", UID: "bb", Generation: 3, State: kudo.ChildApplied}}
	}
}

// bb returns the child as desired by the parent.
func bb(change ...func(*kudo.Instance)) kudo.Instance {
	child := kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "cluster1", Name: "aa.bb", UID: "bb", Generation: 3, CreationTimestamp: at(20),
			Labels: map[string]string{kudo.LabelRoot: "aa"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: kudo.GroupVersion.String(), Kind: "Instance", Name: "aa", UID: "instance", Controller: ptr.To(true),
			}},
		},
		Spec: kudo.InstanceSpec{
			OperatorVersion:  corev1.ObjectReference{Namespace: packages, Name: "bb-1.10.0", UID: "bb-1.10.0"},
			Parameters:       map[string]string{"TEXT": "t"},
			InstallNamespace: "apps",
		},
	}
	for _, c := range change {
		c(&child)
	}
	return child
}

func markDeleted(i *kudo.Instance) { i.DeletionTimestamp = ptr.To(at(30)) }

// failedIn records that a plan of the child, run with those parameters, has failed.
func failedIn(name string, parameters map[string]string) func(*kudo.Instance) {
	return func(i *kudo.Instance) {
		i.Status.Execution = &kudo.Execution{
			UID: "y", Plan: name, Parameters: parameters, OperatorVersion: corev1.ObjectReference{UID: "bb-1.10.0"},
		}
		i.Status.PlanStatus = map[string]kudo.PlanStatus{name: {Name: name, UID: "y", Status: kudo.FatalError}}
	}
}

// parent returns the Instance among others, with two versions of its child's operator.
func parent(aa *kudo.Instance, others ...kudo.Instance) Parent {
	return Parent{
		Instance: aa, Running: parentVersion(), Instances: append(others, *aa),
		Candidates: []kudo.OperatorVersion{operatorVersion("bb", "1.9.0"), operatorVersion("bb", "1.10.0", kudo.UpdatePlan)},
	}
}

func TestChildren(t *testing.T) {
	asTheyAre := map[string]string{"TEXT": "t"}
	foreign := func(i *kudo.Instance) { i.OwnerReferences = nil }
	predecessors := func(i *kudo.Instance) { i.OwnerReferences[0].UID = "before" }
	renamed := func(i *kudo.Instance) { i.Name = "aa.zz" }
	for name, test := range map[string]struct {
		state Parent
		want  string
	}{
		"a child that is not there is made":                                {parent(deployingParent()), "apply bb-1.10.0 TEXT=t; tell Applied"},
		"one in the desired state is acknowledged":                         {parent(deployingParent(), bb()), "tell Applied bb 3"},
		"one with other parameters is changed":                             {parent(deployingParent(), bb(func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"OLD": "x"} })), "apply bb-1.10.0 TEXT=t; tell Applied"},
		"one of another version is changed":                                {parent(deployingParent(), bb(func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "bb-1.9.0" })), "apply bb-1.10.0 TEXT=t; tell Applied"},
		"within an execution the version stays":                            {parent(deployingParent(acknowledgedFor("x")), bb(func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "bb-1.9.0" })), "tell Applied bb 3"},
		"in the next one it is chosen again":                               {parent(deployingParent(acknowledgedFor("w")), bb(func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "bb-1.9.0" })), "apply bb-1.10.0 TEXT=t; tell Applied"},
		"what it was made to be in an execution stays":                     {parent(deployingParent(acknowledgedFor("x")), bb(func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"TEXT": "drawn"} })), "tell Applied bb 3"},
		"and is re-created if it was deleted":                              {parent(deployingParent(acknowledgedFor("x"))), "apply bb-1.10.0 TEXT=t; tell Applied"},
		"or where another one has its name since":                          {parent(deployingParent(acknowledgedFor("x")), bb(func(i *kudo.Instance) { i.UID, i.Spec.Parameters = "next", nil })), "apply bb-1.10.0 TEXT=t; tell Applied"},
		"one that turns out not to be what it is to be":                    {parent(deployingParent(acknowledgedFor("x")), bb(notResolved(3))), "tell Failed: no such parameter"},
		"what was said to have failed stays so":                            {parent(deployingParent(acknowledgedFor("x"), rejectChild), bb()), "tell Failed: no such parameter"},
		"and is tried again in the next execution":                         {parent(deployingParent(acknowledgedFor("w"), rejectChild), bb()), "tell Applied bb 3"},
		"one that is on its way out is waited for":                         {parent(deployingParent(), bb(markDeleted)), "nothing"},
		"one of a parent that is gone goes first":                          {parent(deployingParent(), bb(predecessors)), "delete"},
		"an Instance that is none has its name":                            {parent(deployingParent(), bb(foreign)), `tell Failed: an Instance of this name already exists and is not a child of "aa"`},
		"one has its name with other dots":                                 {parent(deployingParent(), bb(foreign, func(i *kudo.Instance) { i.Name = "aa-bb" })), `tell Failed: Instance cluster1/aa-bb already has the name "aa-bb"`},
		"one that is switched off and not there":                           {parent(deployingParent(off)), "tell Removed"},
		"one that is switched off is deleted":                              {parent(deployingParent(off), bb()), "delete"},
		"one that is switched off and on its way out":                      {parent(deployingParent(off), bb(markDeleted)), "nothing"},
		"one that is switched off leaves its namesake alone":               {parent(deployingParent(off), bb(foreign)), "tell Removed"},
		"a switch that is none":                                            {parent(deployingParent(func(i *kudo.Instance) { i.Status.Execution.Parameters["ON"] = "maybe" })), `tell Failed: parameter "ON": value "maybe": must be true or false`},
		"one that the hub has not resolved":                                {parent(deployingParent(), bb(notResolved(3))), "tell Failed: no such parameter"},
		"one that it had not resolved before":                              {parent(deployingParent(), bb(notResolved(2))), "tell Applied bb 3"},
		"a failed one runs its plan again":                                 {parent(deployingParent(), bb(failedIn(kudo.DeployPlan, asTheyAre))), "rerun deploy; tell Applied"},
		"one that fails in this execution does not":                        {parent(deployingParent(acknowledgedFor("x")), bb(failedIn(kudo.DeployPlan, asTheyAre))), "tell Applied bb 3"},
		"a failed plan that a change leads to is not asked for":            {parent(deployingParent(), bb(failedIn(kudo.UpdatePlan, nil), func(i *kudo.Instance) { i.Spec.Parameters = nil })), "apply bb-1.10.0 TEXT=t; tell Applied"},
		"a failed plan that applies everything runs again with any change": {parent(deployingParent(), bb(failedIn(kudo.DeployPlan, nil), func(i *kudo.Instance) { i.Spec.Parameters = nil })), "apply bb-1.10.0 TEXT=t; tell Applied"},
		"another version needs no failed plan":                             {parent(deployingParent(), bb(failedIn(kudo.DeployPlan, asTheyAre), func(i *kudo.Instance) { i.Status.Execution.OperatorVersion.UID = "bb-1.9.0" })), "tell Applied bb 3"},
		"a requested plan has priority":                                    {parent(deployingParent(), bb(failedIn(kudo.DeployPlan, asTheyAre), func(i *kudo.Instance) { i.Spec.PlanExecution = kudo.PlanExecution{PlanName: "update", UID: "u"} })), "tell Applied bb 3"},
		"nothing is done of a plan whose status is another's":              {parent(deployingParent(func(i *kudo.Instance) { i.Status.Execution.UID = "z" })), ""},
		"nothing is done for a queued task": {parent(deployingParent(func(i *kudo.Instance) {
			i.Status.PlanStatus[kudo.DeployPlan].Phases[0].Steps[0].Tasks[0].Status = kudo.Pending
		})), ""},
		"nothing is done once the plan is complete":             {parent(deployingParent(completePlan), bb()), ""},
		"a child without a task goes once the plan is complete": {parent(deployingParent(completePlan), bb(), bb(renamed)), "delete"},
		"and not before": {parent(deployingParent(), bb(), bb(renamed)), "tell Applied bb 3"},
		"an Instance that a user assigned to it stays":                    {parent(deployingParent(completePlan), bb(), bb(func(i *kudo.Instance) { i.Name = "mine" })), ""},
		"children stay while something is left of their parent":           {parent(deployingParent(markDeleted), bb()), ""},
		"and go when nothing is":                                          {parent(deployingParent(markDeleted, markRemoved), bb(), bb(renamed), bb(foreign)), "delete; delete"},
		"they are force-released, even if they are being deleted already": {parent(deployingParent(markDeleted, forceRelease), bb(), bb(renamed, markDeleted)), "delete by force; delete by force"},
		"nothing is done about a released one":                            {parent(deployingParent(markDeleted, forceRelease), bb(markDeleted, forceRelease)), ""},
		"a parent whose version is lost asks for nothing":                 {Parent{Instance: deployingParent()}, ""},
		"the children of a replaced version are unknown":                  {Parent{Instance: deployingParent(), Wanted: parentVersion()}, `tell Failed: OperatorVersion addon-packages/aa-0.9.0 of the running plan "deploy" no longer exists`},
		"but acknowledged ones continue":                                  {Parent{Instance: deployingParent(acknowledgedFor("x")), Wanted: parentVersion()}, ""},
		"a version that was replaced at rest is not missed":               {Parent{Instance: deployingParent(completePlan), Wanted: parentVersion(), Instances: []kudo.Instance{bb(renamed)}}, ""},
		"a parent that is switched off does not need the child's file":    {parent(deployingParent(off, func(i *kudo.Instance) { i.Status.Execution.Parameters["TEXT"] = "{" })), "tell Removed"},
	} {
		t.Run(name, func(t *testing.T) {
			var done []string
			for _, step := range Children(test.state) {
				done = append(done, describe(step))
			}
			got := strings.Join(done, "; ")
			if !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// rejectChild records that the hub has rejected a child that cannot exist.
func rejectChild(aa *kudo.Instance) {
	said := &aa.Status.Children[0]
	said.UID, said.Generation, said.State, said.Message = "", 0, kudo.ChildFailed, "no such parameter"
}

func markRemoved(i *kudo.Instance) {
	i.Status.Conditions = []metav1.Condition{{Type: kudo.ConditionReady, Status: metav1.ConditionFalse, Reason: kudo.ReasonRemoved}}
}

func forceRelease(i *kudo.Instance) {
	i.Annotations = map[string]string{kudo.AnnotationForceRelease: "true"}
}

// notResolved records that the hub has not resolved the child's generation.
func notResolved(generation int64) func(*kudo.Instance) {
	return func(i *kudo.Instance) {
		i.Status.Conditions = []metav1.Condition{{
			Type: kudo.ConditionResolved, Status: metav1.ConditionFalse, ObservedGeneration: generation, Message: "no such parameter",
		}}
	}
}

// describe formats a step in a few words.
func describe(step ChildStep) string {
	var words []string
	add := func(is bool, parts ...string) {
		if is {
			words = append(words, strings.Join(parts, " "))
		}
	}
	if step.Apply != nil {
		add(true, "apply", step.Apply.Spec.OperatorVersion.Name, "TEXT="+step.Apply.Spec.Parameters["TEXT"])
	}
	if step.Rerun != nil {
		add(true, "rerun", step.Rerun.PlanName)
	}
	add(step.Delete && !step.Force, "delete")
	add(step.Delete && step.Force, "delete by force")
	recorded := "tell " + string(step.Status.State)
	if step.Status.UID != "" {
		recorded += " " + string(step.Status.UID) + " 3"
	}
	if step.Status.Message != "" {
		recorded += ": " + step.Status.Message
	}
	add(step.Status.State != "", recorded)
	add(len(words) == 0, "nothing")
	return strings.Join(words, "; ")
}

// TestTheFilesOfAllChildrenShareTheirWork renders the parameter files of 40 children, each of which alone takes a tenth of the work of all.
func TestTheFilesOfAllChildrenShareTheirWork(t *testing.T) {
	state := parent(deployingParent())
	state.Running.Spec.Templates["bb.yaml"] += "{{ range until 95000 }}{{ end }}"
	task, names := state.Running.Spec.Tasks[0], []string{}
	state.Running.Spec.Tasks = nil
	var working []kudo.TaskStatus
	for i := range 40 {
		task.Name = fmt.Sprint("child-", i)
		task.Spec.InstanceName = task.Name
		state.Running.Spec.Tasks, names = append(state.Running.Spec.Tasks, task), append(names, task.Name)
		working = append(working, kudo.TaskStatus{Name: task.Name, Status: kudo.InProgress})
	}
	state.Running.Spec.Plans[kudo.DeployPlan].Phases[0].Steps[0].Tasks = names
	state.Instance.Status.PlanStatus[kudo.DeployPlan].Phases[0].Steps[0].Tasks = working
	applied, failed := 0, 0
	for _, step := range Children(state) {
		switch {
		case step.Apply != nil:
			applied++
		case step.Status.State == kudo.ChildFailed:
			failed++
			if want := `template "bb.yaml": rendering takes more than 2000000 steps`; !strings.HasPrefix(step.Status.Message, want) {
				t.Errorf("got %q, want %q", step.Status.Message, want)
			}
		}
	}
	if applied < 5 || failed < 20 || applied+failed != 40 {
		t.Errorf("%d children are applied, %d fail", applied, failed)
	}
}

func TestChildIsWholly(t *testing.T) {
	below := deployingParent(func(i *kudo.Instance) {
		i.Name, i.Labels = "top.aa", map[string]string{kudo.LabelRoot: "top"}
		i.OwnerReferences = []metav1.OwnerReference{{APIVersion: kudo.GroupVersion.String(), Kind: "Instance", Name: "top", UID: "t", Controller: ptr.To(true)}}
	})
	got := Children(parent(below))[0].Apply
	want := bb(func(i *kudo.Instance) {
		i.ObjectMeta.UID, i.Generation, i.CreationTimestamp = "", 0, metav1.Time{}
		i.Name, i.OwnerReferences[0].Name, i.Labels[kudo.LabelRoot] = "top.aa.bb", "top.aa", "top"
		version := operatorVersion("bb", "1.10.0", kudo.UpdatePlan)
		i.Annotations = map[string]string{kudo.AnnotationVersionContent: plan.ContentDigest(&version.Spec)}
		i.Spec.ChangedBy = author.With(kudo.ChangeAuthor{Kind: "Instance", Name: "cluster1/top.aa"}, author.Values(VersionOf(i), i.Spec))
	})
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheRequestForAFailedPlanIsOneInAnExecution(t *testing.T) {
	decide := func(execution types.UID) types.UID {
		aa := deployingParent(func(i *kudo.Instance) {
			i.Status.Execution.UID = execution
			status := i.Status.PlanStatus[kudo.DeployPlan]
			status.UID = execution
			i.Status.PlanStatus[kudo.DeployPlan] = status
		})
		return Children(parent(aa, bb(failedIn(kudo.DeployPlan, map[string]string{"TEXT": "t"}))))[0].Rerun.UID
	}
	if first, again := decide("x"), decide("x"); first != again || first == decide("y") {
		t.Error("want the same uid for the same execution, and another one for the next")
	}
	if plan, given := requestedFromHub(decide("x")); !given || plan != kudo.DeployPlan {
		t.Error("it is not known for one of the hub's, so that it would stay when it was handled")
	}
	asked := bb(failedIn(kudo.DeployPlan, map[string]string{"TEXT": "t"}), func(i *kudo.Instance) {
		i.Spec.PlanExecution = kudo.PlanExecution{PlanName: kudo.DeployPlan, UID: decide("x")}
		i.Status.Execution.Request = decide("x")
	})
	if again := Children(parent(deployingParent(), asked))[0].Rerun; again != nil {
		t.Errorf("a plan that was run again for this execution and has failed again: got %v", again)
	}
}

func TestAcknowledgements(t *testing.T) {
	entry := func(task string, change ...func(*kudo.ChildStatus)) kudo.ChildStatus {
		status := kudo.ChildStatus{Task: task, Execution: "x", Instance: "aa." + task, State: kudo.ChildApplied}
		for _, c := range change {
			c(&status)
		}
		return status
	}
	withChildren := func(entries ...kudo.ChildStatus) func(*kudo.Instance) {
		return func(i *kudo.Instance) { i.Status.Children = entries }
	}
	gone := func(s *kudo.ChildStatus) { s.State = kudo.ChildRemoved }
	of := func(name string) func(*kudo.ChildStatus) {
		return func(s *kudo.ChildStatus) { s.Instance = "aa." + name }
	}
	formerly := func(names ...string) func(*kudo.ChildStatus) { return func(s *kudo.ChildStatus) { s.Former = names } }
	at := func(name string) func(*kudo.Instance) { return func(i *kudo.Instance) { i.Name = "aa." + name } }
	for name, test := range map[string]struct {
		state    Parent
		recorded []kudo.ChildStatus
		want     []kudo.ChildStatus
	}{
		"nothing new":                         {parent(deployingParent(withChildren(entry("child")))), nil, []kudo.ChildStatus{entry("child")}},
		"something new":                       {parent(deployingParent(withChildren(entry("child")))), []kudo.ChildStatus{entry("child", gone)}, []kudo.ChildStatus{entry("child", gone)}},
		"something new of another task":       {parent(deployingParent(withChildren(entry("child")))), []kudo.ChildStatus{entry("a")}, []kudo.ChildStatus{entry("a"), entry("child")}},
		"a task that is gone, with its child": {parent(deployingParent(completePlan, withChildren(entry("child"), entry("old")))), nil, []kudo.ChildStatus{entry("child")}},
		"a task that is gone, and its child is not": {
			parent(deployingParent(completePlan, withChildren(entry("old"))), bb(func(i *kudo.Instance) { i.Name = "aa.old" })), nil, []kudo.ChildStatus{entry("old")},
		},
		"a task that is gone, and another owner's Instance has the name": {
			parent(deployingParent(completePlan, withChildren(entry("old"))), bb(func(i *kudo.Instance) { i.Name, i.OwnerReferences = "aa.old", nil })), nil, nil,
		},
		"a task that is gone, and its child belongs to another task": {
			parent(deployingParent(completePlan, withChildren(entry("child", of("bb")), entry("old", of("bb")))), bb()), nil, []kudo.ChildStatus{entry("child", of("bb"))},
		},
		"another name of a child whose former one is there": {
			parent(deployingParent(withChildren(entry("child", of("old")))), bb(), bb(at("old"))), []kudo.ChildStatus{entry("child", of("bb"))},
			[]kudo.ChildStatus{entry("child", of("bb"), formerly("aa.old"))},
		},
		"a third name of a child whose former ones are there": {
			parent(deployingParent(withChildren(entry("child", of("old"), formerly("aa.older")))), bb(), bb(at("old")), bb(at("older"))),
			[]kudo.ChildStatus{entry("child", of("bb"))}, []kudo.ChildStatus{entry("child", of("bb"), formerly("aa.old", "aa.older"))},
		},
		"the first name again": {
			parent(deployingParent(withChildren(entry("child", of("old"), formerly("aa.bb")))), bb(), bb(at("old"))),
			[]kudo.ChildStatus{entry("child", of("bb"))}, []kudo.ChildStatus{entry("child", of("bb"), formerly("aa.old"))},
		},
		"a former child that is gone": {
			parent(deployingParent(completePlan, withChildren(entry("child", of("bb"), formerly("aa.old")))), bb()), nil, []kudo.ChildStatus{entry("child", of("bb"))},
		},
		"a former child that is another task's now": {
			parent(deployingParent(withChildren(entry("child", of("bb"), formerly("aa.old")))), bb(), bb(at("old"))),
			[]kudo.ChildStatus{entry("other", of("old"))}, []kudo.ChildStatus{entry("child", of("bb")), entry("other", of("old"))},
		},
		"a task that is gone, and a former child is not": {
			parent(deployingParent(completePlan, withChildren(entry("old", formerly("aa.older")))), bb(at("older"))), nil,
			[]kudo.ChildStatus{entry("old", formerly("aa.older"))},
		},
		"a task that is gone, while a plan runs": {parent(deployingParent(withChildren(entry("old")))), nil, []kudo.ChildStatus{entry("old")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Acknowledgements(test.state, test.recorded)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	status := deployingParent().Status
	status.PlanStatus[kudo.UpdatePlan] = kudo.PlanStatus{Name: kudo.UpdatePlan, Status: kudo.NeverRun}
	running := status.PlanStatus[kudo.DeployPlan]
	running.Message, running.Phases[0].Message = "waits", "waits"
	running.Phases[0].Steps = append(running.Phases[0].Steps, kudo.StepStatus{Name: "later", Tasks: []kudo.TaskStatus{{Name: "later", Status: kudo.Pending}}})
	status.PlanStatus[kudo.DeployPlan] = running

	want := deployingParent().Status.PlanStatus
	if diff := cmp.Diff(want, Progress(status)); diff != "" {
		t.Errorf("of a plan that runs: %s", diff)
	}
	if got := Progress(deployingParent(completePlan, func(i *kudo.Instance) { i.Status.Children = nil }).Status); got != nil {
		t.Errorf("of an Instance at rest: got %v", got)
	}
	if got := Progress(deployingParent(completePlan).Status); got[kudo.DeployPlan].Status != kudo.Complete {
		t.Errorf("of an Instance at rest that has children: got %v", got)
	}
	failed := plan.MigrateStatus(bb(failedIn("backup", nil)).Status, nil)
	if diff := cmp.Diff(failed.PlanStatus, Progress(failed)); diff != "" {
		t.Errorf("of a plan that has failed: %s", diff)
	}
}

func TestChildrenOfAReplacedVersion(t *testing.T) {
	for name, test := range map[string]struct {
		state Parent
		want  string
	}{
		"one of a replaced version is changed":             {parent(deployingParent(), bb(func(i *kudo.Instance) { i.Spec.OperatorVersion.UID = "before" })), "apply bb-1.10.0 TEXT=t; tell Applied"},
		"one that an earlier release created gets the uid": {parent(deployingParent(), bb(func(i *kudo.Instance) { i.Spec.OperatorVersion.UID = "" })), "apply bb-1.10.0 TEXT=t; tell Applied"},
		"within an execution a replaced version stays":     {parent(deployingParent(acknowledgedFor("x")), bb(func(i *kudo.Instance) { i.Spec.OperatorVersion.UID = "before" })), "tell Applied bb 3"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := describe(Children(test.state)[0]); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestOnlyPins(t *testing.T) {
	unpinned := func(i *kudo.Instance) { i.Spec.OperatorVersion.UID = "" }
	for name, test := range map[string]struct {
		child kudo.Instance
		want  bool
	}{
		"a child that an earlier release created":           {bb(unpinned), true},
		"such a child with other parameters":                {bb(unpinned, func(i *kudo.Instance) { i.Spec.Parameters = nil }), false},
		"a child of another version":                        {bb(func(i *kudo.Instance) { i.Spec.OperatorVersion.UID = "before" }), false},
		"a child that is as desired, so nothing is applied": {bb(), false},
		"a child that belongs to a parent of the same name": {bb(func(i *kudo.Instance) { i.OwnerReferences[0].UID = "before" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Children(parent(deployingParent(), test.child))[0].OnlyPins(); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestIsStale(t *testing.T) {
	parent := func(change func(*kudo.Instance)) *kudo.Instance {
		i := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "shop"}}
		i.Status.Execution = &kudo.Execution{UID: "second"}
		if change != nil {
			change(i)
		}
		return i
	}
	for name, tc := range map[string]struct {
		current *kudo.Instance
		stale   bool
	}{
		"the same state": {parent(nil), false},
		"another message, generation and plan status": {parent(func(i *kudo.Instance) {
			i.Generation, i.Status.PlanStatus = 7, map[string]kudo.PlanStatus{"deploy": {Message: "more"}}
		}), false},
		"another execution": {parent(func(i *kudo.Instance) { i.Status.Execution.UID = "third" }), true},
		"no execution":      {parent(func(i *kudo.Instance) { i.Status.Execution = nil }), true},
		"a deleted parent":  {parent(func(i *kudo.Instance) { i.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }), true},
		"another acknowledgement": {parent(func(i *kudo.Instance) {
			i.Status.Children = []kudo.ChildStatus{{Task: "db", Execution: "second", State: kudo.ChildApplied}}
		}), true},
		"another parent": {parent(func(i *kudo.Instance) { i.UID = "other" }), true},
		"no parent":      {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsStale(parent(nil), tc.current); got != tc.stale {
				t.Errorf("outdated: %v, want %v", got, tc.stale)
			}
		})
	}
}
