package delivery

import (
	"context"
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// push stores an OperatorVersion with parameter TEXT, and others.
func push(ctx context.Context, operator string, parameters ...string) *kudo.OperatorVersion {
	GinkgoHelper()
	operator += "-" + rand.String(6)
	text := "zero"
	version := &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: operator + "-1.0.0"},
		Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: operator}, Version: "1.0.0",
			Parameters: []kudo.Parameter{{Name: "TEXT", Default: &text}},
			Tasks:      []kudo.Task{{Name: "nothing", Kind: kudo.TaskDummy, Spec: kudo.TaskSpec{DummyTaskSpec: kudo.DummyTaskSpec{Done: true}}}},
			Plans: map[string]kudo.Plan{kudo.DeployPlan: {Phases: []kudo.Phase{{
				Name: "main", Steps: []kudo.Step{{Name: "main", Tasks: []string{"nothing"}}},
			}}}},
		},
	}
	for _, name := range parameters {
		version.Spec.Parameters = append(version.Spec.Parameters, kudo.Parameter{Name: name, Default: &text})
	}
	Expect(server.Create(ctx, version)).To(Succeed())
	return version
}

// define creates a ClusterManagementAddOn that runs the version by default.
func define(ctx context.Context, name string, version *kudo.OperatorVersion) *addonv1alpha1.ClusterManagementAddOn {
	GinkgoHelper()
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + rand.String(6)}}
	definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
	byDefault := referent(version)
	definition.Spec.SupportedConfigs = []upstream.ConfigMeta{
		{ConfigGroupResource: operatorVersions, DefaultConfig: &byDefault}, {ConfigGroupResource: deploymentConfigs},
	}
	Expect(server.Create(ctx, definition)).To(Succeed())
	return definition
}

// instanceOf returns the Instance of an add-on, by name.
func instanceOf(addOn *addonv1alpha1.ManagedClusterAddOn) *kudo.Instance {
	return &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: addOn.Namespace, Name: addOn.Name}}
}

// awaitFinalizer waits until the hub has added its finalizer to an Instance, and therefore waits for its agent on deletion.
func awaitFinalizer(ctx context.Context, instance *kudo.Instance) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) []string {
		current := &kudo.Instance{}
		g.Expect(server.Get(ctx, client.ObjectKeyFromObject(instance), current)).To(Succeed())
		return current.Finalizers
	}).WithContext(ctx).Should(ContainElement(kudo.Finalizer))
}

