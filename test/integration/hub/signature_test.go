package hub

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/test/sigstore"
)

// packageSigner is a pair of keys.
type packageSigner struct {
	private signature.PrivateKey
	public  string
}

func newPackageSigner() packageSigner {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	der, err := x509.MarshalPKCS8PrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	Expect(err).NotTo(HaveOccurred())
	private, err := signature.ParsePrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil)
	Expect(err).NotTo(HaveOccurred())
	return packageSigner{private, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))}
}

// annotation returns the annotation with a signature of a version's name and content.
func (s packageSigner) annotation(version *kudo.OperatorVersion) string {
	GinkgoHelper()
	digest := signature.ContentDigest(version)
	signed, err := s.private.Sign(signature.Statement{Digest: digest, Versions: map[string]string{version.Name: digest}})
	Expect(err).NotTo(HaveOccurred())
	value, err := signature.Encode([]signature.Signature{signed})
	Expect(err).NotTo(HaveOccurred())
	return value
}

var _ = Describe("A hub that requires signed packages", func() {
	var (
		f       fleet
		cluster string
		version *kudo.OperatorVersion
		own     packageSigner
		keys    *corev1.ConfigMap
	)
	BeforeEach(func(ctx SpecContext) {
		stopHub()
		own = newPackageSigner()
		f = newFleet()
		keys = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tandem-system", Name: f.nameOf("keys")}}
		runHub(func(_ *rest.Config, o *hub.Options) { o.RequireSignedPackages, o.PackageKeys = true, keys.Name })
		cluster = f.cluster(ctx, "cluster")
		version = f.pushPlans(ctx, "small", packages)
	})
	// trust stores the keys that the hub trusts.
	trust := func(ctx context.Context, trusted ...packageSigner) {
		GinkgoHelper()
		wanted := keys.DeepCopy()
		wanted.Data = map[string]string{"broken.pub": "no key"}
		for at, s := range trusted {
			wanted.Data[string(rune('a'+at))+".pub"] = s.public
		}
		if keys.UID == "" {
			Expect(server.Create(ctx, wanted)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(server.Delete(ctx, wanted))).To(Succeed()) })
		} else {
			Expect(server.Update(ctx, wanted)).To(Succeed())
		}
		keys = wanted
	}
	// annotate sets the signatures of an OperatorVersion, as anyone who may write it can.
	annotate := func(ctx context.Context, value string) {
		GinkgoHelper()
		signed := version.DeepCopy()
		signed.Annotations = map[string]string{kudo.AnnotationSignatures: value}
		Expect(server.Patch(ctx, signed, client.MergeFrom(version))).To(Succeed())
		version = signed
	}
	run := func(ctx context.Context) *kudo.Instance {
		GinkgoHelper()
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "mine"}}
		instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: packages, Name: version.Name}
		Expect(server.Create(ctx, instance)).To(Succeed())
		return instance
	}
	unsigned := func(message string) OmegaMatcher {
		return And(HaveField("Status", "False"), HaveField("Reason", kudo.ReasonOperatorVersionNotSigned),
			HaveField("Message", ContainSubstring(message)))
	}
	resolved := HaveField("Status", "True")

	It("resolves an Instance once its package is signed, and as long as the key is trusted", func(ctx SpecContext) {
		instance := run(ctx)
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(unsigned("ConfigMap tandem-system/" + keys.Name + " (it does not exist); store the public keys of the signers in it (kubectl create configmap"))
		trust(ctx, own)
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(unsigned("contains no public key (-----BEGIN PUBLIC KEY-----)); sign the package and push it again (kubectl addon package push DIR -n addon-packages " +
			"--sign-key FILE): OperatorVersion addon-packages/" + version.Name + ": it has no signature"))

		By("signing what the API server stores")
		annotate(ctx, own.annotation(version))
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(resolved)

		By("rotating the key")
		next := newPackageSigner()
		trust(ctx, own, next)
		Consistently(resolvedOf(instance), "1s").WithContext(ctx).Should(resolved)
		trust(ctx, next)
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(unsigned("none of its signatures was made with one of the keys"))
		annotate(ctx, next.annotation(version))
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(resolved)
	})

	It("resolves an Instance whose package an identity has signed without a key, as long as the identity is trusted", func(ctx SpecContext) {
		const issuer, workflow = "https://token.actions.githubusercontent.com", "https://github.com/example/packages/.github/workflows/release.yaml@refs/tags/v1.0.0"
		trusted, stranger := sigstore.New(GinkgoTB()), sigstore.New(GinkgoTB())
		digest := signature.ContentDigest(version)
		payload, err := signature.Statement{Digest: digest, Versions: map[string]string{version.Name: digest}}.Payload()
		Expect(err).NotTo(HaveOccurred())
		value, err := signature.Encode([]signature.Signature{{Payload: payload, Bundle: trusted.Sign(payload, workflow, issuer)}})
		Expect(err).NotTo(HaveOccurred())
		annotate(ctx, value)
		// set replaces the entries about identities in the ConfigMap; the key stays.
		set := func(entries map[string]string) {
			GinkgoHelper()
			wanted := keys.DeepCopy()
			wanted.Data = map[string]string{"a.pub": own.public}
			maps.Copy(wanted.Data, entries)
			Expect(server.Update(ctx, wanted)).To(Succeed())
			keys = wanted
		}
		identity := func(subject string) string { return "- {issuer: " + issuer + ", " + subject + "}\n" }
		root := string(trusted.Root())

		By("trusting keys only")
		trust(ctx, own)
		instance := run(ctx)
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(unsigned("or trust the identity that signed it (entries trusted_root.json and identities.yaml of the ConfigMap)"))

		By("trusting the identity, too")
		set(map[string]string{"trusted_root.json": root, "identities.yaml": identity("subjectRegExp: 'https://github\\.com/example/packages/.*'")})
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(resolved)

		By("trusting others")
		for _, step := range []struct {
			entries map[string]string
			want    string
		}{
			{map[string]string{"trusted_root.json": root, "identities.yaml": identity("subject: other@example.com")}, `which is not trusted`},
			{map[string]string{"trusted_root.json": string(stranger.Root()), "identities.yaml": identity("subject: '" + workflow + "'")}, "the bundle is invalid for the trust root"},
			{map[string]string{"trusted_root.json": "{}", "identities.yaml": identity("subject: '" + workflow + "'")}, keys.Name + " (trusted_root.json is no trust root of Sigstore"},
			{map[string]string{"trusted_root.json": root, "identities.yaml": identity("subjectRegExp: .*")}, keys.Name + ` (identities.yaml: identity 1: subjectRegExp ".*": it matches everyone`},
			{map[string]string{"trusted_root.json": root}, keys.Name + " (trusted_root.json needs identities.yaml beside it"},
		} {
			set(step.entries)
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(unsigned(step.want))
		}

		By("signing with the key, while the identities are invalid")
		annotate(ctx, own.annotation(version))
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(resolved)
	})

	It("resolves an Instance no longer when its signed OperatorVersion is replaced", func(ctx SpecContext) {
		trust(ctx, own)
		annotate(ctx, own.annotation(version))
		instance := run(ctx)
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(resolved)

		By("storing other content under its name, with its signatures")
		replaced := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: version.Name, Annotations: version.Annotations}}
		version.Spec.DeepCopyInto(&replaced.Spec)
		replaced.Spec.Templates = map[string]string{"another.yaml": "kind: ConfigMap"}
		maps.Copy(replaced.Spec.Templates, version.Spec.Templates)
		Expect(server.Delete(ctx, version)).To(Succeed())
		Expect(server.Create(ctx, replaced)).To(Succeed())
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(unsigned("it was altered"))
	})

	It("resolves no Instance with a signature by another key, or about other content or another version", func(ctx SpecContext) {
		trust(ctx, own)
		annotate(ctx, newPackageSigner().annotation(version))
		instance := run(ctx)
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(unsigned("none of its signatures was made with one of the keys"))

		altered := version.DeepCopy()
		altered.Spec.Templates = map[string]string{"another.yaml": "kind: ConfigMap"}
		annotate(ctx, own.annotation(altered))
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(unsigned("it was altered"))

		other := version.DeepCopy()
		other.Name = "another-version"
		annotate(ctx, own.annotation(other))
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(unsigned(`it is about other OperatorVersions ("another-version")`))

		annotate(ctx, own.annotation(version))
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(resolved)
	})
})
