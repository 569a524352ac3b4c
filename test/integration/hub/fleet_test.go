package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// fleet is the part of the hub that belongs to one spec, with unique names.
type fleet struct{ suffix string }

func newFleet() fleet { return fleet{suffix: rand.String(6)} }

// nameOf returns a name that no other spec uses.
func (f fleet) nameOf(name string) string { return name + "-" + f.suffix }

func makeNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(server.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
}

// cluster registers a managed cluster with its namespace.
func (f fleet) cluster(ctx context.Context, name string) string {
	GinkgoHelper()
	name = f.nameOf(name)
	makeNamespace(ctx, name)
	Expect(server.Create(ctx, managedCluster(name))).To(Succeed())
	return name
}

func managedCluster(name string) *unstructured.Unstructured {
	cluster := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hubAcceptsClient": true}}}
	cluster.SetAPIVersion("cluster.open-cluster-management.io/v1")
	cluster.SetKind("ManagedCluster")
	cluster.SetName(name)
	return cluster
}

// define creates a ClusterManagementAddOn that is deleted after the spec.
func (f fleet) define(ctx context.Context, name string, change func(*addonv1alpha1.ClusterManagementAddOn)) *addonv1alpha1.ClusterManagementAddOn {
	GinkgoHelper()
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: f.nameOf(name)}}
	definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
	if change != nil {
		change(definition)
	}
	Expect(server.Create(ctx, definition)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(server.Delete(ctx, definition))).To(Succeed())
	})
	return definition
}

// withNeeds declares dependencies by the field.
func (f fleet) withNeeds(needs ...addonv1alpha1.AddonDependency) func(*addonv1alpha1.ClusterManagementAddOn) {
	return func(d *addonv1alpha1.ClusterManagementAddOn) {
		for _, need := range needs {
			need.Name = f.nameOf(need.Name)
			alternatives := need.Alternatives
			need.Alternatives = nil
			for _, name := range alternatives {
				need.Alternatives = append(need.Alternatives, f.nameOf(name))
			}
			d.Spec.Dependencies = append(d.Spec.Dependencies, need)
		}
	}
}

// withAnnotation declares dependencies by the annotation.
func withAnnotation(text string) func(*addonv1alpha1.ClusterManagementAddOn) {
	return func(d *addonv1alpha1.ClusterManagementAddOn) {
		d.Annotations = map[string]string{addonv1alpha1.AnnotationDependencies: text}
	}
}

// enable creates a ManagedClusterAddOn, as `clusteradm addon enable` does.
func (f fleet) enable(ctx context.Context, cluster, name string, change ...func(*addonv1alpha1.ManagedClusterAddOn)) *addonv1alpha1.ManagedClusterAddOn {
	GinkgoHelper()
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: f.nameOf(name)}}
	for _, c := range change {
		c(addOn)
	}
	Expect(server.Create(ctx, addOn)).To(Succeed())
	return addOn
}

// report sets Available as the agent does.
func report(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, status metav1.ConditionStatus, reason string) {
	GinkgoHelper()
	setCondition(ctx, addOn, "addon-agent-availability", metav1.Condition{
		Type: addonv1alpha1.ConditionAvailable, Status: status, Reason: reason,
	})
}

// setCondition sets a condition as the given writer. Like every writer it retries while the API server reloads a resource definition whose
// caBundle addon-manager has changed.
func setCondition(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, manager string, condition metav1.Condition) {
	GinkgoHelper()
	Eventually(func() error {
		current := get(ctx, addOn)
		_, err := apply.Condition(ctx, server, current, current.Status.Conditions, manager, condition, time.Now())
		return err
	}).WithContext(ctx).Should(Succeed())
}

// get reads the current state of an object.
func get[O client.Object](ctx context.Context, object O) O {
	GinkgoHelper()
	current := object.DeepCopyObject().(O)
	Expect(server.Get(ctx, client.ObjectKeyFromObject(object), current)).To(Succeed())
	return current
}

// seen is the expected state of a condition.
type seen struct{ Status, Reason, Message string }

// none is a missing condition.
var none = seen{}

// conditionOf returns a condition of a ManagedClusterAddOn, for Eventually.
func conditionOf(addOn *addonv1alpha1.ManagedClusterAddOn, conditionType string) func(Gomega, context.Context) seen {
	return func(g Gomega, ctx context.Context) seen {
		current := &addonv1alpha1.ManagedClusterAddOn{}
		g.Expect(server.Get(ctx, client.ObjectKeyFromObject(addOn), current)).To(Succeed())
		return seenOf(current.Status.Conditions, conditionType)
	}
}

// resolvedOf returns condition Resolved of an Instance's current generation, for Eventually.
func resolvedOf(instance *kudo.Instance) func(Gomega, context.Context) seen {
	return func(g Gomega, ctx context.Context) seen {
		current := &kudo.Instance{}
		g.Expect(server.Get(ctx, client.ObjectKeyFromObject(instance), current)).To(Succeed())
		condition := meta.FindStatusCondition(current.Status.Conditions, kudo.ConditionResolved)
		if condition == nil || condition.ObservedGeneration != current.Generation {
			return none
		}
		return seenOf(current.Status.Conditions, kudo.ConditionResolved)
	}
}

