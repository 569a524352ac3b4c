package policy

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
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
