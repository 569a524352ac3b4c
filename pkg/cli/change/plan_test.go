package change

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/action"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/progress"
)

// ranOf returns the view of an Instance whose plan has the given status.
func ranOf(plan string, status kudo.ExecutionStatus, change ...func(*kudo.Instance)) progress.View {
	instance, version := clitest.Ran(plan, status, change...)
	return progress.View{Instance: instance, Version: version}
}

func unresolved(reason, message string) func(*kudo.Instance) {
	return func(i *kudo.Instance) {
		i.Status.Conditions[0].Status, i.Status.Conditions[0].Reason, i.Status.Conditions[0].Message = metav1.ConditionFalse, reason, message
	}
}

func edited(i *kudo.Instance) { i.Generation++ }

func requested(plan string, uid types.UID) func(*kudo.Instance) {
	return func(i *kudo.Instance) { i.Spec.PlanExecution = kudo.PlanExecution{PlanName: plan, UID: uid} }
}

// byHand marks the last execution as requested under that UID.
func byHand(uid types.UID) func(*kudo.Instance) {
	return func(i *kudo.Instance) { i.Status.Execution.Request = uid }
}

func TestPlanWaitEnds(t *testing.T) {
	const failed = `plan "deploy" of Instance kafka on cluster cluster1 failed: no more disks; see 'kubectl addon plan status kafka --cluster cluster1', ` +
		`fix the cause, and run the plan again: 'kubectl addon plan run kafka deploy --cluster cluster1'`
	for name, test := range map[string]struct {
		view    progress.View
		awaited awaitedPlan
		done    bool
		err     string
	}{
		"a plan that is complete":        {view: ranOf("deploy", kudo.Complete), done: true},
		"a plan that runs":               {view: ranOf("deploy", kudo.InProgress)},
		"a plan that fails for a moment": {view: ranOf("deploy", kudo.Error)},
		"a plan that has failed":         {view: ranOf("deploy", kudo.FatalError), err: failed},
		"an Instance without an execution": {view: ranOf("deploy", "", func(i *kudo.Instance) {
			i.Status = kudo.InstanceStatus{}
		})},
		"a change that is not observed yet": {view: ranOf("deploy", kudo.FatalError, edited)},
		"a failed plan after which another is due": {view: ranOf("deploy", kudo.FatalError, func(i *kudo.Instance) {
			i.Spec.Parameters = map[string]string{"BROKERS": "5"}
		})},
		"a complete plan after which another was requested": {view: ranOf("deploy", kudo.Complete, requested("backup", "mine"))},
		"a change that cannot run": {
			view: ranOf("deploy", kudo.Complete, unresolved(kudo.ReasonParametersInvalid, `parameter "X": not defined`)),
			err:  `Instance kafka on cluster cluster1 cannot run: ParametersInvalid: parameter "X": not defined`},
		"a change that could not run before the last one": {
			view: ranOf("deploy", kudo.Complete, unresolved(kudo.ReasonParametersInvalid, ""), edited)},
		"an OperatorVersion that may be created": {
			view: ranOf("deploy", kudo.Complete, unresolved(kudo.ReasonOperatorVersionNotFound, ""), func(i *kudo.Instance) { i.Status.ObservedGeneration = 1 })},
		"an Instance that is being removed": {
			view: ranOf("cleanup", kudo.Complete, func(i *kudo.Instance) { i.DeletionTimestamp = ptr.To(metav1.Now()) })},
		"outdated status": {view: ranOf("deploy", kudo.Complete), awaited: awaitedPlan{generation: 3}},

		"a request that has run": {
			view: ranOf("backup", kudo.Complete, requested("backup", "ran"), byHand("ran")), awaited: awaitedPlan{request: "ran", plan: "backup"}, done: true},
		"a request that has failed": {
			view: ranOf("deploy", kudo.FatalError, requested("deploy", "ran"), byHand("ran")), awaited: awaitedPlan{request: "ran", plan: "deploy"}, err: failed},
		"a queued request, after a plan that failed": {
			view: ranOf("deploy", kudo.FatalError, requested("backup", "mine")), awaited: awaitedPlan{request: "mine", plan: "backup"}},
		"a request that another plan has superseded": {
			view:    ranOf("deploy", kudo.InProgress, requested("backup", "mine"), byHand("mine")),
			awaited: awaitedPlan{request: "mine", plan: "backup"},
			err:     `plan "backup" of Instance kafka on cluster cluster1 was superseded by plan "deploy"`},
		"a request that another one has replaced": {
			view:    ranOf("deploy", kudo.InProgress, requested("deploy", "of-another")),
			awaited: awaitedPlan{request: "mine", plan: "backup"},
			err:     `plan "backup" of Instance kafka on cluster cluster1 did not run: another request replaced this one`},
		"a request that cannot run": {
			view:    ranOf("deploy", kudo.Complete, requested("backup", "mine"), unresolved(kudo.ReasonRequestInvalid, "no such plan")),
			awaited: awaitedPlan{request: "mine", plan: "backup"},
			err:     `Instance kafka on cluster cluster1 cannot run: RequestInvalid: no such plan`},
	} {
		t.Run(name, func(t *testing.T) {
			test.awaited.ObjectKey = client.ObjectKey{Namespace: "cluster1", Name: "kafka"}
			done, err := test.awaited.ended(test.view)
			if diff := cmp.Diff(test.err, clitest.ErrorText(err)); diff != "" {
				t.Error(diff)
			}
			if done != test.done {
				t.Errorf("done is %v", done)
			}
		})
	}
}

