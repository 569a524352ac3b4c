package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// The status that OCM's writers set on an add-on.
var (
	leaseUpdated = condition("Available", "True", "ManagedClusterAddOnLeaseUpdated", "the add-on is available.")
	leaseStopped = condition("Available", "False", "ManagedClusterAddOnLeaseUpdateStopped", "the add-on is not available.")
	leaseMissing = condition("Available", "Unknown", "ManagedClusterAddOnLeaseNotFound", "The status of the add-on is unknown.")
	workApplied  = condition("Available", "True", "WorkApplied", "Addon manifestWork is applied")
	unreachable  = condition("Available", "Unknown", addonv1alpha1.ReasonClusterLeaseStopped, "Registration agent stopped updating its lease.")
	ownDegraded  = condition("Degraded", "True", "DiskFull", "the add-on's own word")
	ownRecovered = condition("Degraded", "False", "DiskFree", "the add-on's own word")
	stale        = condition("Degraded", "True", requiredUnmet.Reason, "from before")
	denied       = condition("Degraded", "False", requiredUnmet.Reason, "it is not so")
	verbose      = condition("Available", "True", "Verbose", strings.Repeat("é", 32768)) // the longest possible message
	ownVerbose   = condition("Degraded", "True", "Verbose", strings.Repeat("é", 32768))
)

// of returns the expected state of a condition that is stored as written.
func of(c metav1.Condition) seen { return seen{string(c.Status), c.Reason, c.Message} }

// A write of a client that ignores dependencies is never rejected, and the stored status respects the verdict.
var _ = Describe("A writer of OCM's kind", Label(environment.Mutating), func() {
	// One add-on for each verdict and way to write, so that it has a single writer, because field ownership depends on the writer.
	addOns := map[string]types.NamespacedName{}
	DescribeTableSubtree("that",
		func(says statusWrite, underRequired, underOptional, otherwise [2]seen) {
			for _, version := range versions {
				for by, send := range ways {
					ends := func(verdict string, enabled func(context.Context) types.NamespacedName, want [2]seen) {
						what := fmt.Sprintf("%s, by %s in %s", verdict, by, version)
						It(what, func(ctx SpecContext) {
							if _, ok := addOns[what]; !ok {
								addOns[what] = enabled(ctx)
							}
							forget(ctx, addOns[what])
							var last string
							for tick := range 3 {
								object := read(ctx, version, addOns[what])
								now := time.Now().Add(time.Duration(1+tick) * time.Minute)
								Expect(send(ctx, tandem.asOCM(), object, says.at(now, conditionsOf(object)))).To(Succeed())
								stored := conditionsOf(object)
								Expect([2]seen{seenOf(stored, "Available"), seenOf(stored, "Degraded")}).To(Equal(want))
								if last != "" {
									Expect(object.GetResourceVersion()).To(Equal(last), "repeating the write changes nothing")
								}
								last = object.GetResourceVersion()
							}
						})
					}
					ends("is put right under a Required verdict", newRequiringAddOn, underRequired)
					ends("is put right under an Optional verdict", newPreferringAddOn, underOptional)
					ends("has its way without a verdict", newIndependentAddOn, otherwise)
				}
			}
		},
		Entry("says that the add-on's lease is fresh", statusWrite{conditions: []metav1.Condition{leaseUpdated}},
			[2]seen{gated, requiredUnmet}, [2]seen{of(leaseUpdated), optionalUnmet}, [2]seen{of(leaseUpdated), none}),
		Entry("says that the add-on's lease has stopped", statusWrite{conditions: []metav1.Condition{leaseStopped}},
			[2]seen{gated, requiredUnmet}, [2]seen{of(leaseStopped), optionalUnmet}, [2]seen{of(leaseStopped), none}),
		Entry("says that the add-on has no lease", statusWrite{conditions: []metav1.Condition{leaseMissing}},
			[2]seen{gated, requiredUnmet}, [2]seen{of(leaseMissing), optionalUnmet}, [2]seen{of(leaseMissing), none}),
		Entry("says that the add-on's work is applied", statusWrite{conditions: []metav1.Condition{workApplied}},
			[2]seen{gated, requiredUnmet}, [2]seen{of(workApplied), optionalUnmet}, [2]seen{of(workApplied), none}),
		Entry("says that the cluster cannot be reached", statusWrite{conditions: []metav1.Condition{unreachable}},
			[2]seen{of(unreachable), requiredUnmet}, [2]seen{of(unreachable), optionalUnmet}, [2]seen{of(unreachable), none}),
		Entry("says so, and knows of no other condition", statusWrite{conditions: []metav1.Condition{unreachable}, alone: true},
			[2]seen{of(unreachable), requiredUnmet}, [2]seen{of(unreachable), optionalUnmet}, [2]seen{of(unreachable), none}),
		Entry("has a Degraded of its own", statusWrite{conditions: []metav1.Condition{leaseUpdated, ownDegraded}},
			[2]seen{gated, requiredUnmet}, [2]seen{of(leaseUpdated), optionalUnmet}, [2]seen{of(leaseUpdated), of(ownDegraded)}),
		Entry("takes a Degraded of its own back", statusWrite{conditions: []metav1.Condition{leaseUpdated, ownRecovered}},
			[2]seen{gated, requiredUnmet}, [2]seen{of(leaseUpdated), optionalUnmet}, [2]seen{of(leaseUpdated), of(ownRecovered)}),
		Entry("knows of no condition but Available", statusWrite{conditions: []metav1.Condition{leaseUpdated}, alone: true},
			[2]seen{gated, requiredUnmet}, [2]seen{of(leaseUpdated), optionalUnmet}, [2]seen{of(leaseUpdated), none}),
		Entry("empties the conditions", statusWrite{alone: true},
			[2]seen{none, requiredUnmet}, [2]seen{none, optionalUnmet}, [2]seen{none, none}),
		Entry("denies the verdict", statusWrite{conditions: []metav1.Condition{leaseUpdated, denied}},
			[2]seen{gated, requiredUnmet}, [2]seen{of(leaseUpdated), optionalUnmet}, [2]seen{of(leaseUpdated), none}),
		Entry("has much to say", statusWrite{conditions: []metav1.Condition{verbose, ownVerbose}},
			[2]seen{gated, requiredUnmet}, [2]seen{of(verbose), optionalUnmet}, [2]seen{of(verbose), of(ownVerbose)}),
		Entry("still holds a verdict from before", statusWrite{conditions: []metav1.Condition{leaseUpdated, stale}},
			[2]seen{gated, requiredUnmet}, [2]seen{of(leaseUpdated), optionalUnmet}, [2]seen{of(leaseUpdated), none}),
	)
})

