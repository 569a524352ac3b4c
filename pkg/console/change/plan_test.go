package change

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/test/sample"
)

func TestRun(t *testing.T) {
	owner := func(kind, name string) func(*kudo.Instance) {
		return func(i *kudo.Instance) {
			i.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: ptr.To(true)}}
		}
	}
	lost := sample.ViewOf("deploy", kudo.Complete)
	lost.Version, lost.Unreadable = nil, apierrors.NewNotFound(schema.GroupResource{Group: "kudo.dev", Resource: "operatorversions"}, "kafka-3.9.0-1.0.0")
	forbidden := sample.ViewOf("deploy", kudo.Complete)
	forbidden.Version, forbidden.Unreadable = nil, errors.New("forbidden")
	for name, test := range map[string]struct {
		view       progress.View
		plan       string
		parameters map[string]string
		want       kudo.PlanExecution
		err        string
	}{
		"a plan gets a request of its own":  {view: sample.ViewOf("deploy", kudo.Complete), plan: "backup", want: kudo.PlanExecution{PlanName: "backup", UID: "new"}},
		"the plan that ran last runs again": {view: sample.ViewOf("backup", kudo.Complete), plan: "backup", want: kudo.PlanExecution{PlanName: "backup", UID: "new"}},
		"a request to cancel is withdrawn": {view: sample.ViewOf("deploy", kudo.FatalError, func(i *kudo.Instance) {
			i.Spec.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "ran", Cancel: true}
		}), plan: "deploy", want: kudo.PlanExecution{PlanName: "deploy", UID: "new"}},
		"a plan that the parameters trigger is not requested again": {
			view: sample.ViewOf("deploy", kudo.Complete), plan: "backup", parameters: map[string]string{"SIZE": "2"}},
		"a plan that the parameters do not trigger is requested too": {
			view: sample.ViewOf("deploy", kudo.Complete), plan: "backup", parameters: map[string]string{"BROKERS": "5"},
			want: kudo.PlanExecution{PlanName: "backup", UID: "new"}},
		"the hub checks the plan of an unreadable OperatorVersion": {view: forbidden, plan: "backup", want: kudo.PlanExecution{PlanName: "backup", UID: "new"}},
		"a plan that does not exist": {view: sample.ViewOf("deploy", kudo.Complete), plan: "bakcup",
			err: `OperatorVersion "kafka-3.9.0-1.0.0" has no plan "bakcup" (did you mean backup?); available plans: backup, cleanup, deploy`},
		"an OperatorVersion that does not exist": {view: lost, plan: "backup",
			err: `operatorversions.kudo.dev "kafka-3.9.0-1.0.0" not found; push its package first ('kubectl addon package push DIR')`},
		"a value of the wrong type": {view: sample.ViewOf("deploy", kudo.Complete), plan: "deploy", parameters: map[string]string{"BROKERS": "many"},
			err: `Instance cluster1/kafka: parameter "BROKERS": value "many": must be an integer, such as 3`},
		"a parameter that does not exist": {view: sample.ViewOf("deploy", kudo.Complete), plan: "deploy", parameters: map[string]string{"COLOR": "red"},
			err: `Instance cluster1/kafka: parameter "COLOR": not defined: the operator has SIZE, BROKERS`},
		"parameters of an add-on": {view: sample.ViewOf("deploy", kudo.Complete, owner("ManagedClusterAddOn", "kafka")), plan: "deploy", parameters: map[string]string{"SIZE": "2"},
			err: `the parameters of Instance "kafka" come from add-on "kafka"; change them with 'kubectl addon update kafka --cluster cluster1 -p NAME=VALUE'`},
		"parameters of a child": {view: sample.ViewOf("deploy", kudo.Complete, owner("Instance", "shop")), plan: "deploy", parameters: map[string]string{"SIZE": "2"},
			err: `the parameters of Instance "kafka" come from its parent, Instance "shop"; change them there`},
		"an add-on's plan may be requested": {view: sample.ViewOf("deploy", kudo.Complete, owner("ManagedClusterAddOn", "kafka")), plan: "deploy",
			want: kudo.PlanExecution{PlanName: "deploy", UID: "new"}},
		"an Instance that is being removed": {
			view: sample.ViewOf("deploy", kudo.Complete, func(i *kudo.Instance) { i.DeletionTimestamp = ptr.To(metav1.Now()) }), plan: "deploy",
			err: `only plan cleanup can run for Instance "kafka" of cluster "cluster1" because the Instance is being removed; see 'kubectl addon plan status kafka --cluster cluster1'`},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.view.Instance.DeepCopy()
			got, _, err := Run(test.view, test.plan, "new", test.parameters)
			if diff := cmp.Diff(test.err, errorText(err)); diff != "" {
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

func TestCancel(t *testing.T) {
	const nothingRuns = `no plan of Instance "kafka" on cluster "cluster1" is running: the last plan, "deploy", is COMPLETE; ` +
		`see 'kubectl addon plan history kafka --cluster cluster1'`
	for name, test := range map[string]struct {
		view progress.View
		want string
	}{
		"a plan that runs":                {sample.ViewOf("deploy", kudo.InProgress), ""},
		"a request that has not started":  {sample.ViewOf("deploy", kudo.Complete, sample.WithRequest("backup", "mine")), ""},
		"the first request":               {progress.View{Instance: func() *kudo.Instance { i := sample.Instance(); sample.WithRequest("deploy", "mine")(i); return i }()}, ""},
		"a request that has run":          {sample.ViewOf("deploy", kudo.Complete, sample.WithRequest("deploy", "ran")), nothingRuns},
		"an earlier request that has run": {sample.ViewOf("deploy", kudo.Complete, sample.WithRequest("backup", "old"), sample.ByHand("old")), nothingRuns},
		"a plan that has ended":           {sample.ViewOf("deploy", kudo.Complete), nothingRuns},
		"no plan at all":                  {progress.View{Instance: sample.Instance()}, `no plan of Instance "kafka" on cluster "cluster1" is running: no plan has run yet`},
		"a removal": {sample.ViewOf("cleanup", kudo.InProgress, func(i *kudo.Instance) { i.DeletionTimestamp = ptr.To(metav1.Now()) }),
			`the removal of Instance "kafka" from cluster "cluster1" cannot be cancelled; to release the Instance, see 'kubectl addon uninstall --help'`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Cancel(test.view.Instance)
			if diff := cmp.Diff(test.want, errorText(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