func TestPlanRunAsks(t *testing.T) {
	owner := func(kind, name string) func(*kudo.Instance) {
		return func(i *kudo.Instance) {
			i.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: ptr.To(true)}}
		}
	}
	lost := ranOf("deploy", kudo.Complete)
	lost.Version, lost.Unreadable = nil, apierrors.NewNotFound(schema.GroupResource{Group: "kudo.dev", Resource: "operatorversions"}, "kafka-3.9.0-1.0.0")
	forbidden := ranOf("deploy", kudo.Complete)
	forbidden.Version, forbidden.Unreadable = nil, errors.New("forbidden")
	for name, test := range map[string]struct {
		view       progress.View
		plan       string
		parameters map[string]string
		want       kudo.PlanExecution
		err        string
	}{
		"a plan gets a request of its own":  {view: ranOf("deploy", kudo.Complete), plan: "backup", want: kudo.PlanExecution{PlanName: "backup", UID: "new"}},
		"the plan that ran last runs again": {view: ranOf("backup", kudo.Complete), plan: "backup", want: kudo.PlanExecution{PlanName: "backup", UID: "new"}},
		"a request to cancel is withdrawn": {view: ranOf("deploy", kudo.FatalError, func(i *kudo.Instance) {
			i.Spec.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "ran", Cancel: true}
		}), plan: "deploy", want: kudo.PlanExecution{PlanName: "deploy", UID: "new"}},
		"a plan that the parameters trigger is not requested again": {
			view: ranOf("deploy", kudo.Complete), plan: "backup", parameters: map[string]string{"SIZE": "2"}},
		"a plan that the parameters do not trigger is requested too": {
			view: ranOf("deploy", kudo.Complete), plan: "backup", parameters: map[string]string{"BROKERS": "5"},
			want: kudo.PlanExecution{PlanName: "backup", UID: "new"}},
		"an unreadable OperatorVersion is for the hub to judge": {view: forbidden, plan: "backup", want: kudo.PlanExecution{PlanName: "backup", UID: "new"}},
		"a plan that does not exist": {view: ranOf("deploy", kudo.Complete), plan: "bakcup",
			err: `OperatorVersion "kafka-3.9.0-1.0.0" has no plan "bakcup" (did you mean backup?); available plans: backup, cleanup, deploy`},
		"an OperatorVersion that does not exist": {view: lost, plan: "backup",
			err: `operatorversions.kudo.dev "kafka-3.9.0-1.0.0" not found; push its package first ('kubectl addon package push DIR')`},
		"a value of the wrong type": {view: ranOf("deploy", kudo.Complete), plan: "deploy", parameters: map[string]string{"BROKERS": "many"},
			err: `Instance cluster1/kafka: parameter "BROKERS": value "many": must be an integer, such as 3`},
		"a parameter that does not exist": {view: ranOf("deploy", kudo.Complete), plan: "deploy", parameters: map[string]string{"COLOR": "red"},
			err: `Instance cluster1/kafka: parameter "COLOR": not defined: the operator has SIZE, BROKERS`},
		"parameters of an add-on": {view: ranOf("deploy", kudo.Complete, owner("ManagedClusterAddOn", "kafka")), plan: "deploy", parameters: map[string]string{"SIZE": "2"},
			err: `the parameters of Instance "kafka" come from add-on "kafka"; change them with 'kubectl addon update kafka --cluster cluster1 -p NAME=VALUE'`},
		"parameters of a child": {view: ranOf("deploy", kudo.Complete, owner("Instance", "shop")), plan: "deploy", parameters: map[string]string{"SIZE": "2"},
			err: `the parameters of Instance "kafka" come from its parent, Instance "shop"; change them there`},
		"an add-on's plan may be requested": {view: ranOf("deploy", kudo.Complete, owner("ManagedClusterAddOn", "kafka")), plan: "deploy",
			want: kudo.PlanExecution{PlanName: "deploy", UID: "new"}},
		"an Instance that is being removed": {
			view: ranOf("deploy", kudo.Complete, func(i *kudo.Instance) { i.DeletionTimestamp = ptr.To(metav1.Now()) }), plan: "deploy",
			err: `only plan cleanup can run for Instance "kafka" of cluster "cluster1" because the Instance is being removed; see 'kubectl addon plan status kafka --cluster cluster1'`},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.view.Instance.DeepCopy()
			got, _, err := action.Run(test.view, test.plan, "new", test.parameters)
			if diff := cmp.Diff(test.err, clitest.ErrorText(err)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, test.view.Instance); diff != "" {
				t.Errorf("the Instance was changed: %s", diff)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(test.want, got.PlanExecution); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.parameters, got.Parameters); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlanRunSaysWhatComesOfIt(t *testing.T) {
	for name, test := range map[string]struct {
		view progress.View
		want string
	}{
		"immediately": {ranOf("deploy", kudo.Complete, requested("backup", "new")), ""},
		"after a run": {ranOf("deploy", kudo.InProgress, requested("backup", "new")), "It is queued until the running plan deploy ends.\n"},
		"after what parameters trigger": {ranOf("deploy", kudo.Complete, requested("backup", "new"), func(i *kudo.Instance) {
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

func TestPlanCancelNeedsARun(t *testing.T) {
	const nothingRuns = `no plan of Instance "kafka" on cluster "cluster1" is running: the last plan, "deploy", is COMPLETE; ` +
		`see 'kubectl addon plan history kafka --cluster cluster1'`
	for name, test := range map[string]struct {
		view progress.View
		want string
	}{
		"a plan that runs":                {ranOf("deploy", kudo.InProgress), ""},
		"a request that has not begun":    {ranOf("deploy", kudo.Complete, requested("backup", "mine")), ""},
		"the first request":               {progress.View{Instance: func() *kudo.Instance { i := clitest.Instance(); requested("deploy", "mine")(i); return i }()}, ""},
		"a request that has run":          {ranOf("deploy", kudo.Complete, requested("deploy", "ran")), nothingRuns},
		"an earlier request that has run": {ranOf("deploy", kudo.Complete, requested("backup", "old"), byHand("old")), nothingRuns},
		"a plan that has ended":           {ranOf("deploy", kudo.Complete), nothingRuns},
		"no plan at all":                  {progress.View{Instance: clitest.Instance()}, `no plan of Instance "kafka" on cluster "cluster1" is running: no plan has run yet`},
		"a removal": {ranOf("cleanup", kudo.InProgress, func(i *kudo.Instance) { i.DeletionTimestamp = ptr.To(metav1.Now()) }),
			`the removal of Instance "kafka" from cluster "cluster1" cannot be cancelled; to release the Instance, see 'kubectl addon uninstall --help'`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := action.Cancel(test.view.Instance)
			if diff := cmp.Diff(test.want, clitest.ErrorText(err)); diff != "" {
				t.Error(diff)
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
		"a name twice":                   {given: []string{"A=1", "A=2"}, err: `--parameter A is given twice`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseParameters(cmd, test.given)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if want := test.err; want != "" && fmt.Sprint(err) != want+"\nSee 'run --help' for usage." || want == "" && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}
