package why_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/why"
	"github.com/tandem-addons/tandem/test/sample"
)

const (
	unscheduled = `phase "main": step "app": task "app": Deployment web/shop: 0 of 1 replicas updated: pod shop-1 is not scheduled: Unschedulable: 0/1 nodes are available`
	planStatus  = "\n\n  kubectl addon plan status shop --cluster cluster1\n"
)

// instanceOf returns the Instance of the add-on on cluster1.
func instanceOf(addOn string, changes ...func(*kudo.Instance)) *kudo.Instance {
	instance := sample.Instance()
	instance.Name, instance.UID = addOn, "instance"
	instance.OwnerReferences = []metav1.OwnerReference{{Kind: "ManagedClusterAddOn", Name: addOn, Controller: ptr.To(true)}}
	instance.Status.Whole = &kudo.WholeVersion{OperatorVersion: instance.Spec.OperatorVersion}
	for _, change := range changes {
		change(instance)
	}
	return instance
}

// runs sets a plan that started so long ago.
func runs(plan string, status kudo.ExecutionStatus, ago time.Duration, message string) func(*kudo.Instance) {
	return func(i *kudo.Instance) {
		started := metav1.NewTime(sample.Now.Add(-ago))
		i.Status.Execution = &kudo.Execution{UID: "ran", Plan: plan, Owed: []kudo.OwedPlan{{Plan: plan}}}
		i.Status.PlanStatus = map[string]kudo.PlanStatus{plan: {
			Name: plan, UID: "ran", Status: status, Message: message, StartedTimestamp: &started, LastUpdatedTimestamp: ptr.To(metav1.NewTime(sample.Now)),
		}}
	}
}

// ready sets condition Ready, which changed so long ago.
func ready(status, reason, message string, ago time.Duration) func(*kudo.Instance) {
	return func(i *kudo.Instance) {
		condition := sample.Condition(kudo.ConditionReady, status, reason, message)
		condition.LastTransitionTime = metav1.NewTime(sample.Now.Add(-ago))
		i.Status.Conditions = append(i.Status.Conditions, condition)
	}
}

func byHand(i *kudo.Instance) { i.Status.Execution.Request, i.Status.Execution.Owed = "ran", nil }

func notInstalled(i *kudo.Instance) { i.Status.Whole = nil }

func upgraded(i *kudo.Instance) {
	i.Status.Whole = &kudo.WholeVersion{OperatorVersion: corev1.ObjectReference{Name: "kafka-3.8.0-0.9.0"}}
}

func withReturn(i *kudo.Instance) {
	i.Status.Returned = &kudo.Return{From: "1.0.0", To: "0.9.0", Plan: "upgrade", Execution: "failed", Cause: "no more disks"}
}

func cancelled(i *kudo.Instance) { i.Status.Execution.Owed[0].Outcome = kudo.OwedCancelled }

