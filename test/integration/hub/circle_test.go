package hub

import (
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// No admission stands in the way here, as when two definitions are written at once, or the webhook is down.
var _ = Describe("A circular dependency", func() {
	var (
		f       fleet
		cluster string
	)
	BeforeEach(unchecked)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
	})
	AfterEach(func(ctx SpecContext) {
		stopHub()
		writes, _ := runHub()
		Consistently(on(cluster, writes), "500ms").Should(BeEmpty(), "a second pass writes nothing")
	})
	// way is the line over a circle.
	way := func(names ...string) string {
		line := "circular dependency: " + f.named(names[0])
		for _, name := range names[1:] {
			line += " -> " + f.named(name)
		}
		return line
	}
	circular := func(names ...string) seen { return unmet("RequiredDependencyNotSatisfied", way(names...)) }
	// atOnce makes edits at the same time.
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
		f.define(ctx, "a", f.needing(need{Name: "b"}))
		b := f.define(ctx, "b", f.needing(need{Name: "c"}))
		c := f.define(ctx, "c", nil)
		f.define(ctx, "outside", f.needing(need{Name: "a"}))
		onA, onB, onC := f.install(ctx, cluster, "a"), f.install(ctx, cluster, "b"), f.install(ctx, cluster, "c")
		outside := f.install(ctx, cluster, "outside")
		for _, addOn := range []*addonv1alpha1.ManagedClusterAddOn{onA, onB, onC, outside} {
			degraded(ctx, addOn, none)
		}

		By("closing it, with every member available")
		edit(ctx, c, f.needs(need{Name: "a"}))
		degraded(ctx, onA, circular("a", "b", "c", "a"))
		degraded(ctx, onB, circular("b", "c", "a", "b"))
		degraded(ctx, onC, circular("c", "a", "b", "c"))
		Eventually(eventsOn(onA)).WithContext(ctx).Should(ContainElement(
			"Warning RequiredDependencyNotSatisfied: not satisfied: Required " + f.named("b") + " (Circular)"))
		Expect(conditionOf(outside, "Degraded")(Default, ctx)).To(Equal(none))

		By("making an edge Optional, which is the reason of its own add-on only")
		edit(ctx, b, f.needs(need{Name: "c", Type: addonv1alpha1.DependencyTypeOptional}))
		degraded(ctx, onB, unmet("DependencyNotSatisfied", way("b", "c", "a", "b")))
		staysDegraded(ctx, onA, circular("a", "b", "c", "a"))

		By("a shorter way")
		edit(ctx, b, f.needs(need{Name: "c"}, need{Name: "a"}))
		degraded(ctx, onA, circular("a", "b", "a"))
		degraded(ctx, onB, unmet("RequiredDependencyNotSatisfied", way("b", "c", "a", "b"), way("b", "a", "b")))
		degraded(ctx, onC, circular("c", "a", "b", "c"))

		By("breaking both in one place")
		edit(ctx, b, f.needs())
		for _, addOn := range []*addonv1alpha1.ManagedClusterAddOn{onA, onB, onC, outside} {
			degraded(ctx, addOn, none)
		}
	})

	It("that was there before the hub is judged, and recovered from", func(ctx SpecContext) {
		stopHub()
		a := f.define(ctx, "a", annotated(`[{"name":"`+f.named("b")+`"}]`))
		f.define(ctx, "b", f.needing(need{Name: "a"}))
		onA, onB := f.install(ctx, cluster, "a"), f.install(ctx, cluster, "b")
		_, stopHub = runHub()
		degraded(ctx, onA, circular("a", "b", "a"))
		degraded(ctx, onB, circular("b", "a", "b"))

		By("a declaration that becomes malformed leading nowhere for others, while its own verdict stays")
		edit(ctx, a, annotated(`{}`))
		degraded(ctx, onB, none)
		staysDegraded(ctx, onA, circular("a", "b", "a"))
		edit(ctx, a, annotated(`[{"name":"`+f.named("b")+`"}]`))
		degraded(ctx, onB, circular("b", "a", "b"))

		By("a definition that goes")
		Expect(server.Delete(ctx, a)).To(Succeed())
		degraded(ctx, onA, none)
		degraded(ctx, onB, none)
	})

	It("on itself is judged, and recovered from", func(ctx SpecContext) {
		a := f.define(ctx, "a", f.needing(need{Name: "a", Type: addonv1alpha1.DependencyTypeOptional}))
		onA := f.install(ctx, cluster, "a")
		degraded(ctx, onA, unmet("DependencyNotSatisfied", way("a", "a")))
		edit(ctx, a, f.needs())
		degraded(ctx, onA, none)
	})

	It("whose edges change at once is judged, and recovered from, whatever is seen first", func(ctx SpecContext) {
		other := f.cluster(ctx, "other")
		a, b, c := f.define(ctx, "a", nil), f.define(ctx, "b", nil), f.define(ctx, "c", nil)
		var everywhere []*addonv1alpha1.ManagedClusterAddOn
		for _, at := range []string{cluster, other} {
			everywhere = append(everywhere, f.install(ctx, at, "a"), f.install(ctx, at, "b"), f.install(ctx, at, "c"))
		}
		ways := []seen{circular("a", "b", "c", "a"), circular("b", "c", "a", "b"), circular("c", "a", "b", "c")}
		for range 10 {
			atOnce(
				func() { edit(ctx, a, f.needs(need{Name: "b"})) },
				func() { edit(ctx, b, f.needs(need{Name: "c"})) },
				func() { edit(ctx, c, f.needs(need{Name: "a"})) })
			for i, addOn := range everywhere {
				degraded(ctx, addOn, ways[i%3])
			}
			atOnce(
				func() { edit(ctx, a, f.needs()) },
				func() { edit(ctx, c, f.needs(need{Name: "b"})) })
			for _, addOn := range everywhere[:3] {
				// b and c are on a circle of their own now, and a is on none.
				switch addOn.Name {
				case f.named("a"):
					degraded(ctx, addOn, none)
				case f.named("b"):
					degraded(ctx, addOn, circular("b", "c", "b"))
				default:
					degraded(ctx, addOn, circular("c", "b", "c"))
				}
			}
			atOnce(
				func() { edit(ctx, b, f.needs()) },
				func() { edit(ctx, c, f.needs()) })
			for _, addOn := range everywhere {
				degraded(ctx, addOn, none)
			}
		}
	})

	It("keeps an add-on from being installed, until somebody else's definition breaks it", func(ctx SpecContext) {
		version := f.push(ctx, "kafka", packages)
		f.define(ctx, "kafka", both(runs(version), f.needing(need{Name: "b"})))
		b := f.define(ctx, "b", f.needing(need{Name: "c"}))
		f.define(ctx, "c", f.needing(need{Name: "kafka"}))
		f.install(ctx, cluster, "b")
		kafka := f.enable(ctx, cluster, "kafka")
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Reason", addonv1alpha1.ReasonWaitingForDependencies))
		Expect(exists(instanceOf(kafka))(Default, ctx)).To(BeFalse())
		edit(ctx, b, f.needs())
		Eventually(exists(instanceOf(kafka))).WithContext(ctx).Should(BeTrue())
		degraded(ctx, kafka, none)
	})
})