// reportRemoved reports, as addon-agent does, that nothing of an Instance remains on its cluster.
func reportRemoved(ctx context.Context, instance *kudo.Instance) {
	GinkgoHelper()
	current := get(ctx, instance)
	_, err := apply.Condition(ctx, server, current, current.Status.Conditions, "addon-agent-report", metav1.Condition{
		Type: kudo.ConditionReady, Status: metav1.ConditionFalse, Reason: kudo.ReasonRemoved,
	}, time.Now())
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("The rollout of a plan-based add-on", func() {
	var (
		cluster string
		version *kudo.OperatorVersion
		config  *addonv1alpha1.AddOnDeploymentConfig
		kafka   *addonv1alpha1.ManagedClusterAddOn
	)
	BeforeEach(func(ctx SpecContext) {
		cluster, version = register(ctx), push(ctx, "kafka")
		config = deploymentConfig(ctx, cluster, func(c *upstream.AddOnDeploymentConfigSpec) {
			c.CustomizedVariables = []upstream.CustomizedVariable{{Name: "TEXT", Value: "one"}}
		})
		definition := define(ctx, "kafka", version)
		place(ctx, definition.Name, version, config)
		kafka = enable(ctx, cluster, definition.Name)
		rollOut(ctx, kafka)
		Eventually(text(kafka)).WithContext(ctx).Should(Equal("one"))
	})

	It("is marked once the plan has ended, in OCM's words", func(ctx SpecContext) {
		Eventually(conditionOf(kafka, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"False", "PlanNotComplete"}))
		Expect(get(ctx, kafka).Status.SupportedConfigs).To(ConsistOf(deploymentConfigs, operatorVersions, configMaps))
		Expect(exists(mark(kafka))(Default, ctx)).To(BeFalse(), "OCM says that it is progressing")

		reports(ctx, instanceOf(kafka), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
		Eventually(conditionOf(kafka, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"True", "PlanComplete"}))
		current := get(ctx, workNamed(kafka.Namespace, "addon-"+kafka.Name+"-plan"))
		Expect(current.Labels).To(HaveKeyWithValue("open-cluster-management.io/addon-name", kafka.Name))
		Expect(metav1.GetControllerOf(current).UID).To(Equal(kafka.UID))
		Expect(current.Spec.ManifestConfigs[0].UpdateStrategy.Type).To(BeEquivalentTo("ReadOnly"))
	})

	It("continues with the next configuration where OCM requests it, and reports when that is reached", func(ctx SpecContext) {
		reports(ctx, instanceOf(kafka), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
		hashes := progressionHashes(kafka.Name)(Default, ctx)

		By("a config that changes, while other clusters are rolled out")
		say(ctx, config, "two")
		Eventually(progressionHashes(kafka.Name)).WithContext(ctx).ShouldNot(Equal(hashes))
		Consistently(text(kafka)).WithContext(ctx).Should(Equal("one"))

		By("the rollout to this cluster, whose plan leaves the add-on available")
		rollOut(ctx, kafka)
		Eventually(text(kafka)).WithContext(ctx).Should(Equal("two"))
		reports(ctx, instanceOf(kafka), metav1.ConditionFalse, kudo.ReasonPlanInProgress)
		current := get(ctx, kafka)
		_, err := apply.Condition(ctx, server, current, current.Status.Conditions, "addon-agent-availability", metav1.Condition{
			Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonUpdating,
		}, time.Now())
		Expect(err).NotTo(HaveOccurred())
		Eventually(conditionOf(kafka, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"False", "PlanNotComplete"}))
		Consistently(markHashes(kafka)).WithContext(ctx).Should(BeEmpty(), "OCM goes no further")

		By("a plan that fails")
		reports(ctx, instanceOf(kafka), metav1.ConditionFalse, kudo.ReasonPlanFailed)
		Eventually(conditionOf(kafka, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"False", "PlanNotComplete"}))
		Consistently(markHashes(kafka)).WithContext(ctx).Should(BeEmpty(), "OCM goes no further")

		By("the plan that ends well after all, and an add-on that fails later")
		reports(ctx, instanceOf(kafka), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
		Eventually(conditionOf(kafka, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"True", "PlanComplete"}))
		reports(ctx, instanceOf(kafka), metav1.ConditionFalse, kudo.ReasonUnhealthy)
		Consistently(conditionOf(kafka, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"True", "PlanComplete"}))
	})

	It("has a configuration that it goes back to reached again", func(ctx SpecContext) {
		reports(ctx, instanceOf(kafka), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
		first := desiredHashes(ctx, kafka)
		for _, value := range []string{"two", "one"} {
			before := progressionHashes(kafka.Name)(Default, ctx)
			say(ctx, config, value)
			Eventually(progressionHashes(kafka.Name)).WithContext(ctx).ShouldNot(Equal(before))
			rollOut(ctx, kafka)
			Eventually(text(kafka)).WithContext(ctx).Should(Equal(value))
			reports(ctx, instanceOf(kafka), metav1.ConditionFalse, kudo.ReasonPlanFailed)
			Eventually(conditionOf(kafka, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"False", "PlanNotComplete"}))
			Consistently(markHashes(kafka)).WithContext(ctx).Should(BeEmpty())
		}
		Expect(desiredHashes(ctx, kafka)).To(Equal(first))
		reports(ctx, instanceOf(kafka), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(first))
	})

	It("stops at a configuration with a misspelt parameter, and continues with the corrected one", func(ctx SpecContext) {
		reports(ctx, instanceOf(kafka), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
		rollOutAs := func(name, value string) {
			GinkgoHelper()
			before := progressionHashes(kafka.Name)(Default, ctx)
			edit(ctx, config, func(c *addonv1alpha1.AddOnDeploymentConfig) {
				c.Spec.CustomizedVariables = []upstream.CustomizedVariable{{Name: name, Value: value}}
			})
			Eventually(progressionHashes(kafka.Name)).WithContext(ctx).ShouldNot(Equal(before))
			rollOut(ctx, kafka)
		}
		rollOutAs("TEXTS", "two")
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(seen{"False", "ConfigurationInvalid"}))
		Eventually(conditionOf(kafka, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"False", "PlanNotComplete"}))
		Eventually(rolloutState(kafka)).WithContext(ctx).Should(Equal("Failed"))
		Consistently(markHashes(kafka)).WithContext(ctx).ShouldNot(Equal(desiredHashes(ctx, kafka)), "OCM goes no further")
		Expect(text(kafka)(Default, ctx)).To(Equal("one"))

		rollOutAs("TEXT", "two")
		Eventually(text(kafka)).WithContext(ctx).Should(Equal("two"))
		Eventually(rolloutState(kafka)).WithContext(ctx).Should(Equal("Progressing"))
		reports(ctx, instanceOf(kafka), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
		Eventually(rolloutState(kafka)).WithContext(ctx).Should(BeEmpty())
	})

	It("continues once another version explains the variable, although the Instance does not change", func(ctx SpecContext) {
		reports(ctx, instanceOf(kafka), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
		wider := push(ctx, "wider", "AMOUNT")
		place(ctx, kafka.Name, wider, config)
		rollOut(ctx, kafka)
		Eventually(runs(kafka)).WithContext(ctx).Should(Equal(wider.Name))
		reports(ctx, instanceOf(kafka), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))

		before := progressionHashes(kafka.Name)(Default, ctx)
		edit(ctx, config, func(c *addonv1alpha1.AddOnDeploymentConfig) {
			c.Spec.CustomizedVariables = append(c.Spec.CustomizedVariables, upstream.CustomizedVariable{Name: "AMOUNTS", Value: "1"})
		})
		Eventually(progressionHashes(kafka.Name)).WithContext(ctx).ShouldNot(Equal(before))
		rollOut(ctx, kafka)
		Eventually(rolloutState(kafka)).WithContext(ctx).Should(Equal("Failed"))
		next := wider.DeepCopy()
		next.ObjectMeta = metav1.ObjectMeta{Namespace: wider.Namespace, Name: wider.Spec.Operator.Name + "-2.0.0"}
		next.Spec.Version, next.Spec.Parameters = "2.0.0", append(next.Spec.Parameters, kudo.Parameter{Name: "AMOUNTS"})
		Expect(server.Create(ctx, next)).To(Succeed())
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
		Eventually(rolloutState(kafka)).WithContext(ctx).Should(BeEmpty())
	})

	It("waits until the cluster has been healthy for the required time, and stops at a malformed one", func(ctx SpecContext) {
		soaks := func(status metav1.ConditionStatus, reason string) {
			GinkgoHelper()
			own, now := get(ctx, instanceOf(kafka)), metav1.Now().UTC().Format(time.RFC3339)
			condition := func(name string, status metav1.ConditionStatus, reason string) any {
				return map[string]any{"type": name, "status": string(status), "reason": reason, "message": "healthy since noon",
					"observedGeneration": own.Generation, "lastTransitionTime": now}
			}
			conditions := []any{condition(kudo.ConditionReady, metav1.ConditionTrue, kudo.ReasonHealthy)}
			if reason != "" {
				conditions = append(conditions, condition(kudo.ConditionSoaked, status, reason))
			}
			Expect(apply.Status(ctx, server, own, "addon-agent-report", map[string]any{
				"conditions": conditions, "soak": map[string]any{"execution": "e"},
				"execution": map[string]any{"uid": "e", "plan": "deploy", "operatorVersion": map[string]any{"uid": string(version.UID)}},
			})).To(Succeed())
		}
		annotate := func(object client.Object, value string) {
			GinkgoHelper()
			patch := `{"metadata":{"annotations":{"` + kudo.AnnotationHealthyFor + `":` + value + `}}}`
			Expect(server.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
		}
		requires := func(ctx context.Context) string {
			if required := get(ctx, instanceOf(kafka)).Spec.HealthyFor; required != nil {
				return required.Duration.String()
			}
			return ""
		}
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: kafka.Name}}
		annotate(definition, `"10m"`)
		Eventually(requires).WithContext(ctx).Should(Equal("10m0s"))

		By("an agent of an earlier version")
		soaks("", "")
		Eventually(conditionOf(kafka, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"False", "AgentTooOld"}))
		Consistently(markHashes(kafka)).WithContext(ctx).Should(BeEmpty(), "OCM goes no further")

		By("the time in which it has to be healthy")
		soaks(metav1.ConditionFalse, kudo.ReasonSoaking)
		Eventually(conditionOf(kafka, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"False", "Soaking"}))
		Eventually(rolloutState(kafka)).WithContext(ctx).Should(Equal("Soaking"))
		Consistently(markHashes(kafka)).WithContext(ctx).Should(BeEmpty(), "OCM goes no further")
		soaks(metav1.ConditionFalse, kudo.ReasonSoakFailed)
		Eventually(rolloutState(kafka)).WithContext(ctx).Should(Equal("Failed"))
		Expect(markHashes(kafka)(Default, ctx)).To(BeEmpty())

		By("a malformed time")
		annotate(config, `"soon"`)
		soaks(metav1.ConditionTrue, kudo.ReasonHealthyLongEnough)
		Eventually(conditionOf(kafka, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"False", "HealthyForInvalid"}))
		Consistently(markHashes(kafka)).WithContext(ctx).Should(BeEmpty(), "OCM goes no further")
		annotate(config, "null")
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
		Eventually(conditionOf(kafka, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"True", "PlanComplete"}))

		By("a longer time, and a malformed one, after the end")
		annotate(definition, `"1h"`)
		Eventually(requires).WithContext(ctx).Should(Equal("1h0m0s"))
		soaks(metav1.ConditionFalse, kudo.ReasonSoaking)
		annotate(config, `"soon"`)
		Consistently(conditionOf(kafka, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"True", "PlanComplete"}))
		Expect(markHashes(kafka)(Default, ctx)).To(Equal(desiredHashes(ctx, kafka)))
	})

	It("does not take what an add-on of the same name has reached for its own", func(ctx SpecContext) {
		reports(ctx, instanceOf(kafka), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
		awaitFinalizer(ctx, instanceOf(kafka))
		Expect(server.Delete(ctx, kafka)).To(Succeed())
		reportRemoved(ctx, instanceOf(kafka))
		Eventually(exists(kafka)).WithContext(ctx).Should(BeFalse())
		Expect(exists(mark(kafka))(Default, ctx)).To(BeTrue(), "there is no garbage collector here")

		again := enable(ctx, cluster, kafka.Name)
		rollOut(ctx, again)
		Eventually(text(again)).WithContext(ctx).Should(Equal("one"))
		Eventually(conditionOf(again, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"False", "PlanNotComplete"}))
		Eventually(markHashes(again)).WithContext(ctx).Should(BeEmpty())
		reports(ctx, instanceOf(again), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(again)).WithContext(ctx).Should(Equal(desiredHashes(ctx, again)))
		Expect(metav1.IsControlledBy(get(ctx, mark(again)), again)).To(BeTrue())
	})

	It("is not marked once the add-on is no longer plan-based", func(ctx SpecContext) {
		reports(ctx, instanceOf(kafka), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
		Eventually(conditionOf(kafka, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"True", "PlanComplete"}))
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: kafka.Name}}
		edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.SupportedConfigs = []upstream.ConfigMeta{{ConfigGroupResource: deploymentConfigs}}
		})
		Eventually(exists(mark(kafka))).WithContext(ctx).Should(BeFalse(), "OCM counts every ManifestWork of an add-on")
		Eventually(conditionOf(kafka, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{}))
		Expect(get(ctx, kafka).Status.SupportedConfigs).To(BeEmpty())
		awaitNoWrites(ctx, cluster)
	})

	It("follows another OperatorVersion", func(ctx SpecContext) {
		next := push(ctx, "kafka-next")
		place(ctx, kafka.Name, next, config)
		Eventually(progressionHashes(kafka.Name)).WithContext(ctx).ShouldNot(ContainElement(""))
		rollOut(ctx, kafka)
		Eventually(runs(kafka)).WithContext(ctx).Should(Equal(next.Name))
		reports(ctx, instanceOf(kafka), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
	})

	It("fills in the hashes of configs that the add-on names itself", func(ctx SpecContext) {
		own := enable(ctx, cluster, define(ctx, "own", version).Name, func(a *addonv1alpha1.ManagedClusterAddOn) {
			a.Spec.Configs = []upstream.AddOnConfig{{ConfigGroupResource: deploymentConfigs, ConfigReferent: referent(config)}}
		})
		place(ctx, own.Name, version)
		Eventually(progressionHashes(own.Name)).WithContext(ctx).ShouldNot(ContainElement(""))
		configure(ctx, own,
			upstream.InstallConfigReference{
				ConfigGroupResource: deploymentConfigs, DesiredConfig: &upstream.ConfigSpecHash{ConfigReferent: referent(config)},
			},
			upstream.InstallConfigReference{ConfigGroupResource: operatorVersions, DesiredConfig: &upstream.ConfigSpecHash{
				ConfigReferent: referent(version), SpecHash: progressionHashes(own.Name)(Default, ctx)[0],
			}})
		hash := func(g Gomega, ctx context.Context) string {
			current := &addonv1alpha1.ManagedClusterAddOn{}
			g.Expect(server.Get(ctx, client.ObjectKeyFromObject(own), current)).To(Succeed())
			return current.Status.ConfigReferences[0].DesiredConfig.SpecHash
		}
		Eventually(hash).WithContext(ctx).ShouldNot(BeEmpty())
		Eventually(text(own)).WithContext(ctx).Should(Equal("one"))
		first := hash(Default, ctx)
		say(ctx, config, "two")
		Eventually(hash).WithContext(ctx).ShouldNot(Equal(first))
		Eventually(text(own)).WithContext(ctx).Should(Equal("two"))
	})

	// Each cache of addon-manager is filled independently, so that the cache of marks may be current while others are stale.
	It("is not marked again after the removal of the add-on, although the first view of the add-on is stale", func(ctx SpecContext) {
		reports(ctx, instanceOf(kafka), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
		awaitFinalizer(ctx, instanceOf(kafka))
		awaitNoWrites(ctx, cluster)
		view := get(ctx, kafka).ResourceVersion
		Expect(server.Delete(ctx, kafka)).To(Succeed())
		reportRemoved(ctx, instanceOf(kafka))
		Eventually(exists(kafka)).WithContext(ctx).Should(BeFalse())
		Expect(server.Delete(ctx, mark(kafka))).To(Succeed(), "as the garbage collector does")
		stopHub()

		current := runStaleHub(view, "managedclusteraddons", "instances")
		Consistently(exists(mark(kafka))).WithContext(ctx).Should(BeFalse())
		current()
		Consistently(exists(mark(kafka))).WithContext(ctx).Should(BeFalse())
	})

	It("is not marked for a plan that has not ended, although the first view of the Instance is from an earlier rollout", func(ctx SpecContext) {
		reports(ctx, instanceOf(kafka), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
		view := get(ctx, instanceOf(kafka)).ResourceVersion
		for _, value := range []string{"two", "one"} {
			before := progressionHashes(kafka.Name)(Default, ctx)
			say(ctx, config, value)
			Eventually(progressionHashes(kafka.Name)).WithContext(ctx).ShouldNot(Equal(before))
			rollOut(ctx, kafka)
			Eventually(text(kafka)).WithContext(ctx).Should(Equal(value))
			reports(ctx, instanceOf(kafka), metav1.ConditionFalse, kudo.ReasonPlanFailed)
			Eventually(conditionOf(kafka, "ManifestApplied")).WithContext(ctx).Should(Equal(seen{"False", "PlanNotComplete"}))
			Eventually(markHashes(kafka)).WithContext(ctx).Should(BeEmpty())
		}
		stopHub()

		current := runStaleHub(view, "instances")
		Consistently(markHashes(kafka)).WithContext(ctx).Should(BeEmpty(), "OCM goes no further")
		current()
		reports(ctx, instanceOf(kafka), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
	})

	It("stays marked, although the first view of the definition is from before it was plan-based", func(ctx SpecContext) {
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: kafka.Name}}
		configs := get(ctx, definition).Spec.SupportedConfigs
		stopHub()
		edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) { d.Spec.SupportedConfigs = configs[1:] })
		view := get(ctx, definition).ResourceVersion
		edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) { d.Spec.SupportedConfigs = configs })
		_, stop := runHub(started)
		reports(ctx, instanceOf(kafka), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
		stop()

		current := runStaleHub(view, "clustermanagementaddons")
		uid := get(ctx, mark(kafka)).GetUID()
		Consistently(exists(mark(kafka))).WithContext(ctx).Should(BeTrue())
		current()
		Consistently(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
		Expect(get(ctx, mark(kafka)).GetUID()).To(Equal(uid), "it was not deleted in between")
	})

	It("is quiet at rest, and after a restart", func(ctx SpecContext) {
		reports(ctx, instanceOf(kafka), metav1.ConditionTrue, kudo.ReasonHealthy)
		Eventually(markHashes(kafka)).WithContext(ctx).Should(Equal(desiredHashes(ctx, kafka)))
		awaitNoWrites(ctx, cluster)
		stopHub()
		again, _ := runHub(started)
		other := push(ctx, "other")
		Eventually(exists(instanceOf(enable(ctx, register(ctx), define(ctx, "other", other).Name)))).WithContext(ctx).Should(BeTrue(), "it works again")
		Consistently(in(cluster, again)).Should(BeEmpty())
	})
})

