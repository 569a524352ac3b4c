package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent"
	"github.com/tandem-addons/tandem/pkg/kube/identity"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// certificate returns a certificate of that subject and validity for a key, signed by an authority of its own, as PEM.
func certificate(subject pkix.Name, from, to time.Time, key any) []byte {
	GinkgoHelper()
	authority, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: subject, NotBefore: from, NotAfter: to}
	der, err := x509.CreateCertificate(cryptorand.Reader, template, template, key, authority)
	Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der})
}

// createAgentSecret creates the Secret of an agent's certificate, which was issued and expires at these times from now.
func createAgentSecret(ctx context.Context, from, to time.Duration) *corev1.Secret {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	Expect(err).NotTo(HaveOccurred())
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	Expect(err).NotTo(HaveOccurred())
	subject := pkix.Name{CommonName: identity.User(clusterName), Organization: identity.Groups(clusterName)}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "hub-", Namespace: addOns},
		Data: map[string][]byte{
			"kubeconfig": []byte("kept"), corev1.TLSPrivateKeyKey: encoded,
			corev1.TLSCertKey: certificate(subject, time.Now().Add(from), time.Now().Add(to), key.Public()),
		},
	}
	Expect(managed.Create(ctx, secret)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(managed.Delete(ctx, secret)).To(Succeed()) })
	return secret
}

// requestsOf lists the certificate requests of a user.
func requestsOf(ctx context.Context, user string) (requests []certificatesv1.CertificateSigningRequest) {
	GinkgoHelper()
	list := &certificatesv1.CertificateSigningRequestList{}
	Expect(server.List(ctx, list)).To(Succeed())
	for _, csr := range list.Items {
		if csr.Spec.Username == user {
			requests = append(requests, csr)
		}
	}
	return requests
}

// forgetRequests deletes all certificate requests after the spec.
func forgetRequests() {
	DeferCleanup(func(ctx context.Context) {
		Expect(server.DeleteAllOf(ctx, &certificatesv1.CertificateSigningRequest{})).To(Succeed())
	})
}

// decision returns the decision on a request, as TYPE MESSAGE; empty if there is none.
func decision(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) string {
	GinkgoHelper()
	Expect(server.Get(ctx, client.ObjectKeyFromObject(csr), csr)).To(Succeed())
	if len(csr.Status.Conditions) == 0 {
		return ""
	}
	return string(csr.Status.Conditions[0].Type) + " " + csr.Status.Conditions[0].Message
}

