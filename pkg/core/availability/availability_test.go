package availability_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/availability"
)

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// addOn returns a ManagedClusterAddOn with the given conditions.
func addOn(conditions ...metav1.Condition) *addonv1alpha1.ManagedClusterAddOn {
	return &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cluster", Name: "a"}, Status: upstream.ManagedClusterAddOnStatus{Conditions: conditions},
	}
}

// The child Instances and objects of an Instance may take longer to be removed than the mirror of the Instance.
func TestOfAnAddOnThatIsBeingRemoved(t *testing.T) {
	subject := addOn(condition(addonv1alpha1.ConditionResolved, metav1.ConditionTrue, kudo.ReasonResolved, ""))
	subject.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	got := availability.Of(availability.Seen{AddOn: subject}, time.Time{})
	want := condition(addonv1alpha1.ConditionAvailable, metav1.ConditionFalse, addonv1alpha1.ReasonNotInstalled, "the add-on is being removed")
	if diff := cmp.Diff(availability.Judgement{Condition: &want}, got); diff != "" {
		t.Error(diff)
	}
}

func instance(conditions ...metav1.Condition) *kudo.Instance {
	return &kudo.Instance{Status: kudo.InstanceStatus{Conditions: conditions}}
}

func TestOf(t *testing.T) {
	const available = addonv1alpha1.ConditionAvailable
	resolved := condition(addonv1alpha1.ConditionResolved, metav1.ConditionTrue, kudo.ReasonResolved, "")
	waiting := condition(addonv1alpha1.ConditionResolved, metav1.ConditionFalse, addonv1alpha1.ReasonWaitingForDependencies, "zookeeper")
	required := condition(addonv1alpha1.ConditionDegraded, metav1.ConditionTrue, addonv1alpha1.ReasonRequiredDependencyNotSatisfied, "Required addon 'zookeeper' is not installed or not available.")
	optional := condition(addonv1alpha1.ConditionDegraded, metav1.ConditionTrue, addonv1alpha1.ReasonDependencyNotSatisfied, "Optional addon 'monitoring' is not installed or not available.")
	foreign := condition(addonv1alpha1.ConditionDegraded, metav1.ConditionTrue, "DiskFull", "")
	ready := instance(condition(kudo.ConditionReady, metav1.ConditionTrue, kudo.ReasonHealthy, "all is well"))
	broken := instance(condition(kudo.ConditionReady, metav1.ConditionFalse, kudo.ReasonUnhealthy, "StatefulSet a/b: 0 of 3 pods ready"))

	runs := condition(kudo.ConditionReady, metav1.ConditionFalse, kudo.ReasonPlanInProgress, `plan "upgrade" is running: waits`)
	updated := instance(runs, condition(kudo.ConditionAvailable, metav1.ConditionTrue, kudo.ReasonUpdating, `plan "upgrade" is running`))
	unmirrored := condition(kudo.ConditionReady, metav1.ConditionFalse, kudo.ReasonNotMirrored, "waiting for its mirror")
	held := instance(unmirrored, condition(kudo.ConditionAvailable, metav1.ConditionTrue, kudo.ReasonUpdating, "waiting for its mirror"))
	down := instance(runs, condition(kudo.ConditionAvailable, metav1.ConditionFalse, kudo.ReasonUnhealthy, "StatefulSet a/b: is missing"))
	stale := instance(condition(kudo.ConditionReady, metav1.ConditionTrue, kudo.ReasonHealthy, "all is well"),
		condition(kudo.ConditionAvailable, metav1.ConditionFalse, kudo.ReasonUnhealthy, "of an agent before a downgrade"))

	for name, test := range map[string]struct {
		conditions []metav1.Condition
		instance   *kudo.Instance
		want       metav1.Condition // no type: written by another writer
		release    bool
	}{
		"an add-on of another controller with satisfied dependencies is left to its own writer": {
			conditions: nil, instance: nil},
		"of another controller's add-on, the rest of a released verdict is released": {
			conditions: []metav1.Condition{condition(available, metav1.ConditionFalse, required.Reason, required.Message)}, release: true},
		"of another controller's add-on, the condition of its own writer is kept": {
			conditions: []metav1.Condition{condition(available, metav1.ConditionFalse, "DiskFull", "")}},
		"another controller's add-on without a required dependency is not available": {
			conditions: []metav1.Condition{required},
			want:       condition(available, metav1.ConditionFalse, required.Reason, required.Message)},
		"a healthy add-on without a required dependency is not available, for the hub's reason": {
			conditions: []metav1.Condition{resolved, required}, instance: ready,
			want: condition(available, metav1.ConditionFalse, required.Reason, required.Message)},
		"a verdict that was withdrawn counts no more": {
			conditions: []metav1.Condition{resolved, condition(addonv1alpha1.ConditionDegraded, metav1.ConditionFalse, required.Reason, "")}, instance: ready,
			want: condition(available, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete, "all is well")},
		"a healthy add-on without an optional dependency is available": {
			conditions: []metav1.Condition{resolved, optional}, instance: ready,
			want: condition(available, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete, "all is well")},
		"Degraded of another writer has no influence": {
			conditions: []metav1.Condition{resolved, foreign}, instance: ready,
			want: condition(available, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete, "all is well")},
		"one whose objects are broken is not available, and says which": {
			conditions: []metav1.Condition{resolved}, instance: broken,
			want: condition(available, metav1.ConditionFalse, kudo.ReasonUnhealthy, "StatefulSet a/b: 0 of 3 pods ready")},
		"one that is being updated is available": {
			conditions: []metav1.Condition{resolved}, instance: updated,
			want: condition(available, metav1.ConditionTrue, addonv1alpha1.ReasonUpdating, `plan "upgrade" is running`)},
		"one whose plans wait is available": {
			conditions: []metav1.Condition{resolved}, instance: held,
			want: condition(available, metav1.ConditionTrue, addonv1alpha1.ReasonUpdating, "waiting for its mirror")},
		"one whose plans wait, and whose workloads are not available, is not": {
			conditions: []metav1.Condition{resolved}, instance: instance(unmirrored),
			want: condition(available, metav1.ConditionFalse, kudo.ReasonNotMirrored, "waiting for its mirror")},
		"one whose plans wait and that lacks a required dependency is not": {
			conditions: []metav1.Condition{resolved, required}, instance: held,
			want: condition(available, metav1.ConditionFalse, required.Reason, required.Message)},
		"one that is being updated and lacks a required dependency is not": {
			conditions: []metav1.Condition{resolved, required}, instance: updated,
			want: condition(available, metav1.ConditionFalse, required.Reason, required.Message)},
		"one that is being updated and loses a workload is not available, and says which": {
			conditions: []metav1.Condition{resolved}, instance: down,
			want: condition(available, metav1.ConditionFalse, kudo.ReasonUnhealthy, "StatefulSet a/b: is missing")},
		"one whose plan runs for the first time, or of an earlier agent, is not available": {
			conditions: []metav1.Condition{resolved}, instance: instance(runs),
			want: condition(available, metav1.ConditionFalse, kudo.ReasonPlanInProgress, runs.Message)},
		"one that is ready is available, whatever else is recorded": {
			conditions: []metav1.Condition{resolved}, instance: stale,
			want: condition(available, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete, "all is well")},
		"one that is held back is not available, and says why": {
			conditions: []metav1.Condition{waiting},
			want: condition(available, metav1.ConditionFalse, addonv1alpha1.ReasonNotInstalled,
				"the add-on is not installed: WaitingForDependencies: zookeeper")},
		"one that is about to be installed is not available yet": {
			conditions: []metav1.Condition{resolved},
			want:       condition(available, metav1.ConditionFalse, addonv1alpha1.ReasonNotInstalled, "the add-on is about to be installed")},
		"one whose first plan has not started is not available yet": {
			conditions: []metav1.Condition{resolved}, instance: instance(),
			want: condition(available, metav1.ConditionFalse, kudo.ReasonPlanPending, "no plan has started yet")},
	} {
		t.Run(name, func(t *testing.T) {
			for _, standalone := range []bool{false, true} {
				subject := addOn(test.conditions...)
				subject.Status.HealthCheck.Mode = upstream.HealthCheckModeCustomized
				seen := availability.Seen{AddOn: subject, Instance: test.instance, Standalone: standalone}
				want := availability.Judgement{Release: test.release}
				if test.want.Type != "" {
					want.Condition = &test.want
				}
				if diff := cmp.Diff(want, availability.Of(seen, time.Time{})); diff != "" {
					t.Errorf("standalone %v (-want +got):\n%s", standalone, diff)
				}
			}
		})
	}
}
