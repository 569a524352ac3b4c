package hub

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// series returns the metrics of that name with this fleet's add-ons in the first label: the values, or the numbers of observations, by the
// values of the other labels.
func (f fleet) series(name string) func(Gomega) map[string]float64 {
	return func(g Gomega) map[string]float64 {
		found := map[string]float64{}
		for _, metric := range gatherMetrics(g, name) {
			var labels []string
			for _, label := range metric.Label {
				value, own := strings.CutSuffix(label.GetValue(), "-"+f.suffix)
				if label.GetName() == "addon" && !own {
					labels = nil
					break
				}
				labels = append(labels, value)
			}
			if labels != nil {
				found[strings.Join(labels, " ")] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			}
		}
		return found
	}
}

// gatherMetrics returns the metrics of that name in this process.
func gatherMetrics(g Gomega, name string) []*dto.Metric {
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() == name {
			return family.Metric
		}
	}
	return nil
}

var _ = Describe("The metrics of dependencies", func() {
	const (
		unsatisfied = "addon_dependency_unsatisfied" // labels sorted by name: addon, cause, dependency, type
		changes     = "addon_dependency_verdict_changes_total"
		seconds     = "addon_dependency_verdict_seconds"
	)
	var (
		f          fleet
		here, away string
	)
	BeforeEach(runWithoutWebhooks)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		here, away = f.cluster(ctx, "here"), f.cluster(ctx, "away")
	})
	counts := func(ctx context.Context, want map[string]float64) {
		GinkgoHelper()
		Eventually(f.series(unsatisfied)).WithContext(ctx).Should(Equal(want))
	}
	// measured returns the number of timed verdicts, including verdicts on objects of earlier specs.
	measured := func(g Gomega) uint64 {
		var n uint64
		for _, metric := range gatherMetrics(g, seconds) {
			n += metric.GetHistogram().GetSampleCount()
		}
		return n
	}

	It("count the clusters on which one is not satisfied, by a cause that stays true", func(ctx SpecContext) {
		a := f.define(ctx, "a", f.withNeeds(need{Name: "b"}, need{Name: "c", Type: addonv1alpha1.DependencyTypeOptional}))
		onHere, onAway := f.enable(ctx, here, "a"), f.enable(ctx, away, "a")
		c := f.install(ctx, here, "c")
		f.install(ctx, away, "c")
		counts(ctx, map[string]float64{"a NoSuchAddOn b Required": 2})

		By("a ClusterManagementAddOn coming and going, which no condition reports")
		definition := f.define(ctx, "b", nil)
		counts(ctx, map[string]float64{"a NotInstalled b Required": 2})
		Expect(server.Delete(ctx, definition)).To(Succeed())
		counts(ctx, map[string]float64{"a NoSuchAddOn b Required": 2})
		definition = f.define(ctx, "b", nil)

		By("the dependency's own ways")
		b := f.enable(ctx, here, "b", hold)
		counts(ctx, map[string]float64{"a NotInstalled b Required": 1, "a NotAvailable b Required": 1})
		report(ctx, b, metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound")
		counts(ctx, map[string]float64{"a NotInstalled b Required": 1, "a Unknown b Required": 1})
		report(ctx, b, metav1.ConditionTrue, "Works")
		counts(ctx, map[string]float64{"a NotInstalled b Required": 1})
		report(ctx, c, metav1.ConditionFalse, "Broken")
		counts(ctx, map[string]float64{"a NotInstalled b Required": 1, "a NotAvailable c Optional": 1})
		Expect(server.Delete(ctx, b)).To(Succeed())
		counts(ctx, map[string]float64{"a NotInstalled b Required": 1, "a Deleting b Required": 1, "a NotAvailable c Optional": 1})

		By("a cycle")
		edit(ctx, definition, f.needs(need{Name: "a"}))
		counts(ctx, map[string]float64{"a Circular b Required": 2, "a NotAvailable c Optional": 1})
		edit(ctx, definition, f.needs())

		By("the add-on being removed, and its dependencies")
		Expect(server.Delete(ctx, onAway)).To(Succeed())
		counts(ctx, map[string]float64{"a Deleting b Required": 1, "a NotAvailable c Optional": 1})
		edit(ctx, a, f.needs(need{Name: "c", Type: addonv1alpha1.DependencyTypeOptional}))
		counts(ctx, map[string]float64{"a NotAvailable c Optional": 1})
		edit(ctx, onHere, hold)
		Expect(server.Delete(ctx, onHere)).To(Succeed())
		counts(ctx, map[string]float64{})

		edit(ctx, onHere, release)
		edit(ctx, b, release)
	})

	It("count the clusters of an add-on by Available, which is Unknown before an agent has written it", func(ctx SpecContext) {
		availability := f.series("addon_availability")
		f.define(ctx, "a", nil)
		onHere, onAway := f.enable(ctx, here, "a"), f.enable(ctx, away, "a")
		Eventually(availability).WithContext(ctx).Should(Equal(map[string]float64{"a Unknown": 2}))
		report(ctx, onHere, metav1.ConditionTrue, "Works")
		report(ctx, onAway, metav1.ConditionFalse, "Broken")
		Eventually(availability).WithContext(ctx).Should(Equal(map[string]float64{"a True": 1, "a False": 1}))
		report(ctx, onAway, metav1.ConditionUnknown, addonv1alpha1.ReasonClusterLeaseStopped)
		Eventually(availability).WithContext(ctx).Should(Equal(map[string]float64{"a True": 1, "a Unknown": 1}))
		Expect(server.Delete(ctx, onAway)).To(Succeed())
		Eventually(availability).WithContext(ctx).Should(Equal(map[string]float64{"a True": 1}))
		stopHub()
		Expect(gatherMetrics(Default, "addon_availability")).To(BeEmpty(), "shown by a hub that works, and no other")
	})

	It("count the changes of verdicts, and time each from the change that was seen", func(ctx SpecContext) {
		f.define(ctx, "first", f.withNeeds(need{Name: "b"}))
		expectDegraded(ctx, f.enable(ctx, away, "first"), f.requiredUnmet("b")) // the hub has started: later verdicts are changes
		before := measured(Default)
		f.define(ctx, "a", f.withNeeds(need{Name: "b", Type: addonv1alpha1.DependencyTypeOptional}))
		a, b := f.enable(ctx, here, "a"), f.enable(ctx, here, "b")
		expectDegraded(ctx, a, f.optionalUnmet("b"))
		report(ctx, b, metav1.ConditionTrue, "Works")
		expectDegraded(ctx, a, none)
		report(ctx, b, metav1.ConditionFalse, "Broken")
		expectDegraded(ctx, a, f.optionalUnmet("b"))
		Eventually(f.series(changes)).Should(Equal(map[string]float64{
			"first RequiredDependencyNotSatisfied": 1, "a DependencyNotSatisfied": 2, "a Satisfied": 1,
		}))
		Eventually(measured).Should(BeNumerically(">=", before+3), "those of three changes, and of what other specs left")
	})

	It("are whole again after a restart, which times nothing that happened before", func(ctx SpecContext) {
		f.define(ctx, "a", f.withNeeds(need{Name: "b"}))
		f.define(ctx, "b", nil)
		for _, at := range []string{here, away} {
			expectDegraded(ctx, f.enable(ctx, at, "a"), f.requiredUnmet("b"))
		}
		counts(ctx, map[string]float64{"a NotInstalled b Required": 2})
		stopHub()
		Expect(gatherMetrics(Default, unsatisfied)).To(BeEmpty(), "shown by a hub that works, and no other")
		Expect(gatherMetrics(Default, changes)).To(BeEmpty())

		f.install(ctx, away, "b")
		_, stopHub = runHub()
		counts(ctx, map[string]float64{"a NotInstalled b Required": 1})
		Eventually(f.series(changes)).Should(Equal(map[string]float64{"a Satisfied": 1}))
		Expect(measured(Default)).To(BeZero())
	})

	It("count the last verdict over what has become malformed, also after a restart", func(ctx SpecContext) {
		definition := f.define(ctx, "a", f.withNeeds(need{Name: "b"}, need{Name: "c", Type: addonv1alpha1.DependencyTypeOptional}))
		expectDegraded(ctx, f.enable(ctx, here, "a"), unmet("RequiredDependencyNotSatisfied", f.missingText("Required", "b"), f.missingText("Optional", "c")))
		counts(ctx, map[string]float64{"a NoSuchAddOn b Required": 1, "a NoSuchAddOn c Optional": 1})
		edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.Dependencies = nil
			withAnnotation("{")(d)
		})
		Eventually(eventsOn(definition)).WithContext(ctx).ShouldNot(BeEmpty())
		counts(ctx, map[string]float64{"a NoSuchAddOn b Required": 1, "a NoSuchAddOn c Optional": 1})
		stopHub()
		_, stopHub = runHub()
		counts(ctx, map[string]float64{"a Unknown b Required": 1, "a Unknown c Optional": 1})

		By("it being mended")
		edit(ctx, definition, withAnnotation("[]"))
		counts(ctx, map[string]float64{})
	})

	It("are shown by the process that leads, and go over to the next", func(ctx SpecContext) {
		stopHub()
		f.define(ctx, "a", f.withNeeds(need{Name: "b"}))
		a := f.enable(ctx, here, "a")
		_, stopFirst := runHub(withElection)
		counts(ctx, map[string]float64{"a NoSuchAddOn b Required": 1})
		writes, stopSecond := runHub(withElection)
		Consistently(f.series(unsatisfied), "300ms").Should(Equal(map[string]float64{"a NoSuchAddOn b Required": 1}))

		stopFirst()
		counts(ctx, map[string]float64{"a NoSuchAddOn b Required": 1})
		Expect(f.series(changes)(Default)).To(BeEmpty(), "the verdict is already stored")
		Expect(on(here, writes)()).To(BeEmpty())
		f.install(ctx, here, "b")
		expectDegraded(ctx, a, none)
		counts(ctx, map[string]float64{})
		stopSecond()
	})
})
