package hub

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// timesKept counts the events which say that a dependency stays enabled, for Eventually.
func timesKept(addOn client.Object) func(Gomega, context.Context) int {
	return func(g Gomega, ctx context.Context) int {
		var found eventsv1.EventList
		g.Expect(server.List(ctx, &found, client.InNamespace(addOn.GetNamespace()))).To(Succeed())
		times := 0
		for _, event := range found.Items {
			if event.Regarding.UID != addOn.GetUID() || event.Reason != "DependencyKept" {
				continue
			}
			times++
			if event.Series != nil { // its first event is the one that counts them
				times += int(event.Series.Count) - 1
			}
		}
		return times
	}
}

var _ = Describe("A dependency with install Auto", func() {
	var (
		f       fleet
		cluster string
		target  *addonv1alpha1.ClusterManagementAddOn
	)
	auto := func(name string) need { return need{Name: name, Install: addonv1alpha1.InstallAuto} }
	addOn := func(name string) *addonv1alpha1.ManagedClusterAddOn {
		return &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: f.nameOf(name)}}
	}
	// noted returns an annotation of an add-on that exists.
	noted := func(name, annotation string) func(Gomega, context.Context) string {
		return func(g Gomega, ctx context.Context) string {
			current := addOn(name)
			g.Expect(client.IgnoreNotFound(server.Get(ctx, client.ObjectKeyFromObject(current), current))).To(Succeed())
			return current.Annotations[annotation]
		}
	}
	askers := func(dependents ...*addonv1alpha1.ManagedClusterAddOn) string {
		var asking []dependency.Asker
		for _, d := range dependents {
			asking = append(asking, dependency.Asker{Name: d.Name, UID: d.UID})
		}
		return dependency.FormatAskers(asking)
	}
	remove := func(ctx context.Context, names ...string) {
		GinkgoHelper()
		for _, name := range names {
			Expect(server.Delete(ctx, addOn(name))).To(Succeed())
			Eventually(exists(addOn(name))).WithContext(ctx).Should(BeFalse())
		}
	}
	staysAway := func(ctx context.Context, name string) {
		GinkgoHelper()
		Consistently(exists(addOn(name))).WithContext(ctx).WithTimeout(time.Second).Should(BeFalse())
	}

	BeforeEach(runWithoutWebhooks)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
		target = f.define(ctx, "zk", f.needs())
	})
	AfterEach(func(ctx SpecContext) {
		f.writesNothing(ctx, cluster)
		Expect(server.DeleteAllOf(ctx, &addonv1alpha1.ManagedClusterAddOn{}, client.InNamespace(cluster))).To(Succeed())
	})

	It("is enabled with its dependents, and disabled after the last of them", func(ctx SpecContext) {
		edit(ctx, target, f.withNeeds(auto("disk")))
		f.define(ctx, "disk", f.needs())
		f.define(ctx, "kafka", f.withNeeds(auto("zk")))
		f.define(ctx, "solr", f.withNeeds(auto("zk")))
		kafka := f.enable(ctx, cluster, "kafka")
		Eventually(noted("zk", addonv1alpha1.AnnotationInstalledFor)).WithContext(ctx).Should(Equal(askers(kafka)))
		Eventually(noted("kafka", addonv1alpha1.AnnotationInstalledWith)).WithContext(ctx).Should(Equal(f.nameOf("zk")))
		Eventually(noted("zk", addonv1alpha1.AnnotationInstalledWith)).WithContext(ctx).Should(Equal(f.nameOf("disk")))
		Eventually(eventsOn(kafka)).WithContext(ctx).Should(ContainElement(ContainSubstring("enabled " + f.nameOf("zk") + ", a dependency with install: Auto")))
		zk := get(ctx, addOn("zk"))
		Eventually(noted("disk", addonv1alpha1.AnnotationInstalledFor)).WithContext(ctx).Should(Equal(askers(zk)))

		solr := f.enable(ctx, cluster, "solr")
		Eventually(noted("zk", addonv1alpha1.AnnotationInstalledFor)).WithContext(ctx).Should(Equal(askers(kafka, solr)))
		remove(ctx, "kafka")
		Consistently(exists(zk)).WithContext(ctx).Should(BeTrue())
		remove(ctx, "solr")
		Eventually(exists(zk)).WithContext(ctx).Should(BeFalse())
		Eventually(exists(addOn("disk"))).WithContext(ctx).Should(BeFalse())
	})

	It("is not enabled again after it was disabled, also not by a process with an old view", func(ctx SpecContext) {
		f.define(ctx, "kafka", f.withNeeds(auto("zk")))
		kafka := f.enable(ctx, cluster, "kafka")
		view := revision(ctx)
		Eventually(noted("kafka", addonv1alpha1.AnnotationInstalledWith)).WithContext(ctx).Should(Equal(f.nameOf("zk")))
		remove(ctx, "zk")
		staysAway(ctx, "zk")
		stopHub()
		current := runStaleHub("managedclusteraddons", view)
		staysAway(ctx, "zk")
		current()
		staysAway(ctx, "zk")
		expectDegraded(ctx, kafka, f.requiredUnmet("zk"))

		By("another dependent, or the same one after it was disabled, asks again")
		f.define(ctx, "solr", f.withNeeds(auto("zk")))
		solr := f.enable(ctx, cluster, "solr")
		Eventually(noted("zk", addonv1alpha1.AnnotationInstalledFor)).WithContext(ctx).Should(Equal(askers(kafka, solr)))
		Eventually(noted("solr", addonv1alpha1.AnnotationInstalledWith)).WithContext(ctx).Should(Equal(f.nameOf("zk")))
	})

	It("is installed in the namespace of its dependent, and not where an old view has it", func(ctx SpecContext) {
		stopHub()
		edit(ctx, target, runs(f.push(ctx, "zk", packages)))
		f.define(ctx, "kafka", both(runs(f.push(ctx, "kafka", packages)), f.withNeeds(auto("zk"))))
		kafka := f.enable(ctx, cluster, "kafka", func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.InstallNamespace = "before" })
		view := revision(ctx)
		edit(ctx, kafka, func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.InstallNamespace = "after" })
		current := runStaleHub("managedclusteraddons", view)
		staysAway(ctx, "zk")
		current()
		Eventually(exists(addOn("zk"))).WithContext(ctx).Should(BeTrue())
		zk := get(ctx, addOn("zk"))
		Expect(zk.Spec.InstallNamespace).To(Equal("after"))
		Eventually(noted("kafka", addonv1alpha1.AnnotationInstalledWith)).WithContext(ctx).Should(Equal(zk.Name))
		Eventually(conditionOf(zk, "Resolved")).WithContext(ctx).Should(HaveField("Status", "True"))
		Eventually(resolvedOf(instanceOf(zk))).WithContext(ctx).Should(HaveField("Status", "True"))
		expectDegraded(ctx, kafka, f.requiredUnmet("zk"))
		Eventually(func(g Gomega, ctx context.Context) {
			current := get(ctx, kafka)
			resolved := meta.FindStatusCondition(current.Status.Conditions, addonv1alpha1.ConditionResolved)
			g.Expect(resolved).To(HaveField("Reason", "WaitingForDependencies"))
			g.Expect(resolved.ObservedGeneration).To(Equal(current.Generation))
		}).WithContext(ctx).Should(Succeed())
	})

	It("stays while its dependent is there, whatever happens to labels and declarations, and if a user has enabled it", func(ctx SpecContext) {
		definition := f.define(ctx, "kafka", f.withNeeds(need{Name: "zk", Install: addonv1alpha1.InstallAuto, Clusters: withLabel("gpu")}))
		kafka := f.enable(ctx, cluster, "kafka")
		staysAway(ctx, "zk")
		describeCluster(ctx, cluster, map[string]string{"gpu": "true"}, "v1.37.2")
		Eventually(noted("kafka", addonv1alpha1.AnnotationInstalledWith)).WithContext(ctx).Should(Equal(f.nameOf("zk")))
		stays := func(times int) {
			GinkgoHelper()
			Eventually(timesKept(kafka)).WithContext(ctx).Should(Equal(times))
		}
		describeCluster(ctx, cluster, nil, "v1.37.2")
		stays(1)
		Expect(eventsOn(kafka)(Default, ctx)).To(ContainElement("Normal DependencyKept: add-on " + f.nameOf("zk") + " was enabled automatically for this add-on and stays enabled, " +
			"although this add-on no longer requests it with install: Auto on this cluster; it is disabled after this add-on is deleted, unless another add-on depends on it"))
		describeCluster(ctx, cluster, map[string]string{"gpu": "true"}, "v1.37.2")
		expectDegraded(ctx, kafka, f.requiredUnmet("zk"))
		edit(ctx, definition, f.needs())
		stays(2)
		edit(ctx, definition, f.needs(need{Name: "disk", Type: "Optional"}))
		expectDegraded(ctx, kafka, f.optionalUnmet("disk"))
		Consistently(timesKept(kafka)).WithContext(ctx).WithTimeout(time.Second).Should(Equal(2), "nothing has changed for zk")
		Expect(exists(addOn("zk"))(Default, ctx)).To(BeTrue())

		By("a hub that starts")
		stopHub()
		_, stopHub = runHub()
		edit(ctx, definition, f.needs())
		expectDegraded(ctx, kafka, none)
		Consistently(timesKept(kafka)).WithContext(ctx).WithTimeout(time.Second).Should(Equal(2))

		By("a user takes it over, as 'kubectl addon enable' does")
		Expect(environment.Edit(ctx, server, addOn("zk"), func(a *addonv1alpha1.ManagedClusterAddOn) {
			delete(a.Annotations, addonv1alpha1.AnnotationInstalledFor)
		})).To(Succeed())
		remove(ctx, "kafka")
		Consistently(exists(addOn("zk"))).WithContext(ctx).Should(BeTrue())
	})

	It("is not enabled against a Placement, without a definition, beside an alternative or on a cycle", func(ctx SpecContext) {
		edit(ctx, target, func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyPlacements
		})
		f.define(ctx, "redpanda", f.needs())
		f.define(ctx, "loop", f.withNeeds(need{Name: "kafka", Clusters: withLabel("gpu")}))
		describeCluster(ctx, cluster, map[string]string{"gpu": "true"}, "v1.37.2")
		f.enable(ctx, cluster, "redpanda")
		f.define(ctx, "kafka", f.withNeeds(auto("zk"), auto("nowhere"), auto("loop"),
			need{Name: "pulsar", Install: addonv1alpha1.InstallAuto, Alternatives: []string{"redpanda"}}))
		f.define(ctx, "pulsar", f.needs())
		kafka := f.enable(ctx, cluster, "kafka")
		Eventually(conditionOf(kafka, "Degraded")).WithContext(ctx).Should(HaveField("Status", "True"))
		for _, name := range []string{"zk", "nowhere", "loop", "pulsar"} {
			staysAway(ctx, name)
		}
		By("once no Placement decides, and there is a definition")
		edit(ctx, target, func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
		})
		Eventually(exists(addOn("zk"))).WithContext(ctx).Should(BeTrue())
		f.define(ctx, "nowhere", f.needs())
		Eventually(noted("kafka", addonv1alpha1.AnnotationInstalledWith)).WithContext(ctx).Should(Equal(f.nameOf("nowhere") + "," + f.nameOf("zk")))
	})
})
