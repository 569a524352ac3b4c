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
	all := []string{"create", "get", "update", "patch", "delete"}
	// allow permits a user to write OperatorContents in the packages namespace, and gives the user these permissions on OperatorVersions.
	allow := func(ctx context.Context, user string, verbs ...string) {
		GinkgoHelper()
		meta := metav1.ObjectMeta{Namespace: packages, Name: user}
		role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"kudo.dev"}, Resources: []string{"operatorcontents"}, Verbs: all}}}
		if len(verbs) > 0 {
			role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{"kudo.dev"}, Resources: []string{"operatorversions"}, Verbs: verbs})
		}
		Expect(tandem.as("").Create(ctx, role)).To(Succeed())
		Expect(tandem.as("").Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		})).To(Succeed())
	}
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))

	It("are written by those who write OperatorVersions, and by no others", func(ctx SpecContext) {
		allow(ctx, "pusher", all...)
		allow(ctx, "content-only")
		pusher, other := tandem.as("pusher"), tandem.as("content-only")
		written := newContent("written")
		Eventually(func() error { return pusher.Create(ctx, written.DeepCopy()) }).WithContext(ctx).Should(Succeed())
		Expect(pusher.Patch(ctx, written.DeepCopy(), label)).To(Succeed())

		for verbs, attempt := range map[string]func() error{
			"create":          func() error { return other.Create(ctx, newContent("forged")) },
			"update or patch": func() error { return other.Patch(ctx, written.DeepCopy(), label) },
			"delete or patch": func() error { return other.Delete(ctx, written.DeepCopy()) },
		} {
			Eventually(attempt).WithContext(ctx).Should(MatchError(ContainSubstring(
				`OperatorContents in namespace "addon-packages" can only be written by users who may also ` + verbs + " OperatorVersions there")))
		}
		Expect(pusher.Delete(ctx, written.DeepCopy())).To(Succeed())
	})

	It("are replaced by those who may patch OperatorVersions, but not by those who may only create them", func(ctx SpecContext) {
		allow(ctx, "publisher", "create", "patch")
		allow(ctx, "creator", "create")
		publisher, creator := tandem.as("publisher"), tandem.as("creator")
		written := newContent("replaced")
		Eventually(func() error { return creator.Create(ctx, written.DeepCopy()) }).WithContext(ctx).Should(Succeed())
		Eventually(func() error { return creator.Patch(ctx, written.DeepCopy(), label) }).WithContext(ctx).Should(MatchError(ContainSubstring("who may also update or patch OperatorVersions there")))
		Eventually(func() error { return creator.Delete(ctx, written.DeepCopy()) }).WithContext(ctx).Should(MatchError(ContainSubstring("who may also delete or patch OperatorVersions there")))
		Eventually(func() error { return publisher.Patch(ctx, written.DeepCopy(), label) }).WithContext(ctx).Should(Succeed())
		Expect(publisher.Delete(ctx, written.DeepCopy())).To(Succeed())
		Expect(publisher.Create(ctx, written.DeepCopy())).To(Succeed())
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
