package hub

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var _ = Describe("The namespace of another cluster", func() {
	var (
		f              fleet
		cluster, other string
		version        *kudo.OperatorVersion
		config         *addonv1alpha1.AddOnDeploymentConfig
	)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster, other = f.cluster(ctx, "cluster"), f.cluster(ctx, "other")
		version = f.push(ctx, "kafka", packages)
		config = f.variables(ctx, "config", other, "TEXT", "secret")
	})
	foreign := func() string { return refusalOf(cluster, config) }
	// placed names the config for a Placement of a definition.
	placed := func(d *addonv1alpha1.ClusterManagementAddOn) {
		d.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyPlacements
		d.Spec.InstallStrategy.Placements = []upstream.PlacementStrategy{{
			PlacementRef: upstream.PlacementRef{Namespace: metav1.NamespaceDefault, Name: "all"},
			Configs: []upstream.AddOnConfig{{
				ConfigGroupResource: resource(addonv1alpha1.GroupVersion.Group, addonv1alpha1.ResourceAddOnDeploymentConfigs),
				ConfigReferent:      upstream.ConfigReferent{Namespace: config.Namespace, Name: config.Name},
			}},
		}}
	}

	Describe("gives no values to an add-on,", func() {
		BeforeEach(runWithoutWebhooks)
		refused := func(ctx context.Context, kafka *addonv1alpha1.ManagedClusterAddOn) {
			GinkgoHelper()
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(seen{"False", "ConfigurationInvalid", foreign()}))
			Expect(exists(instanceOf(kafka))(Default, ctx)).To(BeFalse())
		}

		It("whether the config exists or not", func(ctx SpecContext) {
			f.define(ctx, "kafka", runs(version))
			kafka := f.enable(ctx, cluster, "kafka", withConfigs(config))
			refused(ctx, kafka)
			Expect(server.Delete(ctx, config)).To(Succeed())
			Consistently(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Message", foreign()))
		})

		It("whose definition has it as the default, except on that cluster", func(ctx SpecContext) {
			f.define(ctx, "kafka", both(runs(version), withDefault(config)))
			refused(ctx, f.enable(ctx, cluster, "kafka"))
			there := f.enable(ctx, other, "kafka")
			Eventually(conditionOf(there, "Resolved")).WithContext(ctx).Should(HaveField("Status", "True"))
			Expect(specOf(instanceOf(there))(Default, ctx).Parameters).To(Equal(map[string]string{"TEXT": "secret"}))
		})

		It("whose status refers to it, as OCM resolves a Placement's", func(ctx SpecContext) {
			f.define(ctx, "kafka", runs(version))
			stopHub()
			kafka := f.enable(ctx, cluster, "kafka")
			Expect(environment.EditStatus(ctx, server, kafka, func(a *addonv1alpha1.ManagedClusterAddOn) {
				for _, c := range []client.Object{version, config} {
					named := &addonv1alpha1.ManagedClusterAddOn{}
					withConfigs(c)(named)
					a.Status.ConfigReferences = append(a.Status.ConfigReferences, upstream.ConfigReference{
						ConfigGroupResource: named.Spec.Configs[0].ConfigGroupResource, ConfigReferent: named.Spec.Configs[0].ConfigReferent,
						DesiredConfig: &upstream.ConfigSpecHash{ConfigReferent: named.Spec.Configs[0].ConfigReferent},
					})
				}
			})).To(Succeed())
			setCondition(ctx, kafka, "ocm", metav1.Condition{Type: "Configured", Status: metav1.ConditionTrue, Reason: "Resolved"})
			runHub()
			refused(ctx, kafka)
		})
	})

	It("is judged again when it becomes one, and when it no longer is", func(ctx SpecContext) {
		shared := f.nameOf("shared")
		makeNamespace(ctx, shared)
		stopHub()
		_, stopHub = runHub(withWebhooks, func(_ *rest.Config, options *hub.Options) { options.ConfigNamespaces = []string{shared} })
		config = f.variables(ctx, "config", shared, "TEXT", "one")
		other = shared
		f.define(ctx, "kafka", runs(version))
		kafka := f.enable(ctx, cluster, "kafka", withConfigs(config))
		installed := seen{"True", "Resolved", "OperatorVersion " + packages + "/" + version.Name}
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(installed))
		Expect(specOf(instanceOf(kafka))(Default, ctx).Parameters).To(Equal(map[string]string{"TEXT": "one"}))

		Expect(server.Create(ctx, managedCluster(shared))).To(Succeed())
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(seen{"False", "ConfigurationInvalid", foreign()}))
		edit(ctx, config, func(c *addonv1alpha1.AddOnDeploymentConfig) { c.Spec.CustomizedVariables[0].Value = "two" })
		Consistently(specOf(instanceOf(kafka))).WithContext(ctx).Should(HaveField("Parameters", HaveKeyWithValue("TEXT", "one")))

		Expect(server.Delete(ctx, managedCluster(shared))).To(Succeed())
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(installed))
		Expect(specOf(instanceOf(kafka))(Default, ctx).Parameters).To(Equal(map[string]string{"TEXT": "two"}))
	})

	Describe("is checked by admission:", func() {
		var (
			user  client.Client
			heard *warnings
		)
		BeforeEach(func(ctx SpecContext) {
			user, heard = newUser()
			awaitWebhooks(ctx)
		})
		named := func(change ...func(*addonv1alpha1.ManagedClusterAddOn)) *addonv1alpha1.ManagedClusterAddOn {
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: f.nameOf("kafka")}}
			for _, c := range change {
				c(addOn)
			}
			return addOn
		}
		refused := func(err error) {
			GinkgoHelper()
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(ContainSubstring("ManagedClusterAddOn " + cluster + "/" + f.nameOf("kafka") + ": spec.configs: " + foreign())))
		}
		// known waits until the webhook knows the definition, which it reads from a watch cache.
		known := func(ctx context.Context) {
			GinkgoHelper()
			Eventually(func() error { return user.Create(ctx, named(withConfigs(config)), client.DryRunAll) }).WithContext(ctx).
				Should(MatchError(ContainSubstring(foreign())))
		}

		It("an add-on cannot refer to a config there, in whatever way it is written", func(ctx SpecContext) {
			f.define(ctx, "kafka", runs(version))
			known(ctx)
			refused(user.Create(ctx, named(withConfigs(config))))
			own, shared := f.variables(ctx, "own", cluster), f.variables(ctx, "shared", packages)
			kafka := named(withConfigs(own, shared, version))
			Expect(user.Create(ctx, kafka)).To(Succeed())
			refused(environment.Edit(ctx, user, kafka, withConfigs(config)))
			beta := &unstructured.Unstructured{}
			beta.SetAPIVersion("addon.open-cluster-management.io/v1beta1")
			beta.SetKind("ManagedClusterAddOn")
			beta.SetNamespace(kafka.Namespace)
			beta.SetName(kafka.Name)
			refused(user.Patch(ctx, beta, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"configs":[{"group":"addon.open-cluster-management.io",`+
				`"resource":"addondeploymentconfigs","namespace":"`+config.Namespace+`","name":"`+config.Name+`"}]}}`))))
		})

		It("an add-on with a reference from before can be changed", func(ctx SpecContext) {
			kafka := named(withConfigs(config))
			Expect(user.Create(ctx, kafka)).To(Succeed(), "before the add-on is plan-based")
			f.define(ctx, "kafka", runs(version))
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Reason", "ConfigurationInvalid"))
			own := f.variables(ctx, "own", cluster)
			edit(ctx, kafka, withConfigs(own))
			edit(ctx, kafka, func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.InstallNamespace = "elsewhere" })
		})

		It("addon-agent cannot be configured from there, and add-ons that others run can", func(ctx SpecContext) {
			agent := named(withConfigs(config))
			agent.Name = addonv1alpha1.AgentAddOn
			Expect(user.Create(ctx, agent)).To(MatchError(ContainSubstring(foreign())))
			f.define(ctx, "kafka", func(d *addonv1alpha1.ClusterManagementAddOn) { withDefault(config)(d) })
			Expect(heard.of(func() { Expect(user.Create(ctx, named(withConfigs(config)))).To(Succeed()) })).To(BeEmpty())
		})

		It("a definition that refers to it is stored with a warning", func(ctx SpecContext) {
			warning := "AddOnDeploymentConfig " + other + "/" + config.Name + ` belongs to managed cluster "` + other +
				`", and the add-on is invalid on every other cluster that gets it: move it to a namespace that belongs to no cluster`
			for name, change := range map[string]func(*addonv1alpha1.ClusterManagementAddOn){"a": withDefault(config), "b": placed} {
				definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: f.nameOf(name)}}
				definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
				both(runs(version), change)(definition)
				Expect(heard.of(func() { Expect(user.Create(ctx, definition.DeepCopy(), client.DryRunAll)).To(Succeed()) })).To(Equal([]string{warning}))
				definition = f.define(ctx, name, runs(version))
				Expect(heard.of(func() { Expect(environment.Edit(ctx, user, definition, change)).To(Succeed()) })).To(Equal([]string{warning}))
				Expect(heard.of(func() {
					Expect(environment.Edit(ctx, user, definition, func(d *addonv1alpha1.ClusterManagementAddOn) {
						d.Spec.SupportedConfigs = append(d.Spec.SupportedConfigs, upstream.ConfigMeta{ConfigGroupResource: resource("", "configmaps")})
					})).To(Succeed())
				})).To(BeEmpty(), "once is enough")
			}
		})
	})

	Describe("has OperatorVersions that no status discloses:", func() {
		var parent, child *kudo.OperatorVersion
		BeforeEach(func(ctx SpecContext) {
			runWithoutWebhooks()
			child = f.push(ctx, "child", other)
			parent = parentOf(child)
			Expect(server.Create(ctx, parent)).To(Succeed())
		})
		acknowledged := func(instance *kudo.Instance) func(Gomega, context.Context) []kudo.ChildStatus {
			return func(g Gomega, ctx context.Context) []kudo.ChildStatus {
				current := &kudo.Instance{}
				g.Expect(server.Get(ctx, client.ObjectKeyFromObject(instance), current)).To(Succeed())
				return current.Status.Children
			}
		}
		create := func(ctx context.Context, version *kudo.OperatorVersion) *kudo.Instance {
			GinkgoHelper()
			instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "curious"}}
			instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name}
			Expect(server.Create(ctx, instance)).To(Succeed())
			return instance
		}

		It("no child is rendered from one that an agent claims to run", func(ctx SpecContext) {
			shared := parent.DeepCopy()
			shared.ObjectMeta = metav1.ObjectMeta{Namespace: packages, Name: parent.Name}
			Expect(server.Create(ctx, shared)).To(Succeed())
			instance := create(ctx, shared)
			runsChild(ctx, instance, "1", corev1.ObjectReference{Namespace: other, Name: parent.Name, UID: parent.UID})
			Eventually(acknowledged(instance)).WithContext(ctx).Should(ConsistOf(And(HaveField("State", kudo.ChildFailed),
				HaveField("Message", ContainSubstring(other+"/"+parent.Name+` of the running plan "deploy" no longer exists`)))))
			var instances kudo.InstanceList
			Expect(server.List(ctx, &instances, client.InNamespace(cluster))).To(Succeed())
			Expect(instances.Items).To(HaveLen(1))
		})

		It("no status reveals whether one exists that a spec names", func(ctx SpecContext) {
			instance := create(ctx, parent)
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Reason", "NamespaceNotAllowed"))
			runsChild(ctx, instance, "1", corev1.ObjectReference{Namespace: packages, Name: "gone", UID: "1"})
			Consistently(acknowledged(instance)).WithContext(ctx).Should(BeEmpty())
		})
	})
})

