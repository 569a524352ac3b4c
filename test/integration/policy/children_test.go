package policy

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// bindUser binds a user to a ClusterRole.
func bindUser(ctx context.Context, user, role string) {
	GinkgoHelper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "policy-test-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	Expect(server.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(server.Delete(ctx, binding)).To(Succeed()) })
}

// In a namespace that belongs to no cluster, so that addon-manager writes its condition only.
var _ = Describe("The parameters of a child Instance", Ordered, func() {
	child := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "parent.child", Labels: map[string]string{kudo.LabelRoot: "parent"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: kudo.GroupVersion.String(), Kind: "Instance", Name: "parent", UID: "1", Controller: ptr.To(true),
		}},
	}}
	change := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parameters":{"A":"b"}}}`))
	BeforeAll(func(ctx SpecContext) {
		Expect(server.Create(ctx, child)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(tandem.as(addonManager).Delete(ctx, child)).To(Succeed()) })
		editor := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "instance-editor"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{kudo.GroupVersion.Group}, Resources: []string{"instances"}, Verbs: []string{"patch"}}},
		}
		Expect(server.Create(ctx, editor)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(server.Delete(ctx, editor)).To(Succeed()) })
	})

	DescribeTable("are addon-manager's, in whatever namespace it runs",
		func(ctx SpecContext, user, role string, may bool) {
			if role != "" {
				bindUser(ctx, user, role)
			}
			want := MatchError(ContainSubstring("are set by its parent"))
			if may {
				want = Succeed()
			}
			Eventually(func() error { // new permissions take effect with a delay
				return tandem.as(user).Patch(ctx, child.DeepCopy(), change, client.DryRunAll)
			}).WithContext(ctx).Should(want)
		},
		Entry("as installed", addonManager, "", true),
		Entry("in another namespace", "system:serviceaccount:elsewhere:addon-manager", "tandem:addon-manager", true),
		Entry("but not by its name alone", "system:serviceaccount:impostor:addon-manager", "instance-editor", false),
		Entry("but not by all rights alone", "system:serviceaccount:argocd:application-controller", "cluster-admin", false),
		Entry("and not an administrator's", "", "", false),
	)

	It("include its image registries", func(ctx SpecContext) {
		mirrors := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"imageRegistries":[{"mirror":"mirror.corp"}]}}`))
		Eventually(func() error { return server.Patch(ctx, child.DeepCopy(), mirrors, client.DryRunAll) }).WithContext(ctx).Should(
			MatchError(ContainSubstring("parameters, image registries and service account of a child Instance are set by its parent")))
	})
})
