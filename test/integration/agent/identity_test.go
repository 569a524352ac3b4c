package agent

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("An Instance that names a service account", func() {
	BeforeEach(func() { DeferCleanup(runAgent()) })

	It("does what the account may, and no more", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil) // it has a ClusterRole and a ConfigMap
		meta := metav1.ObjectMeta{Namespace: h.namespace, Name: "installer"}
		subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}}
		Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())
		Expect(managed.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta})).To(Succeed())
		Expect(managed.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "patch", "delete"}},
		}})).To(Succeed())
		Expect(managed.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}})).To(Succeed())
		h.change(ctx, func(s *kudo.InstanceSpec) { s.ServiceAccountName = meta.Name })
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(And(HaveField("Reason", kudo.ReasonPlanError),
			HaveField("Message", ContainSubstring(`User "system:serviceaccount:`+h.namespace+`:installer" cannot patch resource "clusterroles"`))))

		By("getting the missing permission")
		wide := metav1.ObjectMeta{Name: h.namespace + "-installer"}
		Expect(managed.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: wide, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"create", "patch", "delete"}},
		}})).To(Succeed())
		Expect(managed.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: wide, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: wide.Name}})).To(Succeed())
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.finish(ctx)
	})
})
