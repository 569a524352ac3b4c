package policy

import (
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

var _ = Describe("The configs in an add-on's status", func() {
	It("are not changed by a tenant, also as OCM would, and are by OCM", func(ctx SpecContext) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "references-" + rand.String(6)}}
		Expect(server.Create(ctx, namespace)).To(Succeed())
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "kafka", Namespace: namespace.Name}}
		Expect(server.Create(ctx, addOn)).To(Succeed())
		referent := upstream.ConfigReferent{Namespace: "private", Name: "of-others"}
		status, err := json.Marshal(map[string]any{"status": map[string]any{"configReferences": []upstream.ConfigReference{{
			ConfigGroupResource: upstream.ConfigGroupResource{Group: "addon.open-cluster-management.io", Resource: "addondeploymentconfigs"},
			ConfigReferent:      referent,
			DesiredConfig:       &upstream.ConfigSpecHash{ConfigReferent: referent},
		}}}})
		Expect(err).NotTo(HaveOccurred())
		forge := func(c client.Client) error {
			return c.Status().Patch(ctx, addOn.DeepCopy(), client.RawPatch(types.MergePatchType, status))
		}

		owner := tenant(ctx, "owner", namespace.Name)
		err = forge(owner)
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("status.configReferences of an add-on can only be changed by writers with permissions for all clusters")))
		Expect(owner.Status().Patch(ctx, addOn.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"namespace":"a"}}`)))).To(Succeed())

		rules := []rbacv1.PolicyRule{{
			APIGroups: []string{"addon.open-cluster-management.io"}, Resources: []string{"managedclusteraddons/status"}, Verbs: []string{"patch"},
		}}
		ocm := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "ocm-" + rand.String(6)}, Rules: rules}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: ocm.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ocm.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: ocm.Name}},
		}
		for _, object := range []client.Object{ocm, binding} {
			Expect(server.Create(ctx, object)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(server.Delete(ctx, object)).To(Succeed()) })
		}
		Eventually(func() error { return forge(tandem.as(ocm.Name)) }).WithContext(ctx).Should(Succeed())
	})
})
