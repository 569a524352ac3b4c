package notice_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/notice"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
	"github.com/tandem-addons/tandem/test/sample"
)

// instance returns Instance store of cluster1 with changes.
func instance(changes ...func(*kudo.Instance)) *kudo.Instance {
	i := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "store"}}
	i.Spec.OperatorVersion.Name = "store-1.0.0"
	for _, change := range changes {
		change(i)
	}
	return i
}

// reports sets a condition.
func reports(kind, status, reason, message string) func(*kudo.Instance) {
	return func(i *kudo.Instance) {
		i.Status.Conditions = append(i.Status.Conditions, sample.Condition(kind, status, reason, message))
	}
}

func suspendedBy(by string) func(*kudo.Instance) {
	return func(i *kudo.Instance) { i.Spec.SuspendedBy = by }
}

func suspended(i *kudo.Instance) { i.Spec.Suspend = true }

func child(i *kudo.Instance) {
	i.Name = "shop.store"
	i.OwnerReferences = []metav1.OwnerReference{{Kind: "Instance", APIVersion: kudo.GroupVersion.String(), Name: "shop", Controller: ptr.To(true)}}
}

// failed sets a plan that has failed after a step that can be skipped.
func failed(i *kudo.Instance) {
	i.Status.Execution = &kudo.Execution{UID: "ran", Plan: "deploy", OperatorVersion: corev1.ObjectReference{Name: "store-1.0.0"}}
	i.Status.PlanStatus = map[string]kudo.PlanStatus{"deploy": {Name: "deploy", Status: kudo.FatalError, Message: "no more\ndisks", Phases: []kudo.PhaseStatus{{
		Name: "main", Status: kudo.FatalError, Steps: []kudo.StepStatus{{Name: "config", Status: kudo.Complete, Tasks: []kudo.TaskStatus{
			{Name: "config", Status: kudo.Complete, Rendered: "digest"},
		}}},
	}}}}
}

const (
	byHub     = `plan "deploy" waits for a maintenance window, closed by the hub (ManagedCluster), freeze "year end": opens at 2026-12-29T08:00:00Z`
	byCluster = `plan "deploy" waits for a maintenance window, closed by the hub (ManagedCluster), and by the managed cluster (ConfigMap tandem-system/tandem-windows)`
)

