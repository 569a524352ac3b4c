package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// need is one dependency declared by a definition.
type need = addonv1alpha1.AddonDependency

// unmet returns a condition Degraded about unmet dependencies.
func unmet(reason string, lines ...string) seen {
	return seen{"True", reason, strings.Join(lines, "\n")}
}

// missingText returns the sentence about a dependency that is not satisfied.
func (f fleet) missingText(dependencyType, name string) string {
	return dependencyType + " addon '" + f.nameOf(name) + "' is not installed or not available."
}

// requiredUnmet and optionalUnmet return conditions Degraded about dependencies of one type.
func (f fleet) requiredUnmet(names ...string) seen {
	return unmet("RequiredDependencyNotSatisfied", f.allMissing("Required", names)...)
}

func (f fleet) optionalUnmet(names ...string) seen {
	return unmet("DependencyNotSatisfied", f.allMissing("Optional", names)...)
}

func (f fleet) allMissing(dependencyType string, names []string) []string {
	var lines []string
	for _, name := range names {
		lines = append(lines, f.missingText(dependencyType, name))
	}
	return lines
}

// install enables an add-on that its agent reports as available.
func (f fleet) install(ctx context.Context, cluster, name string) *addonv1alpha1.ManagedClusterAddOn {
	GinkgoHelper()
	addOn := f.enable(ctx, cluster, name)
	report(ctx, addOn, metav1.ConditionTrue, "Works")
	return addOn
}

// edit changes an object, which the hub may write concurrently.
func edit[T any, O environment.Object[T]](ctx context.Context, object O, change func(O)) {
	GinkgoHelper()
	Expect(environment.Edit(ctx, server, object, change)).To(Succeed())
}

// hold adds a finalizer to an add-on, and release removes it.
func hold(addOn *addonv1alpha1.ManagedClusterAddOn)    { addOn.Finalizers = []string{"hub.test/held"} }
func release(addOn *addonv1alpha1.ManagedClusterAddOn) { addOn.Finalizers = nil }

// needs sets the dependencies of a definition.
func (f fleet) needs(needs ...need) func(*addonv1alpha1.ClusterManagementAddOn) {
	return func(d *addonv1alpha1.ClusterManagementAddOn) {
		d.Spec.Dependencies = nil
		f.withNeeds(needs...)(d)
	}
}

// expectDegraded waits for a condition Degraded.
func expectDegraded(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, want seen) {
	GinkgoHelper()
	Eventually(conditionOf(addOn, "Degraded")).WithContext(ctx).Should(Equal(want))
}

// staysDegraded expects that the condition does not change.
func staysDegraded(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, want seen) {
	GinkgoHelper()
	Consistently(conditionOf(addOn, "Degraded")).WithContext(ctx).Should(Equal(want))
}

// writesNothing expects that another reconciliation of a cluster writes nothing. An add-on on another cluster, which is enabled before,
// shows that the reconciliation has happened.
func (f fleet) writesNothing(ctx context.Context, cluster string) {
	GinkgoHelper()
	stopHub()
	f.define(ctx, "probe", f.withNeeds(need{Name: "nowhere"}))
	probe := f.enable(ctx, f.cluster(ctx, "elsewhere"), "probe")
	writes, _ := runHub()
	expectDegraded(ctx, probe, f.requiredUnmet("nowhere"))
	Consistently(on(cluster, writes), "500ms").Should(BeEmpty(), "a second pass writes nothing")
}