// TestWhyExplainsUpdates covers add-ons whose plan runs, or has just failed: "Nothing to do." would be wrong.
func TestWhyExplainsUpdates(t *testing.T) {
	const available = "Add-on shop is available on cluster cluster1 and has no dependencies. "
	alone := func(conditions ...metav1.Condition) sample.Cluster {
		return sample.NewCluster("shop:").With("shop", append(conditions, sample.Resolved)...)
	}
	planFailed := sample.Condition(addonv1alpha1.ConditionAvailable, "False", kudo.ReasonPlanFailed, `plan "deploy" failed: cancelled`)
	for name, test := range map[string]struct {
		view     sample.Cluster
		instance *kudo.Instance
		want     string
	}{
		"a plan that started just now": {
			alone(sample.Updates), instanceOf("shop", runs("deploy", kudo.InProgress, 20*time.Second, sample.Waiting)),
			available + `It is being updated: plan "deploy" has been running since 2026-01-02T03:03:45Z: ` + sample.Waiting + "." + planStatus,
		},
		"a plan that has not reported yet what it is waiting for": {
			alone(sample.Updates), instanceOf("shop", runs("deploy", kudo.InProgress, 0, "")),
			available + `It is being updated: plan "deploy" has been running since 2026-01-02T03:04:05Z.` + planStatus,
		},
		"a plan that has been waiting for minutes": {
			alone(sample.Updates), instanceOf("shop", runs("deploy", kudo.InProgress, 5*time.Minute, unscheduled)),
			available + `Its update is not complete: plan "deploy" has been running since 2026-01-02T02:59:05Z: ` + unscheduled + "." + planStatus,
		},
		"a plan that fails and is retried": {
			alone(sample.Updates), instanceOf("shop", runs("update", kudo.Error, 25*time.Second, "quota exceeded")),
			available + `Its update is not complete: plan "update" has been running since 2026-01-02T03:03:40Z, and a task is failing and being retried: quota exceeded.` + planStatus,
		},
		"a plan that the add-on does not report yet": {
			alone(sample.Works), instanceOf("shop", runs("deploy", kudo.InProgress, time.Second, sample.Waiting)),
			available + `It is being updated: plan "deploy" has been running since 2026-01-02T03:04:04Z: ` + sample.Waiting + "." + planStatus,
		},
		"a plan that was requested manually": {
			alone(sample.Works), instanceOf("shop", runs("backup", kudo.InProgress, time.Hour, sample.Waiting), byHand),
			available + `Plan "backup", which was requested manually, has been running since 2026-01-02T02:04:05Z: ` + sample.Waiting + "." + planStatus,
		},
		"an upgrade": {
			alone(sample.Updates), instanceOf("shop", runs("upgrade", kudo.InProgress, time.Hour, sample.Waiting), upgraded),
			available + `Its update is not complete: plan "upgrade" has been running since 2026-01-02T02:04:05Z: ` + sample.Waiting + ". " +
				"OperatorVersion kafka-3.8.0-0.9.0 was the last to be installed completely, not kafka-3.9.0-1.0.0." + planStatus +
				"  kubectl addon rollback shop --cluster cluster1\n",
		},
		"an upgrade that started just now": {
			alone(sample.Updates), instanceOf("shop", runs("upgrade", kudo.InProgress, time.Second, sample.Waiting), upgraded),
			available + `It is being updated: plan "upgrade" has been running since 2026-01-02T03:04:04Z: ` + sample.Waiting + ". " +
				"OperatorVersion kafka-3.8.0-0.9.0 was the last to be installed completely, not kafka-3.9.0-1.0.0." + planStatus,
		},
		"an update of a degraded add-on": {
			sample.NewCluster("shop: graphs?", "graphs:").With("shop", sample.Updates, sample.Resolved).WithVerdicts(),
			instanceOf("shop", runs("deploy", kudo.InProgress, time.Hour, sample.Waiting)),
			"Add-on shop is available on cluster cluster1, but degraded because optional dependencies are not satisfied. " +
				`Its update is not complete: plan "deploy" has been running since 2026-01-02T02:04:05Z: ` + sample.Waiting + ". " +
				"It optionally uses graphs, which is not installed: enable it.\n\n" +
				"  kubectl addon enable graphs --cluster cluster1\n  kubectl addon plan status shop --cluster cluster1\n",
		},
		"an update of an add-on whose required dependency is missing": {
			sample.NewCluster("shop: kafka", "kafka:").With("shop", sample.Works, sample.Resolved).WithVerdicts(),
			instanceOf("shop", runs("deploy", kudo.InProgress, time.Hour, sample.Waiting)),
			"Add-on shop is not available on cluster cluster1 because required dependencies are not satisfied. " +
				`Its update is not complete: plan "deploy" has been running since 2026-01-02T02:04:05Z: ` + sample.Waiting + ". " +
				"It requires kafka, which is not installed: enable it.\n\n" +
				"  kubectl addon enable kafka --cluster cluster1\n  kubectl addon plan status shop --cluster cluster1\n",
		},
		"an installation, whose condition has the message": {
			alone(sample.Condition(addonv1alpha1.ConditionAvailable, "False", kudo.ReasonPlanInProgress, `plan "deploy" is running: `+sample.Waiting)),
			instanceOf("shop", runs("deploy", kudo.InProgress, time.Hour, sample.Waiting), notInstalled),
			`Add-on shop is not available on cluster cluster1: PlanInProgress: plan "deploy" is running: ` + sample.Waiting + ". " +
				`Its installation is not complete: plan "deploy" has been running since 2026-01-02T02:04:05Z.` + planStatus,
		},
		"a plan that started after one failed": {
			alone(planFailed), instanceOf("shop", runs("deploy", kudo.InProgress, time.Second, sample.Waiting)),
			`Add-on shop is not available on cluster cluster1: PlanFailed: plan "deploy" failed: cancelled. ` +
				`It is being updated: plan "deploy" has been running since 2026-01-02T03:04:04Z: ` + sample.Waiting + "." + planStatus,
		},
		"a plan that is about to start": {
			alone(sample.Works), instanceOf("shop", ready("False", kudo.ReasonPlanPending, `plan "update" is next`, 0)),
			available + `Its Instance is not ready: PlanPending: plan "update" is next.` + planStatus,
		},
		"a cluster that is unreachable": {
			alone(sample.OutOfTouch), instanceOf("shop", runs("deploy", kudo.InProgress, time.Hour, sample.Waiting)),
			"Add-on shop on cluster cluster1 is unknown",
		},
		"an upgrade that failed, which the add-on does not report yet": {
			alone(sample.Works),
			instanceOf("shop", runs("upgrade", kudo.FatalError, time.Minute, "no more disks"), upgraded,
				ready("False", kudo.ReasonPlanFailed, `plan "upgrade" failed: no more disks`, -time.Second)),
			`Add-on shop is not available on cluster cluster1: PlanFailed: plan "upgrade" failed: no more disks. ` +
				"Fix the cause, then run plan upgrade again. " +
				"OperatorVersion kafka-3.8.0-0.9.0 was the last to be installed completely, not kafka-3.9.0-1.0.0." +
				planStatus + "  kubectl addon plan run shop upgrade --cluster cluster1\n  kubectl addon rollback shop --cluster cluster1\n",
		},
		"a plan that is complete, which the Instance does not report yet": {
			alone(sample.Works), instanceOf("shop", ready("False", kudo.ReasonPlanFailed, `plan "deploy" failed`, time.Second)),
			available + "Nothing to do.\n",
		},
		"a plan that is complete, which the add-on does not report yet": {
			alone(sample.Fails), instanceOf("shop", ready("True", kudo.ReasonHealthy, "", -time.Second)), available + "Nothing to do.\n",
		},
		"a return to the former version": {
			alone(sample.Condition(addonv1alpha1.ConditionAvailable, "True", kudo.ReasonReturned, "version 1.0.0 has failed")),
			instanceOf("shop", withReturn, upgraded, ready("False", kudo.ReasonReturned, "version 1.0.0 has failed", time.Second)),
			available + "Its Instance has returned: version 1.0.0 has failed, and version 0.9.0 runs again: no more disks. " +
				"Fix the cause, and try the version again, or change to another one.\n\n  kubectl addon plan resume shop --cluster cluster1\n",
		},
		"a plan that was cancelled": {
			alone(planFailed), instanceOf("shop", runs("deploy", kudo.FatalError, time.Minute, "cancelled"), cancelled),
			`Add-on shop is not available on cluster cluster1: PlanFailed: plan "deploy" failed: cancelled. ` +
				"Plan deploy was cancelled: before it runs again, fix what it was waiting for. If that requires other parameters, set them with " +
				"'kubectl addon update shop --cluster cluster1 -p NAME=VALUE', which also starts the plan." +
				planStatus + "  kubectl addon plan run shop deploy --cluster cluster1\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.view.Instances = map[string]*kudo.Instance{"shop": test.instance}
			text := why.Of(test.view.Cluster, "shop", sample.Now).Text()
			if strings.HasSuffix(test.want, "unknown") {
				if strings.Contains(text, "since 2026-01-02T02:04:05Z") {
					t.Errorf("the last known plan is explained:\n%s", text)
				}
				return
			}
			if text != test.want {
				t.Errorf("got\n%s\nwant\n%s", text, test.want)
			}
		})
	}
}

