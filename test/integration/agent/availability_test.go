package agent

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

const lacks = "Required addon 'other' is not installed or not available."

// enable creates a ManagedClusterAddOn on the hub.
func enable(ctx context.Context, name string) *addonv1alpha1.ManagedClusterAddOn {
	GinkgoHelper()
	enabled := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: clusterName}}
	Expect(hub.Create(ctx, enabled)).To(Succeed())
	return enabled
}

// judge acts as the hub: it sets conditions, and removes conditions without a status.
func judge(ctx context.Context, subject *addonv1alpha1.ManagedClusterAddOn, conditions ...metav1.Condition) {
	GinkgoHelper()
	Expect(environment.EditStatus(ctx, hub, subject, func(a *addonv1alpha1.ManagedClusterAddOn) {
		for _, c := range conditions {
			if c.Status == "" {
				meta.RemoveStatusCondition(&a.Status.Conditions, c.Type)
				continue
			}
			meta.SetStatusCondition(&a.Status.Conditions, c)
		}
	})).To(Succeed())
}

// available returns condition Available; empty if there is none.
func available(ctx context.Context, subject *addonv1alpha1.ManagedClusterAddOn) metav1.Condition {
	GinkgoHelper()
	Expect(hub.Get(ctx, client.ObjectKeyFromObject(subject), subject)).To(Succeed())
	if c := meta.FindStatusCondition(subject.Status.Conditions, addonv1alpha1.ConditionAvailable); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func is(status metav1.ConditionStatus, reason, message string) OmegaMatcher {
	return And(HaveField("Status", status), HaveField("Reason", reason), HaveField("Message", ContainSubstring(message)))
}

var _ = Describe("An add-on on the hub", func() {
	var (
		stop     func()
		resolved = metav1.Condition{Type: addonv1alpha1.ConditionResolved, Status: metav1.ConditionTrue, Reason: kudo.ReasonResolved}
		held     = metav1.Condition{Type: addonv1alpha1.ConditionResolved, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonWaitingForDependencies}
	)
	BeforeEach(func() { stop = runAgent() })
	AfterEach(func(ctx context.Context) {
		Expect(invariants.Violations(ctx, hub)).To(BeEmpty())
		stop()
	})

	It("that is plan-based is available when its Instance is ready and the hub has nothing against it", func(ctx context.Context) {
		h := newInstance(ctx, standard(), nil)
		subject := enable(ctx, h.name)

		By("reporting missing dependencies before it is installed")
		judge(ctx, subject, held, required)
		Eventually(func() metav1.Condition { return available(ctx, subject) }).Should(
			is(metav1.ConditionFalse, addonv1alpha1.ReasonRequiredDependencyNotSatisfied, lacks))

		By("saying what its plan waits for")
		h.resolve(ctx)
		judge(ctx, subject, resolved, satisfied)
		Eventually(func() metav1.Condition { return available(ctx, subject) }).Should(
			is(metav1.ConditionFalse, kudo.ReasonPlanInProgress, "Deployment "+h.namespace+"/"+h.name+"-app"))

		By("being available when the plan is complete")
		h.rollOut(ctx)
		Eventually(func() metav1.Condition { return available(ctx, subject) }).Should(is(metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete, ""))

		By("following the hub's verdict, and its withdrawal")
		judge(ctx, subject, required)
		Eventually(func() metav1.Condition { return available(ctx, subject) }).Should(
			is(metav1.ConditionFalse, addonv1alpha1.ReasonRequiredDependencyNotSatisfied, lacks))
		judge(ctx, subject, satisfied)
		Eventually(func() metav1.Condition { return available(ctx, subject) }).Should(is(metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete, ""))
		h.finish(ctx)
		Expect(hub.Delete(ctx, subject)).To(Succeed())
	})

	It("of another controller is changed only while required dependencies are missing", func(ctx context.Context) {
		subject := enable(ctx, "foreign")
		Consistently(func() metav1.Condition { return available(ctx, subject) }).Should(BeZero())
		judge(ctx, subject, required)
		Eventually(func() metav1.Condition { return available(ctx, subject) }).Should(
			is(metav1.ConditionFalse, addonv1alpha1.ReasonRequiredDependencyNotSatisfied, lacks))
		judge(ctx, subject, satisfied)
		Eventually(func() metav1.Condition { return available(ctx, subject) }).Should(BeZero())
		judge(ctx, subject, metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "Probed"})
		Consistently(func() metav1.Condition { return available(ctx, subject) }).Should(is(metav1.ConditionTrue, "Probed", ""))
		Expect(hub.Delete(ctx, subject)).To(Succeed())
	})
})
