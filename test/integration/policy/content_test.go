package policy

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
)

var _ = Describe("OperatorContents on the hub", func() {
	const packages = "addon-packages"
	newContent := func(name string) *kudo.OperatorContent {
		version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: name, UID: "1"}}
		return content.New(version, []byte(name))
	}
	// allow permits a user to write these resources in the packages namespace.
	allow := func(ctx context.Context, user string, resources ...string) {
		GinkgoHelper()
		meta := metav1.ObjectMeta{Namespace: packages, Name: user}
		Expect(tandem.as("").Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"kudo.dev"}, Resources: resources, Verbs: []string{"create", "get", "update", "patch", "delete"},
		}}})).To(Succeed())
		Expect(tandem.as("").Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		})).To(Succeed())
	}
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))

	It("are written by those who write OperatorVersions, and by no others", func(ctx SpecContext) {
		allow(ctx, "pusher", "operatorversions", "operatorcontents")
		allow(ctx, "content-only", "operatorcontents")
		pusher, other := tandem.as("pusher"), tandem.as("content-only")
		written := newContent("written")
		Eventually(func() error { return pusher.Create(ctx, written.DeepCopy()) }).WithContext(ctx).Should(Succeed())
		Expect(pusher.Patch(ctx, written.DeepCopy(), label)).To(Succeed())

		for operation, attempt := range map[string]func() error{
			"create": func() error { return other.Create(ctx, newContent("forged")) },
			"update": func() error { return other.Patch(ctx, written.DeepCopy(), label) },
			"delete": func() error { return other.Delete(ctx, written.DeepCopy()) },
		} {
			Eventually(attempt).WithContext(ctx).Should(MatchError(ContainSubstring(
				`OperatorContents in namespace "addon-packages" can only be written by users who may also ` + operation + " OperatorVersions there")))
		}
		Expect(pusher.Delete(ctx, written.DeepCopy())).To(Succeed())
	})

	It("are read by agents, each by its name, and not written", func(ctx SpecContext) {
		written := newContent("read")
		Expect(tandem.as("").Create(ctx, written)).To(Succeed())
		agent := tandem.asAgent(cluster)
		Eventually(func() error { return agent.Get(ctx, client.ObjectKeyFromObject(written), &kudo.OperatorContent{}) }).WithContext(ctx).Should(Succeed())
		Expect(apierrors.IsForbidden(agent.List(ctx, &kudo.OperatorContentList{}, client.InNamespace(packages)))).To(BeTrue())
		Expect(apierrors.IsForbidden(agent.Delete(ctx, written.DeepCopy()))).To(BeTrue())
		Expect(apierrors.IsForbidden(agent.Create(ctx, newContent("of-an-agent")))).To(BeTrue())
	})

	It("are collected with their OperatorVersion", func(ctx SpecContext) {
		written := newContent("collected")
		Expect(tandem.as("").Create(ctx, written)).To(Succeed())
		Expect(tandem.as("system:serviceaccount:kube-system:generic-garbage-collector", "system:masters").Delete(ctx, written)).To(Succeed())
	})
})
