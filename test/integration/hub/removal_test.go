package hub

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("Add-ons that are removed together", func() {
	var (
		f       fleet
		cluster string
	)
	BeforeEach(runWithoutWebhooks)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
	})
	// runsOn installs an add-on that runs a package and is available.
	runsOn := func(ctx context.Context, name string, needs ...need) *addonv1alpha1.ManagedClusterAddOn {
		GinkgoHelper()
		f.define(ctx, name, both(runs(f.push(ctx, name, packages)), f.withNeeds(needs...)))
		addOn := f.enable(ctx, cluster, name)
		Eventually(exists(instanceOf(addOn))).WithContext(ctx).Should(BeTrue())
		Eventually(resolvedOf(instanceOf(addOn))).WithContext(ctx).Should(HaveField("Status", "True"))
		report(ctx, addOn, metav1.ConditionTrue, "PlanComplete")
		return addOn
	}
	isDeleted := func(addOn *addonv1alpha1.ManagedClusterAddOn) func(Gomega, context.Context) bool {
		return func(g Gomega, ctx context.Context) bool {
			instance := instanceOf(addOn)
			g.Expect(server.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
			return instance.DeletionTimestamp != nil
		}
	}
	// removes acts as the agent, and expects that the add-on is gone then.
	removes := func(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) {
		GinkgoHelper()
		Eventually(isDeleted(addOn)).WithContext(ctx).Should(BeTrue())
		reportRemoved(ctx, instanceOf(addOn))
		Eventually(exists(addOn)).WithContext(ctx).Should(BeFalse())
	}
	waitsFor := func(names string) seen {
		return seen{"True", "WaitingForDependents", "it is removed once " + names}
	}
	remaining := func(addOn *addonv1alpha1.ManagedClusterAddOn) func(Gomega, context.Context) seen {
		return conditionOf(addOn, "AddOnsRemaining")
	}

	It("go one after the other, those that depend on others first, in whatever order they are deleted", func(ctx SpecContext) {
		zookeeper := runsOn(ctx, "zookeeper")
		kafka := runsOn(ctx, "kafka", need{Name: "zookeeper"})
		shop := runsOn(ctx, "shop", need{Name: "kafka", Type: addonv1alpha1.DependencyTypeOptional})
		other := f.define(ctx, "other", f.withNeeds(need{Name: "zookeeper"}))
		staying := f.enable(ctx, cluster, "other")
		Expect(other.Name).To(Equal(staying.Name))
		stopHub() // in time, see below
		for _, addOn := range []client.Object{zookeeper, kafka, shop} {
			Expect(server.Delete(ctx, addOn)).To(Succeed())
		}
		_, stopHub = runHub()
		Eventually(isDeleted(shop)).WithContext(ctx).Should(BeTrue())
		Eventually(remaining(kafka)).WithContext(ctx).Should(Equal(waitsFor(shop.Name + " is gone, which depends on it")))
		Eventually(remaining(zookeeper)).WithContext(ctx).Should(Equal(waitsFor(kafka.Name + " is gone, which depends on it")))
		Eventually(eventsOn(zookeeper)).WithContext(ctx).Should(ContainElement(
			"Normal WaitingForDependents: it is removed once " + kafka.Name + " is gone, which depends on it"))
		By("an add-on that stays sees no removal that has not started")
		expectDegraded(ctx, staying, none)
		staysDegraded(ctx, staying, none)
		Consistently(isDeleted(zookeeper)).WithContext(ctx).Should(BeFalse())
		Expect(isDeleted(kafka)(Default, ctx)).To(BeFalse())
		f.writesNothing(ctx, cluster)

		removes(ctx, shop)
		Eventually(isDeleted(kafka)).WithContext(ctx).Should(BeTrue())
		Expect(remaining(kafka)(Default, ctx)).To(Equal(none))
		Consistently(isDeleted(zookeeper)).WithContext(ctx).Should(BeFalse())
		removes(ctx, kafka)
		Eventually(isDeleted(zookeeper)).WithContext(ctx).Should(BeTrue())
		expectDegraded(ctx, staying, unmet("RequiredDependencyNotSatisfied", f.missingText("Required", "zookeeper")))
		removes(ctx, zookeeper)
	})

	It("are removed in that order even if the dependent is deleted a moment later", func(ctx SpecContext) {
		anchor := runsOn(ctx, "anchor")
		boat := runsOn(ctx, "boat", need{Name: "anchor"})
		// One request deletes both, in the order of their names.
		Expect(server.DeleteAllOf(ctx, &addonv1alpha1.ManagedClusterAddOn{}, client.InNamespace(cluster))).To(Succeed())
		Eventually(remaining(anchor)).WithContext(ctx).Should(Equal(waitsFor(boat.Name + " is gone, which depends on it")))
		Eventually(isDeleted(boat)).WithContext(ctx).Should(BeTrue())
		Expect(isDeleted(anchor)(Default, ctx)).To(BeFalse())
		removes(ctx, boat)
		removes(ctx, anchor)
	})

	It("wait for one that another controller holds up, and name it", func(ctx SpecContext) {
		zookeeper := runsOn(ctx, "zookeeper")
		f.define(ctx, "kafka", f.withNeeds(need{Name: "zookeeper"}))
		kafka := f.enable(ctx, cluster, "kafka", hold)
		Expect(server.Delete(ctx, kafka)).To(Succeed())
		Expect(server.Delete(ctx, zookeeper)).To(Succeed())
		Eventually(remaining(zookeeper)).WithContext(ctx).Should(Equal(waitsFor(kafka.Name + " is gone, which depends on it")))
		Consistently(isDeleted(zookeeper)).WithContext(ctx).Should(BeFalse())
		By("a later installation, which waits, too")
		f.define(ctx, "late", both(runs(f.push(ctx, "late", packages)), f.withNeeds(need{Name: "zookeeper"})))
		late := f.enable(ctx, cluster, "late")
		Eventually(conditionOf(late, "Resolved")).WithContext(ctx).Should(HaveField("Reason", "WaitingForDependencies"))
		Consistently(exists(instanceOf(late))).WithContext(ctx).Should(BeFalse())
		By("the end of the other one")
		edit(ctx, kafka, release)
		removes(ctx, zookeeper)
	})

	It("do not wait for one whose dependency is no longer declared", func(ctx SpecContext) {
		zookeeper := runsOn(ctx, "zookeeper")
		definition := f.define(ctx, "kafka", f.withNeeds(need{Name: "zookeeper"}))
		kafka := f.enable(ctx, cluster, "kafka", hold)
		DeferCleanup(func(ctx SpecContext) { edit(ctx, kafka, release) })
		Expect(server.Delete(ctx, kafka)).To(Succeed())
		Expect(server.Delete(ctx, zookeeper)).To(Succeed())
		Eventually(remaining(zookeeper)).WithContext(ctx).Should(HaveField("Status", "True"))
		edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) { d.Spec.Dependencies = nil })
		removes(ctx, zookeeper)
	})

	It("do not wait for one that stays, that another add-on serves, or that depends on them in a cycle", func(ctx SpecContext) {
		zookeeper := runsOn(ctx, "zookeeper")
		etcd := runsOn(ctx, "etcd")
		kafka := runsOn(ctx, "kafka", need{Name: "zookeeper", Alternatives: []string{"etcd"}})
		Expect(server.Delete(ctx, zookeeper)).To(Succeed())
		Expect(server.Delete(ctx, kafka)).To(Succeed())
		Eventually(isDeleted(zookeeper)).WithContext(ctx).Should(BeTrue())
		Eventually(isDeleted(kafka)).WithContext(ctx).Should(BeTrue())
		removes(ctx, kafka)
		removes(ctx, zookeeper)

		By("an add-on that stays delays it only until it could have been deleted, too")
		shop := f.define(ctx, "shop", f.withNeeds(need{Name: "etcd"}))
		f.enable(ctx, cluster, "shop")
		Expect(server.Delete(ctx, etcd)).To(Succeed())
		Eventually(isDeleted(etcd)).WithContext(ctx).Should(BeTrue())
		Expect(remaining(etcd)(Default, ctx)).To(Equal(none))
		Expect(get(ctx, shop).Spec.Dependencies).To(HaveLen(1))
		removes(ctx, etcd)

		By("a cycle")
		definition := f.define(ctx, "a", runs(f.push(ctx, "a", packages)))
		a := f.enable(ctx, cluster, "a")
		Eventually(exists(instanceOf(a))).WithContext(ctx).Should(BeTrue())
		report(ctx, a, metav1.ConditionTrue, "PlanComplete")
		b := runsOn(ctx, "b", need{Name: "a"})
		edit(ctx, definition, f.withNeeds(need{Name: "b"}))
		expectDegraded(ctx, a, unmet("RequiredDependencyNotSatisfied", "circular dependency: "+a.Name+" -> "+b.Name+" -> "+a.Name))
		Expect(server.Delete(ctx, a)).To(Succeed())
		Expect(server.Delete(ctx, b)).To(Succeed())
		Eventually(isDeleted(a)).WithContext(ctx).Should(BeTrue())
		Eventually(isDeleted(b)).WithContext(ctx).Should(BeTrue())
		removes(ctx, a)
		removes(ctx, b)
	})

	It("do not wait for each other on a cluster that is detached, nor if they are released", func(ctx SpecContext) {
		zookeeper := runsOn(ctx, "zookeeper")
		kafka := runsOn(ctx, "kafka", need{Name: "zookeeper"})
		etcd := runsOn(ctx, "etcd")
		f.define(ctx, "shop", f.withNeeds(need{Name: "etcd"}))
		shop := f.enable(ctx, cluster, "shop", hold)
		for _, addOn := range []client.Object{shop, etcd, kafka, zookeeper} {
			Expect(server.Delete(ctx, addOn)).To(Succeed())
		}
		Eventually(remaining(zookeeper)).WithContext(ctx).Should(HaveField("Status", "True"))
		Eventually(remaining(etcd)).WithContext(ctx).Should(HaveField("Status", "True"))
		By("a release of the Instance, whose objects stay")
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+kudo.AnnotationForceRelease+`":"true"}}}`))
		Expect(server.Patch(ctx, instanceOf(etcd), patch)).To(Succeed())
		Eventually(exists(etcd)).WithContext(ctx).Should(BeFalse())
		By("the end of the cluster")
		Expect(server.Delete(ctx, managedCluster(cluster))).To(Succeed())
		Eventually(exists(zookeeper)).WithContext(ctx).Should(BeFalse())
		Eventually(exists(kafka)).WithContext(ctx).Should(BeFalse())
		edit(ctx, shop, release)
	})
})
