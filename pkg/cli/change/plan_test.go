package change

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/test/sample"
)

func withUnresolved(reason, message string) func(*kudo.Instance) {
	return func(i *kudo.Instance) {
		i.Status.Conditions[0].Status, i.Status.Conditions[0].Reason, i.Status.Conditions[0].Message = metav1.ConditionFalse, reason, message
	}
}

func raiseGeneration(i *kudo.Instance) { i.Generation++ }

func TestPlanWaitEnds(t *testing.T) {
	const failed = `plan "deploy" of Instance kafka on cluster cluster1 failed: no more disks; see 'kubectl addon plan status kafka --cluster cluster1', ` +
		`fix the cause, and run the plan again: 'kubectl addon plan run kafka deploy --cluster cluster1'`
	for name, test := range map[string]struct {
		view    progress.View
		awaited awaitedPlan
		done    bool
		err     string
	}{
		"a plan that is complete":        {view: sample.ViewOf("deploy", kudo.Complete), done: true},
		"a plan that runs":               {view: sample.ViewOf("deploy", kudo.InProgress)},
		"a plan that fails for a moment": {view: sample.ViewOf("deploy", kudo.Error)},
		"a plan that has failed":         {view: sample.ViewOf("deploy", kudo.FatalError), err: failed},
		"a plan that has failed and is retried": {view: sample.ViewOf("deploy", kudo.FatalError, func(i *kudo.Instance) {
			i.Status.Execution.Owed = []kudo.OwedPlan{{Plan: "deploy", Outcome: kudo.OwedFailed,
				RetryTime: &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}}
		}), err: strings.Replace(failed, "fix the cause, and run the plan again",
			"and fix the cause: the plan starts again at 2026-01-02T03:04:05Z, or run it now", 1)},
		"an Instance without an execution": {view: sample.ViewOf("deploy", "", func(i *kudo.Instance) {
			i.Status = kudo.InstanceStatus{}
		})},
		"a change that is not observed yet": {view: sample.ViewOf("deploy", kudo.FatalError, raiseGeneration)},
		"a failed plan after which another is due": {view: sample.ViewOf("deploy", kudo.FatalError, func(i *kudo.Instance) {
			i.Spec.Parameters = map[string]string{"BROKERS": "5"}
		})},
		"a complete plan after which another was requested": {view: sample.ViewOf("deploy", kudo.Complete, sample.WithRequest("backup", "mine"))},
		"a change that cannot run": {
			view: sample.ViewOf("deploy", kudo.Complete, withUnresolved(kudo.ReasonParametersInvalid, `parameter "X": not defined`)),
			err:  `Instance kafka on cluster cluster1 cannot run: ParametersInvalid: parameter "X": not defined`},
		"a change that could not run before the last one": {
			view: sample.ViewOf("deploy", kudo.Complete, withUnresolved(kudo.ReasonParametersInvalid, ""), raiseGeneration)},
		"an OperatorVersion that may be created": {
			view: sample.ViewOf("deploy", kudo.Complete, withUnresolved(kudo.ReasonOperatorVersionNotFound, ""), func(i *kudo.Instance) { i.Status.ObservedGeneration = 1 })},
		"an Instance that is being removed": {
			view: sample.ViewOf("cleanup", kudo.Complete, func(i *kudo.Instance) { i.DeletionTimestamp = ptr.To(metav1.Now()) })},
		"stale status": {view: sample.ViewOf("deploy", kudo.Complete), awaited: awaitedPlan{generation: 3}},

		"a request that has run": {
			view: sample.ViewOf("backup", kudo.Complete, sample.WithRequest("backup", "ran"), sample.ByHand("ran")), awaited: awaitedPlan{request: "ran", plan: "backup"}, done: true},
		"a request that has failed": {
			view: sample.ViewOf("deploy", kudo.FatalError, sample.WithRequest("deploy", "ran"), sample.ByHand("ran")), awaited: awaitedPlan{request: "ran", plan: "deploy"}, err: failed},
		"a queued request, after a plan that failed": {
			view: sample.ViewOf("deploy", kudo.FatalError, sample.WithRequest("backup", "mine")), awaited: awaitedPlan{request: "mine", plan: "backup"}},
		"a request that another plan has superseded": {
			view:    sample.ViewOf("deploy", kudo.InProgress, sample.WithRequest("backup", "mine"), sample.ByHand("mine")),
			awaited: awaitedPlan{request: "mine", plan: "backup"},
			err:     `plan "backup" of Instance kafka on cluster cluster1 was superseded by plan "deploy"`},
		"a request that another one has replaced": {
			view:    sample.ViewOf("deploy", kudo.InProgress, sample.WithRequest("deploy", "of-another")),
			awaited: awaitedPlan{request: "mine", plan: "backup"},
			err:     `plan "backup" of Instance kafka on cluster cluster1 did not run: another request replaced this one`},
		"a request that cannot run": {
			view:    sample.ViewOf("deploy", kudo.Complete, sample.WithRequest("backup", "mine"), withUnresolved(kudo.ReasonRequestInvalid, "no such plan")),
			awaited: awaitedPlan{request: "mine", plan: "backup"},
			err:     `Instance kafka on cluster cluster1 cannot run: RequestInvalid: no such plan`},
	} {
		t.Run(name, func(t *testing.T) {
			test.awaited.ObjectKey = client.ObjectKey{Namespace: "cluster1", Name: "kafka"}
			done, err := test.awaited.hasEnded(test.view)
			if diff := cmp.Diff(test.err, clitest.ErrorText(err)); diff != "" {
				t.Error(diff)
			}
			if done != test.done {
				t.Errorf("done is %v", done)
			}
		})
	}
}

