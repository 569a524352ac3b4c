package install

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// instanceWithRequest returns an Instance at a generation with a request for a plan and that uid.
func instanceWithRequest(plan string, uid types.UID, generation int64, change ...func(*kudo.Instance)) *kudo.Instance {
	return newInstance("kafka", append([]func(*kudo.Instance){func(i *kudo.Instance) {
		i.Generation = generation
		i.Spec.PlanExecution = kudo.PlanExecution{PlanName: plan, UID: uid}
	}}, change...)...)
}

// withHandledRequest records that the agent has handled the request with that uid.
func withHandledRequest(uid types.UID) func(*kudo.Instance) {
	return func(i *kudo.Instance) { i.Status.Execution = &kudo.Execution{UID: uid, Request: uid} }
}

func requestCancel(i *kudo.Instance) { i.Spec.PlanExecution.Cancel = true }

func TestRequest(t *testing.T) {
	first := Request(instanceWithRequest("backup", "", 1)).UID
	if !strings.HasPrefix(string(first), "hub.backup.") {
		t.Fatalf("the uid %q does not tell who gave it, and for which plan", first)
	}
	dotted := Request(instanceWithRequest("back.up", "", 1)).UID
	cleared := RequestChange{Clear: true}
	for name, tc := range map[string]struct {
		instance *kudo.Instance
		want     RequestChange
	}{
		"nothing is requested":                              {instanceWithRequest("", "", 1), RequestChange{}},
		"the same request gets the same uid":                {instanceWithRequest("backup", "", 1), RequestChange{UID: first}},
		"the hub's uid stays until it is handled":           {instanceWithRequest("backup", first, 2), RequestChange{}},
		"also while another request was handled last":       {instanceWithRequest("backup", first, 2, withHandledRequest("x")), RequestChange{}},
		"the hub's request is cleared once it is handled":   {instanceWithRequest("backup", first, 2, withHandledRequest(first)), cleared},
		"a plan's name may have dots":                       {instanceWithRequest("back.up", dotted, 2, withHandledRequest(dotted)), cleared},
		"a withdrawn request stays withdrawn":               {instanceWithRequest("", first, 2), RequestChange{}},
		"a user's uid stays":                                {instanceWithRequest("backup", "mine", 1), RequestChange{}},
		"also once it is handled":                           {instanceWithRequest("backup", "mine", 1, withHandledRequest("mine")), RequestChange{}},
		"also if it only looks like the hub's":              {instanceWithRequest("backup", "hub.backup.1", 1, withHandledRequest("hub.backup.1")), RequestChange{}},
		"a request to cancel is left alone":                 {instanceWithRequest("backup", first, 2, withHandledRequest(first), requestCancel), RequestChange{}},
		"a request to cancel without a uid is left alone":   {instanceWithRequest("backup", "", 2, requestCancel), RequestChange{}},
		"a user's uid is not judged by the plan it is with": {instanceWithRequest("restore", "mine", 1, withHandledRequest("mine")), RequestChange{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Request(tc.instance); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestRequestGivesEachRequestItsOwnUID(t *testing.T) {
	first := Request(instanceWithRequest("backup", "", 1)).UID
	given := map[types.UID]string{first: "the first"}
	for name, instance := range map[string]*kudo.Instance{
		"a later one":                             instanceWithRequest("backup", "", 3),
		"one for another plan":                    instanceWithRequest("restore", "", 1),
		"one of another Instance":                 instanceWithRequest("backup", "", 1, func(i *kudo.Instance) { i.UID = "other" }),
		"one that changes the plan before it ran": instanceWithRequest("restore", first, 2),
		"one that changes the plan after it ran":  instanceWithRequest("restore", first, 4, withHandledRequest(first)),
	} {
		uid := Request(instance).UID
		if other, taken := given[uid]; taken || uid == "" {
			t.Errorf("%s: uid %q, as %q has it", name, uid, other)
		}
		given[uid] = name
	}
}

// A hub that was restored from a backup counts the same generations again, while the agent remembers what it has handled.
func TestRequestAfterARestore(t *testing.T) {
	i := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{UID: "u", Generation: 7}, Spec: kudo.InstanceSpec{PlanExecution: kudo.PlanExecution{PlanName: "backup"}}}
	first := Request(i).UID
	i.Status = kudo.InstanceStatus{
		Execution: &kudo.Execution{UID: "later", Plan: "deploy"}, Whole: &kudo.WholeVersion{}, HandledRequests: []types.UID{first, "other"},
	}
	if again := Request(i).UID; again == first || again == "" {
		t.Errorf("got %q, which is handled", again)
	}
}