// text returns the parameter of an add-on's Instance, for Eventually; empty if there is none.
func text(addOn *addonv1alpha1.ManagedClusterAddOn) func(Gomega, context.Context) string {
	return func(g Gomega, ctx context.Context) string {
		current := instanceOf(addOn)
		g.Expect(client.IgnoreNotFound(server.Get(ctx, client.ObjectKeyFromObject(current), current))).To(Succeed())
		return current.Spec.Parameters["TEXT"]
	}
}

// runs returns the OperatorVersion of an add-on's Instance, for Eventually.
func runs(addOn *addonv1alpha1.ManagedClusterAddOn) func(Gomega, context.Context) string {
	return func(g Gomega, ctx context.Context) string {
		current := instanceOf(addOn)
		g.Expect(server.Get(ctx, client.ObjectKeyFromObject(current), current)).To(Succeed())
		return current.Spec.OperatorVersion.Name
	}
}

// rolloutState returns the state of an add-on's rollout on its cluster according to the metric, for Eventually; empty if it is finished.
func rolloutState(addOn *addonv1alpha1.ManagedClusterAddOn) func(Gomega) string {
	return func(g Gomega) string {
		families, err := metrics.Registry.Gather()
		g.Expect(err).NotTo(HaveOccurred())
		for _, family := range families {
			for _, metric := range family.Metric {
				if family.GetName() == "addon_rollout_unfinished" && metric.Label[0].GetValue() == addOn.Name {
					return metric.Label[1].GetValue()
				}
			}
		}
		return ""
	}
}

