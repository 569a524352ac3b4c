package ui

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/notice"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/test/sample"
)

// atRest returns Instances of add-on kafka that run no plan, each on a cluster of its own, in all states that have notices.
func atRest() []kudo.Instance {
	const window = `plan "deploy" waits for a maintenance window, closed by the hub (ManagedCluster), freeze "year end": opens at 2026-12-29T08:00:00Z`
	var all []kudo.Instance
	add := func(change func(i *kudo.Instance), conditions ...metav1.Condition) {
		i := kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("cluster", len(all)+1), Name: "kafka", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn", Name: "kafka", Controller: ptr.To(true)},
		}}}
		i.Spec.OperatorVersion.Name = "kafka-1.0.0"
		i.Status.Conditions = conditions
		change(&i)
		all = append(all, i)
	}
	add(func(i *kudo.Instance) { i.Spec.Suspend = true })
	add(func(i *kudo.Instance) {
		i.Spec.SuspendedBy = `ConfigMap tandem-system/tandem-suspend, ManagedCluster cluster2 ("<disks>"), ClusterManagementAddOn kafka`
	}, sample.Condition(kudo.ConditionWaiting, "True", kudo.ReasonSuspended, `plan "deploy" waits: the Instance is suspended by ConfigMap tandem-system/tandem-suspend`))
	add(func(*kudo.Instance) {}, sample.Condition(kudo.ConditionWaiting, "True", kudo.ReasonWindow, window))
	add(func(*kudo.Instance) {}, sample.Condition(kudo.ConditionDrifted, "True", kudo.ReasonDrifted, "Deployment web/<b>: /spec/replicas is 1 instead of 2 (by kubectl)"))
	add(func(i *kudo.Instance) {
		i.Status.Returned = &kudo.Return{From: "2.0.0", To: "1.0.0", Plan: "deploy", Execution: "failed", Cause: "no more disks"}
		i.Status.Execution = &kudo.Execution{UID: "ran", Plan: "deploy"}
		i.Status.PlanStatus = map[string]kudo.PlanStatus{"deploy": {Name: "deploy", Status: kudo.Complete}}
	}, sample.Condition(kudo.ConditionReady, "False", kudo.ReasonReturned, "version 2.0.0 has failed"))
	add(func(*kudo.Instance) {}, sample.Condition(kudo.ConditionSoaked, "False", "Soaking", "healthy since 2026-01-02T03:04:05Z, complete at 2026-01-02T03:14:05Z"))
	add(func(i *kudo.Instance) {
		i.Status.Execution = &kudo.Execution{UID: "ran", Plan: "deploy", OperatorVersion: corev1.ObjectReference{Name: "kafka-1.0.0"}}
		i.Status.PlanStatus = map[string]kudo.PlanStatus{"deploy": {Name: "deploy", Status: kudo.FatalError, Message: "no more disks", Phases: []kudo.PhaseStatus{{
			Name: "main", Status: kudo.FatalError, Steps: []kudo.StepStatus{{Name: "config", Status: kudo.Complete, Tasks: []kudo.TaskStatus{
				{Name: "config", Status: kudo.Complete, Rendered: "digest"},
			}}},
		}}}}
	})
	add(func(*kudo.Instance) {}, sample.Condition(kudo.ConditionSoaked, "False", kudo.ReasonSoakFailed, "the Instance was unhealthy for 5m0s in total since its plan: <disks>"))
	add(func(*kudo.Instance) {}, sample.Condition(kudo.ConditionReady, "True", "Healthy", ""))
	return all
}