// TestPlanWaitOfARemovedInstance ends waits for an Instance that was found, and then was not.
func TestPlanWaitOfARemovedInstance(t *testing.T) {
	const failed = "Instance kafka on cluster cluster1 was deleted before its plans ended"
	for name, test := range map[string]struct {
		found   func(*kudo.Instance)
		request types.UID
		err     string
	}{
		"a removal that was observed": {found: func(i *kudo.Instance) { i.DeletionTimestamp = ptr.To(metav1.Now()) }},
		"a removal between two looks": {found: func(i *kudo.Instance) { i.Finalizers = []string{kudo.Finalizer} }},
		"nothing had to be removed":   {found: func(i *kudo.Instance) { i.Finalizers = []string{"another"} }, err: failed},
		"a request that has not run":  {found: func(i *kudo.Instance) { i.Finalizers = []string{kudo.Finalizer} }, request: "mine", err: failed},
	} {
		t.Run(name, func(t *testing.T) {
			view := sample.ViewOf("deploy", kudo.InProgress, test.found)
			w := planWait{awaitedPlan: awaitedPlan{ObjectKey: client.ObjectKey{Namespace: "cluster1", Name: "kafka"}, request: test.request}, found: view.Instance}
			done, err := w.endRemoved()
			if diff := cmp.Diff(test.err, clitest.ErrorText(err)); diff != "" {
				t.Error(diff)
			}
			if done != (err == nil) || done && w.text != "instance.kudo.dev/kafka is removed\n" {
				t.Errorf("done is %v: %q", done, w.text)
			}
		})
	}
}

