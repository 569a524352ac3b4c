package policy

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// tenant returns a client of a user with all permissions in a namespace, and none elsewhere.
func tenant(ctx context.Context, user, namespace string) client.Client {
	GinkgoHelper()
	name := "tenant-" + rand.String(6)
	all := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	for _, object := range []client.Object{all, binding} {
		Expect(server.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(server.Delete(ctx, object)).To(Succeed()) })
	}
	c := tandem.as(user)
	Eventually(func() error { // new permissions take effect with a delay
		return c.List(ctx, &kudo.InstanceList{}, client.InNamespace(namespace))
	}).WithContext(ctx).Should(Succeed())
	return c
}

var _ = Describe("The owner of an Instance", func() {
	patch := func(kind types.PatchType, text string) func(context.Context, client.Client, *kudo.Instance) error {
		return func(ctx context.Context, c client.Client, i *kudo.Instance) error {
			return c.Patch(ctx, i.DeepCopy(), client.RawPatch(kind, []byte(text)))
		}
	}
	change := func(f func(*kudo.Instance)) func(context.Context, client.Client, *kudo.Instance) error {
		return func(ctx context.Context, c client.Client, i *kudo.Instance) error {
			return environment.Edit(ctx, c, i.DeepCopy(), f)
		}
	}
	detached := map[string]func(context.Context, client.Client, *kudo.Instance) error{
		"removed by a merge patch":      patch(types.MergePatchType, `{"metadata":{"ownerReferences":null}}`),
		"removed by a JSON patch":       patch(types.JSONPatchType, `[{"op":"remove","path":"/metadata/ownerReferences"}]`),
		"removed by an update":          change(func(i *kudo.Instance) { i.OwnerReferences = nil }),
		"made another object":           change(func(i *kudo.Instance) { i.OwnerReferences[0].UID = "another" }),
		"made one of another kind":      change(func(i *kudo.Instance) { i.OwnerReferences[0].Kind = "ConfigMap" }),
		"made an owner without control": change(func(i *kudo.Instance) { i.OwnerReferences[0].Controller = nil }),
		"replaced by a controller of another kind": change(func(i *kudo.Instance) {
			i.OwnerReferences[0].Controller = nil
			i.OwnerReferences = append(i.OwnerReferences,
				metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "mine", UID: "3", Controller: ptr.To(true)})
		}),
	}

	DescribeTableSubtree("that would create it again",
		func(owner func(*kudo.Instance), refusal string) {
			for way, request := range detached {
				It("is kept, and so is the Instance, if it is "+way, func(ctx SpecContext) {
					instance := store(ctx, owner)
					c := tenant(ctx, "tenant", "default")
					err := request(ctx, c, instance)
					Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
					Expect(err).To(MatchError(ContainSubstring(refusal)))
					Expect(c.Delete(ctx, instance.DeepCopy())).To(MatchError(ContainSubstring("tandem-instance-deletion")))
				})
			}

			It("is not removed by a user that has the name of addon-manager, and all permissions in the namespace", func(ctx SpecContext) {
				instance := store(ctx, owner)
				impostor := tenant(ctx, "system:serviceaccount:default:addon-manager", "default")
				Expect(detached["removed by a merge patch"](ctx, impostor, instance)).To(MatchError(ContainSubstring(refusal)))
				Expect(impostor.Delete(ctx, instance.DeepCopy())).To(MatchError(ContainSubstring("tandem-instance-deletion")))
			})

			DescribeTable("is removed",
				func(ctx SpecContext, user string) {
					instance := store(ctx, owner)
					if user != addonManager {
						bindUser(ctx, user, "cluster-admin")
					}
					Eventually(func() error {
						return detached["removed by a merge patch"](ctx, tandem.as(user), instance)
					}).WithContext(ctx).Should(Succeed())
				},
				Entry("by addon-manager", addonManager),
				Entry("by the garbage collector", "system:serviceaccount:kube-system:generic-garbage-collector"),
				Entry("by controllers without service accounts of their own", "system:kube-controller-manager"),
			)

			It("leaves other changes to users", func(ctx SpecContext) {
				instance := store(ctx, owner)
				c := tenant(ctx, "tenant", "default")
				Expect(change(func(i *kudo.Instance) {
					i.Labels = map[string]string{kudo.LabelRoot: i.Labels[kudo.LabelRoot], "team": "data"}
					i.Annotations = map[string]string{kudo.AnnotationSkipCleanup: "true"}
					i.Finalizers = []string{"tandem.test/held"}
					i.OwnerReferences = append(i.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "mine", UID: "3"})
				})(ctx, c, instance)).To(Succeed())
			})

			Context("keeps the finalizer", func() {
				// In the namespace of a cluster, where addon-manager does not release the Instance.
				held := func(ctx context.Context) *kudo.Instance {
					return store(ctx, func(i *kudo.Instance) {
						owner(i)
						i.Namespace, i.Finalizers = cluster, []string{kudo.Finalizer}
					})
				}
				release := patch(types.MergePatchType, `{"metadata":{"finalizers":null}}`)

				It("until its objects are removed", func(ctx SpecContext) {
					instance, c := held(ctx), tenant(ctx, "tenant", cluster)
					Expect(release(ctx, c, instance)).To(MatchError(And(
						ContainSubstring("finalizer kudo.dev/removal of Instance %q", instance.Name), ContainSubstring("set annotation kudo.dev/force-release=true"))))
					Expect(environment.EditStatus(ctx, server, instance, func(i *kudo.Instance) {
						meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{
							Type: kudo.ConditionReady, Status: metav1.ConditionFalse, Reason: kudo.ReasonRemoved,
						})
					})).To(Succeed())
					Expect(release(ctx, c, instance)).To(Succeed())
				})

				It("unless they are released", func(ctx SpecContext) {
					Expect(patch(types.MergePatchType, fmt.Sprintf(`{"metadata":{"finalizers":null,"annotations":{%q:"true"}}}`,
						kudo.AnnotationForceRelease))(ctx, tenant(ctx, "tenant", cluster), held(ctx))).To(Succeed())
				})
			})

			for _, annotation := range []string{kudo.AnnotationHubUID, kudo.AnnotationHubGeneration} {
				It("keeps the Instance from becoming a mirror, which addon-manager ignores, by "+annotation, func(ctx SpecContext) {
					instance := store(ctx, owner)
					c := tenant(ctx, "tenant", "default")
					mark := patch(types.MergePatchType, fmt.Sprintf(`{"metadata":{"annotations":{%q:"1"}}}`, annotation))
					Expect(mark(ctx, c, instance)).To(MatchError(ContainSubstring("Instance %q is not a mirror", instance.Name)))
				})
			}
		},
		Entry("an add-on", ofAddOn, `cannot be detached from add-on "zookeeper": disable the add-on`),
		Entry("a parent", ofParent, `a child Instance cannot be detached from its parent, Instance "kafka.broker"`),
	)

	It("keeps the label of a child", func(ctx SpecContext) {
		instance := store(ctx, ofParent)
		for _, label := range []string{`null`, `"another"`} {
			Expect(patch(types.MergePatchType, `{"metadata":{"labels":{"kudo.dev/root":`+label+`}}}`)(ctx, tenant(ctx, "tenant", "default"), instance)).To(
				MatchError(ContainSubstring("kubectl addon uninstall kafka --cluster default")))
		}
	})

	It("without control, and the metadata of a user's Instance, are the user's", func(ctx SpecContext) {
		instance := store(ctx, func(i *kudo.Instance) {
			ofAddOn(i)
			i.OwnerReferences[0].Controller = nil
			i.Finalizers = []string{kudo.Finalizer}
		})
		Expect(patch(types.MergePatchType, `{"metadata":{"ownerReferences":null,"finalizers":null}}`)(ctx, tenant(ctx, "tenant", "default"), instance)).To(Succeed())
	})
})

var _ = Describe("All permissions in a namespace", func() {
	It("do not include that of addon-manager to write verdicts and children", Label(environment.Mutating), func(ctx SpecContext) {
		impostor := tenant(ctx, "system:serviceaccount:"+cluster+":addon-manager", cluster)
		child := store(ctx, func(i *kudo.Instance) {
			ofParent(i)
			i.Namespace = cluster
		})
		Expect(impostor.Patch(ctx, child.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parameters":{"A":"b"}}}`)))).To(
			MatchError(ContainSubstring("are set by its parent")))
		Expect(impostor.Delete(ctx, child.DeepCopy())).To(MatchError(ContainSubstring("tandem-instance-deletion")))

		key := enable(ctx, server)
		for _, reason := range []string{"RequiredDependencyNotSatisfied", "DependencyNotSatisfied"} {
			verdict := statusWrite{conditions: []metav1.Condition{condition("Degraded", "True", reason, "")}}
			Expect(writeStatus(ctx, server, impostor, "v1alpha1", key, verdict)).To(Succeed(), "corrected")
			Expect(conditionsOf(read(ctx, "v1alpha1", key))).NotTo(ContainElement(HaveField("Type", "Degraded")))
		}
	})
})
