package hub

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

var _ = Describe("The dependency controller", func() {
	var (
		f       fleet
		cluster string
	)
	BeforeEach(unchecked)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
	})
	unmet := func(dependencyType, name, rest string) seen {
		reason := "RequiredDependencyNotSatisfied"
		if dependencyType == "Optional" {
			reason = "DependencyNotSatisfied"
		}
		return seen{"True", reason, dependencyType + " addon '" + f.named(name) + "' is not installed or not available." + rest}
	}

	DescribeTable("plays the proposal's workflow with dependencies declared by",
		func(ctx SpecContext, declare func() func(*addonv1alpha1.ClusterManagementAddOn)) {
			By("installing A, which needs B, without B")
			f.define(ctx, "b", nil)
			f.define(ctx, "a", declare())
			a := f.enable(ctx, cluster, "a")
			want := unmet("Required", "b", " No storage")
			Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(want))
			Eventually(eventsOn(a)).WithContext(ctx).Should(ContainElement(
				"Warning RequiredDependencyNotSatisfied: not satisfied: Required " + f.named("b") + " (NotInstalled)"))

			By("installing B, which is not available yet")
			b := f.enable(ctx, cluster, "b")
			Consistently(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(want))

			By("B becoming available")
			report(ctx, b, metav1.ConditionTrue, "Works")
			Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(none))
			Eventually(eventsOn(a)).WithContext(ctx).Should(ContainElement(
				"Normal DependenciesSatisfied: all dependencies are satisfied; before: RequiredDependencyNotSatisfied"))

			By("B becoming unavailable, and available again")
			report(ctx, b, metav1.ConditionFalse, "Broken")
			Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(want))
			report(ctx, b, metav1.ConditionTrue, "Works")
			Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(none))

			By("deleting B")
			Expect(server.Delete(ctx, b)).To(Succeed())
			Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(want))
		},
		Entry("the field", func() func(*addonv1alpha1.ClusterManagementAddOn) {
			return f.needing(addonv1alpha1.AddonDependency{Name: "b", Message: "No storage"})
		}),
		Entry("the annotation", func() func(*addonv1alpha1.ClusterManagementAddOn) {
			return annotated(`[{"name":"` + f.named("b") + `","message":"No storage"}]`)
		}),
	)

	It("names Required ones before Optional ones, and keeps to the reason of the gravest", func(ctx SpecContext) {
		f.define(ctx, "a", f.needing(
			addonv1alpha1.AddonDependency{Name: "graphs", Type: addonv1alpha1.DependencyTypeOptional, Message: "No graphs"},
			addonv1alpha1.AddonDependency{Name: "storage"}))
		a := f.enable(ctx, cluster, "a")
		required, optional := unmet("Required", "storage", ""), unmet("Optional", "graphs", " No graphs")
		Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(
			seen{"True", required.Reason, required.Message + "\n" + optional.Message}))

		storage := f.enable(ctx, cluster, "storage")
		report(ctx, storage, metav1.ConditionTrue, "Works")
		Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(optional))
	})

	It("judges each cluster by itself, and anew when the declaration changes", func(ctx SpecContext) {
		definition := f.define(ctx, "a", f.needing(addonv1alpha1.AddonDependency{Name: "b"}))
		other := f.cluster(ctx, "other")
		here, there := f.enable(ctx, cluster, "a"), f.enable(ctx, other, "a")
		report(ctx, f.enable(ctx, cluster, "b"), metav1.ConditionTrue, "Works")
		Eventually(conditionOf(there, "Degraded")).WithContext(ctx).Should(Equal(unmet("Required", "b", "")))
		Eventually(conditionOf(here, "Degraded")).WithContext(ctx).Should(Equal(none))

		definition.Spec.Dependencies[0].Type = addonv1alpha1.DependencyTypeOptional
		Expect(server.Update(ctx, definition)).To(Succeed())
		Eventually(conditionOf(there, "Degraded")).WithContext(ctx).Should(Equal(unmet("Optional", "b", "")))

		definition.Spec.Dependencies = nil
		Expect(server.Update(ctx, definition)).To(Succeed())
		Eventually(conditionOf(there, "Degraded")).WithContext(ctx).Should(Equal(none))
	})

	It("holds its verdict while the cluster is cut off, through a restart too", func(ctx SpecContext) {
		f.define(ctx, "a", f.needing(addonv1alpha1.AddonDependency{Name: "b"}, addonv1alpha1.AddonDependency{Name: "c"}))
		a, b, c := f.enable(ctx, cluster, "a"), f.enable(ctx, cluster, "b"), f.enable(ctx, cluster, "c")
		report(ctx, b, metav1.ConditionTrue, "Works")
		report(ctx, c, metav1.ConditionFalse, "Broken")
		Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(unmet("Required", "c", "")))

		report(ctx, b, metav1.ConditionUnknown, addonv1alpha1.ReasonClusterLeaseStopped)
		report(ctx, c, metav1.ConditionUnknown, addonv1alpha1.ReasonClusterLeaseStopped)
		Consistently(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(unmet("Required", "c", "")))
		stopHub()
		runHub()
		Consistently(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(unmet("Required", "c", "")))

		report(ctx, b, metav1.ConditionTrue, "Works")
		report(ctx, c, metav1.ConditionTrue, "Works")
		Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(none))
		report(ctx, b, metav1.ConditionUnknown, addonv1alpha1.ReasonClusterLeaseStopped)
		Consistently(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(none))
	})

	It("keeps the last verdict when the annotation becomes malformed, and says so once", func(ctx SpecContext) {
		definition := f.define(ctx, "a", annotated(`[{"name":"`+f.named("b")+`"}]`))
		other := f.cluster(ctx, "other")
		here, there := f.enable(ctx, cluster, "a"), f.enable(ctx, other, "a")
		for _, a := range []*addonv1alpha1.ManagedClusterAddOn{here, there} {
			Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(unmet("Required", "b", "")))
		}
		definition.Annotations[addonv1alpha1.AnnotationDependencies] = `[{"name":"b","kind":"Optional"}]`
		Expect(server.Update(ctx, definition)).To(Succeed())

		warning := `Warning DependenciesMalformed: ClusterManagementAddOn "` + definition.Name +
			`": annotation addon.open-cluster-management.io/dependencies: reading JSON: unknown field "[0].kind"` +
			`; the last verdict stays on every cluster`
		Eventually(eventsOn(definition)).WithContext(ctx).Should(Equal([]string{warning}))
		Consistently(eventsOn(definition)).WithContext(ctx).Should(HaveLen(1))
		Expect(conditionOf(here, "Degraded")(Default, ctx)).To(Equal(unmet("Required", "b", "")))

		definition = get(ctx, definition)
		definition.Annotations[addonv1alpha1.AnnotationDependencies] = `[]`
		Expect(server.Update(ctx, definition)).To(Succeed())
		Eventually(conditionOf(here, "Degraded")).WithContext(ctx).Should(Equal(none))
	})

	It("leaves another writer's Degraded alone, and takes it only while a dependency is unmet", func(ctx SpecContext) {
		f.define(ctx, "a", f.needing(addonv1alpha1.AddonDependency{Name: "b"}))
		b := f.enable(ctx, cluster, "b")
		report(ctx, b, metav1.ConditionTrue, "Works")
		a := f.enable(ctx, cluster, "a")
		setCondition(ctx, a, "someone", metav1.Condition{Type: "Degraded", Status: metav1.ConditionTrue, Reason: "DiskFull"})
		report(ctx, b, metav1.ConditionTrue, "StillWorks")
		Consistently(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(seen{"True", "DiskFull", ""}))

		report(ctx, b, metav1.ConditionFalse, "Broken")
		Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(unmet("Required", "b", "")))

		By("the other writer insisting")
		setCondition(ctx, a, "someone", metav1.Condition{Type: "Degraded", Status: metav1.ConditionFalse, Reason: "Fine"})
		Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(unmet("Required", "b", "")))

		report(ctx, b, metav1.ConditionTrue, "Works")
		Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(none))
	})

	It("writes nothing at rest, nor when it is started again", func(ctx SpecContext) {
		f.define(ctx, "a", f.needing(addonv1alpha1.AddonDependency{Name: "b"}))
		a, b := f.enable(ctx, cluster, "a"), f.enable(ctx, cluster, "b")
		Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(unmet("Required", "b", "")))
		before := get(ctx, a).ResourceVersion
		stopHub()

		writes, _ := runHub()
		Consistently(on(cluster, writes)).Should(BeEmpty())
		Expect(get(ctx, a).ResourceVersion).To(Equal(before))

		By("changing what does not matter, and then what does")
		report(ctx, b, metav1.ConditionFalse, "Broken")
		Consistently(on(cluster, writes)).Should(BeEmpty())
		report(ctx, b, metav1.ConditionTrue, "Works")
		Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(none))
		Expect(on(cluster, writes)()).To(Equal([]string{"PATCH /apis/addon.open-cluster-management.io/v1alpha1/namespaces/" + cluster +
			"/managedclusteraddons/" + a.Name + "/status"}))
	})

	It("writes only its own field", func(ctx SpecContext) {
		f.define(ctx, "a", f.needing(addonv1alpha1.AddonDependency{Name: "b"}))
		a := f.enable(ctx, cluster, "a")
		report(ctx, a, metav1.ConditionTrue, "Works")
		Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(unmet("Required", "b", "")))
		var managers []string
		for _, entry := range get(ctx, a).ManagedFields {
			managers = append(managers, entry.Manager+" "+string(entry.Operation)+" "+entry.Subresource)
		}
		Expect(managers).To(ConsistOf(
			HavePrefix("hub.test Update"), // who enabled it
			Equal("addon-manager-dependency Apply status"), Equal("addon-agent-availability Apply status")))
	})
})