var _ = Describe("A dependency", func() {
	var (
		f       fleet
		cluster string
	)
	BeforeEach(runWithoutWebhooks)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
	})
	// In any final state, another reconciliation writes nothing.
	AfterEach(func(ctx SpecContext) { f.writesNothing(ctx, cluster) })

	DescribeTable("is judged by what is on the cluster:",
		func(ctx SpecContext, needs []need, available []string, want func() seen) {
			definition := f.define(ctx, "a", f.withNeeds(needs...))
			a := f.enable(ctx, cluster, "a")
			for _, name := range available {
				f.install(ctx, cluster, name)
			}
			expectDegraded(ctx, a, want())

			By("saying nothing where nothing is declared any more")
			edit(ctx, definition, f.needs())
			expectDegraded(ctx, a, none)
		},
		Entry("none declared", nil, []string{"b"}, func() seen { return none }),
		Entry("one, not satisfied", []need{{Name: "b"}}, nil, func() seen { return f.requiredUnmet("b") }),
		Entry("one, satisfied", []need{{Name: "b"}}, []string{"b"}, func() seen { return none }),
		Entry("one that is Optional, not satisfied", []need{{Name: "b", Type: "Optional"}}, nil, func() seen { return f.optionalUnmet("b") }),
		Entry("many, none satisfied", []need{{Name: "b"}, {Name: "c"}, {Name: "d"}}, nil,
			func() seen { return f.requiredUnmet("b", "c", "d") }),
		Entry("many, some satisfied", []need{{Name: "b"}, {Name: "c"}, {Name: "d"}}, []string{"c"},
			func() seen { return f.requiredUnmet("b", "d") }),
		Entry("many, all satisfied", []need{{Name: "b"}, {Name: "c"}, {Name: "d"}}, []string{"b", "c", "d"},
			func() seen { return none }),
		Entry("Optional beside Required, none satisfied: Required first, and its reason",
			[]need{{Name: "b", Type: "Optional", Message: "No graphs"}, {Name: "c", Message: "No\nstorage"}}, nil, func() seen {
				return unmet("RequiredDependencyNotSatisfied",
					f.missingText("Required", "c")+" No storage", f.missingText("Optional", "b")+" No graphs")
			}),
		Entry("Optional beside Required, the Required one satisfied",
			[]need{{Name: "b", Type: "Optional"}, {Name: "c"}}, []string{"c"}, func() seen { return f.optionalUnmet("b") }),
		Entry("Optional beside Required, the Optional one satisfied",
			[]need{{Name: "b", Type: "Optional"}, {Name: "c"}}, []string{"b"}, func() seen { return f.requiredUnmet("c") }),
	)

	DescribeTableSubtree("declared by", func(declare func() func(*addonv1alpha1.ClusterManagementAddOn)) {
		var (
			a    *addonv1alpha1.ManagedClusterAddOn
			want seen
		)
		BeforeEach(func(ctx SpecContext) {
			f.define(ctx, "b", nil)
			f.define(ctx, "a", declare())
			a = f.enable(ctx, cluster, "a")
			want = unmet("RequiredDependencyNotSatisfied", f.missingText("Required", "b")+" No storage")
			expectDegraded(ctx, a, want)
		})

		It("is satisfied once B is installed later, and available", func(ctx SpecContext) {
			Eventually(eventsOn(a)).WithContext(ctx).Should(ContainElement(
				"Warning RequiredDependencyNotSatisfied: not satisfied: Required " + f.nameOf("b") + " (NotInstalled)"))
			b := f.enable(ctx, cluster, "b")
			staysDegraded(ctx, a, want)
			report(ctx, b, metav1.ConditionTrue, "Works")
			expectDegraded(ctx, a, none)
			Eventually(eventsOn(a)).WithContext(ctx).Should(ContainElement(
				"Normal DependenciesSatisfied: all dependencies are satisfied; previously: RequiredDependencyNotSatisfied"))
		})

		It("is not satisfied any more when B is deleted", func(ctx SpecContext) {
			b := f.install(ctx, cluster, "b")
			expectDegraded(ctx, a, none)
			Expect(server.Delete(ctx, b)).To(Succeed())
			expectDegraded(ctx, a, want)
		})
	},
		Entry("the field", func() func(*addonv1alpha1.ClusterManagementAddOn) {
			return f.withNeeds(need{Name: "b", Message: "No storage"})
		}),
		Entry("the annotation", func() func(*addonv1alpha1.ClusterManagementAddOn) {
			return withAnnotation(`[{"name":"` + f.nameOf("b") + `","message":"No storage"}]`)
		}),
	)

	It("is followed as B flaps, also faster than it can be", func(ctx SpecContext) {
		f.define(ctx, "a", f.withNeeds(need{Name: "b"}))
		a, b := f.enable(ctx, cluster, "a"), f.install(ctx, cluster, "b")
		for range 5 {
			report(ctx, b, metav1.ConditionFalse, "Broken")
			expectDegraded(ctx, a, f.requiredUnmet("b"))
			report(ctx, b, metav1.ConditionTrue, "Works")
			expectDegraded(ctx, a, none)
		}
		for range 20 {
			report(ctx, b, metav1.ConditionFalse, "Broken")
			report(ctx, b, metav1.ConditionTrue, "Works")
		}
		// The first read may return an intermediate verdict.
		Eventually(func(g Gomega, ctx context.Context) {
			g.Consistently(conditionOf(a, "Degraded"), "500ms").WithContext(ctx).Should(Equal(none))
		}).WithContext(ctx).Should(Succeed())
	})

	It("is evaluated again when A is disabled and enabled immediately", func(ctx SpecContext) {
		f.define(ctx, "a", f.withNeeds(need{Name: "b"}))
		a := f.enable(ctx, cluster, "a")
		for range 5 {
			expectDegraded(ctx, a, f.requiredUnmet("b"))
			Expect(server.Delete(ctx, a)).To(Succeed())
			a = f.enable(ctx, cluster, "a")
		}
		expectDegraded(ctx, a, f.requiredUnmet("b"))
	})

	It("is not satisfied while B is being deleted, however available it still is", func(ctx SpecContext) {
		f.define(ctx, "a", f.withNeeds(need{Name: "b"}))
		f.define(ctx, "b", nil)
		a := f.enable(ctx, cluster, "a")
		b := f.enable(ctx, cluster, "b", hold)
		report(ctx, b, metav1.ConditionTrue, "Works")
		expectDegraded(ctx, a, none)
		Expect(server.Delete(ctx, b)).To(Succeed())
		expectDegraded(ctx, a, f.requiredUnmet("b"))
		Expect(conditionOf(b, "Available")(Default, ctx)).To(HaveField("Status", "True"))

		By("B being gone, and installed again")
		edit(ctx, b, release)
		staysDegraded(ctx, a, f.requiredUnmet("b"))
		f.install(ctx, cluster, "b")
		expectDegraded(ctx, a, none)
	})

	It("is not satisfied while B is Unknown", func(ctx SpecContext) {
		f.define(ctx, "a", f.withNeeds(need{Name: "b"}))
		b := f.install(ctx, cluster, "b") // before A, so that nothing else makes A Degraded
		a := f.enable(ctx, cluster, "a")
		expectDegraded(ctx, a, none)
		report(ctx, b, metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound")
		expectDegraded(ctx, a, f.requiredUnmet("b"))
	})

	It("is satisfied by B without a ClusterManagementAddOn", func(ctx SpecContext) {
		f.define(ctx, "a", f.withNeeds(need{Name: "b"}))
		a := f.enable(ctx, cluster, "a")
		expectDegraded(ctx, a, f.requiredUnmet("b"))
		Eventually(eventsOn(a)).WithContext(ctx).Should(ContainElement(ContainSubstring("Required " + f.nameOf("b") + " (NoSuchAddOn)")))
		f.install(ctx, cluster, "b")
		expectDegraded(ctx, a, none)
	})

	It("holds its verdict while the cluster is unreachable, through a restart too", func(ctx SpecContext) {
		f.define(ctx, "a", f.withNeeds(need{Name: "b"}, need{Name: "c"}))
		a, b, c := f.enable(ctx, cluster, "a"), f.install(ctx, cluster, "b"), f.enable(ctx, cluster, "c")
		report(ctx, c, metav1.ConditionFalse, "Broken")
		expectDegraded(ctx, a, f.requiredUnmet("c"))

		report(ctx, b, metav1.ConditionUnknown, addonv1alpha1.ReasonClusterLeaseStopped)
		report(ctx, c, metav1.ConditionUnknown, addonv1alpha1.ReasonClusterLeaseStopped)
		staysDegraded(ctx, a, f.requiredUnmet("c"))
		stopHub()
		_, stopHub = runHub()
		staysDegraded(ctx, a, f.requiredUnmet("c"))

		By("deleting B, which is judged all the same")
		Expect(server.Delete(ctx, b)).To(Succeed())
		expectDegraded(ctx, a, f.requiredUnmet("b", "c"))

		By("the cluster coming back, and going again")
		b = f.install(ctx, cluster, "b")
		report(ctx, c, metav1.ConditionTrue, "Works")
		expectDegraded(ctx, a, none)
		report(ctx, b, metav1.ConditionUnknown, addonv1alpha1.ReasonClusterLeaseStopped)
		staysDegraded(ctx, a, none)
	})

	It("is forgotten when it is removed from the list", func(ctx SpecContext) {
		definition := f.define(ctx, "a", f.withNeeds(need{Name: "b"}, need{Name: "c"}))
		a := f.enable(ctx, cluster, "a")
		expectDegraded(ctx, a, f.requiredUnmet("b", "c"))
		edit(ctx, definition, f.needs(need{Name: "c"}))
		expectDegraded(ctx, a, f.requiredUnmet("c"))
	})

	It("is forgotten when it is the last one and removed", func(ctx SpecContext) {
		definition := f.define(ctx, "a", f.withNeeds(need{Name: "b"}))
		a := f.enable(ctx, cluster, "a")
		expectDegraded(ctx, a, f.requiredUnmet("b"))
		edit(ctx, definition, f.needs())
		expectDegraded(ctx, a, none)
	})

	It("is forgotten with the definition that declares it", func(ctx SpecContext) {
		definition := f.define(ctx, "a", f.withNeeds(need{Name: "b"}))
		a := f.enable(ctx, cluster, "a")
		expectDegraded(ctx, a, f.requiredUnmet("b"))
		Expect(server.Delete(ctx, definition)).To(Succeed())
		expectDegraded(ctx, a, none)
	})

	It("is evaluated for each cluster, and again when its type changes", func(ctx SpecContext) {
		definition := f.define(ctx, "a", f.withNeeds(need{Name: "b"}))
		other := f.cluster(ctx, "other")
		here, there := f.enable(ctx, cluster, "a"), f.enable(ctx, other, "a")
		f.install(ctx, cluster, "b")
		expectDegraded(ctx, there, f.requiredUnmet("b"))
		expectDegraded(ctx, here, none)
		edit(ctx, definition, f.needs(need{Name: "b", Type: addonv1alpha1.DependencyTypeOptional}))
		expectDegraded(ctx, there, f.optionalUnmet("b"))
		expectDegraded(ctx, here, none)
	})

	It("keeps its last verdict when the annotation becomes malformed, which is said once", func(ctx SpecContext) {
		definition := f.define(ctx, "a", withAnnotation(`[{"name":"`+f.nameOf("b")+`"}]`))
		other := f.cluster(ctx, "other")
		here, there := f.enable(ctx, cluster, "a"), f.enable(ctx, other, "a")
		expectDegraded(ctx, here, f.requiredUnmet("b"))
		expectDegraded(ctx, there, f.requiredUnmet("b"))
		edit(ctx, definition, withAnnotation(`[{"name":"b","kind":"Optional"}]`))

		warning := `Warning DependenciesMalformed: ClusterManagementAddOn "` + definition.Name +
			`": annotation addon.open-cluster-management.io/dependencies: invalid JSON: unknown field "[0].kind"` +
			`; every cluster keeps the last verdict`
		Eventually(eventsOn(definition)).WithContext(ctx).Should(Equal([]string{warning}))
		Consistently(eventsOn(definition)).WithContext(ctx).Should(HaveLen(1))
		Expect(conditionOf(here, "Degraded")(Default, ctx)).To(Equal(f.requiredUnmet("b")))

		edit(ctx, definition, withAnnotation(`[]`))
		expectDegraded(ctx, here, none)
		expectDegraded(ctx, there, none)
	})

	It("is read from the field where the annotation names another one", func(ctx SpecContext) {
		definition := f.define(ctx, "a", both(withAnnotation(`[{"name":"`+f.nameOf("c")+`"}]`), f.withNeeds(need{Name: "b"})))
		a := f.enable(ctx, cluster, "a")
		expectDegraded(ctx, a, f.requiredUnmet("b"))
		edit(ctx, definition, f.needs())
		expectDegraded(ctx, a, f.requiredUnmet("c"))
	})

	It("leaves Degraded to another writer while it is satisfied, and takes it while it is not", func(ctx SpecContext) {
		f.define(ctx, "a", f.withNeeds(need{Name: "b"}))
		a, b := f.enable(ctx, cluster, "a"), f.install(ctx, cluster, "b")
		setCondition(ctx, a, "someone", metav1.Condition{Type: "Degraded", Status: metav1.ConditionTrue, Reason: "DiskFull"})
		report(ctx, b, metav1.ConditionTrue, "StillWorks")
		staysDegraded(ctx, a, seen{"True", "DiskFull", ""})

		report(ctx, b, metav1.ConditionFalse, "Broken")
		expectDegraded(ctx, a, f.requiredUnmet("b"))

		By("the other writer insisting")
		setCondition(ctx, a, "someone", metav1.Condition{Type: "Degraded", Status: metav1.ConditionFalse, Reason: "Fine"})
		expectDegraded(ctx, a, f.requiredUnmet("b"))

		By("releasing it, for the other writer to take again")
		report(ctx, b, metav1.ConditionTrue, "Works")
		expectDegraded(ctx, a, none)
		setCondition(ctx, a, "someone", metav1.Condition{Type: "Degraded", Status: metav1.ConditionTrue, Reason: "DiskFull"})
		staysDegraded(ctx, a, seen{"True", "DiskFull", ""})
	})

	It("settles a chain of ten hop by hop, down and up", func(ctx SpecContext) {
		const length = 10
		name := func(i int) string { return fmt.Sprintf("link%d", i) }
		var (
			definitions []*addonv1alpha1.ClusterManagementAddOn
			links       []*addonv1alpha1.ManagedClusterAddOn
		)
		for i := range length {
			declare := f.withNeeds(need{Name: name(i + 1)})
			if i+1 == length {
				declare = nil
			}
			definitions = append(definitions, f.define(ctx, name(i), declare))
			links = append(links, f.install(ctx, cluster, name(i)))
		}
		settle(ctx, links, slices.Repeat([]seen{none}, length)...)

		By("its end going, and coming back")
		end := definitions[length-1]
		edit(ctx, end, f.needs(need{Name: "nowhere"}))
		var down []seen
		for i := range length - 1 {
			down = append(down, f.requiredUnmet(name(i+1)))
		}
		settle(ctx, links, append(down, f.requiredUnmet("nowhere"))...)
		edit(ctx, end, f.needs())
		settle(ctx, links, slices.Repeat([]seen{none}, length)...)
	})

	It("is judged with one write for one change, and with none at rest", func(ctx SpecContext) {
		f.define(ctx, "a", f.withNeeds(need{Name: "b"}))
		a, b := f.enable(ctx, cluster, "a"), f.enable(ctx, cluster, "b")
		expectDegraded(ctx, a, f.requiredUnmet("b"))
		before := get(ctx, a).ResourceVersion
		stopHub()

		var writes *environment.Writes
		writes, stopHub = runHub()
		Consistently(on(cluster, writes)).Should(BeEmpty())
		Expect(get(ctx, a).ResourceVersion).To(Equal(before))

		By("changing what does not matter, and then what does")
		report(ctx, b, metav1.ConditionFalse, "Broken")
		Consistently(on(cluster, writes)).Should(BeEmpty())
		report(ctx, b, metav1.ConditionTrue, "Works")
		expectDegraded(ctx, a, none)
		Expect(on(cluster, writes)()).To(Equal([]string{"PATCH /apis/addon.open-cluster-management.io/v1alpha1/namespaces/" + cluster +
			"/managedclusteraddons/" + a.Name + "/status"}))
	})

	It("is judged with one write, though the hub has not seen its own yet", func(ctx SpecContext) {
		stopHub()
		w := newWatches("managedclusteraddons")
		var writes *environment.Writes
		writes, stopHub = runHub(withTransport(w.carry))
		definition, next := f.define(ctx, "a", f.withNeeds(need{Name: "b"})), f.define(ctx, "next", f.withNeeds(need{Name: "b"}))
		a, afterwards := f.enable(ctx, cluster, "a"), f.enable(ctx, cluster, "next")
		for _, addOn := range []*addonv1alpha1.ManagedClusterAddOn{a, afterwards} {
			expectDegraded(ctx, addOn, f.requiredUnmet("b"))
		}
		By("waiting until the hub has seen these writes, as it has if it judges one more add-on")
		f.define(ctx, "last", f.withNeeds(need{Name: "b"}))
		expectDegraded(ctx, f.enable(ctx, cluster, "last"), f.requiredUnmet("b"))

		reconnect := w.cut()
		DeferCleanup(reconnect)
		before := len(on(cluster, writes)())
		edit(ctx, definition, f.needs(need{Name: "c"}))
		expectDegraded(ctx, a, f.requiredUnmet("c"))

		By("having it judged again, and another one after it")
		edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) { d.Spec.AddOnMeta.DisplayName = "A" })
		edit(ctx, next, f.needs(need{Name: "c"}))
		expectDegraded(ctx, afterwards, f.requiredUnmet("c"))
		reconnect()
		Consistently(on(cluster, writes)).Should(HaveLen(before + 2))
	})

	It("is judged by who writes condition Degraded and nothing else", func(ctx SpecContext) {
		f.define(ctx, "a", f.withNeeds(need{Name: "b"}))
		a := f.install(ctx, cluster, "a")
		expectDegraded(ctx, a, f.requiredUnmet("b"))
		var managers []string
		for _, entry := range get(ctx, a).ManagedFields {
			managers = append(managers, entry.Manager+" "+string(entry.Operation)+" "+entry.Subresource)
		}
		Expect(managers).To(ConsistOf(
			HavePrefix("hub.test Update"), // the user that enabled it
			Equal("addon-manager-dependency Apply status"), Equal("addon-agent-availability Apply status")))
	})
})
