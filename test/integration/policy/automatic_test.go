package policy

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

var _ = Describe("The annotations of automatic installation", func() {
	var (
		namespace string
		addOn     *addonv1alpha1.ManagedClusterAddOn
		owner     client.Client
	)
	BeforeEach(func(ctx SpecContext) {
		namespace = "automatic-" + rand.String(6)
		Expect(server.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		owner = tenant(ctx, "owner", namespace)
		addOn = &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "zk-" + rand.String(6), Namespace: namespace}}
		Expect(owner.Create(ctx, addOn)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(server.Delete(ctx, addOn)).To(Succeed()) })
	})
	merge := func(annotation, value string) client.Patch {
		return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+annotation+`":`+value+`}}}`))
	}
	refused := func(err error) {
		GinkgoHelper()
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(And(
			ContainSubstring("tandem-automatic-installation"),
			ContainSubstring("annotations kudo.dev/installed-for and kudo.dev/installed-with of add-on"),
			ContainSubstring("can only be set by addon-manager"))))
	}
	DescribeTable("are set by addon-manager only, and removed by everyone",
		func(ctx SpecContext, annotation, first, second string) {
			manager := tandem.as(addonManager)
			refused(owner.Patch(ctx, addOn.DeepCopy(), merge(annotation, first)))
			converted := &metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ManagedClusterAddOn"},
				ObjectMeta: metav1.ObjectMeta{Name: addOn.Name, Namespace: namespace},
			}
			refused(owner.Patch(ctx, converted, merge(annotation, first)))
			forged := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
				Name: "forged", Namespace: namespace, Annotations: map[string]string{annotation: strings.Trim(first, `"`)},
			}}
			refused(owner.Create(ctx, forged))

			By("what addon-manager has noted stays as it is, or goes")
			Expect(manager.Patch(ctx, addOn.DeepCopy(), merge(annotation, first))).To(Succeed())
			refused(owner.Patch(ctx, addOn.DeepCopy(), merge(annotation, second)))
			Expect(owner.Patch(ctx, addOn.DeepCopy(), merge("a", `"b"`))).To(Succeed())
			Expect(owner.Patch(ctx, addOn.DeepCopy(), merge(annotation, "null"))).To(Succeed())
			Expect(owner.Patch(ctx, addOn.DeepCopy(), merge(annotation, `""`))).To(Succeed(), "without a value")
			refused(owner.Patch(ctx, addOn.DeepCopy(), merge(annotation, first)))
		},
		Entry("on a dependency", addonv1alpha1.AnnotationInstalledFor, `"kafka=a"`, `"kafka=a,solr=b"`),
		Entry("on a dependent", addonv1alpha1.AnnotationInstalledWith, `"disk"`, `"disk,vault"`),
	)
})
