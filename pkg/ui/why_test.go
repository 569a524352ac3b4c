package ui

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/progress"
)

func TestFixOf(t *testing.T) {
	for line, want := range map[string]fix{
		"kubectl addon plan run kafka deploy --cluster c1":                    {verb: "plan run", name: "kafka", plan: "deploy"},
		"kubectl addon plan cancel kafka --cluster c1":                        {verb: "plan cancel", name: "kafka"},
		"kubectl addon update kafka --cluster c1 -p BROKERS=VALUE -p 'A=B C'": {verb: "update", name: "kafka", parameters: []string{"BROKERS", "A"}},
		"kubectl addon enable kafka --cluster c1 --namespace data":            {verb: "enable", name: "kafka", namespace: "data"},
		"kubectl addon enable kafka --cluster c1 --namespace NAMESPACE":       {verb: "enable", name: "kafka"},
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
		"cancel, without a plan":       {acts, p, "plan cancel store --cluster cluster1", nil, nil},
		"change the named parameters":  {acts, p, "update store --cluster cluster1 -p SIZE=VALUE", nil, []parameterRow{{"SIZE", "1"}}},
		"change one that is not named": {acts, p, "update store --cluster cluster1 -p NAME=VALUE", nil, []parameterRow{{"SIZE", "1"}, {"TEXT", "<b>"}}},
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