// mark returns the ManifestWork that reports the progress of an add-on to OCM.
func mark(addOn *addonv1alpha1.ManagedClusterAddOn) client.Object {
	return workNamed(addOn.Namespace, "addon-"+addOn.Name+"-plan")
}

// markHashes returns its content, for Eventually; nil if it does not exist.
func markHashes(addOn *addonv1alpha1.ManagedClusterAddOn) func(Gomega, context.Context) map[string]string {
	return func(g Gomega, ctx context.Context) map[string]string {
		current := mark(addOn)
		err := server.Get(ctx, client.ObjectKeyFromObject(current), current)
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		var says map[string]string
		if spelt, found := current.GetAnnotations()["open-cluster-management.io/config-spec-hash"]; found {
			g.Expect(json.Unmarshal([]byte(spelt), &says)).To(Succeed())
		}
		return says
	}
}

// desiredHashes returns the hashes that OCM compares the mark with.
func desiredHashes(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) map[string]string {
	GinkgoHelper()
	hashes := map[string]string{}
	for _, r := range get(ctx, addOn).Status.ConfigReferences {
		hashes[r.Resource+"."+r.Group+"/"+r.DesiredConfig.Namespace+"/"+r.DesiredConfig.Name] = r.DesiredConfig.SpecHash
	}
	return hashes
}
