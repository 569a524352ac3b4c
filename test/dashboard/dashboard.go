// Package dashboard fills a hub with a fleet that has every state, for tests of the dashboard.
package dashboard

import (
	"context"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// Scheme returns a scheme with the kinds of a fleet and of its users.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, coordinationv1.AddToScheme, rbacv1.AddToScheme, authenticationv1.AddToScheme, kudo.AddToScheme, addonv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// definitions are the add-ons with the dependencies that they declare; a question mark means that one is optional.
var definitions = map[string][]addonv1alpha1.AddonDependency{
	"cert-manager": nil,
	"ingress":      {requiredDependency("cert-manager")},
	"kafka":        {requiredDependency("zookeeper"), optionalDependency("monitoring")},
	"logging":      {requiredDependency("kafka")},
	"monitoring":   {optionalDependency("ingress")},
	"shop":         {requiredDependency("kafka"), requiredDependency("ingress"), optionalDependency("logging")},
	"zookeeper":    nil,
}

func requiredDependency(name string) addonv1alpha1.AddonDependency {
	return addonv1alpha1.AddonDependency{Name: name, Type: addonv1alpha1.DependencyTypeRequired}
}

func optionalDependency(name string) addonv1alpha1.AddonDependency {
	return addonv1alpha1.AddonDependency{Name: name, Type: addonv1alpha1.DependencyTypeOptional}
}

// Version is the name of the OperatorVersion of kafka in the packages' namespace.
const Version = "kafka-3.9.0-1.3.1"

// Fill creates the definitions, a package and the clusters, whose number is at least ten. The first cluster has kafka with a failed plan,
// the second lacks zookeeper, the third is unreachable; on the fourth, monitoring is not available; on
// the tenth, the last change of kafka is blocked, and that of zookeeper is waiting.
func Fill(ctx context.Context, c client.Client, clusters int) error {
	objects := []client.Object{namespace(kudo.DefaultPackagesNamespace), version()}
	for name, needs := range definitions {
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
		definition.Spec.Dependencies, definition.Spec.InstallStrategy = needs, upstream.InstallStrategy{Type: upstream.AddonInstallStrategyManual}
		if name == "kafka" {
			definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{
				ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
				DefaultConfig:       &upstream.ConfigReferent{Namespace: kudo.DefaultPackagesNamespace, Name: Version},
			}, {
				ConfigGroupResource: upstream.ConfigGroupResource{
					Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs,
				},
			}}
		}
		objects = append(objects, definition)
	}
	for i := range clusters {
		objects = append(objects, clusterObjects(Cluster(i), i)...)
	}
	addOns := map[client.ObjectKey]types.UID{}
	for _, object := range objects {
		key := client.ObjectKeyFromObject(object)
		if instance, ok := object.(*kudo.Instance); ok && addOns[key] != "" {
			instance.OwnerReferences[0].UID = addOns[key]
		}
		if err := create(ctx, c, object); err != nil {
			return err
		}
		if _, ok := object.(*addonv1alpha1.ManagedClusterAddOn); ok {
			addOns[key] = object.GetUID()
		}
	}
	return nil
}

// Cluster returns the name of a cluster.
func Cluster(i int) string { return fmt.Sprintf("cluster-%02d", i+1) }