// forget removes all conditions of an add-on except the hub's verdict, as if no other writer had written any.
func forget(ctx context.Context, key types.NamespacedName) {
	GinkgoHelper()
	object := read(ctx, "v1alpha1", key)
	verdict := slices.DeleteFunc(conditionsOf(object), func(c metav1.Condition) bool {
		return !slices.Contains([]string{requiredUnmet.Reason, optionalUnmet.Reason}, c.Reason) || c.Type != "Degraded"
	})
	Expect(mergePatch(ctx, server, object, statusWrite{conditions: verdict, alone: true})).To(Succeed())
}

var _ = Describe("Degraded and Available", Label(environment.Mutating), func() {
	It("never contradict each other, from the write of the verdict on", func(ctx SpecContext) {
		key := types.NamespacedName{Namespace: cluster, Name: "flips"}
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		addOn.Namespace, addOn.Name = key.Namespace, key.Name
		Expect(server.Create(ctx, addOn)).To(Succeed())
		object := read(ctx, "v1alpha1", key)
		Expect(mergePatch(ctx, tandem.asOCM(), object, statusWrite{conditions: []metav1.Condition{leaseUpdated}})).To(Succeed())
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

	for _, version := range versions {
		for by, send := range ways {
			It(fmt.Sprintf("never contradict each other where somebody who judges writes both, by %s in %s", by, version), func(ctx SpecContext) {
				object := read(ctx, version, newIndependentAddOn(ctx))
				Expect(send(ctx, server, object, statusWrite{conditions: []metav1.Condition{leaseUpdated, stale}})).To(Succeed())
				Expect(seenOf(conditionsOf(object), "Available")).To(Equal(seen{"False", stale.Reason, stale.Message}))
				Expect(seenOf(conditionsOf(object), "Degraded")).To(Equal(of(stale)))
			})
		}

		It("keep the verdict when another writer removes the complete status, in "+version, func(ctx SpecContext) {
			key, c := newRequiringAddOn(ctx), tandem.asOCM()
			for by, remove := range map[string]func(*unstructured.Unstructured) error{
				"merge patch": func(object *unstructured.Unstructured) error {
					return c.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"status":null}`)))
				},
				"JSON patch": func(object *unstructured.Unstructured) error {
					return c.Status().Patch(ctx, object, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/status"}]`)))
				},
				"update": func(object *unstructured.Unstructured) error {
					delete(object.Object, "status")
					return c.Status().Update(ctx, object)
				},
			} {
				object := read(ctx, version, key)
				Expect(remove(object)).To(Succeed(), by)
				Expect(seenOf(conditionsOf(object), "Degraded")).To(Equal(requiredUnmet), by)
			}
		})
	}

	It("keep since when the add-on is not available", func(ctx SpecContext) {
		on := func(day int, c metav1.Condition) []metav1.Condition {
			c.LastTransitionTime = metav1.NewTime(time.Date(2030, 1, day, 0, 0, 0, 0, time.UTC))
			return []metav1.Condition{c}
		}
		for what, tc := range map[string]struct {
			enabled          func(context.Context) types.NamespacedName
			available, comes []metav1.Condition
			since            int
		}{
			"from the verdict on":                       {newIndependentAddOn, on(1, leaseUpdated), on(2, stale), 2},
			"from before the verdict on":                {newIndependentAddOn, on(1, leaseStopped), on(2, stale), 1},
			"from when it was said under a verdict on":  {newRequiringAddOn, nil, on(3, leaseUpdated), 3},
			"from when it was seen before a verdict on": {newRequiringAddOn, nil, on(1, leaseStopped), 1},
		} {
			object := read(ctx, "v1alpha1", tc.enabled(ctx))
			Expect(mergePatch(ctx, server, object, statusWrite{conditions: tc.available})).To(Succeed(), what)
			Expect(mergePatch(ctx, server, object, statusWrite{conditions: tc.comes})).To(Succeed(), what)
			available := meta.FindStatusCondition(conditionsOf(object), "Available")
			Expect(available).To(HaveValue(HaveField("Reason", stale.Reason)), what)
			Expect(available.LastTransitionTime.UTC()).To(Equal(time.Date(2030, 1, tc.since, 0, 0, 0, 0, time.UTC)), what)
		}
	})

	It("leave Available to its writer's name when addon-manager's own write flips it", func(ctx SpecContext) {
		key := enable(ctx, server)
		object := read(ctx, "v1alpha1", key)
		Expect(serverSideApply(ctx, tandem.asAgent(cluster), object, statusWrite{conditions: []metav1.Condition{workApplied}})).To(Succeed())
		redefine(ctx, server, key.Name, func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.Dependencies = []addonv1alpha1.AddonDependency{needs(addonv1alpha1.DependencyTypeRequired)}
		})
		Eventually(reportedCondition(server, key, "Available")).WithContext(ctx).Should(Equal(gated))
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

	It("are returned to their writers when the verdict is released", func(ctx SpecContext) {
		key := newJudgedAddOn(ctx, addonv1alpha1.DependencyTypeRequired, requiredUnmet)
		object := read(ctx, "v1alpha1", key)
		Expect(mergePatch(ctx, tandem.asOCM(), object, statusWrite{conditions: []metav1.Condition{leaseUpdated}})).To(Succeed())
		Expect(seenOf(conditionsOf(object), "Available")).To(Equal(gated))
		Expect(server.Delete(ctx, &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: key.Name}})).To(Succeed())
		Eventually(reportedCondition(server, key, "Degraded")).WithContext(ctx).Should(Equal(none))
		object = read(ctx, "v1alpha1", key)
		Expect(mergePatch(ctx, tandem.asOCM(), object, statusWrite{conditions: []metav1.Condition{leaseUpdated}})).To(Succeed())
		Expect(seenOf(conditionsOf(object), "Available")).To(Equal(of(leaseUpdated)))
	})

	It("are administrators' to change, who hold the verb judge", func(ctx SpecContext) {
		key := newJudgedAddOn(ctx, addonv1alpha1.DependencyTypeOptional, optionalUnmet)
		object := read(ctx, "v1alpha1", key)
		Expect(mergePatch(ctx, server, object, statusWrite{alone: true})).To(Succeed())
		Expect(conditionsOf(object)).To(BeEmpty())
		Eventually(reportedCondition(server, key, "Degraded")).WithContext(ctx).Should(Equal(optionalUnmet), "and addon-manager's to mend")
	})
})
