package plan_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// requiring returns a version that requires a version of Kubernetes, with a plan that applies a chart that requires another.
func requiring(kubernetes, ofChart string) *kudo.OperatorVersionSpec {
	version := versionOf("deploy", "upgrade", "backup", "cleanup")
	web := kudo.Task{Name: "web", Kind: kudo.TaskHelm}
	web.Spec.Chart, web.Spec.EnablingParameter = "web.tgz", "WEB"
	version.KubernetesVersion, version.Tasks = kubernetes, []kudo.Task{web}
	version.Content = []kudo.ContentFile{{File: "web.tgz", KubeVersion: ofChart}}
	version.Parameters = append(version.Parameters, kudo.Parameter{Name: "WEB", Type: kudo.BooleanType, Default: new("true")})
	for _, name := range []string{"deploy", "upgrade"} {
		version.Plans[name] = kudo.Plan{Phases: []kudo.Phase{{Name: "p", Steps: []kudo.Step{{Name: "s", Tasks: []string{"web"}}}}}}
	}
	return version
}

func TestPlansWaitForTheirVersionOfKubernetes(t *testing.T) {
	done := &kudo.Execution{UID: "x", Plan: "deploy", OperatorVersion: one, Generation: 1}
	installed := func(version *kudo.OperatorVersionSpec, change func(*plan.State)) plan.State {
		s := plan.State{
			Version: version, Reference: two, LastVersion: versionOf("deploy", "cleanup"), Last: done, LastStatus: kudo.Complete, Generation: 2,
			Whole: &kudo.WholeVersion{OperatorVersion: one}, KubernetesVersion: "v1.30.2",
		}
		if change != nil {
			change(&s)
		}
		return s
	}
	same := func(s *plan.State) { s.Reference, s.LastVersion = one, s.Version }
	for name, test := range map[string]struct {
		state       plan.State
		starts      string
		unsupported string
	}{
		"a first installation": {
			state:       plan.State{Version: requiring("1.31.0", ""), KubernetesVersion: "v1.30.2"},
			unsupported: `plan "deploy" waits: the package requires Kubernetes 1.31.0, and the cluster has v1.30.2: upgrade the cluster`,
		},
		"an upgrade":                             {state: installed(requiring("1.31.0", ""), nil), unsupported: `plan "upgrade" waits: the package requires`},
		"an upgrade that the cluster supports":   {state: installed(requiring("1.30.0", ">=1.30.0-0"), nil), starts: "upgrade"},
		"an upgrade on an unknown version":       {state: installed(requiring("1.31.0", ""), func(s *plan.State) { s.KubernetesVersion = "" }), starts: "upgrade"},
		"an upgrade of a chart":                  {state: installed(requiring("", ">=1.31.0-0"), nil), unsupported: `plan "upgrade" waits: chart "web.tgz" requires Kubernetes >=1.31.0-0`},
		"an upgrade that disables the chart":     {state: installed(requiring("", ">=1.31.0-0"), func(s *plan.State) { s.Parameters = map[string]string{"WEB": "false"} }), starts: "upgrade"},
		"nothing to start":                       {state: installed(requiring("1.31.0", ""), same)},
		"a removal":                              {state: installed(requiring("1.31.0", ""), func(s *plan.State) { s.Removing = true }), starts: "cleanup"},
		"a plan that another one still precedes": {state: installed(requiring("1.31.0", ""), func(s *plan.State) { s.LastStatus = kudo.InProgress })},
		"a requested plan": {
			state:       installed(requiring("<1.30.0", ""), func(s *plan.State) { same(s); s.Request = kudo.PlanExecution{PlanName: "backup", UID: "r"} }),
			unsupported: `plan "backup" waits: the package requires Kubernetes <1.30.0`,
		},
		"a requested plan without the chart": {
			state:  installed(requiring("", "<1.30.0"), func(s *plan.State) { same(s); s.Request = kudo.PlanExecution{PlanName: "backup", UID: "r"} }),
			starts: "backup",
		},
		"a version that differs only in what it requires": {state: installed(requiring("1.31.0", ">=1.32.0"), func(s *plan.State) { s.LastVersion = requiring("", "") })},
	} {
		t.Run(name, func(t *testing.T) {
			choice, err := plan.Choose(test.state)
			started := ""
			if choice.Start != nil {
				started = choice.Start.Plan
			}
			if diff := cmp.Diff(test.starts, started); diff != "" {
				t.Error(diff)
			}
			var unsupported *plan.UnsupportedError
			if errors.As(err, &unsupported) != (test.unsupported != "") || unsupported != nil && !strings.HasPrefix(unsupported.Error(), test.unsupported) {
				t.Errorf("got %v, want %s", err, test.unsupported)
			}
			if test.unsupported != "" && plan.Due(test.state) == "" {
				t.Error("no plan is due")
			}
		})
	}
	if why := plan.Unsupported(installed(requiring("1.31.0", ""), func(s *plan.State) { s.LastStatus = kudo.InProgress })); !strings.HasPrefix(why, `plan "upgrade" waits`) {
		t.Errorf("after the running plan: got %q", why)
	}
}

func TestAnInstanceStaysAvailableWhileItWaitsForAVersionOfKubernetes(t *testing.T) {
	observe := func(last kudo.ExecutionStatus, ready metav1.ConditionStatus) plan.Observation {
		before := versionOf("deploy", "cleanup")
		status := kudo.InstanceStatus{
			Execution:  &kudo.Execution{UID: "x", Plan: "deploy", OperatorVersion: one, Generation: 1},
			PlanStatus: map[string]kudo.PlanStatus{"deploy": {Name: "deploy", UID: "x", Status: last}},
			Whole:      &kudo.WholeVersion{OperatorVersion: one},
			Conditions: []metav1.Condition{{Type: kudo.ConditionReady, Status: ready, Reason: "R"}},
		}
		if last == kudo.FatalError {
			status.Whole, status.Execution.Owed = nil, []kudo.OwedPlan{{Plan: "deploy", Whole: true, Outcome: kudo.OwedFailed}}
		}
		return plan.Observation{
			Now: time.Unix(1000, 0), Instance: &kudo.Instance{Status: status}, Running: before, Desired: requiring("1.31.0", ""), Reference: two,
			KubernetesVersion: "v1.30.2",
		}
	}
	healthy, failed := observe(kudo.Complete, metav1.ConditionTrue), observe(kudo.FatalError, metav1.ConditionFalse)
	for name, o := range map[string]plan.Observation{"healthy": healthy, "failed": failed} {
		if action := plan.Decide(o); action.Kind != plan.ActionSettle {
			t.Errorf("%s: got action %s", name, action.Kind)
		}
		ready := o.SettledReady(nil, nil)
		if ready.Status != metav1.ConditionFalse || ready.Reason != kudo.ReasonKubernetesVersionUnsupported || !strings.Contains(ready.Message, "v1.30.2") {
			t.Errorf("%s: got Ready %v", name, ready)
		}
		available, _ := o.SettledAvailable(ready, nil, nil)
		if is := available != nil && available.Status == metav1.ConditionTrue; is != (name == "healthy") {
			t.Errorf("%s: got Available %v", name, available)
		}
	}
	healthy.KubernetesVersion = "v1.31.0"
	if action := plan.Decide(healthy); action.Kind != plan.ActionStart || action.Start.Start.Plan != "upgrade" {
		t.Errorf("on a newer cluster: got %v", action)
	}
}
