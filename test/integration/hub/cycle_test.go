package hub

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

var _ = Describe("A circular dependency", func() {
	var (
		f       fleet
		cluster string
	)
	BeforeEach(runWithoutWebhooks)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
	})
	AfterEach(func(ctx SpecContext) { f.writesNothing(ctx, cluster) })
	// way returns the message line about a cycle.
	way := func(names ...string) string {
		line := "circular dependency: " + f.nameOf(names[0])
		for _, name := range names[1:] {
			line += " -> " + f.nameOf(name)
		}
		return line
	}
	circular := func(names ...string) seen { return unmet("RequiredDependencyNotSatisfied", way(names...)) }
	// atOnce makes edits concurrently.
	atOnce := func(edits ...func()) {
		var group sync.WaitGroup
		for _, e := range edits {
			group.Go(func() {
				defer GinkgoRecover()
				e()
			})
		}
		group.Wait()
	}

	It("that is closed is judged for all members, and when it is broken all recover", func(ctx SpecContext) {
		f.define(ctx, "a", f.withNeeds(need{Name: "b"}))
		b := f.define(ctx, "b", f.withNeeds(need{Name: "c"}))
		c := f.define(ctx, "c", nil)
		f.define(ctx, "outside", f.withNeeds(need{Name: "a"}))
		onA, onB, onC := f.install(ctx, cluster, "a"), f.install(ctx, cluster, "b"), f.install(ctx, cluster, "c")
		outside := f.install(ctx, cluster, "outside")
		all := []*addonv1alpha1.ManagedClusterAddOn{onA, onB, onC, outside}
		settle(ctx, all, none, none, none, none)

		By("closing it, with every member available")
		edit(ctx, c, f.needs(need{Name: "a"}))
		settle(ctx, all, circular("a", "b", "c", "a"), circular("b", "c", "a", "b"), circular("c", "a", "b", "c"), f.requiredUnmet("a"))
		Eventually(eventsOn(onA)).WithContext(ctx).Should(ContainElement(
			"Warning RequiredDependencyNotSatisfied: not satisfied: Required " + f.nameOf("b") + " (Circular)"))

		By("making an edge Optional, which is the reason of its own add-on only")
		edit(ctx, b, f.needs(need{Name: "c", Type: addonv1alpha1.DependencyTypeOptional}))
		settle(ctx, all, circular("a", "b", "c", "a"), unmet("DependencyNotSatisfied", way("b", "c", "a", "b")),
			circular("c", "a", "b", "c"), f.requiredUnmet("a"))

		By("a shorter way")
		edit(ctx, b, f.needs(need{Name: "c"}, need{Name: "a"}))
		settle(ctx, all, circular("a", "b", "a"),
			unmet("RequiredDependencyNotSatisfied", way("b", "c", "a", "b"), way("b", "a", "b")), circular("c", "a", "b", "c"), f.requiredUnmet("a"))

		By("breaking both in one place")
		edit(ctx, b, f.needs())
		settle(ctx, all, none, none, none, none)
	})

	It("that was there before the hub is judged, and recovered from", func(ctx SpecContext) {
		stopHub()
		a := f.define(ctx, "a", withAnnotation(`[{"name":"`+f.nameOf("b")+`"}]`))
		f.define(ctx, "b", f.withNeeds(need{Name: "a"}))
		members := []*addonv1alpha1.ManagedClusterAddOn{f.install(ctx, cluster, "a"), f.install(ctx, cluster, "b")}
		_, stopHub = runHub()
		settle(ctx, members, circular("a", "b", "a"), circular("b", "a", "b"))

		By("a declaration that becomes malformed leading nowhere for others, while its own verdict stays")
		edit(ctx, a, withAnnotation(`{}`))
		settle(ctx, members, circular("a", "b", "a"), f.requiredUnmet("a"))
		edit(ctx, a, withAnnotation(`[{"name":"`+f.nameOf("b")+`"}]`))
		settle(ctx, members, circular("a", "b", "a"), circular("b", "a", "b"))

		By("a definition that goes")
		Expect(server.Delete(ctx, a)).To(Succeed())
		settle(ctx, members, none, none)
	})

	It("on itself is judged, and recovered from", func(ctx SpecContext) {
		a := f.define(ctx, "a", f.withNeeds(need{Name: "a", Type: addonv1alpha1.DependencyTypeOptional}))
		onA := f.install(ctx, cluster, "a")
		expectDegraded(ctx, onA, unmet("DependencyNotSatisfied", way("a", "a")))
		edit(ctx, a, f.needs())
		expectDegraded(ctx, onA, none)
	})

	It("whose edges change at the same time is reported, and recovered from, regardless of the order of events", func(ctx SpecContext) {
		other := f.cluster(ctx, "other")
		a, b, c := f.define(ctx, "a", nil), f.define(ctx, "b", nil), f.define(ctx, "c", nil)
		var all []*addonv1alpha1.ManagedClusterAddOn
		for _, at := range []string{cluster, other} {
			all = append(all, f.install(ctx, at, "a"), f.install(ctx, at, "b"), f.install(ctx, at, "c"))
		}
		everywhere := func(verdicts ...seen) { settle(ctx, all, append(verdicts, verdicts...)...) }
		for range 5 {
			atOnce(
				func() { edit(ctx, a, f.needs(need{Name: "b"})) },
				func() { edit(ctx, b, f.needs(need{Name: "c"})) },
				func() { edit(ctx, c, f.needs(need{Name: "a"})) })
			everywhere(circular("a", "b", "c", "a"), circular("b", "c", "a", "b"), circular("c", "a", "b", "c"))
			atOnce( // b and c still form a cycle
				func() { edit(ctx, a, f.needs()) },
				func() { edit(ctx, c, f.needs(need{Name: "b"})) })
			everywhere(none, circular("b", "c", "b"), circular("c", "b", "c"))
			atOnce(
				func() { edit(ctx, b, f.needs()) },
				func() { edit(ctx, c, f.needs()) })
			everywhere(none, none, none)
		}
	})

	It("keeps an add-on from being installed, until another definition breaks it", func(ctx SpecContext) {
		version := f.push(ctx, "kafka", packages)
		f.define(ctx, "kafka", both(runs(version), f.withNeeds(need{Name: "b"})))
		f.define(ctx, "b", f.withNeeds(need{Name: "c", Type: addonv1alpha1.DependencyTypeOptional}))
		c := f.define(ctx, "c", f.withNeeds(need{Name: "kafka"}))
		kafka, b := f.enable(ctx, cluster, "kafka"), f.install(ctx, cluster, "b")
		expectDegraded(ctx, kafka, circular("kafka", "b", "c", "kafka"))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Reason", addonv1alpha1.ReasonWaitingForDependencies))
		Expect(exists(instanceOf(kafka))(Default, ctx)).To(BeFalse())
		Expect(conditionOf(b, "Available")(Default, ctx)).To(HaveField("Status", "True"))
		edit(ctx, c, f.needs())
		expectDegraded(ctx, kafka, none)
		Eventually(exists(instanceOf(kafka))).WithContext(ctx).Should(BeTrue())
		Eventually(resolvedOf(instanceOf(kafka))).WithContext(ctx).Should(HaveField("Status", "True"))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Status", "True"))
	})
})

// settle waits until add-ons have the given conditions Degraded, while their agent reports each as available, or why it is not.
func settle(ctx context.Context, addOns []*addonv1alpha1.ManagedClusterAddOn, want ...seen) {
	GinkgoHelper()
	Eventually(func(g Gomega) (found []seen) {
		for _, addOn := range addOns {
			now := conditionOf(addOn, "Degraded")(g, ctx)
			found = append(found, now)
			available := conditionOf(addOn, "Available")(g, ctx).Status
			switch lacking := now.Reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied; {
			case lacking && available != "False":
				report(ctx, addOn, metav1.ConditionFalse, now.Reason)
			case !lacking && available != "True":
				report(ctx, addOn, metav1.ConditionTrue, "Works")
			}
		}
		return found
	}).WithContext(ctx).Should(Equal(want))
}
