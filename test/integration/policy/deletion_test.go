package policy

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// store creates an Instance in a namespace that belongs to no cluster, so that addon-manager ignores it.
func store(ctx context.Context, change func(*kudo.Instance)) *kudo.Instance {
	GinkgoHelper()
	instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "deletion-" + rand.String(6)}}
	change(instance)
	Expect(server.Create(ctx, instance)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		free := fmt.Appendf(nil, `{"metadata":{"finalizers":null,"annotations":{%q:"true"}}}`, kudo.AnnotationForceRelease)
		Expect(client.IgnoreNotFound(server.Patch(ctx, instance, client.RawPatch(types.MergePatchType, free)))).To(Succeed())
		Expect(client.IgnoreNotFound(server.Delete(ctx, instance))).To(Succeed())
	})
	return instance
}

func ofAddOn(i *kudo.Instance) {
	i.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn", Name: "zookeeper", UID: "1", Controller: ptr.To(true),
	}}
}

func ofParent(i *kudo.Instance) {
	i.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: kudo.GroupVersion.String(), Kind: "Instance", Name: "kafka.broker", UID: "2", Controller: ptr.To(true),
	}}
	i.Labels = map[string]string{kudo.LabelRoot: "kafka"}
}

var _ = Describe("An Instance", func() {
	allDefaults := func(options ...client.DeleteAllOfOption) func(context.Context, *kudo.Instance) error {
		return func(ctx context.Context, _ *kudo.Instance) error {
			return server.DeleteAllOf(ctx, &kudo.Instance{}, append(options, client.InNamespace("default"))...)
		}
	}
	one := func(options ...client.DeleteOption) func(context.Context, *kudo.Instance) error {
		return func(ctx context.Context, i *kudo.Instance) error { return server.Delete(ctx, i.DeepCopy(), options...) }
	}
	requests := map[string]func(context.Context, *kudo.Instance) error{
		"kubectl delete and kubectl kudo uninstall":      one(client.PropagationPolicy("Background")),
		"kubectl delete --force":                         one(client.PropagationPolicy("Background"), client.GracePeriodSeconds(0)),
		"kubectl delete --cascade=foreground":            one(client.PropagationPolicy("Foreground")),
		"kubectl delete --cascade=orphan":                one(client.PropagationPolicy("Orphan")),
		"kubectl delete --dry-run=server":                one(client.PropagationPolicy("Background"), client.DryRunAll),
		"a deletion without options":                     one(),
		"a deletion of the collection":                   allDefaults(),
		"a deletion of the collection in a dry run":      allDefaults(client.DryRunAll),
		"a deletion of the collection in the foreground": allDefaults(client.PropagationPolicy("Foreground")),
	}

	// Permissions to delete Instances, and no others.
	BeforeEach(func(ctx SpecContext) {
		remover := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "instance-remover"},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{kudo.GroupVersion.Group}, Resources: []string{"instances"}, Verbs: []string{"delete"},
			}},
		}
		Expect(server.Create(ctx, remover)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(server.Delete(ctx, remover)).To(Succeed()) })
	})

	DescribeTableSubtree("with an owner that would create it again",
		func(change func(*kudo.Instance), belongs, instead string) {
			for way, request := range requests {
				It("is not deleted by "+way, func(ctx SpecContext) {
					instance := store(ctx, change)
					err := request(ctx, instance)
					Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
					Expect(err).To(MatchError(And(ContainSubstring("Instance %q "+belongs, instance.Name),
						ContainSubstring(instead), ContainSubstring("set annotation kudo.dev/allow-deletion=true on the Instance"))))
					Expect(server.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
					Expect(instance.DeletionTimestamp).To(BeNil())
				})
			}

			DescribeTable("is deleted",
				func(ctx SpecContext, annotation, value string, may bool) {
					instance := store(ctx, func(i *kudo.Instance) {
						change(i)
						i.Annotations = map[string]string{annotation: value}
					})
					for _, options := range []client.DeleteOptions{{DryRun: []string{metav1.DryRunAll}}, {}} {
						want := MatchError(ContainSubstring("tandem-instance-deletion"))
						if may {
							want = Succeed()
						}
						Expect(server.Delete(ctx, instance.DeepCopy(), &options)).To(want)
					}
				},
				Entry("if it is allowed", kudo.AnnotationAllowDeletion, "true", true),
				Entry("if it is force-released, which leaves its volumes in place", kudo.AnnotationForceRelease, "true", true),
				Entry("but not if it is not allowed", kudo.AnnotationAllowDeletion, "false", false),
			)

			It("is deleted once more while it is being deleted", func(ctx SpecContext) {
				instance := store(ctx, func(i *kudo.Instance) {
					change(i)
					i.Finalizers = []string{"tandem.test/held"}
				})
				Expect(tandem.as(addonManager).Delete(ctx, instance.DeepCopy())).To(Succeed())
				for way, request := range requests {
					Expect(request(ctx, instance)).To(Succeed(), way)
				}
			})

			DescribeTable("is deleted",
				func(ctx SpecContext, user, role string, may bool) {
					instance := store(ctx, change)
					if role != "" {
						bindUser(ctx, user, role)
					}
					want := MatchError(ContainSubstring("Instance %q "+belongs, instance.Name))
					if may {
						want = Succeed()
					}
					Eventually(func() error { // new permissions take effect with a delay
						return tandem.as(user).Delete(ctx, instance.DeepCopy(), client.DryRunAll)
					}).WithContext(ctx).Should(want)
				},
				Entry("by addon-manager as installed", addonManager, "", true),
				Entry("by addon-manager in another namespace", "system:serviceaccount:elsewhere:addon-manager", "tandem:addon-manager", true),
				Entry("but not by its name alone", "system:serviceaccount:impostor:addon-manager", "instance-remover", false),
				Entry("but not by all rights alone", "system:serviceaccount:argocd:application-controller", "cluster-admin", false),
				Entry("by the namespace controller", "system:serviceaccount:kube-system:namespace-controller", "cluster-admin", true),
				Entry("by the garbage collector", "system:serviceaccount:kube-system:generic-garbage-collector", "cluster-admin", true),
				Entry("by controllers without service accounts of their own", "system:kube-controller-manager", "cluster-admin", true),
			)
		},
		Entry("an add-on", ofAddOn, `belongs to add-on "zookeeper"`, "kubectl addon disable zookeeper --cluster default"),
		Entry("a parent", ofParent, `is a child of Instance "kafka.broker"`, "kubectl addon uninstall kafka --cluster default"),
	)

	DescribeTable("is deleted by its user",
		func(ctx SpecContext, change func(*kudo.Instance)) {
			instance := store(ctx, change)
			Expect(requests["kubectl delete and kubectl kudo uninstall"](ctx, instance)).To(Succeed())
			Expect(apierrors.IsNotFound(server.Get(ctx, client.ObjectKeyFromObject(instance), instance))).To(BeTrue())
		},
		Entry("without an owner", func(*kudo.Instance) {}),
		Entry("of an owner that does not control it", func(i *kudo.Instance) {
			ofAddOn(i)
			i.OwnerReferences[0].Controller = nil
		}),
		Entry("of an owner of another kind", func(i *kudo.Instance) {
			ofAddOn(i)
			i.OwnerReferences[0].APIVersion, i.OwnerReferences[0].Kind = "shop.example.com/v1", "Shop"
		}),
		Entry("that is a child of KUDO's manager", func(i *kudo.Instance) {
			ofParent(i)
			i.Labels = nil
		}),
	)

	It("of an add-on stays when all Instances of a namespace are deleted, while those of users go", func(ctx SpecContext) {
		var own []*kudo.Instance
		for range 3 {
			own = append(own, store(ctx, func(*kudo.Instance) {}))
		}
		held := store(ctx, ofAddOn)
		// As `kubectl delete instance --all` does: one after the other.
		for _, instance := range append([]*kudo.Instance{held}, own...) {
			err := server.Delete(ctx, instance.DeepCopy())
			Expect(err == nil).To(Equal(instance != held), fmt.Sprint(err))
		}
		var left kudo.InstanceList
		Expect(server.List(ctx, &left, client.InNamespace("default"))).To(Succeed())
		Expect(left.Items).To(ConsistOf(HaveField("Name", held.Name)))
	})
})