// runsChild reports, as an agent does, that an Instance runs a version of parentOf and waits for its child.
func runsChild(ctx context.Context, instance *kudo.Instance, execution string, runs corev1.ObjectReference) {
	GinkgoHelper()
	task := map[string]any{"name": "child", "status": "IN_PROGRESS"}
	step := map[string]any{"name": "child", "status": "IN_PROGRESS", "tasks": []any{task}}
	phase := map[string]any{"name": "child", "status": "IN_PROGRESS", "steps": []any{step}}
	Eventually(func() error {
		return apply.Status(ctx, server, get(ctx, instance), "addon-agent-report", map[string]any{
			"execution": map[string]any{"uid": execution, "plan": "deploy", "operatorVersion": map[string]any{
				"namespace": runs.Namespace, "name": runs.Name, "uid": string(runs.UID),
			}},
			"planStatus": map[string]any{"deploy": map[string]any{
				"name": "deploy", "uid": execution, "status": "IN_PROGRESS", "phases": []any{phase},
			}},
		})
	}).WithContext(ctx).Should(Succeed())
}

// parentOf returns a version in the namespace of child with a task for it.
func parentOf(child *kudo.OperatorVersion) *kudo.OperatorVersion {
	parent := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: child.Namespace, Name: "parent-of-" + child.Name}}
	parent.Spec.Operator, parent.Spec.Version = corev1.ObjectReference{Name: "parent-of-" + child.Spec.Operator.Name}, "1.0.0"
	parent.Spec.Tasks = []kudo.Task{{Name: "child", Kind: kudo.TaskKudoOperator, Spec: kudo.TaskSpec{
		KudoOperatorTaskSpec: kudo.KudoOperatorTaskSpec{Package: child.Spec.Operator.Name},
	}}}
	parent.Spec.Plans = map[string]kudo.Plan{kudo.DeployPlan: {Phases: []kudo.Phase{{
		Name: "child", Steps: []kudo.Step{{Name: "child", Tasks: []string{"child"}}},
	}}}}
	return parent
}