// create creates an object with its status.
func create(ctx context.Context, c client.Client, object client.Object) error {
	wanted, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", object)
	}
	if err := c.Create(ctx, object); err != nil {
		return fmt.Errorf("creating %s: %w", client.ObjectKeyFromObject(object), err)
	}
	switch object.(type) {
	case *addonv1alpha1.ManagedClusterAddOn, *kudo.Instance, *unstructured.Unstructured:
		wanted.SetResourceVersion(object.GetResourceVersion())
		if err := c.Status().Update(ctx, wanted); err != nil {
			return fmt.Errorf("writing the status of %s: %w", client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

func namespace(name string) client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// version returns a package with plans and parameters. Its texts are what a user may write.
func version() *kudo.OperatorVersion {
	steps := func(names ...string) (steps []kudo.Step) {
		for _, name := range names {
			steps = append(steps, kudo.Step{Name: name, Tasks: []string{name}})
		}
		return steps
	}
	v := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: kudo.DefaultPackagesNamespace, Name: Version}}
	v.Spec.Operator, v.Spec.Version, v.Spec.AppVersion = corev1.ObjectReference{Name: "kafka"}, "1.3.1", "3.9.0"
	v.Spec.Plans = map[string]kudo.Plan{
		"deploy": {Strategy: kudo.Serial, Phases: []kudo.Phase{
			{Name: "config", Strategy: kudo.Parallel, Steps: steps("users", "topics")}, {Name: "brokers", Strategy: kudo.Serial, Steps: steps("brokers", "check")},
		}},
		"backup": {Strategy: kudo.Serial, Phases: []kudo.Phase{{Name: "dump", Strategy: kudo.Serial, Steps: steps("dump")}}},
	}
	v.Spec.Parameters = []kudo.Parameter{
		{Name: "BROKERS", Default: ptr.To("3"), Type: kudo.IntegerType, Description: "Number of brokers."},
		{Name: "RETENTION", Default: ptr.To("24h"), Description: "How long messages are kept.", Trigger: "backup"},
		{Name: "DISK", Default: ptr.To("5Gi"), Description: "Size of each volume.", Immutable: ptr.To(true)},
	}
	for _, name := range []string{"users", "topics", "brokers", "check", "dump"} {
		v.Spec.Tasks = append(v.Spec.Tasks, kudo.Task{Name: name, Kind: kudo.TaskDummy})
	}
	return v
}

// clusterObjects returns the objects of a cluster.
func clusterObjects(name string, i int) []client.Object {
	now := metav1.NewMicroTime(time.Now())
	objects := []client.Object{namespace(name), managedCluster(name, i), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: addonv1alpha1.AgentLease, Labels: map[string]string{addonv1alpha1.LabelVersion: "v0.9.0"}},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &now, LeaseDurationSeconds: ptr.To(int32(3600))},
	}}
	for addOn := range definitions {
		if i == 1 && addOn == "zookeeper" || i >= 8 && addOn == "shop" {
			continue
		}
		objects = append(objects, AddOn(name, addOn, i))
	}
	return append(objects, Instance(name, i == 0))
}

// managedCluster returns a cluster in one of two regions. The third one does not renew its lease.
func managedCluster(name string, i int) client.Object {
	available := "True"
	if i == 2 {
		available = "Unknown"
	}
	cluster := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"version": map[string]any{"kubernetes": []string{"v1.31.4", "v1.32.1"}[i%2]},
		"conditions": []any{map[string]any{
			"type": "ManagedClusterConditionAvailable", "status": available, "reason": "Test", "message": "", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}},
	}}}
	cluster.SetGroupVersionKind(read.ManagedClusterKind)
	cluster.SetName(name)
	cluster.SetLabels(map[string]string{"region": []string{"eu", "us"}[i%2]})
	return cluster
}