// signs acts as the signer of the hub: it signs the only request of the agent once it is approved.
func signs(ctx context.Context) []byte {
	GinkgoHelper()
	var csr certificatesv1.CertificateSigningRequest
	Eventually(func(g Gomega) {
		requests := requestsOf(ctx, identity.User(clusterName))
		g.Expect(requests).To(HaveLen(1))
		csr = requests[0]
		g.Expect(decision(ctx, &csr)).To(Equal("Approved The agent of cluster cluster1 renews its certificate."))
	}).Should(Succeed())
	block, _ := pem.Decode(csr.Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	signed := certificate(request.Subject, time.Now(), time.Now().Add(time.Hour), request.PublicKey)
	Expect(environment.EditStatus(ctx, server, &csr, func(c *certificatesv1.CertificateSigningRequest) { c.Status.Certificate = signed })).To(Succeed())
	return signed
}

var _ = Describe("The certificate of an agent without OCM", func() {
	runRenewing := func(secret *corev1.Secret) {
		runAgentOf(clusterName, func(o *agent.Options) { o.HubSecret = client.ObjectKeyFromObject(secret) })
	}

	It("is renewed after two thirds of its life, once, with a new key", func(ctx SpecContext) {
		forgetRequests()
		secret := createAgentSecret(ctx, -71*time.Hour, 30*time.Hour)
		before := secret.DeepCopy()
		runHub()
		runRenewing(secret)
		signed := signs(ctx)
		Eventually(func() []byte {
			Expect(managed.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
			return secret.Data[corev1.TLSCertKey]
		}).Should(Equal(signed))
		_, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		Expect(err).NotTo(HaveOccurred())
		Expect(secret.Data[corev1.TLSPrivateKeyKey]).NotTo(Equal(before.Data[corev1.TLSPrivateKeyKey]))
		Expect(secret.Data["kubeconfig"]).To(Equal(before.Data["kubeconfig"]))
		Consistently(func() int { return len(requestsOf(ctx, identity.User(clusterName))) }).WithTimeout(3 * time.Second).Should(Equal(1))
	})

	It("is replaced at once, with a new key, if it is a bootstrap certificate", func(ctx SpecContext) {
		forgetRequests()
		secret := createAgentSecret(ctx, -time.Hour, 23*time.Hour)
		joined := secret.DeepCopy()
		secret.Data[identity.RequestedLifetime] = []byte("2160h0m0s")
		Expect(managed.Update(ctx, secret)).To(Succeed())
		runHub()
		runRenewing(secret)
		signed := signs(ctx)
		Expect(requestsOf(ctx, identity.User(clusterName))).To(ConsistOf(HaveField("Spec.ExpirationSeconds", HaveValue(BeEquivalentTo(2160*3600)))))
		Eventually(func() map[string][]byte {
			Expect(managed.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
			return secret.Data
		}).Should(And(HaveKeyWithValue(corev1.TLSCertKey, signed), Not(HaveKey(identity.RequestedLifetime))))
		_, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		Expect(err).NotTo(HaveOccurred())
		Expect(secret.Data[corev1.TLSPrivateKeyKey]).NotTo(Equal(joined.Data[corev1.TLSPrivateKeyKey]))
	})

	It("is not renewed before two thirds of its life", func(ctx SpecContext) {
		secret := createAgentSecret(ctx, -59*time.Hour, 30*time.Hour)
		runHub()
		runRenewing(secret)
		Consistently(func() int { return len(requestsOf(ctx, identity.User(clusterName))) }).WithTimeout(3 * time.Second).Should(BeZero())
	})

	DescribeTable("is refused",
		func(ctx SpecContext, from, cluster, groupsOf, why string) {
			forgetRequests()
			runHub()
			onHub := clientOf(as(hubServer.Config, identity.User(from), identity.Groups(from)...))
			_, csr, err := identity.NewRequest(cluster, time.Hour)
			Expect(err).NotTo(HaveOccurred())
			if groupsOf != cluster {
				csr.Spec.Request = newCSR(pkix.Name{CommonName: identity.User(cluster), Organization: []string{groupsOf}})
			}
			Expect(onHub.Create(ctx, csr)).To(Succeed())
			Eventually(func() string { return decision(ctx, csr) }).Should(
				Equal("Denied The agent of cluster " + from + " may only renew its own certificate: " + why + "."))
		},
		Entry("for another cluster", clusterName, "cluster2", "cluster2", "it names another user"),
		Entry("for another group", clusterName, clusterName, "hub-administrators", "it names other groups"),
		Entry("for a cluster without the RoleBinding", "revoked", "revoked", "revoked",
			`RoleBinding "tandem:addon-agent" in namespace "revoked" does not exist, which revokes its permissions`),
	)

	It("cannot be approved by the agent, nor fetched from the list of all requests", func(ctx SpecContext) {
		forgetRequests()
		onHub := clientOf(as(hubServer.Config, identity.User(clusterName), identity.Groups(clusterName)...))
		_, csr, err := identity.NewRequest(clusterName, time.Hour)
		Expect(err).NotTo(HaveOccurred())
		Expect(onHub.Create(ctx, csr)).To(Succeed())
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Self", Message: "approved",
		}}
		Expect(onHub.SubResource("approval").Update(ctx, csr)).To(MatchError(apierrors.IsForbidden, "forbidden"))
		Expect(onHub.List(ctx, &certificatesv1.CertificateSigningRequestList{})).To(MatchError(apierrors.IsForbidden, "forbidden"))
	})

	It("does not concern requests of other users", func(ctx SpecContext) {
		forgetRequests()
		runHub()
		_, csr, err := identity.NewRequest(clusterName, time.Hour)
		Expect(err).NotTo(HaveOccurred())
		Expect(clientOf(as(hubServer.Config, "eve", "system:masters")).Create(ctx, csr)).To(Succeed())
		Consistently(func() string { return decision(ctx, csr) }).WithTimeout(2 * time.Second).Should(BeEmpty())
	})

	It("is denied once the RoleBinding is deleted, and approved again once it is back", func(ctx SpecContext) {
		forgetRequests()
		runHub()
		binding := &rbacv1.RoleBinding{}
		Expect(server.Get(ctx, types.NamespacedName{Namespace: clusterName, Name: "tandem:addon-agent"}, binding)).To(Succeed())
		Expect(server.Delete(ctx, binding.DeepCopy())).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			binding.ResourceVersion = ""
			Expect(client.IgnoreAlreadyExists(server.Create(ctx, binding))).To(Succeed())
		})
		onHub := clientOf(as(hubServer.Config, identity.User(clusterName), identity.Groups(clusterName)...))
		_, csr, err := identity.NewRequest(clusterName, time.Hour)
		Expect(err).NotTo(HaveOccurred())
		another := csr.DeepCopy()
		Expect(onHub.Create(ctx, csr)).To(Succeed())
		Eventually(func() string { return decision(ctx, csr) }).Should(HavePrefix("Denied "))

		binding.ResourceVersion = ""
		Expect(server.Create(ctx, binding)).To(Succeed())
		Expect(onHub.Create(ctx, another)).To(Succeed())
		Eventually(func() string { return decision(ctx, another) }).Should(HavePrefix("Approved "))
	})
})

// newCSR returns a request for a certificate of that subject, as PEM.
func newCSR(subject pkix.Name) []byte {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	Expect(err).NotTo(HaveOccurred())
	request, err := certutil.MakeCSR(key, &subject, nil, nil)
	Expect(err).NotTo(HaveOccurred())
	return request
}
