package hub

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// labelled sets the version of an add-on that runs no package.
func labelled(version string) func(*addonv1alpha1.ClusterManagementAddOn) {
	return func(d *addonv1alpha1.ClusterManagementAddOn) {
		d.Labels = map[string]string{"app.kubernetes.io/version": version}
	}
}

// runsVersion reports, as the agent does, the version that was applied completely, and the one that the last plan applies.
func runsVersion(ctx context.Context, instance *kudo.Instance, installed, starting string) {
	GinkgoHelper()
	of := func(version string) corev1.ObjectReference {
		return corev1.ObjectReference{Namespace: packages, Name: "b-" + version, UID: types.UID(version)}
	}
	Expect(environment.EditStatus(ctx, server, instance, func(i *kudo.Instance) {
		i.Status.Whole = &kudo.WholeVersion{OperatorVersion: of(installed), AppVersion: installed, Version: "1.0.0"}
		i.Status.Execution = &kudo.Execution{UID: "x", Plan: kudo.DeployPlan, OperatorVersion: of(starting), DependencyVersion: starting}
	})).To(Succeed())
}

var _ = Describe("A dependency on a version", func() {
	var (
		f       fleet
		cluster string
		a       *addonv1alpha1.ManagedClusterAddOn
	)
	mismatch := func(problem string) seen {
		return unmet("RequiredDependencyNotSatisfied", "Required addon '"+f.nameOf("b")+"' "+problem+" No storage")
	}
	BeforeEach(runWithoutWebhooks)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
		f.define(ctx, "a", f.withNeeds(need{Name: "b", Version: ">=3.8 <5", Message: "No storage"}))
		a = f.enable(ctx, cluster, "a")
	})
	AfterEach(func(ctx SpecContext) { f.writesNothing(ctx, cluster) })

	It("is judged by the label of an add-on that runs no package, and again on all clusters when that changes", func(ctx SpecContext) {
		definition := f.define(ctx, "b", nil)
		f.install(ctx, cluster, "b")
		another := f.cluster(ctx, "another")
		f.install(ctx, another, "b")
		onAnother := f.enable(ctx, another, "a")
		for _, dependent := range []*addonv1alpha1.ManagedClusterAddOn{a, onAnother} {
			expectDegraded(ctx, dependent, mismatch(
				"runs an unknown version, and >=3.8 <5 is required: its ClusterManagementAddOn has no label app.kubernetes.io/version."))
		}
		Eventually(eventsOn(a)).WithContext(ctx).Should(ContainElement(ContainSubstring("Required " + f.nameOf("b") + " (VersionMismatch: it runs ")))
		edit(ctx, definition, labelled("3.8.1"))
		expectDegraded(ctx, a, none)
		expectDegraded(ctx, onAnother, none)
		edit(ctx, definition, labelled("5.0.0"))
		expectDegraded(ctx, a, mismatch("runs version 5.0.0, which does not satisfy >=3.8 <5."))
		expectDegraded(ctx, onAnother, mismatch("runs version 5.0.0, which does not satisfy >=3.8 <5."))
	})

	It("is judged by what was applied and by what is being applied, whatever the add-on reports", func(ctx SpecContext) {
		f.define(ctx, "b", runs(f.pushVersion(ctx, "b", packages, "3.8.0", func(*kudo.OperatorVersion) {})))
		b := f.enable(ctx, cluster, "b")
		Eventually(exists(instanceOf(b))).WithContext(ctx).Should(BeTrue())
		Eventually(resolvedOf(instanceOf(b))).WithContext(ctx).Should(HaveField("Status", "True"))
		report(ctx, b, metav1.ConditionTrue, "PlanComplete")
		expectDegraded(ctx, a, mismatch("runs an unknown version, and >=3.8 <5 is required: none has been applied completely."))

		runsVersion(ctx, instanceOf(b), "3.8.0", "3.8.0")
		expectDegraded(ctx, a, none)
		By("a version that is excluded, from the start of its plan")
		runsVersion(ctx, instanceOf(b), "3.8.0", "5.0.0")
		expectDegraded(ctx, a, mismatch("is changing to version 5.0.0, which does not satisfy >=3.8 <5."))
		runsVersion(ctx, instanceOf(b), "5.0.0", "5.0.0")
		expectDegraded(ctx, a, mismatch("runs version 5.0.0, which does not satisfy >=3.8 <5."))
		By("one that is accepted, once its plan has completed")
		runsVersion(ctx, instanceOf(b), "5.0.0", "4.0.0")
		staysDegraded(ctx, a, mismatch("runs version 5.0.0, which does not satisfy >=3.8 <5."))
		runsVersion(ctx, instanceOf(b), "4.0.0", "4.0.0")
		expectDegraded(ctx, a, none)
	})

	It("takes nothing from an Instance of the same name that is not the add-on's", func(ctx SpecContext) {
		version := f.push(ctx, "b", packages)
		stranger := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: f.nameOf("b")}}
		stranger.Spec.OperatorVersion = corev1.ObjectReference{Namespace: packages, Name: version.Name}
		Expect(server.Create(ctx, stranger)).To(Succeed())
		Eventually(resolvedOf(stranger)).WithContext(ctx).Should(HaveField("Status", "True"))
		runsVersion(ctx, stranger, "3.8.0", "3.8.0")
		f.define(ctx, "b", runs(version))
		b := f.install(ctx, cluster, "b")
		expectDegraded(ctx, a, mismatch("runs an unknown version, and >=3.8 <5 is required: none has been applied completely."))
		Expect(server.Delete(ctx, b)).To(Succeed())
		expectDegraded(ctx, a, unmet("RequiredDependencyNotSatisfied", f.missingText("Required", "b")+" No storage"))
	})

	It("delays the first installation of a package until the version is right", func(ctx SpecContext) {
		definition := f.define(ctx, "b", labelled("3.7.0"))
		f.install(ctx, cluster, "b")
		f.define(ctx, "c", both(runs(f.push(ctx, "c", packages)), f.withNeeds(need{Name: "b", Version: ">=3.8 <5"})))
		c := f.enable(ctx, cluster, "c")
		Eventually(conditionOf(c, "Resolved")).WithContext(ctx).Should(And(
			HaveField("Status", "False"), HaveField("Reason", "WaitingForDependencies"), HaveField("Message", ContainSubstring(f.nameOf("b")))))
		Consistently(exists(instanceOf(c))).WithContext(ctx).Should(BeFalse())
		edit(ctx, definition, labelled("3.8.0"))
		Eventually(exists(instanceOf(c))).WithContext(ctx).Should(BeTrue())
		Eventually(resolvedOf(instanceOf(c))).WithContext(ctx).Should(HaveField("Status", "True"))
		expectDegraded(ctx, a, none)
	})
})