func seenOf(conditions []metav1.Condition, conditionType string) seen {
	condition := meta.FindStatusCondition(conditions, conditionType)
	if condition == nil {
		return none
	}
	return seen{string(condition.Status), condition.Reason, condition.Message}
}

// eventsOn lists REASON: NOTE of the events about an object, for Eventually.
func eventsOn(object client.Object) func(Gomega, context.Context) []string {
	return func(g Gomega, ctx context.Context) []string {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		var found eventsv1.EventList
		g.Expect(server.List(ctx, &found, client.InNamespace(namespace))).To(Succeed())
		var notes []string
		for _, event := range found.Items {
			if event.Regarding.UID == object.GetUID() {
				notes = append(notes, fmt.Sprintf("%s %s: %s", event.Type, event.Reason, event.Note))
			}
		}
		return notes
	}
}

// push stores an OperatorVersion with a text, a number, and the plan deploy.
func (f fleet) push(ctx context.Context, name, namespace string) *kudo.OperatorVersion {
	GinkgoHelper()
	return f.pushPlans(ctx, name, namespace)
}

// pushPlans stores an OperatorVersion with additional plans.
func (f fleet) pushPlans(ctx context.Context, name, namespace string, plans ...string) *kudo.OperatorVersion {
	GinkgoHelper()
	return f.pushVersion(ctx, name, namespace, "1.0.0", func(version *kudo.OperatorVersion) {
		for _, plan := range plans {
			version.Spec.Plans[plan] = version.Spec.Plans[kudo.DeployPlan]
		}
	})
}

// pushVersion stores an OperatorVersion of that version, as changed.
func (f fleet) pushVersion(ctx context.Context, name, namespace, number string, change func(*kudo.OperatorVersion)) *kudo.OperatorVersion {
	GinkgoHelper()
	text := "a"
	version := &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: f.nameOf(name) + "-" + number},
		Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: f.nameOf(name)}, Version: number,
			Templates: map[string]string{"config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}\n" +
				"data:\n  text: \"{{ .Params.TEXT }}\"\n  count: \"{{ .Params.COUNT }}\"\n"},
			Parameters: []kudo.Parameter{
				{Name: "TEXT", Default: &text}, {Name: "COUNT", Type: kudo.IntegerType, Default: ptrTo("1")},
			},
			Tasks: []kudo.Task{{Name: "config", Kind: kudo.TaskApply, Spec: kudo.TaskSpec{
				ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"config.yaml"}},
			}}},
			Plans: map[string]kudo.Plan{kudo.DeployPlan: {Phases: []kudo.Phase{{
				Name: "main", Steps: []kudo.Step{{Name: "main", Tasks: []string{"config"}}},
			}}}},
		},
	}
	change(version)
	Expect(server.Create(ctx, version)).To(Succeed())
	return version
}

func ptrTo[T any](value T) *T { return &value }

// runs makes a definition run an OperatorVersion by default.
func runs(version *kudo.OperatorVersion) func(*addonv1alpha1.ClusterManagementAddOn) {
	return func(d *addonv1alpha1.ClusterManagementAddOn) {
		d.Spec.SupportedConfigs = []upstream.ConfigMeta{
			{
				ConfigGroupResource: resource(addonv1alpha1.GroupKudo, addonv1alpha1.ResourceOperatorVersions),
				DefaultConfig:       &upstream.ConfigReferent{Namespace: version.Namespace, Name: version.Name},
			},
			{ConfigGroupResource: resource(addonv1alpha1.GroupVersion.Group, addonv1alpha1.ResourceAddOnDeploymentConfigs)},
		}
	}
}

// withDefault makes the AddOnDeploymentConfig the default of a definition.
func withDefault(config *addonv1alpha1.AddOnDeploymentConfig) func(*addonv1alpha1.ClusterManagementAddOn) {
	return func(d *addonv1alpha1.ClusterManagementAddOn) {
		group := resource(addonv1alpha1.GroupVersion.Group, addonv1alpha1.ResourceAddOnDeploymentConfigs)
		d.Spec.SupportedConfigs = slices.DeleteFunc(d.Spec.SupportedConfigs, func(c upstream.ConfigMeta) bool { return c.ConfigGroupResource == group })
		d.Spec.SupportedConfigs = append(d.Spec.SupportedConfigs, upstream.ConfigMeta{
			ConfigGroupResource: group, DefaultConfig: &upstream.ConfigReferent{Namespace: config.Namespace, Name: config.Name},
		})
	}
}

func both(changes ...func(*addonv1alpha1.ClusterManagementAddOn)) func(*addonv1alpha1.ClusterManagementAddOn) {
	return func(d *addonv1alpha1.ClusterManagementAddOn) {
		for _, change := range changes {
			change(d)
		}
	}
}

