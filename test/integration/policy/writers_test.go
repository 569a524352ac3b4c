package policy

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// What OCM's writers say of an add-on.
var (
	leaseUpdated = condition("Available", "True", "ManagedClusterAddOnLeaseUpdated", "the add-on is available.")
	leaseStopped = condition("Available", "False", "ManagedClusterAddOnLeaseUpdateStopped", "the add-on is not available.")
	leaseMissing = condition("Available", "Unknown", "ManagedClusterAddOnLeaseNotFound", "The status of the add-on is unknown.")
	workApplied  = condition("Available", "True", "WorkApplied", "Addon manifestWork is applied")
	unreachable  = condition("Available", "Unknown", addonv1alpha1.ReasonClusterLeaseStopped, "Registration agent stopped updating its lease.")
	ownDegraded  = condition("Degraded", "True", "DiskFull", "the add-on's own word")
	ownRecovered = condition("Degraded", "False", "DiskFree", "the add-on's own word")
	stale        = condition("Degraded", "True", requiredUnmet.Reason, "from before")
)

// of is what a spec expects where a condition is stored as it was written.
func of(c metav1.Condition) seen { return seen{string(c.Status), c.Reason, c.Message} }

// A write by somebody who knows nothing of dependencies is never refused, and ends as the verdict wants it.
var _ = DescribeTableSubtree("A writer of OCM's kind that",
	func(says word, underRequired, underOptional, otherwise [2]seen) {
		for _, version := range versions {
			for by, send := range ways {
				ends := func(want [2]seen, enabled func(context.Context) types.NamespacedName) func(SpecContext) {
					return func(ctx SpecContext) {
						key := enabled(ctx)
						var last string
						for range 3 {
							object := read(ctx, version, key)
							Expect(send(ctx, tandem.asOCM(), object, says)).To(Succeed())
							stored := conditionsOf(object)
							Expect([2]seen{seenOf(stored, "Available"), seenOf(stored, "Degraded")}).To(Equal(want))
							if last != "" {
								Expect(object.GetResourceVersion()).To(Equal(last), "repeating the write changes nothing")
							}
							last = object.GetResourceVersion()
						}
					}
				}
				It("is put right under a Required verdict, by "+by+" in "+version, ends(underRequired, requiring))
				It("is put right under an Optional verdict, by "+by+" in "+version, ends(underOptional, preferring))
				It("has its way without a verdict, by "+by+" in "+version, ends(otherwise, independent))
			}
		}
	},
	Entry("says that the add-on's lease is fresh", word{conditions: []metav1.Condition{leaseUpdated}},
		[2]seen{gated, requiredUnmet}, [2]seen{of(leaseUpdated), optionalUnmet}, [2]seen{of(leaseUpdated), none}),
	Entry("says that the add-on's lease has stopped", word{conditions: []metav1.Condition{leaseStopped}},
		[2]seen{gated, requiredUnmet}, [2]seen{of(leaseStopped), optionalUnmet}, [2]seen{of(leaseStopped), none}),
	Entry("says that the add-on has no lease", word{conditions: []metav1.Condition{leaseMissing}},
		[2]seen{gated, requiredUnmet}, [2]seen{of(leaseMissing), optionalUnmet}, [2]seen{of(leaseMissing), none}),
	Entry("says that the add-on's work is applied", word{conditions: []metav1.Condition{workApplied}},
		[2]seen{gated, requiredUnmet}, [2]seen{of(workApplied), optionalUnmet}, [2]seen{of(workApplied), none}),
	Entry("says that the cluster cannot be reached", word{conditions: []metav1.Condition{unreachable}},
		[2]seen{of(unreachable), requiredUnmet}, [2]seen{of(unreachable), optionalUnmet}, [2]seen{of(unreachable), none}),
	Entry("has a Degraded of its own", word{conditions: []metav1.Condition{leaseUpdated, ownDegraded}},
		[2]seen{gated, requiredUnmet}, [2]seen{of(leaseUpdated), optionalUnmet}, [2]seen{of(leaseUpdated), of(ownDegraded)}),
	Entry("takes a Degraded of its own back", word{conditions: []metav1.Condition{leaseUpdated, ownRecovered}},
		[2]seen{gated, requiredUnmet}, [2]seen{of(leaseUpdated), optionalUnmet}, [2]seen{of(leaseUpdated), of(ownRecovered)}),
	Entry("knows of no condition but Available", word{conditions: []metav1.Condition{leaseUpdated}, alone: true},
		[2]seen{gated, requiredUnmet}, [2]seen{of(leaseUpdated), optionalUnmet}, [2]seen{of(leaseUpdated), none}),
	Entry("empties the conditions", word{alone: true},
		[2]seen{none, requiredUnmet}, [2]seen{none, optionalUnmet}, [2]seen{none, none}),
	Entry("still holds a verdict from before", word{conditions: []metav1.Condition{leaseUpdated, stale}},
		[2]seen{gated, requiredUnmet}, [2]seen{of(leaseUpdated), optionalUnmet}, [2]seen{of(leaseUpdated), none}),
)