// AddOn returns an add-on of the cluster with that number.
func AddOn(cluster, name string, i int) *addonv1alpha1.ManagedClusterAddOn {
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
	set := func(kind string, status metav1.ConditionStatus, reason, message string) {
		addOn.Status.Conditions = append(addOn.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
		})
	}
	lacked := missingDependency(i, name)
	switch {
	case i == 2:
		set(addonv1alpha1.ConditionAvailable, metav1.ConditionUnknown, addonv1alpha1.ReasonClusterLeaseStopped, "The agent does not renew its lease.")
	case i == 0 && name == "kafka":
		set(addonv1alpha1.ConditionAvailable, metav1.ConditionFalse, kudo.ReasonPlanFailed, Failure)
		set(addonv1alpha1.ConditionResolved, metav1.ConditionTrue, kudo.ReasonResolved, "")
	case i == 3 && name == "monitoring":
		set(addonv1alpha1.ConditionAvailable, metav1.ConditionFalse, "ProbeUnavailable", "Deployment monitoring/prometheus: 0 of 1 replicas available")
	case lacked != "":
		message := "Required addon '" + lacked + "' is not installed or not available."
		set(addonv1alpha1.ConditionAvailable, metav1.ConditionFalse, addonv1alpha1.ReasonRequiredDependencyNotSatisfied, message)
		set(addonv1alpha1.ConditionDegraded, metav1.ConditionTrue, addonv1alpha1.ReasonRequiredDependencyNotSatisfied, message)
	case i == 3 && name == "kafka":
		set(addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, "Healthy", "")
		set(addonv1alpha1.ConditionDegraded, metav1.ConditionTrue, addonv1alpha1.ReasonDependencyNotSatisfied, "Optional addon 'monitoring' is not available.")
	default:
		set(addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, "Healthy", "")
	}
	if held, is := heldUp[name]; is && i == heldUpCluster {
		set(addonv1alpha1.ConditionResolved, metav1.ConditionFalse, held.Reason, held.Message)
	}
	return addOn
}

// heldUp has the add-ons whose last change is held up on the cluster with number heldUpCluster.
var heldUp = map[string]metav1.Condition{
	"kafka":     {Reason: kudo.ReasonParametersInvalid, Message: `parameter "BROKERS": value "two": must be an integer, such as 3`},
	"zookeeper": {Reason: addonv1alpha1.ReasonWaitingForConfiguration, Message: "the rollout of the last change waits for other clusters"},
}

const heldUpCluster = 9

// missingDependency returns the dependency that an add-on lacks on the cluster with that number: kafka has failed on the first cluster, and
// zookeeper is missing on the second.
func missingDependency(i int, name string) string {
	switch {
	case i == 1 && name == "kafka":
		return "zookeeper"
	case i <= 1 && (name == "logging" || name == "shop"):
		return "kafka"
	default:
		return ""
	}
}

// Failure is the message of the failed plan.
const Failure = "StatefulSet kafka/kafka: 1 of 3 replicas ready: pod kafka-1 cannot be scheduled: 3 nodes have insufficient memory"

// formerVersion is the OperatorVersion that ran before.
const formerVersion = "kafka-3.8.1-1.3.0"

