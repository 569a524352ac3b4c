package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("A rollout on a hub with OCM whose canary fails", Label("ocm"), onSandbox("it is the sandbox that runs OCM"), Ordered, func() {
	var f *ocmFleet
	shops := placement("shops", 3)
	first, second, third, fourth := shopPackage("1.0.0"), shopPackage("2.0.0", "widget.yaml"), shopPackage("3.0.0"), shopPackage("4.0.0")
	second.Spec.Returnable, third.Spec.Returnable = true, true
	for version, p := range map[string]*kudo.OperatorVersion{"three": third, "four": fourth} { // with other pods
		p.Spec.Templates["web.yaml"] = strings.Replace(p.Spec.Templates["web.yaml"], "metadata: {labels: {", "metadata: {labels: {version: "+version+", ", 1)
	}
	rollOut := func(ctx context.Context, version *kudo.OperatorVersion, concurrency string) {
		GinkgoHelper()
		f.edit(ctx, shop, func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.InstallStrategy = rollingOut(shops, concurrency, version, shopConfig())
		})
	}
	soaks := func(ctx context.Context, healthyFor string) {
		GinkgoHelper()
		f.edit(ctx, shop, func(d *addonv1alpha1.ClusterManagementAddOn) { d.Annotations[kudo.AnnotationHealthyFor] = healthyFor })
		Eventually(func() string { return f.instance(ctx, "cluster1", shop).Spec.HealthyFor.Duration.String() }). // the others get it with their version
																WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Equal(healthyFor))
	}
	// hasReturned waits until cluster1 has returned from a version for that cause, and expects that the other clusters never get it.
	hasReturned := func(ctx context.Context, version, cause string) {
		GinkgoHelper()
		Eventually(func() *kudo.Return { return f.instance(ctx, "cluster1", shop).Status.Returned }).
			WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(And(HaveField("From", version), HaveField("Cause", ContainSubstring(cause))))
		f.expectRuns(ctx, "cluster1", "shop-"+version, kudo.ReasonReturned)
		f.expectCondition(ctx, "cluster1", shop, addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, kudo.ReasonReturned)
		f.expectRollout(ctx, shop, metav1.ConditionTrue, "1/3 progressing..., 0 failed 0 timeout.")
		Eventually(f.metric).WithContext(ctx).WithArguments("addon_rollout_unfinished").WithTimeout(timeout).WithPolling(interval).
			Should(ConsistOf(`{addon="shop",state="Failed"} 1`, `{addon="shop",state="Waiting"} 2`))
		Consistently(func(g Gomega) {
			g.Expect(f.instance(ctx, "cluster1", shop).Status.Whole.Version).To(Equal("1.0.0"))
			for _, name := range f.names[1:] {
				instance := f.instance(ctx, name, shop)
				g.Expect(instance.Spec.OperatorVersion.Name).To(Equal("shop-1.0.0"), name)
				g.Expect(instance.Status.History).To(HaveEach(HaveField("OperatorVersion.Name", "shop-1.0.0")), name)
			}
		}).WithContext(ctx).WithTimeout(5 * time.Second).WithPolling(interval).Should(Succeed())
	}

	BeforeAll(func(ctx SpecContext) {
		f = newOCMFleet(ctx, 3)
		Expect(f.hub.Create(ctx, bindingOfDefaultSet())).To(Succeed())
		shops.Spec.NumberOfClusters = nil
		shops.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
			LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{shop: "open"}},
		}}}
		definition := shopDefinition(shop, first)
		definition.Annotations = map[string]string{kudo.AnnotationOnFailure: string(kudo.FailureReturn), kudo.AnnotationHealthyFor: "10s"}
		definition.Spec.InstallStrategy = rollingOut(shops, "", first, shopConfig())
		for _, object := range []client.Object{shops, first, second, third, fourth, shopConfig(), definition} {
			Expect(f.hub.Create(ctx, object)).To(Succeed())
		}
		for _, name := range f.names {
			f.label(ctx, name, "open")
		}
		for _, name := range f.names {
			f.expectApplied(ctx, name, "shop-1.0.0")
		}
		f.expectRollout(ctx, shop, metav1.ConditionFalse, "3/3 completed with no errors, 0 failed 0 timeout.")
	})

	It("has a canary whose plan fails return, and does not continue", func(ctx SpecContext) {
		rollOut(ctx, second, "1")
		hasReturned(ctx, "2.0.0", "Widget")
	})

	It("has a canary that crashes after its plan return, and does not continue", func(ctx SpecContext) {
		soaks(ctx, "40s") // long enough for this spec on a busy machine
		rollOut(ctx, third, "1")
		Eventually(func() string { return f.instance(ctx, "cluster1", shop).Status.Whole.Version }).
			WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Equal("3.0.0"))
		on, pods := f.at("cluster1"), &corev1.PodList{}
		Expect(on.List(ctx, pods, client.InNamespace(shop), client.MatchingLabels{"version": "three"})).To(Succeed())
		Expect(pods.Items).NotTo(BeEmpty())
		for _, pod := range pods.Items {
			crashed := pod.DeepCopy()
			for i := range crashed.Status.Conditions {
				if c := &crashed.Status.Conditions[i]; c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
					c.Status = corev1.ConditionFalse
				}
			}
			crashed.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "web", Image: "simulated", RestartCount: 3, Started: ptr.To(false),
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			}}
			Expect(on.Status().Patch(ctx, crashed, client.MergeFrom(&pod))).To(Succeed())
		}
		hasReturned(ctx, "3.0.0", "CrashLoopBackOff")
		Eventually(f.replicas).WithContext(ctx).WithArguments("cluster1").WithTimeout(timeout).WithPolling(interval).Should(BeEquivalentTo(2))
	})

	It("continues with a version that works, cluster by cluster, once the add-on is not suspended", func(ctx SpecContext) {
		suspend := func(reason string) {
			GinkgoHelper()
			f.edit(ctx, shop, func(d *addonv1alpha1.ClusterManagementAddOn) {
				if d.Annotations[kudo.AnnotationSuspend] = reason; reason == "" {
					delete(d.Annotations, kudo.AnnotationSuspend)
				}
			})
		}
		soaks(ctx, "10s")
		suspend("the shop is being audited")
		rollOut(ctx, fourth, "1")
		Eventually(func() *metav1.Condition {
			return meta.FindStatusCondition(f.instance(ctx, "cluster1", shop).Status.Conditions, kudo.ConditionWaiting)
		}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(
			And(HaveField("Reason", kudo.ReasonSuspended), HaveField("Message", ContainSubstring("the shop is being audited"))))
		Eventually(func() string { return f.instance(ctx, "cluster1", shop).Spec.OperatorVersion.Name }).
			WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Equal("shop-4.0.0"))
		f.expectRollout(ctx, shop, metav1.ConditionTrue, "1/3 progressing..., 0 failed 0 timeout.")
		Consistently(func() string { return f.instance(ctx, "cluster1", shop).Status.Whole.Version }).
			WithContext(ctx).WithTimeout(5 * time.Second).WithPolling(interval).Should(Equal("1.0.0"))
		suspend("")
		for _, name := range f.names {
			f.expectApplied(ctx, name, "shop-4.0.0")
			Expect(f.instance(ctx, name, shop).Status.Returned).To(BeNil())
		}
		f.expectRollout(ctx, shop, metav1.ConditionFalse, "3/3 completed with no errors, 0 failed 0 timeout.")
		Eventually(f.metric).WithContext(ctx).WithArguments("addon_rollout_unfinished").WithTimeout(timeout).WithPolling(interval).Should(BeEmpty())
	})
})
