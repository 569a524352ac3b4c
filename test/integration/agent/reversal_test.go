package agent

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// recorded returns a condition of the mirror; nil if it is absent.
func (h *hubPart) recorded(ctx context.Context, condition string) *metav1.Condition {
	GinkgoHelper()
	return meta.FindStatusCondition(h.mirror(ctx).Status.Conditions, condition)
}

var _ = Describe("An Instance whose mirrored OperatorVersion is lost while the hub is away", func() {
	It("stays available as long as its workloads are", func(ctx context.Context) {
		toHub := &link{}
		stop := runAgentWith(toHub.through(agentOnHub), agentLocally)
		h := newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		toHub.cut()
		DeferCleanup(stop)
		DeferCleanup(toHub.mend)
		lost := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.mirror(ctx).Spec.OperatorVersion.Name}}
		Expect(managed.Delete(ctx, lost)).To(Succeed())
		ready := func() *metav1.Condition { return h.recorded(ctx, kudo.ConditionReady) }
		serves := func() *metav1.Condition { return h.recorded(ctx, kudo.ConditionAvailable) }
		Eventually(ready).Should(HaveValue(is(metav1.ConditionFalse, kudo.ReasonNotMirrored, lost.Name)))
		Expect(serves()).To(HaveValue(is(metav1.ConditionTrue, kudo.ReasonUpdating, lost.Name)))

		By("losing the pods of the workload")
		h.serve(ctx, 0, corev1.ConditionFalse)
		Eventually(serves).Should(BeNil())
		Expect(ready()).To(HaveValue(is(metav1.ConditionFalse, kudo.ReasonNotMirrored, lost.Name)))

		toHub.mend()
		h.rollOut(ctx)
		Eventually(ready).Should(HaveValue(HaveField("Status", metav1.ConditionTrue)))
		h.finish(ctx)
	})
})
