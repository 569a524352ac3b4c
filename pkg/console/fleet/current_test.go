package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// TestCurrent covers an add-on whose condition Available was written at 12:00.
func TestCurrent(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	condition := func(kind, status, reason string, at time.Duration) metav1.Condition {
		return metav1.Condition{
			Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, LastTransitionTime: metav1.NewTime(noon.Add(at)),
		}
	}
	available := func(status, reason string) metav1.Condition {
		return condition(addonv1alpha1.ConditionAvailable, status, reason, 0)
	}
	ready := func(status, reason string, at time.Duration) metav1.Condition {
		return condition(kudo.ConditionReady, status, reason, at)
	}
	for name, test := range map[string]struct {
		available, ready metav1.Condition
		ended            time.Duration
		want             string
	}{
		"a plan that failed since": {
			available("True", "PlanComplete"), ready("False", "PlanFailed", time.Second), 0, "False PlanFailed"},
		"a plan that failed since, after it had started before": {
			available("True", "Updating"), ready("False", "PlanFailed", -time.Second), time.Second, "False PlanFailed"},
		"a plan that failed in the same second": {
			available("True", "PlanComplete"), ready("False", "PlanFailed", 0), 0, "False PlanFailed"},
		"a plan that failed before": {
			available("True", "PlanComplete"), ready("False", "PlanFailed", -time.Second), -time.Second, "True PlanComplete"},
		"a plan that completed since": {
			available("False", "PlanFailed"), ready("True", "Healthy", time.Second), 0, "True PlanComplete"},
		"an update that completed since": {
			available("True", "Updating"), ready("True", "Healthy", time.Second), 0, "True PlanComplete"},
		"a plan that completed before the add-on failed": {
			available("False", "Unhealthy"), ready("True", "Healthy", -time.Second), -time.Minute, "False Unhealthy"},
		"a plan that runs": {
			available("True", "Updating"), ready("False", "PlanInProgress", time.Second), 0, "True Updating"},
		"a required dependency that is missing": {
			available("False", addonv1alpha1.ReasonRequiredDependencyNotSatisfied), ready("True", "Healthy", time.Second), 0,
			"False RequiredDependencyNotSatisfied"},
		"a cluster that is unreachable": {
			available("Unknown", addonv1alpha1.ReasonClusterLeaseStopped), ready("True", "Healthy", time.Second), 0,
			"Unknown " + addonv1alpha1.ReasonClusterLeaseStopped},
	} {
		t.Run(name, func(t *testing.T) {
			addOn := &addonv1alpha1.ManagedClusterAddOn{}
			addOn.Status.Conditions = []metav1.Condition{test.available}
			instance := &kudo.Instance{Status: kudo.InstanceStatus{Conditions: []metav1.Condition{test.ready}}}
			if test.ended != 0 {
				instance.Status.Execution = &kudo.Execution{Plan: "deploy"}
				instance.Status.PlanStatus = map[string]kudo.PlanStatus{"deploy": {LastUpdatedTimestamp: ptr.To(metav1.NewTime(noon.Add(test.ended)))}}
			}
			got := Current(addOn, ReportOf(instance)).Status.Conditions[0]
			if got := string(got.Status) + " " + got.Reason; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if addOn.Status.Conditions[0] != test.available {
				t.Error("the input was changed")
			}
		})
	}
}

func TestDescendants(t *testing.T) {
	instance := func(name, parent string) kudo.Instance {
		i := kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
		if parent != "" {
			i.OwnerReferences = []metav1.OwnerReference{{Kind: "Instance", Name: parent, UID: types.UID("uid-of-" + parent), Controller: ptr.To(true)}}
		}
		return i
	}
	instances := []kudo.Instance{
		instance("aa.bb.ee", "aa.bb"), instance("aa", ""), instance("zz", ""), instance("aa.bb", "aa"), instance("zz.yy", "zz"), instance("aa.cc", "aa"),
	}
	var names []string
	for _, i := range Descendants(&instances[1], instances) {
		names = append(names, i.Name)
	}
	if diff := cmp.Diff([]string{"aa.bb", "aa.bb.ee", "aa.cc"}, names); diff != "" {
		t.Error(diff)
	}

	cycle := []kudo.Instance{instance("one", "two"), instance("two", "one")}
	if found := Descendants(&cycle[0], cycle); len(found) != 1 || found[0].Name != "two" {
		t.Errorf("owner references that form a cycle: found %d Instances below the first", len(found))
	}
}
