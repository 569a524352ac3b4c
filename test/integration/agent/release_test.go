package agent

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("The name of a release", func() {
	shop := chartFiles{"Chart.yaml": web["Chart.yaml"], "values.yaml": web["values.yaml"], "templates/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-{{ .Values.value }}"}
`}
	named := func(spec *kudo.OperatorVersionSpec) { spec.Tasks[0].Spec.ReleaseName = "shop" }
	collides := func(ctx context.Context, h *hubPart, message string) {
		GinkgoHelper()
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(And(
			HaveField("Reason", kudo.ReasonNameCollision), HaveField("Message", ContainSubstring(message))))
		Expect(h.get(ctx).Status.Execution).To(BeNil(), "no plan has started")
	}
	BeforeEach(func() {
		runAgentWith(agentOnHub, agentLocally, func(o *agent.Options) { o.HoldInterval = time.Second })
	})

	It("is used by one Instance in a namespace, and by the next once that is removed", func(ctx context.Context) {
		first := newChart(ctx, shop, named)
		first.resolve(ctx)
		Eventually(func() metav1.Condition { return first.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))

		elsewhere := newChart(ctx, shop, named)
		elsewhere.resolve(ctx)
		Eventually(func() metav1.Condition { return elsewhere.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))

		second := newChartIn(ctx, first.namespace, shop, named)
		second.edit(ctx, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "two"} })
		second.resolve(ctx)
		collides(ctx, second, `the release name "shop" is in use in namespace "`+first.namespace+`", by task "web" of Instance "`+first.name+`": remove one of the Instances`)
		Expect(first.ready(ctx).Status).To(Equal(metav1.ConditionTrue))

		first.finish(ctx)
		Eventually(func() metav1.Condition { return second.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		second.finish(ctx)
		elsewhere.finish(ctx)
	})

	It("is not that of a release of Helm", func(ctx context.Context) {
		h := newChart(ctx, shop, named)
		Expect(client.IgnoreAlreadyExists(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))).To(Succeed())
		record := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "sh.helm.release.v1.shop.v1", Labels: map[string]string{
			"owner": "helm", "name": "shop", "version": "1", "status": "deployed",
		}}, Type: "helm.sh/release.v1"}
		Expect(managed.Create(ctx, record)).To(Succeed())
		h.resolve(ctx)
		collides(ctx, h, `by a release of Helm (Secret sh.helm.release.v1.shop.v1): uninstall it with 'helm uninstall shop --namespace `+h.namespace+`'`)

		Expect(managed.Delete(ctx, record)).To(Succeed())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		record.ResourceVersion, record.UID = "", ""
		Expect(managed.Create(ctx, record)).To(Succeed())
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "two"} })
		Eventually(func() bool {
			return managed.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: "shop-two"}, &corev1.ConfigMap{}) == nil
		}).Should(BeTrue())
		h.finish(ctx)
		Expect(managed.Delete(ctx, record)).To(Succeed())
	})

	It("is free once a release of Helm was handed over, and its objects are taken over as they are", func(ctx context.Context) {
		h := newChart(ctx, shop, named)
		Expect(client.IgnoreAlreadyExists(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))).To(Succeed())
		record := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "sh.helm.release.v1.shop.v1", Labels: map[string]string{
			"owner": "helm", "name": "shop", "version": "1", "status": "deployed",
		}}, Type: "helm.sh/release.v1"}
		Expect(managed.Create(ctx, record)).To(Succeed())
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: h.namespace, Name: "shop-one", Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"},
			Annotations: map[string]string{"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": h.namespace},
		}}
		Expect(managed.Create(ctx, config, client.FieldOwner("helm"))).To(Succeed())
		h.resolve(ctx)
		collides(ctx, h, "by a release of Helm")

		By("handing it over with the commands that 'kubectl addon package from-release' prints")
		Expect(managed.Patch(ctx, config, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"kudo.dev/released-by": "`+
			h.namespace+"/"+h.name+`", "meta.helm.sh/release-name": null, "meta.helm.sh/release-namespace": null}}}`)))).To(Succeed())
		Expect(managed.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(h.namespace), client.MatchingLabels{"owner": "helm", "name": "shop"})).To(Succeed())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		taken := &corev1.ConfigMap{}
		Expect(managed.Get(ctx, client.ObjectKeyFromObject(config), taken)).To(Succeed())
		Expect(taken.UID).To(Equal(config.UID))
		Expect(taken.Labels).To(HaveKeyWithValue(kudo.LabelInstance, h.name))
		h.finish(ctx)
		Expect(client.IgnoreNotFound(managed.Get(ctx, client.ObjectKeyFromObject(config), taken))).To(Succeed())
	})

	It("is unknown to an Instance that may not list Secrets, which is installed", func(ctx context.Context) {
		h := newChart(ctx, shop, func(spec *kudo.OperatorVersionSpec) {
			named(spec)
			spec.Permissions = &kudo.Permissions{Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch", "update", "delete"},
			}}}
		})
		Expect(client.IgnoreAlreadyExists(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))).To(Succeed())
		record := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "sh.helm.release.v1.shop.v1", Labels: map[string]string{
			"owner": "helm", "name": "shop", "version": "1", "status": "deployed",
		}}, Type: "helm.sh/release.v1"}
		Expect(managed.Create(ctx, record)).To(Succeed())
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		h.finish(ctx)
		Expect(managed.Delete(ctx, record)).To(Succeed())
	})
})
