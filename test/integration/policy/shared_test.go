package policy

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// may grants the user verbs on all namespaces, and returns the user's client once they take effect.
func may(ctx context.Context, user string, verbs ...string) client.Client {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: append([]string{"list"}, verbs...)},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	for _, object := range []client.Object{role, binding} {
		Expect(server.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(server.Delete(ctx, object)).To(Succeed()) })
	}
	c := tandem.as(user)
	Eventually(func() error { return c.List(ctx, &corev1.NamespaceList{}) }).WithContext(ctx).Should(Succeed())
	return c
}

var _ = Describe("The label that shares the configs of a namespace", func() {
	var namespace *corev1.Namespace
	BeforeEach(func(ctx SpecContext) {
		namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shared-" + rand.String(6)}}
		Expect(server.Create(ctx, namespace)).To(Succeed())
	})
	label := func(value string) client.Patch {
		return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"kudo.dev/shared-configs":`+value+`}}}`))
	}
	refused := func(err error, name string) {
		GinkgoHelper()
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(`label kudo.dev/shared-configs of namespace "` + name +
			`" can only be set by users who may change all namespaces`)))
	}

	It("is not set by the owner of the namespace, who may set other labels and remove this one", func(ctx SpecContext) {
		owner := tenant(ctx, "owner", namespace.Name)
		refused(owner.Patch(ctx, namespace.DeepCopy(), label(`"true"`)), namespace.Name)
		refused(owner.Status().Patch(ctx, namespace.DeepCopy(), label(`"true"`)), namespace.Name)
		finalized := namespace.DeepCopy()
		Expect(server.Get(ctx, client.ObjectKeyFromObject(finalized), finalized)).To(Succeed())
		finalized.Labels[kudo.LabelSharedConfigs] = "true"
		refused(owner.SubResource("finalize").Update(ctx, finalized), namespace.Name)
		Expect(owner.Patch(ctx, namespace.DeepCopy(), label(`"false"`))).To(Succeed())
		Expect(server.Patch(ctx, namespace.DeepCopy(), label(`"true"`))).To(Succeed(), "by an administrator")
		Expect(owner.Patch(ctx, namespace.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)))).To(Succeed())
		Expect(owner.Patch(ctx, namespace.DeepCopy(), label("null"))).To(Succeed())
	})

	It("is not set by users who create their own namespaces", func(ctx SpecContext) {
		creator := may(ctx, "creator", "create")
		own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "shared-" + rand.String(6), Labels: map[string]string{kudo.LabelSharedConfigs: "true"},
		}}
		refused(creator.Create(ctx, own.DeepCopy()), own.Name)
		own.Labels = nil
		Expect(creator.Create(ctx, own)).To(Succeed())
	})

	It("is set by users who may change all namespaces", func(ctx SpecContext) {
		Expect(may(ctx, "operator", "patch").Patch(ctx, namespace.DeepCopy(), label(`"true"`))).To(Succeed())
	})
})
