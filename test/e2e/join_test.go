package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// joined makes the agent's common name longer than the standard allows in certificates.
const joined = "a-cluster-with-a-name-that-is-rather-long"

var _ = Describe("A cluster that joins a hub without OCM", Label(quick), onSandbox("another identity would not be good for an agent that runs"), Ordered, func() {
	var (
		hub, cluster client.Client
		kubeconfigs  [2]string
	)

	BeforeAll(func(ctx SpecContext) {
		box := startSandbox(ctx, 1)
		hub = hubClient(box.Hub().Config())
		var err error
		cluster, err = client.New(box.Cluster("cluster1").Config(), client.Options{})
		Expect(err).NotTo(HaveOccurred())
		kubeconfigs = [2]string{box.Hub().Kubeconfig(), box.Cluster("cluster1").Kubeconfig()}
	})

	join := func(ctx context.Context) *corev1.Secret {
		GinkgoHelper()
		out, err := exec.CommandContext(ctx, filepath.Join(programs, "kubectl-addon"), "join", joined,
			"--kubeconfig", kubeconfigs[0], "--cluster-kubeconfig", kubeconfigs[1]).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		GinkgoWriter.Print(string(out))
		secret := &corev1.Secret{}
		Expect(cluster.Get(ctx, client.ObjectKey{Namespace: "tandem-system", Name: "tandem-hub-kubeconfig"}, secret)).To(Succeed())
		return secret
	}

	It("gets an identity for its agent that is good for its own namespace on the hub, and nothing else", func(ctx SpecContext) {
		secret := join(ctx)
		Expect(string(secret.Data["cluster-name"])).To(Equal(joined))
		registered := &unstructured.Unstructured{}
		registered.SetAPIVersion("cluster.open-cluster-management.io/v1")
		registered.SetKind("ManagedCluster")
		Expect(hub.Get(ctx, client.ObjectKey{Name: joined}, registered)).To(Succeed())
		agent := agentOf(secret)

		review := &authenticationv1.SelfSubjectReview{}
		Expect(agent.Create(ctx, review)).To(Succeed())
		const group = "system:open-cluster-management:cluster:" + joined + ":addon:tandem"
		Expect(review.Status.UserInfo.Username).To(Equal(group + ":agent:addon-agent"))
		Expect(review.Status.UserInfo.Groups).To(ConsistOf(group, "system:open-cluster-management:addon:tandem", "system:authenticated"))

		addOns := &addonv1alpha1.ManagedClusterAddOnList{}
		Expect(agent.List(ctx, addOns, client.InNamespace(joined))).To(Succeed())
		Expect(agent.List(ctx, addOns, client.InNamespace("cluster1"))).To(MatchError(apierrors.IsForbidden, "forbidden"))
		Expect(agent.List(ctx, addOns)).To(MatchError(apierrors.IsForbidden, "forbidden"))
	})

	It("gets another certificate when it joins again, and no second of anything else", func(ctx SpecContext) {
		before := &corev1.Secret{}
		Expect(cluster.Get(ctx, client.ObjectKey{Namespace: "tandem-system", Name: "tandem-hub-kubeconfig"}, before)).To(Succeed())
		after := join(ctx)
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.Data[corev1.TLSCertKey]).NotTo(Equal(before.Data[corev1.TLSCertKey]))
		Expect(after.Data["kubeconfig"]).To(Equal(before.Data["kubeconfig"]), "what a running agent has read stays good")
		Expect(agentOf(after).List(ctx, &kudo.InstanceList{}, client.InNamespace(joined))).To(Succeed())
	})
})

// agentOf returns a client for the hub with the files of the Secret, as a pod would use them.
func agentOf(secret *corev1.Secret) client.Client {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	for name, content := range secret.Data {
		Expect(os.WriteFile(filepath.Join(folder, name), content, 0o600)).To(Succeed())
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(folder, "kubeconfig"))
	Expect(err).NotTo(HaveOccurred())
	scheme := runtime.NewScheme()
	Expect(addonv1alpha1.AddToScheme(scheme)).To(Succeed())
	Expect(kudo.AddToScheme(scheme)).To(Succeed())
	Expect(authenticationv1.AddToScheme(scheme)).To(Succeed())
	c, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}
