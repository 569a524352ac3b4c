package policy

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
)

const (
	addonAgent = "system:serviceaccount:tandem-system:addon-agent"
	onTheHub   = "change or delete this object on the hub"
)

// On a managed cluster, with an API server of its own.
var _ = Describe("A mirror", Ordered, func() {
	var (
		managed *site
		agent   client.WithWatch
	)
	mirrored := func() (*kudo.Instance, *kudo.OperatorVersion) {
		version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mirrored"}}
		version.Spec.Version = "1.0.0"
		version.Spec.Plans = map[string]kudo.Plan{kudo.DeployPlan: {}}
		return &kudo.Instance{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "mirrored", Finalizers: []string{kudo.Finalizer},
		}}, version
	}
	BeforeAll(func(ctx SpecContext) {
		managed = startSite()
		Expect(managed.Apply(ctx, "agent", manifests.ClusterParameters{})).To(Succeed())
		agent = managed.as(addonAgent)
		instance, version := mirrored()
		Expect(agent.Create(ctx, instance)).To(Succeed())
		Expect(agent.Create(ctx, version)).To(Succeed())
		Expect(agent.Create(ctx, content.New(version, []byte("part")))).To(Succeed())
		Eventually(func() error { return managed.as("").Delete(ctx, version, client.DryRunAll) }).WithContext(ctx).
			Should(MatchError(ContainSubstring(onTheHub)))
	})

	patch := func(status bool, text string) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			instance, _ := mirrored()
			change := client.RawPatch(types.MergePatchType, []byte(text))
			if status {
				return c.Status().Patch(ctx, instance, change)
			}
			return c.Patch(ctx, instance, change)
		}
	}
	for what, attempt := range map[string]func(context.Context, client.Client) error{
		"made": func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "another"}})
		},
		"edited":                     patch(false, `{"spec":{"parameters":{"A":"b"}}}`),
		"asked for a plan":           patch(false, `{"spec":{"planExecution":{"planName":"deploy","uid":"1"}}}`),
		"marked as deleted":          patch(false, `{"metadata":{"annotations":{"kudo.dev/hub-deleted":"true"}}}`),
		"stripped of its finalizer":  patch(false, `{"metadata":{"finalizers":null}}`),
		"said to be another version": patch(true, `{"status":{"execution":null}}`),
		"applied": func(ctx context.Context, c client.Client) error {
			applied := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"parameters": map[string]any{"A": "b"}}}}
			applied.SetGroupVersionKind(kudo.GroupVersion.WithKind("Instance"))
			applied.SetNamespace("default")
			applied.SetName("mirrored")
			return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("applier"), client.ForceOwnership)
		},
		"deleted": func(ctx context.Context, c client.Client) error {
			instance, _ := mirrored()
			return c.Delete(ctx, instance)
		},
		"deleted with all others": func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, &kudo.Instance{}, client.InNamespace("default"))
		},
		"deprived of its version": func(ctx context.Context, c client.Client) error {
			_, version := mirrored()
			return c.Delete(ctx, version)
		},
		"deprived of its content": func(ctx context.Context, c client.Client) error {
			_, version := mirrored()
			return c.Delete(ctx, content.New(version, []byte("part")))
		},
		"given another content": func(ctx context.Context, c client.Client) error {
			_, version := mirrored()
			version.UID = "1"
			return c.Create(ctx, content.New(version, []byte("another part")))
		},
		"given another version": func(ctx context.Context, c client.Client) error {
			_, version := mirrored()
			return c.Patch(ctx, version, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)))
		},
	} {
		It("is not "+what+" by an administrator, who learns where to do it", func(ctx SpecContext) {
			err := attempt(ctx, managed.as(""))
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(ContainSubstring(onTheHub)))
		})
	}

	It("is not made by the owner of a namespace who labels it", func(ctx SpecContext) {
		owner := managed.ownerOf(ctx, "tenant")
		labelled := &corev1.Namespace{}
		labelled.Name = "tenant"
		Expect(owner.Patch(ctx, labelled, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"kudo.dev/packages":"true","open-cluster-management.io/cluster-name":"tenant"}}}`)))).To(Succeed())
		for _, marks := range []map[string]string{nil, {kudo.AnnotationHubUID: "1", kudo.AnnotationHubGeneration: "1"}} {
			instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "forged", Annotations: marks}}
			Expect(owner.Create(ctx, instance)).To(MatchError(ContainSubstring(onTheHub)))
			_, version := mirrored()
			version.ObjectMeta = metav1.ObjectMeta{Namespace: "tenant", Name: "forged", Annotations: marks}
			Expect(owner.Create(ctx, version)).To(MatchError(ContainSubstring(onTheHub)))
		}
	})

	It("is not made by those who empty namespaces and collect garbage", func(ctx SpecContext) {
		for _, user := range []string{"namespace-controller", "generic-garbage-collector"} {
			c := managed.as("system:serviceaccount:kube-system:"+user, "system:masters")
			err := c.Create(ctx, &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "another"}})
			Expect(err).To(MatchError(ContainSubstring(onTheHub)))
		}
	})

	It("is deleted by those who empty namespaces and collect garbage", func(ctx SpecContext) {
		for _, user := range []string{"namespace-controller", "generic-garbage-collector"} {
			version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "of-" + user}}
			_, like := mirrored()
			version.Spec = like.Spec
			Expect(agent.Create(ctx, version)).To(Succeed())
			Expect(managed.as("system:serviceaccount:kube-system:"+user, "system:masters").Delete(ctx, version)).To(Succeed())
		}
	})

	It("is the agent's to change and to remove", func(ctx SpecContext) {
		instance, version := mirrored()
		Expect(agent.Patch(ctx, instance, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parameters":{"A":"b"}}}`)))).To(Succeed())
		Expect(agent.Status().Patch(ctx, instance, client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":1}}`)))).To(Succeed())
		Expect(agent.Delete(ctx, instance)).To(Succeed())
		Expect(agent.Patch(ctx, instance, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		Expect(agent.Delete(ctx, version)).To(Succeed())
	})

	It("is free once the binding is gone", func(ctx SpecContext) {
		binding := &unstructured.Unstructured{}
		binding.SetAPIVersion("admissionregistration.k8s.io/v1")
		binding.SetKind("ValidatingAdmissionPolicyBinding")
		binding.SetName("tandem-mirror")
		Expect(managed.as("").Delete(ctx, binding)).To(Succeed())
		instance, _ := mirrored()
		Eventually(func() error { return managed.as("").Create(ctx, instance, client.DryRunAll) }).WithContext(ctx).Should(Succeed())
	})
})