// TestWhyExplainsUpdatesOfChildren covers an add-on whose own plan is complete.
func TestWhyExplainsUpdatesOfChildren(t *testing.T) {
	view := sample.NewCluster("shop:").With("shop", sample.Updates, sample.Resolved)
	child := instanceOf("shop.db", runs("deploy", kudo.InProgress, time.Hour, sample.Waiting))
	child.UID, child.OwnerReferences = "child", []metav1.OwnerReference{{Kind: "Instance", Name: "shop", UID: "instance", Controller: ptr.To(true)}}
	view.Instances = map[string]*kudo.Instance{"shop": instanceOf("shop"), "shop.db": child}
	const want = `Its update is not complete: plan "deploy" of Instance shop.db has been running since 2026-01-02T02:04:05Z: ` + sample.Waiting + "." + planStatus
	if text := why.Of(view.Cluster, "shop", sample.Now).Text(); !strings.HasSuffix(text, want) {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// TestWhyExplainsUpdatesWithoutInstances covers users who may not read Instances.
func TestWhyExplainsUpdatesWithoutInstances(t *testing.T) {
	view := sample.NewCluster("shop:").With("shop", sample.Updates, sample.Resolved)
	const want = `Add-on shop is available on cluster cluster1 and is being updated: plan "upgrade" is running.` + planStatus
	if text := why.Of(view.Cluster, "shop", sample.Now).Text(); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestWhyExplainsDeletion(t *testing.T) {
	deleted := func(i *kudo.Instance) { i.DeletionTimestamp = ptr.To(metav1.NewTime(sample.Now)) }
	for name, test := range map[string]struct {
		instance *kudo.Instance
		want     string
	}{
		"an agent that has not started": {
			instanceOf("shop", deleted, ready("True", kudo.ReasonHealthy, "", 0)), "the agent of cluster cluster1 has not started to remove Instance shop. " +
				"If this takes longer than a few seconds, check that addon-agent is running on cluster cluster1.",
		},
		"a hub that has not started": {
			instanceOf("shop"), "addon-manager has not deleted Instance shop yet. " +
				"If this takes longer than a few seconds, check that addon-manager is running on the hub.",
		},
		"a removal that waits for objects": {
			instanceOf("shop", deleted, ready("False", kudo.ReasonRemoving, "waiting for 2 objects", 0)), "Removing: waiting for 2 objects.",
		},
	} {
		view := sample.NewCluster("shop:").With("shop", sample.Works, sample.Resolved).WithDeletion("shop", kudo.Finalizer)
		view.Instances = map[string]*kudo.Instance{"shop": test.instance}
		want := "Deletion of add-on shop from cluster cluster1 started at 2026-01-02T03:04:05Z and is waiting for finalizers kudo.dev/removal: " +
			test.want + planStatus
		if text := why.Of(view.Cluster, "shop", sample.Now).Text(); text != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, text, want)
		}
	}
}

func TestWhyNamesMissingParameters(t *testing.T) {
	const lacks = `parameter "OWNER": required, but has neither a value nor a default: set it`
	view := sample.NewCluster("shop:").Plans("shop").With("shop",
		sample.Condition(addonv1alpha1.ConditionAvailable, "False", addonv1alpha1.ReasonNotInstalled, "the add-on is not installed: ParametersInvalid: "+lacks),
		sample.Condition(addonv1alpha1.ConditionResolved, "False", kudo.ReasonParametersInvalid, lacks))
	const want = "Add-on shop is not available on cluster cluster1: NotInstalled: the add-on is not installed: ParametersInvalid: " + lacks + ".\n\n" +
		"  kubectl addon plan status shop --cluster cluster1\n  kubectl addon update shop --cluster cluster1 -p OWNER=VALUE\n"
	if text := why.Of(view.Cluster, "shop", sample.Now).Text(); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if reason := fleet.GlimpseOf(view.AddOns["shop"]).Reason; reason != kudo.ReasonParametersInvalid {
		t.Errorf("the summary has reason %s", reason)
	}
}

func TestWhyNamesAddonManagerIfItHasNotProcessedThePlanBasedAddOn(t *testing.T) {
	view := sample.NewCluster("shop:").Plans("shop").With("shop", sample.NoProbe)
	const want = "Add-on shop is in an unknown state on cluster cluster1: ProbeUnavailable. addon-manager has not processed the add-on yet: if this " +
		"takes longer than a few seconds, check that addon-manager is running on the hub." + planStatus
	if text := why.Of(view.Cluster, "shop", sample.Now).Text(); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// TestWhyNamesASoakWithoutRollout covers add-ons that OCM does not roll out: nothing but condition Soaked of their Instances reports the soak.
func TestWhyNamesASoakWithoutRollout(t *testing.T) {
	const (
		times  = `healthy since 2026-01-02T03:04:05Z, complete at 2026-01-02T03:14:05Z`
		soaks  = `Instance shop is not healthy for long enough yet: Soaking: ` + times + `.` + planStatus
		failed = `Instance shop was not healthy for long enough after its plan: SoakFailed: ` + times + `.` + planStatus
	)
	rolledOut := sample.Condition(addonv1alpha1.ConditionManifestApplied, "True", addonv1alpha1.ReasonPlanComplete, "")
	for name, test := range map[string]struct {
		conditions     []metav1.Condition
		status, reason string
		want           string
	}{
		"it soaks":                {[]metav1.Condition{sample.Works}, "False", "Soaking", soaks},
		"it has failed":           {[]metav1.Condition{sample.Works}, "False", kudo.ReasonSoakFailed, failed},
		"it has soaked":           {[]metav1.Condition{sample.Works}, "True", "HealthyLongEnough", ""},
		"a plan has to run first": {[]metav1.Condition{sample.Works}, "False", kudo.ReasonPlanPending, ""},
		"it is not available":     {[]metav1.Condition{sample.Fails}, "False", "Soaking", ""},
		"OCM rolls it out":        {[]metav1.Condition{sample.Works, rolledOut}, "False", "Soaking", ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := instanceOf("shop", func(i *kudo.Instance) {
				i.Status.Conditions = append(i.Status.Conditions, sample.Condition(kudo.ConditionSoaked, test.status, test.reason, times))
			})
			view := sample.NewCluster("shop:").Plans("shop").With("shop", test.conditions...)
			view.Instances = map[string]*kudo.Instance{"shop": root}
			text := why.Of(view.Cluster, "shop", sample.Now).Text()
			if isNamed := strings.Contains(text, "healthy for long enough"); isNamed != (test.want != "") || !strings.Contains(text, test.want) {
				t.Errorf("got %s", text)
			}
		})
	}
}

// TestWhyNamesDrift covers an Instance and its children that differ from what was applied: a plan that runs or has failed leaves the condition as it was.
func TestWhyNamesDrift(t *testing.T) {
	drifted := func(i *kudo.Instance) {
		i.Status.Conditions = append(i.Status.Conditions, sample.Condition(kudo.ConditionDrifted, "True", kudo.ReasonDrifted, "ConfigMap x is gone"))
	}
	inSync := func(i *kudo.Instance) {
		i.Status.Conditions = append(i.Status.Conditions, sample.Condition(kudo.ConditionDrifted, "False", kudo.ReasonInSync, ""))
	}
	ran := func(i *kudo.Instance) { i.Status.Execution = &kudo.Execution{Plan: "update"} }
	unhealthy := func(message string) metav1.Condition {
		return sample.Condition(addonv1alpha1.ConditionAvailable, "False", kudo.ReasonUnhealthy, message)
	}
	const (
		again = "kubectl addon plan run shop deploy --cluster cluster1"
		look  = "kubectl addon drift shop --cluster cluster1"
		zero  = "Deployment a/b: has 0 replicas where 3 were applied"
	)
	for name, test := range map[string]struct {
		condition   metav1.Condition
		root, child func(*kudo.Instance)
		want        []string
	}{
		"in sync":                    {sample.Works, inSync, inSync, nil},
		"an add-on":                  {sample.Works, drifted, inSync, []string{look}},
		"a child":                    {sample.Works, inSync, drifted, []string{"kubectl addon drift shop.db --cluster cluster1"}},
		"both":                       {sample.Works, drifted, drifted, []string{look, "kubectl addon drift shop.db --cluster cluster1"}},
		"an unhealthy add-on":        {unhealthy("Deployment a/b: 0 of 3 replicas ready"), drifted, inSync, []string{look}},
		"a failed plan":              {sample.Fails, drifted, inSync, []string{"kubectl addon plan run shop update --cluster cluster1"}},
		"scaled to zero":             {unhealthy(zero), drifted, inSync, []string{again, look}},
		"scaled to zero by a writer": {unhealthy(zero + " (by a, b (c) and 2 more)"), inSync, inSync, []string{again}},
		"a container that says so":   {unhealthy(`Pod a/b: failed: "x` + zero + `"`), inSync, inSync, nil},
	} {
		t.Run(name, func(t *testing.T) {
			root := instanceOf("shop", ran, test.root)
			child := instanceOf("shop.db", test.child)
			child.UID, child.OwnerReferences = "child", []metav1.OwnerReference{*metav1.NewControllerRef(root, kudo.GroupVersion.WithKind("Instance"))}
			view := sample.NewCluster("shop:").With("shop", test.condition, sample.Resolved).Cluster
			view.Instances = map[string]*kudo.Instance{root.Name: root, child.Name: child}
			commands := slices.DeleteFunc(why.Of(view, "shop", sample.Now).Data("shop").Commands, func(command string) bool { return strings.Contains(command, " status ") })
			if !slices.Equal(commands, test.want) {
				t.Errorf("got %q, want %q", commands, test.want)
			}
		})
	}
}