func resource(group, name string) upstream.ConfigGroupResource {
	return upstream.ConfigGroupResource{Group: group, Resource: name}
}

// variables stores an AddOnDeploymentConfig with variables, as NAME, VALUE, NAME, VALUE.
func (f fleet) variables(ctx context.Context, name, namespace string, pairs ...string) *addonv1alpha1.AddOnDeploymentConfig {
	GinkgoHelper()
	config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: f.nameOf(name)}}
	for at := 0; at < len(pairs); at += 2 {
		config.Spec.CustomizedVariables = append(config.Spec.CustomizedVariables,
			upstream.CustomizedVariable{Name: pairs[at], Value: pairs[at+1]})
	}
	Expect(server.Create(ctx, config)).To(Succeed())
	return config
}

// configMap stores a ConfigMap with parameters, as NAME, VALUE, NAME, VALUE.
func (f fleet) configMap(ctx context.Context, name, namespace string, pairs ...string) *corev1.ConfigMap {
	GinkgoHelper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: f.nameOf(name), Labels: map[string]string{kudo.LabelConfiguration: "true"},
	}, Data: map[string]string{}}
	for at := 0; at < len(pairs); at += 2 {
		config.Data[pairs[at]] = pairs[at+1]
	}
	Expect(server.Create(ctx, config)).To(Succeed())
	return config
}

// withConfigs sets the configuration objects of an add-on, in that order.
func withConfigs(configs ...client.Object) func(*addonv1alpha1.ManagedClusterAddOn) {
	return func(a *addonv1alpha1.ManagedClusterAddOn) {
		for _, config := range configs {
			group := resource(addonv1alpha1.GroupVersion.Group, addonv1alpha1.ResourceAddOnDeploymentConfigs)
			switch config.(type) {
			case *kudo.OperatorVersion:
				group = resource(addonv1alpha1.GroupKudo, addonv1alpha1.ResourceOperatorVersions)
			case *corev1.ConfigMap:
				group = resource("", addonv1alpha1.ResourceConfigMaps)
			}
			a.Spec.Configs = append(a.Spec.Configs, upstream.AddOnConfig{
				ConfigGroupResource: group,
				ConfigReferent:      upstream.ConfigReferent{Namespace: config.GetNamespace(), Name: config.GetName()},
			})
		}
	}
}

// instanceOf returns the Instance of an add-on, by name.
func instanceOf(addOn *addonv1alpha1.ManagedClusterAddOn) *kudo.Instance {
	return &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: addOn.Namespace, Name: addOn.Name}}
}

// exists reports whether an object exists, for Eventually.
func exists(object client.Object) func(Gomega, context.Context) bool {
	return func(g Gomega, ctx context.Context) bool {
		err := server.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		return err == nil
	}
}

// specOf returns the spec of an Instance, for Eventually.
func specOf(instance *kudo.Instance) func(Gomega, context.Context) kudo.InstanceSpec {
	return func(g Gomega, ctx context.Context) kudo.InstanceSpec {
		current := &kudo.Instance{}
		g.Expect(server.Get(ctx, client.ObjectKeyFromObject(instance), current)).To(Succeed())
		return current.Spec
	}
}

// executes reports, as the agent does, that a request for a plan was handled.
func executes(ctx context.Context, instance *kudo.Instance, request types.UID) {
	GinkgoHelper()
	Eventually(func() error {
		return apply.Status(ctx, server, get(ctx, instance), "addon-agent-report", map[string]any{
			"execution": map[string]any{"uid": string(request), "plan": "deploy", "request": string(request)},
		})
	}).WithContext(ctx).Should(Succeed())
}

// on lists the writes of objects in a cluster's namespace. Objects of earlier specs, mainly add-ons whose definition was deleted with its
// spec, may still be settling and are ignored.
func on(cluster string, writes *environment.Writes) func() []string {
	return func() []string {
		return slices.DeleteFunc(writes.Requests(), func(request string) bool {
			return !strings.Contains(request, "/namespaces/"+cluster+"/")
		})
	}
}

// count returns the number of requests with that path suffix.
func count(requests []string, path string) int {
	n := 0
	for _, request := range requests {
		if strings.HasSuffix(request, path) {
			n++
		}
	}
	return n
}

// reportRemoved reports, as the agent does, that nothing of an Instance remains on its cluster.
func reportRemoved(ctx context.Context, instance *kudo.Instance) {
	GinkgoHelper()
	Eventually(func() error {
		current := get(ctx, instance)
		_, err := apply.Condition(ctx, server, current, current.Status.Conditions, "addon-agent-report", metav1.Condition{
			Type: kudo.ConditionReady, Status: metav1.ConditionFalse, Reason: kudo.ReasonRemoved,
		}, time.Now())
		return err
	}).WithContext(ctx).Should(Succeed())
}

const packages = kudo.DefaultPackagesNamespace
