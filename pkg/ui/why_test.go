package ui

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/test/sample"
)

func TestFixOf(t *testing.T) {
	for line, want := range map[string]fix{
		"kubectl addon plan run kafka deploy --cluster c1":                    {verb: "plan run", name: "kafka", plan: "deploy"},
		"kubectl addon plan cancel kafka --cluster c1":                        {verb: "plan cancel", name: "kafka"},
		"kubectl addon update kafka --cluster c1 -p BROKERS=VALUE -p 'A=B C'": {verb: "update", name: "kafka", parameters: []string{"BROKERS", "A"}},
		"kubectl addon enable kafka --cluster c1 --namespace data":            {verb: "enable", name: "kafka", namespace: "data"},
		"kubectl addon enable kafka --cluster c1 --namespace NAMESPACE":       {verb: "enable", name: "kafka"},
		"kubectl addon plan run kafka deploy --cluster c1 --now":              {verb: "plan run", name: "kafka", plan: "deploy", now: true},
		"kubectl addon plan resume kafka --cluster c1":                        {verb: "plan resume", name: "kafka"},
		"kubectl addon resume kafka --cluster c1":                             {verb: "resume", name: "kafka"},
		"kubectl addon resume kafka --everywhere":                             {},
		"kubectl addon resume --all --cluster c1":                             {},
		"kubectl addon plan resume kafka deploy --cluster c1":                 {},
		"kubectl addon enable kafka --cluster c12":                            {},
		"kubectl addon enable kafka deploy --cluster c1":                      {},
		"kubectl addon plan run kafka --cluster c1":                           {},
		"kubectl addon plan run kafka 'de ploy' --cluster c1":                 {},
		"kubectl addon plan status kafka --cluster c1":                        {},
		"kubectl addon disable kafka --cluster c1":                            {},
		"kubectl addon enable 'javascript:alert(1)' --cluster c1":             {},
		"kubectl delete pod kubectl addon enable kafka --cluster c1":          {},
	} {
		got, replaced := fixOf("c1", line)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(fix{})); diff != "" || replaced != (want.verb != "") {
			t.Errorf("%s: replaced %t, %s", line, replaced, diff)
		}
	}
}

// TestFixesAreOffered checks the forms for what exists on the cluster and the user may do; nothing else has a form.
func TestFixesAreOffered(t *testing.T) {
	instance, version := store()
	p := progress.View{Instance: instance, Version: version}
	running := instance.DeepCopy()
	running.Status.PlanStatus["deploy"] = kudo.PlanStatus{Name: "deploy", Status: kudo.InProgress}
	waiting, failed, suspended := instance.DeepCopy(), instance.DeepCopy(), instance.DeepCopy()
	waiting.Status.Conditions = []metav1.Condition{sample.Condition(kudo.ConditionWaiting, "True", kudo.ReasonWindow,
		`plan "deploy" waits for a maintenance window, closed by the hub (ManagedCluster): opens at 2026-12-29T08:00:00Z`)}
	failed.Status.PlanStatus["deploy"] = kudo.PlanStatus{Name: "deploy", Status: kudo.FatalError}
	suspended.Spec.Suspend = true
	acts := visit{acts: everything{}, token: "token"}
	for sentence, test := range map[string]struct {
		v       visit
		p       progress.View
		line    string
		form    *fixForm
		changes []parameterRow
	}{
		"run a plan of the version": {acts, p, "plan run store deploy --cluster cluster1",
			&fixForm{Path: "/clusters/cluster1/instances/store/run", Label: "Run plan deploy of store", Token: "token", Fields: map[string]string{"plan": "deploy"}}, nil},
		"a plan that the version does not have": {acts, p, "plan run store destroy --cluster cluster1", nil, nil},
		"without permission":                    {visit{}, p, "plan run store deploy --cluster cluster1", nil, nil},
		"cancel the running plan": {acts, progress.View{Instance: running, Version: version}, "plan cancel store --cluster cluster1",
			&fixForm{Path: "/clusters/cluster1/instances/store/cancel", Label: "Cancel plan deploy", Token: "token", Danger: true}, nil},
		"start a plan that waits for a window of the hub": {acts, progress.View{Instance: waiting, Version: version}, "plan run store deploy --cluster cluster1 --now",
			&fixForm{Path: "/clusters/cluster1/instances/store/run", Label: "Run plan deploy of store now", Token: "token", Fields: map[string]string{"plan": "deploy", "now": "yes"}}, nil},
		"start a plan that waits no longer": {acts, p, "plan run store deploy --cluster cluster1 --now", nil, nil},
		"resume a failed plan": {acts, progress.View{Instance: failed, Version: version}, "plan resume store --cluster cluster1",
			&fixForm{Path: "/clusters/cluster1/instances/store/resume-plan", Label: "Resume plan deploy of store", Token: "token"}, nil},
		"resume a complete plan": {acts, p, "plan resume store --cluster cluster1", nil, nil},
		"resume an Instance that its own spec suspends": {acts, progress.View{Instance: suspended, Version: version}, "resume store --cluster cluster1",
			&fixForm{Path: "/clusters/cluster1/instances/store/resume", Label: "Resume store", Token: "token"}, nil},
		"resume an Instance that is not suspended": {acts, p, "resume store --cluster cluster1", nil, nil},
		"resume, without permission":               {visit{}, progress.View{Instance: suspended, Version: version}, "resume store --cluster cluster1", nil, nil},
		"cancel, without a plan":                   {acts, p, "plan cancel store --cluster cluster1", nil, nil},
		"change the named parameters":              {acts, p, "update store --cluster cluster1 -p SIZE=VALUE", nil, []parameterRow{{"SIZE", "1"}}},
		"change one that is not named":             {acts, p, "update store --cluster cluster1 -p NAME=VALUE", nil, []parameterRow{{"SIZE", "1"}, {"TEXT", "<b>"}}},
	} {
		f, replaced := fixOf("cluster1", "kubectl addon "+test.line)
		if !replaced {
			t.Fatalf("%s: not a fix", sentence)
		}
		form, change := test.v.instanceFix(t.Context(), test.p, f)
		if diff := cmp.Diff(test.form, form); diff != "" {
			t.Errorf("%s: %s", sentence, diff)
		}
		if diff := cmp.Diff(test.changes, change.Plain); diff != "" || change.Reset {
			t.Errorf("%s: reset %t, %s", sentence, change.Reset, diff)
		}
	}
	view := cluster(metav1.Time{})
	for name, offered := range map[string]bool{"zookeeper": true, "kafka": false, "undefined": false} {
		if form := acts.enableFix(t.Context(), view, fix{verb: "enable", name: name}); (form != nil) != offered {
			t.Errorf("enable %s: got %v", name, form)
		}
	}
	if form := (visit{}).enableFix(t.Context(), view, fix{verb: "enable", name: "zookeeper"}); form != nil {
		t.Errorf("without permission: got %v", form)
	}
}
