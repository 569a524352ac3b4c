package agent

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// claimPackage returns a package with a step that applies a volume claim, and one after it. spec are further fields of the claim.
func claimPackage(spec string) kudo.OperatorVersionSpec {
	version := configOnly()
	version.Templates["claim.yaml"] = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: \"{{ .Name }}-claim\"}\n" +
		"spec: {resources: {requests: {storage: 1Gi}}, accessModes: [ReadWriteOnce]" + spec + "}\n"
	version.Tasks = append(version.Tasks, task("claim", kudo.TaskApply, "claim.yaml"))
	version.Plans = map[string]kudo.Plan{kudo.DeployPlan: serial("claim", "config")}
	return version
}

// storageClass creates a StorageClass, which is deleted at the end of the spec at the latest.
func storageClass(ctx context.Context, name string, mode storagev1.VolumeBindingMode, annotations map[string]string) *storagev1.StorageClass {
	GinkgoHelper()
	class := &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Annotations: annotations},
		Provisioner: "tandem.test/provisioner", VolumeBindingMode: &mode,
	}
	Expect(managed.Create(ctx, class)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(client.IgnoreNotFound(managed.Delete(ctx, class))).To(Succeed())
	})
	return class
}

// ofClaim returns the Instance's claim.
func (h *hubPart) ofClaim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.name + "-claim"}}
}

// bind acts as the controller that binds claims.
func (h *hubPart) bind(ctx context.Context) {
	GinkgoHelper()
	Expect(environment.EditStatus(ctx, managed, h.ofClaim(), func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound })).To(Succeed())
}

// claims is the beginning of messages about the Instance's claim.
func (h *hubPart) claims() string {
	return "PersistentVolumeClaim " + h.namespace + "/" + h.name + "-claim: "
}

var _ = Describe("A step that applies a volume claim", func() {
	BeforeEach(func() { DeferCleanup(runAgent()) })

	// is waits until the plan has a status and message, and checks that it keeps them.
	is := func(ctx context.Context, h *hubPart, status kudo.ExecutionStatus, message string) {
		GinkgoHelper()
		Eventually(func() string { return h.plan(ctx, kudo.DeployPlan).Message }).Should(HaveSuffix(message))
		Consistently(func(g Gomega) {
			plan := h.plan(ctx, kudo.DeployPlan)
			g.Expect(plan.Status).To(Equal(status), plan.Message)
			g.Expect(plan.Message).To(HaveSuffix(message))
		}).Should(Succeed())
		Expect(h.config(ctx, "-config")).To(BeEmpty(), "the next step has not begun")
	}

	It("fails until the StorageClass exists, and recovers by itself", func(ctx context.Context) {
		h := newInstance(ctx, claimPackage(", storageClassName: late"), nil)
		h.resolve(ctx)
		is(ctx, h, kudo.Error, h.claims()+"is not bound: StorageClass late does not exist")
		storageClass(ctx, "late", storagev1.VolumeBindingWaitForFirstConsumer, nil)
		h.completes(ctx, kudo.DeployPlan, kudo.PlanStatus{})
		h.finish(ctx)
	})

	It("fails until there is a default StorageClass if the claim names none", func(ctx context.Context) {
		h := newInstance(ctx, claimPackage(""), nil)
		h.resolve(ctx)
		is(ctx, h, kudo.Error, h.claims()+"is not bound: it has no StorageClass, and the cluster has no default StorageClass")
		storageClass(ctx, "default", storagev1.VolumeBindingWaitForFirstConsumer, map[string]string{"storageclass.kubernetes.io/is-default-class": "true"})
		is(ctx, h, kudo.InProgress, h.claims()+"is not bound yet (no StorageClass)")
		// Kubernetes sets the default class of existing claims.
		Expect(environment.Edit(ctx, managed, h.ofClaim(), func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("default") })).To(Succeed())
		h.completes(ctx, kudo.DeployPlan, kudo.PlanStatus{})
		h.finish(ctx)
	})

	DescribeTable("waits until the claim is bound", func(ctx context.Context, spec, says string) {
		storageClass(ctx, "immediate", storagev1.VolumeBindingImmediate, nil)
		h := newInstance(ctx, claimPackage(spec), nil)
		h.resolve(ctx)
		is(ctx, h, kudo.InProgress, h.claims()+"is not bound yet ("+says+")")
		h.bind(ctx)
		h.completes(ctx, kudo.DeployPlan, kudo.PlanStatus{})
		h.finish(ctx)
	},
		Entry("if its StorageClass binds at once", ", storageClassName: immediate", "StorageClass immediate"),
		Entry("if it has no StorageClass on purpose", `, storageClassName: ""`, "no StorageClass"),
		Entry("if it names its volume, which need not have a StorageClass that exists", ", storageClassName: manual, volumeName: some", "PersistentVolume some"),
	)

	It("completes if the StorageClass waits for the first consumer, and condition Ready follows the StorageClass", func(ctx context.Context) {
		class := storageClass(ctx, "patient", storagev1.VolumeBindingWaitForFirstConsumer, nil)
		h := newInstance(ctx, claimPackage(", storageClassName: patient"), nil)
		h.resolve(ctx)
		h.completes(ctx, kudo.DeployPlan, kudo.PlanStatus{})
		Expect(managed.Delete(ctx, class)).To(Succeed())
		Eventually(func() string { return h.ready(ctx).Message }).Should(Equal(h.claims() + "is not bound: StorageClass patient does not exist"))
		storageClass(ctx, "patient", storagev1.VolumeBindingWaitForFirstConsumer, nil)
		Eventually(func() metav1.ConditionStatus { return h.ready(ctx).Status }).Should(Equal(metav1.ConditionTrue))
		h.finish(ctx)
	})
})
