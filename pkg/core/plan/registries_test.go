package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// mirror returns image registries with one entry.
func mirror(name string) []kudo.ImageRegistry {
	if name == "" {
		return nil
	}
	return []kudo.ImageRegistry{{Source: "quay.io", Mirror: name}}
}

func TestOtherRegistriesStartThePlanOfAParameterWithoutATrigger(t *testing.T) {
	all := versionOf("deploy", "update", "upgrade", "backup", "cleanup")
	for name, test := range map[string]struct {
		last    kudo.Execution
		status  kudo.ExecutionStatus
		version *kudo.OperatorVersionSpec
		state   plan.State // desired
		plan    string
		with    string // the mirror of the started execution
		restart bool
	}{
		"the first execution takes them": {state: plan.State{Registries: mirror("a")}, plan: "deploy", with: "a", restart: true},
		"equal ones start nothing": {
			last: kudo.Execution{Plan: "deploy", ImageRegistries: mirror("a")}, status: kudo.Complete, state: plan.State{Registries: mirror("a")},
		},
		"others start plan update": {
			last: kudo.Execution{Plan: "deploy", ImageRegistries: mirror("a")}, status: kudo.Complete, state: plan.State{Registries: mirror("b")},
			plan: "update", with: "b",
		},
		"none after some": {
			last: kudo.Execution{Plan: "deploy", ImageRegistries: mirror("a")}, status: kudo.Complete, plan: "update",
		},
		"plan deploy where there is no plan update": {
			last: kudo.Execution{Plan: "deploy"}, status: kudo.Complete, version: versionOf("deploy"), state: plan.State{Registries: mirror("b")},
			plan: "deploy", with: "b",
		},
		"with a parameter without a trigger, which restarts pods": {
			last: kudo.Execution{Plan: "deploy"}, status: kudo.Complete,
			state: plan.State{Registries: mirror("b"), Parameters: map[string]string{"PLAIN": "x"}}, plan: "update", with: "b", restart: true,
		},
		"a parameter with a trigger goes first, with the registries in use": {
			last: kudo.Execution{Plan: "deploy", ImageRegistries: mirror("a")}, status: kudo.Complete,
			state: plan.State{Registries: mirror("b"), Parameters: map[string]string{"BACKUP": "x"}}, plan: "backup", with: "a", restart: true,
		},
		"while another plan runs, they wait": {
			last: kudo.Execution{Plan: "backup"}, status: kudo.InProgress, state: plan.State{Registries: mirror("b")},
		},
		"while plan update runs, they restart it": {
			last: kudo.Execution{Plan: "update"}, status: kudo.InProgress, state: plan.State{Registries: mirror("b")}, plan: "update", with: "b",
		},
		"a whole plan that is owed takes them": {
			last:   kudo.Execution{Plan: "upgrade", Owed: []kudo.OwedPlan{{Plan: "upgrade", Whole: true, Outcome: kudo.OwedFailed}}},
			status: kudo.FatalError, state: plan.State{Registries: mirror("b")}, plan: "upgrade", with: "b",
		},
		"a manual plan keeps those in use": {
			last: kudo.Execution{Plan: "deploy", ImageRegistries: mirror("a")}, status: kudo.Complete,
			state: plan.State{Registries: mirror("a"), Request: kudo.PlanExecution{PlanName: "backup", UID: "r"}}, plan: "backup", with: "a",
		},
		"a removal keeps those in use": {
			last: kudo.Execution{Plan: "deploy", ImageRegistries: mirror("a")}, status: kudo.Complete,
			state: plan.State{Registries: mirror("b"), Removing: true}, plan: "cleanup", with: "a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := test.state
			s.Version, s.Reference, s.Generation = all, one, 2
			if test.version != nil {
				s.Version = test.version
			}
			if test.status != "" {
				test.last.UID, test.last.OperatorVersion, test.last.Generation = "x", one, 1
				s.Last, s.LastStatus, s.LastVersion = &test.last, test.status, s.Version
				s.Whole = &kudo.WholeVersion{OperatorVersion: one}
			}
			choice, err := plan.Choose(s)
			if err != nil {
				t.Fatal(err)
			}
			if choice.Start == nil {
				if test.plan != "" {
					t.Error("nothing starts")
				}
				return
			}
			if choice.Start.Plan != test.plan || choice.Restart != test.restart {
				t.Errorf("plan %q starts, restart %v", choice.Start.Plan, choice.Restart)
			}
			if diff := cmp.Diff(mirror(test.with), choice.Start.ImageRegistries); diff != "" {
				t.Error(diff)
			}
		})
	}
}
