package chart

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/test/integration/environment"
)

var _ = Describe("Tandem's own chart", func() {
	path := filepath.Join(root, "deploy", "chart")
	const system = "tandem-system"
	tandem := func() helmCommand {
		h := helm
		h.namespace = system
		return h
	}
	succeed := func(ctx context.Context, arguments ...string) []byte {
		GinkgoHelper()
		out, err := tandem().run(ctx, arguments...)
		Expect(err).NotTo(HaveOccurred())
		return out
	}
	get := func(ctx context.Context, object client.Object, name, in string) error {
		return cluster.Get(ctx, client.ObjectKey{Namespace: in, Name: name}, object)
	}
	// endUninstallation ends the Job that runs before the hub is deleted, as the Job's controller would.
	endUninstallation := func(ctx context.Context, by batchv1.JobConditionType) {
		GinkgoHelper()
		job := &batchv1.Job{}
		Eventually(func(g Gomega) {
			g.Expect(get(ctx, job, "addon-manager-uninstall", system)).To(Succeed())
			g.Expect(job.DeletionTimestamp).To(BeNil())
			g.Expect(job.Status.Conditions).To(BeEmpty(), "this is the Job of an earlier attempt")
		}).Should(Succeed())
		Expect(job.Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--uninstall"}))
		environment.EndJob(job, by)
		Expect(cluster.Status().Update(ctx, job)).To(Succeed())
	}
	// uninstall uninstalls the release, and returns Helm's error.
	uninstall := func(ctx context.Context, by batchv1.JobConditionType) error {
		GinkgoHelper()
		ended := make(chan error, 1)
		go func() {
			_, err := tandem().run(ctx, "uninstall", "tandem", "--timeout=2m")
			ended <- err
		}()
		endUninstallation(ctx, by)
		var err error
		Eventually(ended).Should(Receive(&err))
		return err
	}

	It("takes over from kubectl, and is upgraded and uninstalled by Helm, without any loss of a user's data", func(ctx context.Context) {
		By("taking over what kubectl has installed")
		folder, policies := filepath.Join(root, "deploy", "hub"), "admission.mutatingPolicies=true"
		if mutates, err := server.Mutates(); err != nil || !mutates { // before Kubernetes 1.36
			Expect(err).NotTo(HaveOccurred())
			folder, err = environment.Overlay(GinkgoT().TempDir(), filepath.Join(root, "deploy"), "resources: [%[1]s/hub]\ncomponents: [%[1]s/before-1.36]\n")
			Expect(err).NotTo(HaveOccurred())
			policies = "admission.mutatingPolicies=false"
		}
		kubectl := exec.CommandContext(ctx, filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "apply", "--server-side", "-k",
			folder, "--kubeconfig", filepath.Join(helm.home, "kubeconfig"))
		kubectl.Stdout, kubectl.Stderr = GinkgoWriter, GinkgoWriter
		Expect(kubectl.Run()).To(Succeed())
		succeed(ctx, "install", "tandem", path, "--take-ownership", "--force-conflicts", "--set", "ui.enabled=true", "--set", policies)
		installed := objectsIn(string(succeed(ctx, "get", "manifest", "tandem")))
		Expect(len(installed)).To(BeNumerically(">", 50))

		By("upgrading it, after addon-manager has written what is not in the chart")
		const crd = "managedclusteraddons.addon.open-cluster-management.io"
		definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd}}
		webhooks := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "tandem"}}
		for object, field := range map[client.Object]string{
			definition: "/spec/conversion/webhook/clientConfig/caBundle", webhooks: "/webhooks/0/clientConfig/caBundle",
		} {
			patch, err := json.Marshal([]any{map[string]any{"op": "add", "path": field, "value": server.Config.CAData}})
			Expect(err).NotTo(HaveOccurred())
			Expect(cluster.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner("addon-manager"))).To(Succeed())
		}
		succeed(ctx, "upgrade", "tandem", path, "--reuse-values", "--set", "hub.replicas=0", "--force-conflicts")
		deployment := &appsv1.Deployment{}
		Expect(get(ctx, deployment, "addon-manager", system)).To(Succeed())
		Expect(*deployment.Spec.Replicas).To(BeZero())
		Expect(get(ctx, definition, crd, "")).To(Succeed())
		Expect(definition.Spec.Conversion.Webhook.ClientConfig.CABundle).To(Equal(server.Config.CAData))
		Expect(get(ctx, webhooks, "tandem", "")).To(Succeed())
		Expect(webhooks.Webhooks[0].ClientConfig.CABundle).To(Equal(server.Config.CAData))

		By("refusing to remove the hub without uninstalling it")
		_, err := tandem().run(ctx, "upgrade", "tandem", path, "--reuse-values", "--set", "hub.enabled=false")
		Expect(err).To(MatchError(ContainSubstring("set hub.replicas=0 and uninstall the release")))
		Expect(get(ctx, deployment, "addon-manager", system)).To(Succeed())

		By("keeping everything while addon-manager cannot be uninstalled")
		Expect(uninstall(ctx, batchv1.JobFailed)).NotTo(Succeed())
		Expect(get(ctx, deployment, "addon-manager", system)).To(Succeed())

		By("uninstalling it")
		Expect(uninstall(ctx, batchv1.JobComplete)).To(Succeed())
		for _, object := range installed {
			found := &unstructured.Unstructured{}
			found.SetGroupVersionKind(object.Object.GroupVersionKind())
			err := get(ctx, found, object.Object.GetName(), object.Object.GetNamespace())
			if object.Object.GetAnnotations()["helm.sh/resource-policy"] == "keep" {
				Expect(err).NotTo(HaveOccurred())
				continue
			}
			Expect(err).To(Or(MatchError(apierrors.IsNotFound, "not found"), BeNil()))
			Expect(err != nil || found.GetDeletionTimestamp() != nil).To(BeTrue(), "%s %s remains", found.GetKind(), found.GetName())
		}

		By("installing it again, with the definitions that were kept, and removing those too")
		succeed(ctx, "install", "tandem", path, "--set", "crds.keep=false", "--set", policies)
		Expect(uninstall(ctx, batchv1.JobComplete)).To(Succeed())
		Eventually(func() error { return get(ctx, definition, crd, "") }).Should(MatchError(apierrors.IsNotFound, "not found"))
		packages := &unstructured.Unstructured{}
		packages.SetAPIVersion("v1")
		packages.SetKind("Namespace")
		Expect(get(ctx, packages, "addon-packages", "")).To(Succeed())
		Expect(packages.GetDeletionTimestamp()).To(BeNil())
	})
})