// Instance returns the Instance of kafka on a cluster.
func Instance(cluster string, failed bool) *kudo.Instance {
	instance := &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "kafka", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn", Name: "kafka", UID: "unknown", Controller: ptr.To(true),
		}}},
		Spec: kudo.InstanceSpec{
			OperatorVersion: corev1.ObjectReference{Namespace: kudo.DefaultPackagesNamespace, Name: Version},
			Parameters:      map[string]string{"BROKERS": "3"},
		},
	}
	start, done := metav1.NewTime(time.Now().Add(-7*time.Minute).Truncate(time.Second)), metav1.NewTime(time.Now().Add(-2*time.Minute).Truncate(time.Second))
	last, health, reason, message := kudo.Complete, metav1.ConditionTrue, kudo.ReasonHealthy, ""
	outcome := kudo.HistoryComplete
	if failed {
		last, health, reason, message = kudo.FatalError, metav1.ConditionFalse, kudo.ReasonPlanFailed, Failure
		outcome = kudo.HistoryFailed
	}
	installed, deployed := metav1.NewTime(start.Add(-72*time.Hour)), metav1.NewTime(start.Add(-72*time.Hour+50*time.Second))
	step := func(name string, status kudo.ExecutionStatus, message string) kudo.StepStatus {
		return kudo.StepStatus{Name: name, Status: status, Tasks: []kudo.TaskStatus{{Name: name, Status: status, Message: message}}}
	}
	instance.Status = kudo.InstanceStatus{
		ObservedGeneration: 1,
		Execution:          &kudo.Execution{UID: "1", Plan: "deploy", OperatorVersion: instance.Spec.OperatorVersion},
		Conditions: []metav1.Condition{
			{Type: kudo.ConditionResolved, Status: metav1.ConditionTrue, Reason: kudo.ReasonResolved, LastTransitionTime: start},
			{Type: kudo.ConditionReady, Status: health, Reason: reason, Message: message, LastTransitionTime: done},
		},
		PlanStatus: map[string]kudo.PlanStatus{"deploy": {
			Name: "deploy", Status: last, StartedTimestamp: &start, LastUpdatedTimestamp: &done, Message: message, Phases: []kudo.PhaseStatus{
				{Name: "config", Status: kudo.Complete, Steps: []kudo.StepStatus{step("users", kudo.Complete, ""), step("topics", kudo.Complete, "")}},
				{Name: "brokers", Status: last, Steps: []kudo.StepStatus{step("brokers", last, message), step("check", map[bool]kudo.ExecutionStatus{true: kudo.Pending, false: kudo.Complete}[failed], "")}},
			},
		}},
		History: []kudo.HistoryEntry{
			{Revision: 1, UID: "0", Plan: "deploy", Cause: kudo.CauseInstall, OperatorVersion: corev1.ObjectReference{Name: formerVersion}, Outcome: kudo.HistoryComplete,
				StartedTimestamp: &installed, EndedTimestamp: &deployed},
			{Revision: 2, UID: "1", Plan: "deploy", Cause: kudo.CauseVersion, OperatorVersion: instance.Spec.OperatorVersion, From: formerVersion,
				Parameters: []string{"BROKERS"}, Outcome: outcome, Message: message, StartedTimestamp: &start, EndedTimestamp: &done},
		},
		Inventory: []kudo.InventoryEntry{{Group: "apps", Kind: "StatefulSet", Namespace: "kafka", Name: "kafka"}, {Kind: "Service", Namespace: "kafka", Name: "kafka"}},
	}
	if failed {
		diagnose(instance, done)
	}
	return instance
}

// diagnose adds the answer to a request for a diagnosis, and a request that is not answered yet.
func diagnose(instance *kudo.Instance, at metav1.Time) {
	instance.Annotations = map[string]string{kudo.AnnotationDiagnose: at.Add(time.Minute).UTC().Format(time.RFC3339)}
	instance.Status.Diagnosis = &kudo.Diagnosis{
		Request: at.UTC().Format(time.RFC3339), Time: at, Truncated: true,
		Message: "logs cannot be read: pods \"kafka-1\" is forbidden: User \"system:serviceaccount:kafka:tandem\" cannot get resource \"pods/log\" in API group \"\"",
		Pods: []kudo.DiagnosedPod{
			{Namespace: "kafka", Name: "kafka-1", Phase: "Pending", Ready: "0/2", Reason: "cannot be scheduled: 3 nodes have insufficient memory",
				Image: "registry.example.com/streaming/kafka:3.9.0"},
			{Namespace: "kafka", Name: "kafka-0", Phase: "Running", Ready: "1/2", Restarts: 4, Image: "registry.example.com/streaming/kafka:3.9.0", Logs: []kudo.DiagnosedLog{
				{Container: "kafka", Previous: true, Lines: []string{"INFO starts", "ERROR no space left on device: " + strings.Repeat("/var/lib/kafka", 12)}},
				{Container: "kafka", Lines: []string{"INFO starts"}}, {Container: "exporter"},
			}},
		},
		Events: []kudo.DiagnosedEvent{
			{Time: at, Object: "Pod kafka-1", Reason: "FailedScheduling", Message: "0/3 nodes are available: 3 Insufficient memory", Count: 7},
			{Object: "StatefulSet kafka", Reason: "SuccessfulCreate", Message: "create Pod kafka-1 in StatefulSet kafka successful", Count: 1},
		},
	}
}