func TestNoticesOnPages(t *testing.T) {
	instances, all := atRest(), fleet.Glance{}
	together := fleet.Cluster{Name: "cluster1", Instances: map[string]*kudo.Instance{}}
	for i := range instances {
		all.Add(instances[i].Namespace, fleet.Subject{Name: "kafka"}, fleet.GlimpseOfInstance(&instances[i]))
		one := instances[i].DeepCopy()
		one.Namespace, one.Name, one.OwnerReferences = "cluster1", fmt.Sprint("kafka-", i), nil
		together.Instances[one.Name] = one
	}
	clusters := []clusterv1.ManagedCluster{{ObjectMeta: metav1.ObjectMeta{Name: "cluster2", Annotations: map[string]string{kudo.AnnotationSuspend: "<disks>"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "cluster9"}}}
	definitions := []addonv1alpha1.ClusterManagementAddOn{{ObjectMeta: metav1.ObjectMeta{Name: "kafka", Annotations: map[string]string{kudo.AnnotationSuspend: ""}}}}
	view := fleetOf(all, filterOf("/", url.Values{}))
	view.Suspensions = suspensionsOf(instances, clusters, definitions)
	view.Notices = noticesOf(pointers(instances), isOnFleet(all, filterOf("/", url.Values{})))
	golden(t, "fleet-notices", frame{Title: "Fleet", Template: "fleet", View: view})
	golden(t, "cluster-notices", frame{Title: "Cluster cluster1", Template: "cluster", View: clusterOf(together)})
	addOn := addOnOf("kafka", all, nil)
	addOn.Notices = noticesOf(pointers(instances), everyNotice)
	golden(t, "addon-notices", frame{Title: "Add-on kafka", Template: "addon", View: addOn})
	for name, i := range map[string]int{
		"instance-suspended": 0, "instance-suspended-by": 1, "instance-window": 2, "instance-returned": 4,
		"instance-soaking": 5, "instance-resumable": 6, "instance-soak-failed": 7,
	} {
		v := visit{now: sample.Now, acts: everything{}, token: "token"}
		p := progress.View{Instance: &instances[i], Version: &kudo.OperatorVersion{}}
		p.Version.Spec.Plans = map[string]kudo.Plan{"deploy": {}}
		shown := instanceOf(p, v)
		shown.Forms = v.planForms(t.Context(), p)
		shown.offer()
		golden(t, name, frame{Title: "kafka", Template: "instance", View: shown})
	}
}

func TestNoticesAreBounded(t *testing.T) {
	var many []kudo.Instance
	for i := range 1000 {
		one := kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("cluster-%04d", i), Name: "kafka"}}
		one.Spec.Suspend = true
		one.Status.Conditions = []metav1.Condition{sample.Condition(kudo.ConditionDrifted, "True", kudo.ReasonDrifted, strings.Repeat("long ", 10_000))}
		many = append(many, one)
	}
	list, suspended := noticesOf(pointers(many), everyNotice), suspensionsOf(many, nil, nil)
	if diff := cmp.Diff([]noticeCount{{notice.Drifted, 1000}, {notice.Suspended, 1000}}, list.Counts); diff != "" {
		t.Error(diff)
	}
	if len(list.Rows) != noticesShown || list.More != 2000-noticesShown || len(suspended.Rows) != noticesShown || suspended.More != 1000-noticesShown {
		t.Errorf("%d notices and %d others are shown, %d suspensions and %d others", len(list.Rows), list.More, len(suspended.Rows), suspended.More)
	}
	view := fleetOf(fleet.Glance{}, filterOf("/", url.Values{}))
	view.Total, view.Notices, view.Suspensions = 1, list, suspended
	if size := len(renderPage(t, frame{Title: "Fleet", Template: "fleet", View: view})); size > 100_000 {
		t.Errorf("the page has %d bytes", size)
	}
}

func TestNoticesFollowTheFilter(t *testing.T) {
	all, instances := fleet.Glance{}, atRest()
	for i := range instances {
		all.Add(instances[i].Namespace, fleet.Subject{Name: "kafka"}, fleet.GlimpseOfInstance(&instances[i]))
	}
	for query, want := range map[string]int{"": 6, "cluster=cluster4": 1, "addon=kafka": 6, "addon=instance/kafka": 0, "cluster=cluster1": 0} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		f := filterOf("/", values)
		if got := noticesOf(pointers(instances), isOnFleet(f.of(all), f)); len(got.Rows) != want {
			t.Errorf("%q selects %d notices, want %d", query, len(got.Rows), want)
		}
	}
}

// BenchmarkNotices measures what the notices add to page Fleet of 5,000 clusters with 20 add-ons.
func BenchmarkNotices(b *testing.B) {
	var many []kudo.Instance
	for i := range 100_000 {
		one := kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("cluster-%05d", i/20), Name: fmt.Sprint("addon-", i%20)}}
		one.Status.Conditions = []metav1.Condition{sample.Condition(kudo.ConditionReady, "True", "Healthy", ""), sample.Condition(kudo.ConditionDrifted, "False", kudo.ReasonInSync, "")}
		many = append(many, one)
	}
	b.ReportAllocs()
	for b.Loop() {
		noticesOf(pointers(many), everyNotice)
		suspensionsOf(many, nil, nil)
	}
}