func TestNotices(t *testing.T) {
	for sentence, test := range map[string]struct {
		instance *kudo.Instance
		want     []notice.Notice
	}{
		"an Instance at rest has none": {instance(reports(kudo.ConditionReady, "True", "Healthy", ""), reports(kudo.ConditionDrifted, "False", kudo.ReasonInSync, "")), nil},
		"it is removed":                {instance(suspended, func(i *kudo.Instance) { i.DeletionTimestamp = &metav1.Time{Time: sample.Now} }), nil},
		"its own spec suspends it": {instance(suspended), []notice.Notice{
			{Kind: notice.Suspended, Message: "the Instance is suspended", Commands: []string{"kubectl addon resume store --cluster cluster1"}},
		}},
		"several objects and its own spec suspend it": {
			instance(suspended, suspendedBy(`ManagedCluster cluster1 ("disks"), ClusterManagementAddOn store`)),
			[]notice.Notice{{Kind: notice.Suspended, Message: `the Instance is suspended by ManagedCluster cluster1 ("disks"), ClusterManagementAddOn store and spec.suspend`,
				Commands: []string{
					"kubectl addon resume --all --cluster cluster1", "kubectl addon resume store --everywhere", "kubectl addon resume store --cluster cluster1",
				}}},
		},
		"everything is suspended, and a plan waits": {
			instance(suspendedBy("ConfigMap tandem-system/tandem-suspend"), reports(kudo.ConditionWaiting, "True", kudo.ReasonSuspended, `plan "deploy" waits`)),
			[]notice.Notice{{Kind: notice.Suspended, Message: `plan "deploy" waits`, Commands: []string{"kubectl addon resume --all --everywhere"}}},
		},
		"the hub has closed a window": {instance(reports(kudo.ConditionWaiting, "True", kudo.ReasonWindow, byHub)), []notice.Notice{
			{Kind: notice.Window, Message: byHub, Commands: []string{"kubectl addon plan run store deploy --cluster cluster1 --now"}},
		}},
		"the cluster has closed a window": {instance(reports(kudo.ConditionWaiting, "True", kudo.ReasonWindow, byCluster)), []notice.Notice{
			{Kind: notice.Window, Message: byCluster},
		}},
		"a child waits for the windows of its parent": {instance(child, reports(kudo.ConditionWaiting, "True", kudo.ReasonWindow, byHub)), []notice.Notice{
			{Kind: notice.Window, Message: byHub},
		}},
		"no plan waits any longer": {instance(reports(kudo.ConditionWaiting, "False", kudo.ReasonWindow, byHub)), nil},
		"objects have drifted": {instance(reports(kudo.ConditionDrifted, "True", kudo.ReasonDrifted, "ConfigMap web/size: /data/size was changed")), []notice.Notice{
			{Kind: notice.Drifted, Message: "ConfigMap web/size: /data/size was changed", Commands: []string{"kubectl addon drift store --cluster cluster1"}},
		}},
		"objects cannot be compared": {instance(reports(kudo.ConditionDrifted, "Unknown", kudo.ReasonComparisonFailed, "denied")), []notice.Notice{
			{Kind: notice.ComparisonFailed, Message: "objects cannot be compared with what was applied: denied", Commands: []string{"kubectl addon drift store --cluster cluster1"}},
		}},
		"it has returned": {
			instance(reports(kudo.ConditionReady, "False", kudo.ReasonReturned, "version 2 has failed"), func(i *kudo.Instance) {
				i.Status.Returned = &kudo.Return{From: "2.0.0", To: "1.0.0", Plan: "deploy", Cause: "no more disks"}
			}),
			[]notice.Notice{{Kind: notice.Returned, Message: "version 2.0.0 has failed, and version 1.0.0 runs again: no more disks",
				Commands: []string{"kubectl addon plan resume store --cluster cluster1"}}},
		},
		"its soak has failed, and it has drifted": {instance(reports(kudo.ConditionSoaked, "False", "SoakFailed", "unhealthy for 5m"),
			reports(kudo.ConditionDrifted, "True", "Drifted", "gone")), []notice.Notice{
			{Kind: notice.SoakFailed, Message: "unhealthy for 5m", Commands: []string{"kubectl addon plan status store --cluster cluster1"}},
			{Kind: notice.Drifted, Message: "gone", Commands: []string{"kubectl addon drift store --cluster cluster1"}},
		}},
		"it soaks": {instance(reports(kudo.ConditionSoaked, "False", "Soaking", "healthy since then")), []notice.Notice{
			{Kind: notice.Soaking, Message: "healthy since then", Commands: []string{"kubectl addon plan status store --cluster cluster1"}},
		}},
		"it has soaked, or has to run a plan first": {instance(reports(kudo.ConditionSoaked, "False", kudo.ReasonPlanPending, "later")), nil},
		"a plan has failed": {instance(failed), []notice.Notice{{Kind: notice.PlanFailed,
			Message:  "plan deploy has failed, and can be resumed without its complete steps: no more; disks",
			Commands: []string{"kubectl addon plan resume store --cluster cluster1"}}}},
		"the most urgent one is first": {
			instance(failed, suspended), []notice.Notice{
				{Kind: notice.PlanFailed, Message: "plan deploy has failed, and can be resumed without its complete steps: no more; disks",
					Commands: []string{"kubectl addon plan resume store --cluster cluster1"}},
				{Kind: notice.Suspended, Message: "the Instance is suspended", Commands: []string{"kubectl addon resume store --cluster cluster1"}},
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := notice.Of(test.instance)
			if len(got) == 0 && len(test.want) == 0 {
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOverview(t *testing.T) {
	of := func(kind suspension.Kind, name, reason string) suspension.Origin {
		return suspension.Origin{Kind: kind, Name: name, Reason: reason}
	}
	everything := notice.Suspension{
		Origin: of(suspension.KindEverything, "tandem-system/tandem-suspend", ""), Instances: 1, Unread: true, Command: "kubectl addon resume --all --everywhere",
	}
	cluster := func(name, reason string, instances int, unread bool) notice.Suspension {
		return notice.Suspension{
			Origin: of(suspension.KindCluster, name, reason), Instances: instances, Unread: unread, Command: "kubectl addon resume --all --cluster " + name,
		}
	}
	addOn := func(reason string) notice.Suspension {
		return notice.Suspension{
			Origin: of(suspension.KindAddOn, "store", reason), Instances: 1, Unread: true, Command: "kubectl addon resume store --everywhere",
		}
	}
	for sentence, test := range map[string]struct {
		isRead    bool
		instances []*kudo.Instance
		want      []notice.Suspension
	}{
		"objects and single Instances, the widest first": {
			true, []*kudo.Instance{
				instance(suspended), instance(suspendedBy(`ManagedCluster cluster1 ("disks"), ClusterManagementAddOn store ("release")`)),
				instance(suspendedBy("ConfigMap tandem-system/tandem-suspend, ManagedCluster cluster1, ManagedCluster resumed")), instance(),
			},
			[]notice.Suspension{
				everything, cluster("cluster1", "disks", 2, false), cluster("cluster9", "", 0, false), addOn("release"),
				{Cluster: "cluster1", Instance: "store", Instances: 1, Command: "kubectl addon resume store --cluster cluster1"},
			},
		},
		"invented objects of a kind that was not read count once": {
			false, []*kudo.Instance{instance(suspendedBy("ConfigMap tandem-system/tandem-suspend, ConfigMap x/a, ConfigMap x/b, ManagedCluster a, ManagedCluster b, " +
				"ClusterManagementAddOn store, ClusterManagementAddOn zoo"))},
			[]notice.Suspension{everything, cluster("a", "", 1, true), addOn("")},
		},
		"invented objects hide no object that was read": {
			true, []*kudo.Instance{instance(suspendedBy("ManagedCluster a, ManagedCluster cluster1, ManagedCluster cluster9"))},
			[]notice.Suspension{cluster("cluster1", "disks", 1, false), cluster("cluster9", "", 0, false)},
		},
		"the same object with two reasons counts once": {
			false, []*kudo.Instance{instance(suspendedBy(`ManagedCluster a ("x"), ManagedCluster a ("y")`))},
			[]notice.Suspension{cluster("a", "x", 1, true)},
		},
		"a text that names no object": {false, []*kudo.Instance{instance(suspendedBy("Pod x, ManagedCluster a"))}, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			overview := notice.Overview{Read: map[suspension.Kind]bool{suspension.KindCluster: test.isRead}}
			if test.isRead {
				overview.AddOrigin(of(suspension.KindCluster, "cluster1", "disks"))
				overview.AddOrigin(of(suspension.KindCluster, "cluster9", ""))
			}
			for _, i := range test.instances {
				overview.AddInstance(i)
			}
			if diff := cmp.Diff(test.want, overview.List()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
