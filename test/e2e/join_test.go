package e2e

import (
	"context"
	"crypto"
	cryptorand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// joined makes the agent's common name longer than the standard allows in certificates.
const joined = "a-cluster-with-a-name-that-is-rather-long"

var _ = Describe("A cluster that joins a hub without OCM", Label(quick), onSandbox("another identity would not be good for an agent that runs"), Ordered, func() {
	var (
		hub, cluster client.Client
		kubeconfigs  [2]string
		authority    string // the path of the hub's certificate authority, without .crt and .key
	)

	BeforeAll(func(ctx SpecContext) {
		box := startSandbox(ctx, 1)
		hub = hubClient(box.Hub().Config())
		var err error
		cluster, err = client.New(box.Cluster("cluster1").Config(), client.Options{})
		Expect(err).NotTo(HaveOccurred())
		authority = filepath.Join(filepath.Dir(box.Hub().AuditLog()), "pki", "ca")
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

	// runAgent runs the agent of the cluster until the end of the spec.
	runAgent := func(ctx context.Context, secret *corev1.Secret) {
		GinkgoHelper()
		agent := exec.CommandContext(ctx, filepath.Join(programs, "addon-agent"), "--cluster-name="+joined, "--standalone", "--leader-elect=false",
			"--hub-kubeconfig="+filepath.Join(filesOf(secret), "kubeconfig"), "--kubeconfig="+kubeconfigs[1],
			"--hub-kubeconfig-secret=tandem-system/tandem-hub-kubeconfig", "--metrics-bind-address=0", "--health-probe-bind-address=0")
		agent.Stdout, agent.Stderr = GinkgoWriter, GinkgoWriter
		Expect(agent.Start()).To(Succeed())
		DeferCleanup(func() {
			Expect(agent.Process.Kill()).To(Succeed())
			_ = agent.Wait() // it was killed
		})
	}
	// renewed waits until the certificate in the Secret is replaced.
	renewed := func(ctx context.Context, secret *corev1.Secret) *x509.Certificate {
		GinkgoHelper()
		before := secret.Data[corev1.TLSCertKey]
		Eventually(func(g Gomega) []byte {
			g.Expect(cluster.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
			return secret.Data[corev1.TLSCertKey]
		}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).ShouldNot(Equal(before))
		certificates, err := certutil.ParseCertsPEM(secret.Data[corev1.TLSCertKey])
		Expect(err).NotTo(HaveOccurred())
		return certificates[0]
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

	It("has its bootstrap certificate and key replaced by its agent, and holds no credentials of the administrator", func(ctx SpecContext) {
		administrator, err := os.ReadFile(kubeconfigs[0])
		Expect(err).NotTo(HaveOccurred())
		config, err := clientcmd.RESTConfigFromKubeConfig(administrator)
		Expect(err).NotTo(HaveOccurred())
		Expect(rest.LoadTLSFiles(config)).To(Succeed())
		secret := join(ctx)
		before := secret.DeepCopy()
		bootstrap, err := certutil.ParseCertsPEM(secret.Data[corev1.TLSCertKey])
		Expect(err).NotTo(HaveOccurred())
		Expect(bootstrap[0].NotAfter).To(BeTemporally("<", time.Now().Add(25*time.Hour)))
		runAgent(ctx, secret)
		own := renewed(ctx, secret)
		Expect(own.NotAfter).To(BeTemporally(">", time.Now().Add(80*24*time.Hour)))
		Expect(slices.Sorted(maps.Keys(secret.Data))).To(Equal([]string{"cluster-name", "kubeconfig", corev1.TLSCertKey, corev1.TLSPrivateKeyKey}))
		Expect(secret.Data[corev1.TLSPrivateKeyKey]).NotTo(Equal(before.Data[corev1.TLSPrivateKeyKey]))
		for key, content := range secret.Data {
			for _, credential := range [][]byte{config.KeyData, config.CertData, []byte(config.BearerToken)} {
				if len(credential) > 0 {
					Expect(environment.Quotes(content, string(credential))).To(BeFalse(), key)
				}
			}
		}
		Expect(agentOf(secret).List(ctx, &kudo.InstanceList{}, client.InNamespace(joined))).To(Succeed())
	})

	It("has its certificate renewed by its agent", func(ctx SpecContext) {
		secret := &corev1.Secret{}
		Expect(cluster.Get(ctx, client.ObjectKey{Namespace: "tandem-system", Name: "tandem-hub-kubeconfig"}, secret)).To(Succeed())
		issued, err := certutil.ParseCertsPEM(secret.Data[corev1.TLSCertKey])
		Expect(err).NotTo(HaveOccurred())
		Expect(environment.Edit(ctx, cluster, secret, func(s *corev1.Secret) { age(s, issued[0], authority) })).To(Succeed())
		runAgent(ctx, secret)
		current := renewed(ctx, secret)
		Expect(current.Subject.String()).To(Equal(issued[0].Subject.String()))
		Expect(current.NotAfter).To(BeTemporally(">", time.Now().Add(80*24*time.Hour)))
		Expect(agentOf(secret).List(ctx, &kudo.InstanceList{}, client.InNamespace(joined))).To(Succeed())
	})
})

// age replaces the certificate in a Secret by one of the same subject that was issued 80 days ago and expires in ten, signed by the authority.
func age(secret *corev1.Secret, issued *x509.Certificate, authority string) {
	GinkgoHelper()
	pair, err := tls.LoadX509KeyPair(authority+".crt", authority+".key")
	Expect(err).NotTo(HaveOccurred())
	key, err := keyutil.ParsePrivateKeyPEM(secret.Data[corev1.TLSPrivateKeyKey])
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: issued.Subject, KeyUsage: issued.KeyUsage, ExtKeyUsage: issued.ExtKeyUsage,
		NotBefore: time.Now().AddDate(0, 0, -80), NotAfter: time.Now().AddDate(0, 0, 10),
	}
	der, err := x509.CreateCertificate(cryptorand.Reader, template, pair.Leaf, key.(crypto.Signer).Public(), pair.PrivateKey)
	Expect(err).NotTo(HaveOccurred())
	secret.Data[corev1.TLSCertKey] = pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der})
}

// filesOf writes the files of a Secret into a new folder, as in a pod.
func filesOf(secret *corev1.Secret) (folder string) {
	GinkgoHelper()
	folder = GinkgoT().TempDir()
	for name, content := range secret.Data {
		Expect(os.WriteFile(filepath.Join(folder, name), content, 0o600)).To(Succeed())
	}
	return folder
}

// agentOf returns a client for the hub with the files of the Secret, as a pod would use them.
func agentOf(secret *corev1.Secret) client.Client {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(filesOf(secret), "kubeconfig"))
	Expect(err).NotTo(HaveOccurred())
	scheme := runtime.NewScheme()
	Expect(addonv1alpha1.AddToScheme(scheme)).To(Succeed())
	Expect(kudo.AddToScheme(scheme)).To(Succeed())
	Expect(authenticationv1.AddToScheme(scheme)).To(Succeed())
	c, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}