var _ = Describe("Degraded and Available", func() {
	It("never contradict each other, from the write on that brings the verdict", func(ctx SpecContext) {
		key := types.NamespacedName{Namespace: cluster, Name: "flips"}
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		addOn.Namespace, addOn.Name = key.Namespace, key.Name
		Expect(server.Create(ctx, addOn)).To(Succeed())
		object := read(ctx, "v1alpha1", key)
		Expect(mergePatch(ctx, tandem.asOCM(), object, word{conditions: []metav1.Condition{leaseUpdated}})).To(Succeed())
		watch, err := server.Watch(ctx, &addonv1alpha1.ManagedClusterAddOnList{}, client.InNamespace(cluster),
			client.MatchingFields{"metadata.name": key.Name})
		Expect(err).NotTo(HaveOccurred())
		defer watch.Stop()

		define(ctx, server, key.Name, needs(addonv1alpha1.DependencyTypeRequired))

		var states [][2]seen
		Eventually(func(g Gomega) [][2]seen {
			var event = <-watch.ResultChan()
			conditions := event.Object.(*addonv1alpha1.ManagedClusterAddOn).Status.Conditions
			states = append(states, [2]seen{seenOf(conditions, "Available"), seenOf(conditions, "Degraded")})
			return states
		}).WithContext(ctx).Should(HaveLen(2))
		Expect(states).To(Equal([][2]seen{{of(leaseUpdated), none}, {gated, requiredUnmet}}))
	})

	It("leave Available to its writer's name when addon-manager's own write flips it", func(ctx SpecContext) {
		key := enable(ctx, server)
		object := read(ctx, "v1alpha1", key)
		Expect(serverSideApply(ctx, tandem.asAgent(cluster), object, word{conditions: []metav1.Condition{workApplied}})).To(Succeed())
		definition := &addonv1alpha1.ClusterManagementAddOn{}
		Expect(server.Get(ctx, types.NamespacedName{Name: key.Name}, definition)).To(Succeed())
		definition.Spec.Dependencies = []addonv1alpha1.AddonDependency{needs(addonv1alpha1.DependencyTypeRequired)}
		Expect(server.Update(ctx, definition)).To(Succeed())
		Eventually(stands(server, key, "Available")).WithContext(ctx).Should(Equal(gated))
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		Expect(server.Get(ctx, key, addOn)).To(Succeed())
		available := addOn.Status.Conditions[slices.IndexFunc(addOn.Status.Conditions, func(c metav1.Condition) bool { return c.Type == "Available" })]
		Expect(available.ObservedGeneration).To(Equal(addOn.Generation), "what the agent would write next")
		holders := map[string]string{}
		for _, entry := range addOn.ManagedFields {
			if entry.Subresource == "status" {
				holders[entry.Manager] = string(entry.FieldsV1.Raw)
			}
		}
		Expect(holders).To(HaveLen(2))
		Expect(holders["applier"]).To(And(ContainSubstring("Available"), Not(ContainSubstring("Degraded"))))
		Expect(holders["addon-manager-dependency"]).To(And(ContainSubstring("Degraded"), Not(ContainSubstring("Available"))))
	})

	It("come back to their writers when the verdict is released", func(ctx SpecContext) {
		key := judged(ctx, addonv1alpha1.DependencyTypeRequired, requiredUnmet)
		object := read(ctx, "v1alpha1", key)
		Expect(mergePatch(ctx, tandem.asOCM(), object, word{conditions: []metav1.Condition{leaseUpdated}})).To(Succeed())
		Expect(seenOf(conditionsOf(object), "Available")).To(Equal(gated))
		Expect(server.Delete(ctx, &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: key.Name}})).To(Succeed())
		Eventually(stands(server, key, "Degraded")).WithContext(ctx).Should(Equal(none))
		object = read(ctx, "v1alpha1", key)
		Expect(mergePatch(ctx, tandem.asOCM(), object, word{conditions: []metav1.Condition{leaseUpdated}})).To(Succeed())
		Expect(seenOf(conditionsOf(object), "Available")).To(Equal(of(leaseUpdated)))
	})

	It("are administrators' to change, who hold the verb judge", func(ctx SpecContext) {
		key := judged(ctx, addonv1alpha1.DependencyTypeOptional, optionalUnmet)
		object := read(ctx, "v1alpha1", key)
		Expect(mergePatch(ctx, server, object, word{alone: true})).To(Succeed())
		Expect(conditionsOf(object)).To(BeEmpty())
		Eventually(stands(server, key, "Degraded")).WithContext(ctx).Should(Equal(optionalUnmet), "and addon-manager's to mend")
	})
})
