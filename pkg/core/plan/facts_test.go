package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// region returns facts of a cluster with a label; nil for an empty one.
func region(value string) *kudo.ClusterFacts {
	if value == "" {
		return nil
	}
	return &kudo.ClusterFacts{Name: "one", Labels: map[string]string{"region": value}}
}

func TestFactsStartNoPlanAndTheNextOneTakesThem(t *testing.T) {
	ran := func(plan string, owed ...kudo.OwedPlan) kudo.Execution {
		return kudo.Execution{Plan: plan, Cluster: region("a"), KubernetesVersion: "v1.33.0", Owed: owed}
	}
	request := func(plan string) plan.State {
		return planState(region("b"), kudo.PlanExecution{PlanName: plan, UID: "r"}, nil)
	}
	for name, test := range map[string]struct {
		last       kudo.Execution
		status     kudo.ExecutionStatus
		state      plan.State // desired
		plan, with string
	}{
		"the first execution takes them": {state: plan.State{Cluster: region("b")}, plan: "deploy", with: "b"},
		"a change starts nothing":        {last: ran("deploy"), status: kudo.Complete, state: plan.State{Cluster: region("b")}},
		"a change restarts nothing":      {last: ran("deploy"), status: kudo.InProgress, state: plan.State{Cluster: region("b")}},
		"a failed plan is not retried": {
			last: ran("deploy", kudo.OwedPlan{Plan: "deploy", Whole: true, Outcome: kudo.OwedFailed}), status: kudo.FatalError, state: plan.State{Cluster: region("b")},
		},
		"its retry takes them": {
			last: ran("deploy", kudo.OwedPlan{Plan: "deploy", Whole: true, Outcome: kudo.OwedFailed}), status: kudo.FatalError,
			state: plan.State{Cluster: region("b"), DueRetries: map[string]bool{"deploy": true}}, plan: "deploy", with: "b",
		},
		"a parameter without a trigger": {
			last: ran("deploy"), status: kudo.Complete, state: planState(region("b"), kudo.PlanExecution{}, map[string]string{"PLAIN": "x"}), plan: "update", with: "b",
		},
		"a parameter with a trigger keeps those in use": {
			last: ran("deploy"), status: kudo.Complete, state: planState(region("b"), kudo.PlanExecution{}, map[string]string{"BACKUP": "x"}), plan: "backup", with: "a",
		},
		"a manual plan keeps those in use":  {last: ran("deploy"), status: kudo.Complete, state: request("backup"), plan: "backup", with: "a"},
		"a manual plan that applies all":    {last: ran("deploy"), status: kudo.Complete, state: request("deploy"), plan: "deploy", with: "b"},
		"a manual cleanup keeps those used": {last: ran("deploy"), status: kudo.Complete, state: request("cleanup"), plan: "cleanup", with: "a"},
		"a removal keeps those in use": {
			last: ran("deploy"), status: kudo.Complete, state: plan.State{Cluster: region("b"), Removing: true}, plan: "cleanup", with: "a",
		},
		"after an execution of an agent that did not know them": {
			last: kudo.Execution{Plan: "deploy"}, status: kudo.Complete, state: request("backup"), plan: "backup", with: "b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := test.state
			s.Version, s.Reference, s.Generation, s.KubernetesVersion = versionOf("deploy", "update", "upgrade", "backup", "cleanup"), one, 2, "v1.34.0"
			s.Version.Templates = map[string]string{"a": "{{ .Cluster.Name }} {{ .Capabilities.KubeVersion.Minor }}"}
			if test.status != "" {
				test.last.UID, test.last.OperatorVersion, test.last.Generation = "x", one, 1
				s.Last, s.LastStatus, s.LastVersion = &test.last, test.status, s.Version
				s.Whole = &kudo.WholeVersion{OperatorVersion: one}
			}
			choice, err := plan.Choose(s)
			if err != nil {
				t.Fatal(err)
			}
			if choice.Start == nil || test.plan == "" {
				if choice.Start != nil || test.plan != "" {
					t.Errorf("starts %+v, want plan %q", choice.Start, test.plan)
				}
				return
			}
			if choice.Start.Plan != test.plan {
				t.Errorf("plan %q starts", choice.Start.Plan)
			}
			if diff := cmp.Diff(region(test.with), choice.Start.Cluster); diff != "" {
				t.Error(diff)
			}
			if want := map[string]string{"a": "v1.33.0", "b": "v1.34.0"}[test.with]; choice.Start.KubernetesVersion != want {
				t.Errorf("with version %q, want %q", choice.Start.KubernetesVersion, want)
			}
		})
	}
}

func planState(cluster *kudo.ClusterFacts, request kudo.PlanExecution, parameters map[string]string) plan.State {
	return plan.State{Cluster: cluster, Request: request, Parameters: parameters}
}

func TestTheVersionOfTheClusterIsOnlyRecordedForTemplatesThatUseIt(t *testing.T) {
	s := plan.State{Version: versionOf("deploy"), Reference: one, Generation: 1, KubernetesVersion: "v1.34.0"}
	choice, err := plan.Choose(s)
	if err != nil || choice.Start.KubernetesVersion != "" {
		t.Errorf("got %+v, error %v", choice.Start, err)
	}
}