// On a hub that is also a managed cluster.
var _ = Describe("A hub with mirrors of its own", Ordered, func() {
	const namespace, apps = "local-cluster", "apps"
	var (
		both         *site
		agent, owner client.WithWatch
	)
	instance := func(namespace string, annotations map[string]string) *kudo.Instance {
		return &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kafka", Annotations: annotations}}
	}
	annotate := func(ctx context.Context, c client.Client, i *kudo.Instance, text string) error {
		return c.Patch(ctx, i, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":`+text+`}}`)))
	}
	BeforeAll(func(ctx SpecContext) {
		both = startSite()
		Expect(both.Apply(ctx, "hub", manifests.ClusterParameters{})).To(Succeed())
		Expect(both.Apply(ctx, "agent", manifests.ClusterParameters{})).To(Succeed())
		agent, owner = both.as(addonAgent), both.ownerOf(ctx, namespace)
		Expect(client.IgnoreAlreadyExists(agent.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: apps}}))).To(Succeed())
		Eventually(func() error { // until the policy is enforced
			return both.as("").Create(ctx, instance(namespace, map[string]string{kudo.AnnotationHubUID: "1"}), client.DryRunAll)
		}).WithContext(ctx).Should(MatchError(ContainSubstring(onTheHub)))
		Expect(agent.Create(ctx, instance(apps, map[string]string{kudo.AnnotationHubUID: "1", kudo.AnnotationHubGeneration: "1"}))).To(Succeed())
	})

	It("has Instances and OperatorVersions that users create, change and delete", func(ctx SpecContext) {
		onHub := instance(namespace, nil)
		Expect(owner.Create(ctx, onHub)).To(Succeed())
		Expect(annotate(ctx, owner, onHub, `{"kudo.dev/skip-cleanup":"true"}`)).To(Succeed())
		Expect(owner.Delete(ctx, onHub)).To(Succeed())
		version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "addon-packages", Name: "kafka-1.0.0"}}
		version.Spec.Version, version.Spec.Plans = "1.0.0", map[string]kudo.Plan{kudo.DeployPlan: {}}
		Expect(both.as("").Create(ctx, version)).To(Succeed())
	})

	DescribeTable("refuses to all but addon-agent the annotation", func(ctx context.Context, name string) {
		onHub := instance(namespace, nil)
		Expect(client.IgnoreAlreadyExists(owner.Create(ctx, onHub))).To(Succeed())
		Expect(annotate(ctx, owner, onHub, `{"`+name+`":"1"}`)).To(MatchError(ContainSubstring(onTheHub)))
		Expect(annotate(ctx, both.as(""), instance(apps, nil), `{"`+name+`":"other"}`)).To(MatchError(ContainSubstring(onTheHub)))
		Expect(annotate(ctx, agent, instance(apps, nil), `{"`+name+`":"1"}`)).To(Succeed())
	},
		func() (entries []TableEntry) {
			for _, name := range append([]string{kudo.AnnotationSignature}, kudo.MirrorAnnotations...) {
				entries = append(entries, Entry(nil, name))
			}
			return entries
		}(),
	)

	It("has mirrors that only addon-agent changes, also if a change removes what makes them mirrors", func(ctx SpecContext) {
		admin, existing := both.as(""), instance(apps, nil)
		Expect(annotate(ctx, admin, existing, "null")).To(MatchError(ContainSubstring(onTheHub)))
		Expect(admin.Delete(ctx, existing)).To(MatchError(ContainSubstring(onTheHub)))
		status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":9}}`))
		Expect(admin.Status().Patch(ctx, existing, status)).To(MatchError(ContainSubstring(onTheHub)))
		Expect(agent.Status().Patch(ctx, existing, status)).To(Succeed())
	})
})

// ownerOf creates a namespace, and returns a client of a user who may do everything in it, and nothing elsewhere.
func (s *site) ownerOf(ctx context.Context, namespace string) client.WithWatch {
	GinkgoHelper()
	admin, user := s.as(""), "owner-of-"+namespace
	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owner"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"},
	}}}
	Expect(admin.Create(ctx, role)).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owner"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
	owner := s.as(user, "system:authenticated") // which may discover the API
	Eventually(func() error { return owner.List(ctx, &kudo.InstanceList{}, client.InNamespace(namespace)) }).WithContext(ctx).Should(Succeed())
	return owner
}