func TestPlanRunPrintsItsEffects(t *testing.T) {
	for name, test := range map[string]struct {
		view progress.View
		want string
	}{
		"immediately": {sample.ViewOf("deploy", kudo.Complete, sample.WithRequest("backup", "new")), ""},
		"after a run": {sample.ViewOf("deploy", kudo.InProgress, sample.WithRequest("backup", "new")), "It is queued until the running plan deploy ends.\n"},
		"after what parameters trigger": {sample.ViewOf("deploy", kudo.Complete, sample.WithRequest("backup", "new"), func(i *kudo.Instance) {
			i.Spec.Parameters = map[string]string{"BROKERS": "5"}
		}), "Plan deploy runs first because of the changed parameters.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff("instance.kudo.dev/kafka plan backup requested\n"+test.want, askedText(test.view, "backup")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// failed returns a view of an Instance whose plan deploy has failed at its last step.
func failed(change ...func(*kudo.Instance)) progress.View {
	v := sample.ViewOf("deploy", kudo.FatalError)
	random := sample.ApplyTask("password", "random.yaml")
	v.Version.Spec.Templates = map[string]string{"random.yaml": `value: {{ randAlphaNum 8 }}`}
	v.Version.Spec.Tasks = []kudo.Task{random}
	phases := []kudo.Phase{{Name: "main", Steps: []kudo.Step{sample.Step("config"), sample.Step("password"), sample.Step("brokers"), sample.Step("topics")}}}
	v.Version.Spec.Plans["deploy"] = kudo.Plan{Phases: phases}
	ran := v.Instance.Status.PlanStatus["deploy"]
	ran.Phases = []kudo.PhaseStatus{{Name: "main", Steps: []kudo.StepStatus{
		{Name: "config", Status: kudo.Complete, Tasks: []kudo.TaskStatus{{Name: "config", Status: kudo.Complete, Rendered: "a"}}},
		{Name: "password", Status: kudo.Complete, Tasks: []kudo.TaskStatus{{Name: "password", Status: kudo.Complete}}},
		{Name: "brokers", Status: kudo.Complete, Tasks: []kudo.TaskStatus{{Name: "brokers", Status: kudo.Complete, Rendered: "b"}}},
		{Name: "topics", Status: kudo.FatalError, Tasks: []kudo.TaskStatus{{Name: "topics", Status: kudo.FatalError}}},
	}}}
	v.Instance.Status.PlanStatus["deploy"] = ran
	for _, c := range change {
		c(v.Instance)
	}
	return v
}

func TestPlanResumePrintsWhatItSkips(t *testing.T) {
	o := &PlanRunOptions{resume: true}
	r, err := o.request(failed())
	if err != nil {
		t.Fatal(err)
	}
	if asked := r.wanted.PlanExecution; asked.Resume != "ran" || asked.PlanName != "deploy" || asked.UID == "" {
		t.Errorf("the request is %v", asked)
	}
	clitest.Golden(t, "plan-resume", r.text(false, ""))
	clitest.Golden(t, "plan-resume-clusters", r.text(true, " (dry run)"))
}

func TestPlanResumeSaysWhyNot(t *testing.T) {
	state := func(status kudo.ExecutionStatus) func(*kudo.Instance) {
		return func(i *kudo.Instance) {
			ran := i.Status.PlanStatus["deploy"]
			ran.Status = status
			i.Status.PlanStatus["deploy"] = ran
		}
	}
	for name, test := range map[string]struct {
		view       progress.View
		plan       string
		parameters map[string]string
	}{
		"complete": {view: failed(state(kudo.Complete))},
		"running":  {view: failed(state(kudo.InProgress))},
		"never":    {view: failed(func(i *kudo.Instance) { i.Status = kudo.InstanceStatus{} })},
		"other":    {view: failed(), plan: "backup"},
		"version":  {view: failed(func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "kafka-4.0.0-1.1.0" })},
		"trigger":  {view: failed(func(i *kudo.Instance) { i.Status.Whole = &kudo.WholeVersion{} }), parameters: map[string]string{"SIZE": "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &PlanRunOptions{resume: true, plan: test.plan, parameters: test.parameters}
			_, err := o.request(test.view)
			clitest.Golden(t, "plan-resume-"+name+"-error", fmt.Sprintf("%v\n", err))
		})
	}
}

func TestAResumedPlanIsAwaited(t *testing.T) {
	resumed := func(status kudo.ExecutionStatus) progress.View {
		return sample.ViewOf("deploy", status, func(i *kudo.Instance) {
			i.Status.Execution.Request, i.Status.Execution.Resume = "mine", "former" // a changed value has started it
		})
	}
	refused := sample.ViewOf("deploy", kudo.FatalError, sample.WithRequest("deploy", "mine"), func(i *kudo.Instance) {
		invalid := sample.Condition(kudo.ConditionLastRequestSucceeded, "False", kudo.ReasonRequestInvalid, `execution "x" cannot be resumed`)
		invalid.ObservedGeneration = i.Generation
		i.Status.Conditions = append(i.Status.Conditions, invalid)
	})
	earlier := sample.ViewOf("deploy", kudo.FatalError, sample.WithRequest("deploy", "mine"), func(i *kudo.Instance) {
		i.Status.Conditions = append(i.Status.Conditions, sample.Condition(
			kudo.ConditionLastRequestSucceeded, "False", kudo.ReasonRequestInvalid, `execution "w" cannot be resumed`))
	})
	for sentence, test := range map[string]struct {
		view progress.View
		done bool
		err  string
	}{
		"one after another that is refused": {view: earlier},
		"one that is complete":              {view: resumed(kudo.Complete), done: true},
		"one that runs":                     {view: resumed(kudo.InProgress)},
		"one that fails":                    {view: resumed(kudo.FatalError), err: "no more disks"},
		"one that is refused":               {view: refused, err: `does not run: execution "x" cannot be resumed`},
	} {
		t.Run(sentence, func(t *testing.T) {
			done, err := awaitedPlan{plan: "deploy", request: "mine"}.hasEnded(test.view)
			if done != test.done || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v, %v", done, err)
			}
		})
	}
}

func TestParametersAreNamesAndValues(t *testing.T) {
	cmd := NewCmdPlanRun(clitest.Factory(""), nil)
	for name, test := range map[string]struct {
		given []string
		want  map[string]string
		err   string
	}{
		"none":                           {want: map[string]string{}},
		"a value with equals and commas": {given: []string{"A=1,2=3", "B="}, want: map[string]string{"A": "1,2=3", "B": ""}},
		"no value":                       {given: []string{"A"}, err: `invalid argument "A" for "--parameter" flag: must be NAME=VALUE`},
		"no name":                        {given: []string{"=1"}, err: `invalid argument "=1" for "--parameter" flag: must be NAME=VALUE`},
		"a value that is no text":        {given: []string{"A=a\xffb"}, err: `invalid argument for "--parameter" flag: "A" is not UTF-8 text: encode the value, for example with base64`},
		"a name twice":                   {given: []string{"A=1", "A=2"}, err: `--parameter A is given twice`},
		"a value for one cluster": {given: []string{"cluster1/A=1"},
			err: `invalid argument "cluster1/A" for "--parameter" flag: run takes NAME=VALUE; only enable, install, update and upgrade take CLUSTER/NAME=VALUE`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseForAll(cmd, test.given)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if want := test.err; want != "" && fmt.Sprint(err) != want+"\nSee 'run --help' for usage." || want == "" && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestPlanRunTakesClusters(t *testing.T) {
	type options struct {
		Clusters []string
		Failed   bool
	}
	for sentence, test := range map[string]struct {
		args []string
		want options
		err  string
	}{
		"two clusters":         {args: []string{"--cluster", "cluster1,cluster2"}, want: options{Clusters: []string{"cluster1", "cluster2"}}},
		"all, if it failed":    {args: []string{"--failed"}, want: options{Failed: true}},
		"some, if it failed":   {args: []string{"--failed", "--cluster", "cluster1"}, want: options{Clusters: []string{"cluster1"}, Failed: true}},
		"clusters in two ways": {args: []string{"-A", "-l", "a=b"}, err: "--cluster, --selector, --placement and --all-clusters are mutually exclusive\nSee 'run --help' for usage."},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got options
			cmd := NewCmdPlanRun(clitest.Factory(""), func(_ context.Context, o *PlanRunOptions) error {
				got = options{o.Names, o.Failed}
				return nil
			})
			clitest.Parse(t, cmd, append([]string{"kafka", "backup"}, test.args...), test.err)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
