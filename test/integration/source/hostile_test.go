package source

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/core/signature/keyless"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/sigstore"
)

// store creates an object that is deleted at the end of the spec.
func store(ctx context.Context, object client.Object) {
	GinkgoHelper()
	object.SetNamespace(packages)
	Expect(server.Create(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(server.Delete(ctx, object))).To(Succeed()) })
}

// withSecret makes a source use a Secret.
func withSecret(name string) func(*kudo.PackageSource) {
	return func(s *kudo.PackageSource) { s.Spec.PullSecret = &kudo.LocalName{Name: name} }
}

// requiringPassword makes a registry require a user and a password.
func requiringPassword(user, password string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if u, p, _ := r.BasicAuth(); u == user && p == password {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="packages"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}

// dockerConfig returns a Secret for hosts, each with the same user and password.
func dockerConfig(name, user, password string, hosts ...string) *corev1.Secret {
	var auths []string
	for _, host := range hosts {
		auths = append(auths, fmt.Sprintf("%q: {\"auth\": %q}", host, base64.StdEncoding.EncodeToString([]byte(user+":"+password))))
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths": {` + strings.Join(auths, ", ") + `}}`)}}
}

var _ = Describe("A PackageSource with keys", func() {
	It("stores only what one of them has signed, and says which", func(ctx SpecContext) {
		registry, own, other := newHost(), newKeyPair(), newKeyPair()
		first := registry.push(ctx, "signed", "1.0.0", "1.0.0", "a")
		run(registry.name)
		follow(ctx, "signed", kudo.SourcePackage{Reference: place(registry, "signed"), Version: "1.x"}, func(s *kudo.PackageSource) {
			s.Spec.Verify = &kudo.SourceVerification{Keys: kudo.LocalName{Name: "signed-keys"}}
		})
		becomes(ctx, "signed", kudo.ReasonReferenceNotFound, `"signed-keys"`)
		keys := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "signed-keys"}, Data: map[string]string{"own.pub": own.public}}
		store(ctx, keys)

		By("pulling an unsigned version")
		request(ctx, "signed")
		unsigned := becomes(ctx, "signed", kudo.ReasonVerificationFailed, "version 1.0.0")
		Expect(unsigned.Status.Refused).To(HaveLen(1))
		Expect(unsigned.Status.Refused[0].Digest).To(Equal(first.reference.Digest))
		Expect(meta.IsStatusConditionTrue(unsigned.Status.Conditions, kudo.ConditionStalled)).To(BeTrue())

		By("pulling one that another key has signed")
		registry.sign(ctx, first, other)
		request(ctx, "signed")
		becomes(ctx, "signed", kudo.ReasonVerificationFailed, "version 1.0.0")
		Expect(versions(ctx, "signed")).To(BeEmpty())

		By("pulling one that both have signed")
		registry.sign(ctx, first, own)
		request(ctx, "signed")
		stored := becomes(ctx, "signed", kudo.ReasonStored, "signed-1.0.0")
		Expect(stored.Status.Artifact.SignedBy).To(Equal([]string{own.private.Public().ID()}))
		Expect(stored.Status.Refused).To(BeEmpty())
		version := &kudo.OperatorVersion{}
		Expect(server.Get(ctx, client.ObjectKey{Namespace: packages, Name: "signed-1.0.0"}, version)).To(Succeed())
		Expect(signature.VerifyVersion(version, signature.Trust{Keys: []signature.Key{own.private.Public()}})).To(Succeed())
		Expect(signature.VerifyVersion(version, signature.Trust{Keys: []signature.Key{other.private.Public()}})).NotTo(Succeed(), "signatures by other keys are not stored")

		By("pulling a signed version, and then an unsigned higher one, which is not stored")
		registry.push(ctx, "signed", "1.1.0", "1.1.0", "evil")
		request(ctx, "signed")
		refused := becomes(ctx, "signed", kudo.ReasonVerificationFailed, "version 1.1.0")
		Expect(refused.Status.Artifact.OperatorVersion).To(Equal("signed-1.0.0"))
		Expect(versions(ctx, "signed")).To(ConsistOf("signed-1.0.0"))

		By("replacing the keys")
		registry.push(ctx, "signed", "1.0.0", "1.1.0", "a") // the highest is the stored one again, which is named by another tag
		Expect(environment.Edit(ctx, server, keys, func(c *corev1.ConfigMap) { c.Data = map[string]string{"other.pub": newKeyPair().public} })).To(Succeed())
		request(ctx, "signed")
		becomes(ctx, "signed", kudo.ReasonInvalidPackage, "tag 1.1.0 names version")
	}, SpecTimeout(timeout))

	It("verifies what is stored again when the keys change", func(ctx SpecContext) {
		registry, own := newHost(), newKeyPair()
		registry.sign(ctx, registry.push(ctx, "rekeyed", "1.0.0", "1.0.0", "a"), own)
		keys := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "rekeyed-keys"}, Data: map[string]string{"own.pub": own.public}}
		store(ctx, keys)
		run(registry.name)
		follow(ctx, "rekeyed", kudo.SourcePackage{Reference: place(registry, "rekeyed"), Version: "1.x"}, func(s *kudo.PackageSource) {
			s.Spec.Verify = &kudo.SourceVerification{Keys: kudo.LocalName{Name: "rekeyed-keys"}}
		})
		becomes(ctx, "rekeyed", kudo.ReasonStored, "rekeyed-1.0.0")
		Expect(environment.Edit(ctx, server, keys, func(c *corev1.ConfigMap) { c.Data = map[string]string{"other.pub": newKeyPair().public} })).To(Succeed())
		request(ctx, "rekeyed")
		becomes(ctx, "rekeyed", kudo.ReasonVerificationFailed, "version 1.0.0")
	}, SpecTimeout(timeout))

	It("stores a package that an identity has signed without a key, and verifies it again when the identities change", func(ctx SpecContext) {
		const issuer, subject = "https://token.actions.githubusercontent.com", "https://github.com/example/packages/.github/workflows/release.yaml@refs/tags/v1.0.0"
		registry, trusted := newHost(), sigstore.New(GinkgoTB())
		p := registry.push(ctx, "keyless", "1.0.0", "1.0.0", "a")
		payload, err := signature.Statement{Place: p.reference.Host + "/" + p.reference.Repository, Digest: p.reference.Digest, Versions: p.digests}.Payload()
		Expect(err).NotTo(HaveOccurred())
		signed, err := keyless.NewSignature(payload, trusted.Sign(payload, subject, issuer))
		Expect(err).NotTo(HaveOccurred())
		Expect(registry.client().Sign(ctx, p.reference, signed)).To(Succeed())
		identities := func(subject string) map[string]string {
			return map[string]string{keyless.RootEntry: string(trusted.Root()), keyless.IdentitiesEntry: "- {issuer: " + issuer + ", subject: '" + subject + "'}\n"}
		}
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "keyless-keys"}, Data: identities("someone else")}
		store(ctx, config)
		run(registry.name)
		follow(ctx, "keyless", kudo.SourcePackage{Reference: place(registry, "keyless"), Version: "1.x"}, func(s *kudo.PackageSource) {
			s.Spec.Verify = &kudo.SourceVerification{Keys: kudo.LocalName{Name: "keyless-keys"}}
		})
		becomes(ctx, "keyless", kudo.ReasonVerificationFailed, "none of its signatures was made by one of the identities")
		Expect(versions(ctx, "keyless")).To(BeEmpty())

		Expect(environment.Edit(ctx, server, config, func(c *corev1.ConfigMap) { c.Data = identities(subject) })).To(Succeed())
		request(ctx, "keyless")
		stored := becomes(ctx, "keyless", kudo.ReasonStored, "keyless-1.0.0")
		Expect(stored.Status.Artifact.SignedBy).To(ConsistOf(HavePrefix("identities.yaml sha256:")))

		Expect(environment.Edit(ctx, server, config, func(c *corev1.ConfigMap) { c.Data = identities("someone else") })).To(Succeed())
		request(ctx, "keyless")
		becomes(ctx, "keyless", kudo.ReasonVerificationFailed, "version 1.0.0")
	}, SpecTimeout(timeout))
})

var _ = Describe("A hostile registry", func() {
	DescribeTable("is reported, and nothing is stored",
		func(ctx SpecContext, name, reason, message string, answer func(w http.ResponseWriter, r *http.Request) bool) {
			registry := newHost()
			registry.push(ctx, name, "1.0.0", "1.0.0", "a")
			registry.answers(answer)
			run(registry.name)
			follow(ctx, name, kudo.SourcePackage{Reference: place(registry, name), Version: "*"}, func(s *kudo.PackageSource) {
				s.Spec.Timeout = &metav1.Duration{Duration: 5 * time.Second}
			})
			becomes(ctx, name, reason, message)
			Expect(versions(ctx, name)).To(BeEmpty())
		},
		Entry("that hangs", "hangs", kudo.ReasonPullFailed, "did not complete", func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}),
		Entry("that sends another manifest than its digest says", "manifests", kudo.ReasonPullFailed, "digest mismatch", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/manifests/sha256:") {
				return false
			}
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			_, _ = w.Write([]byte(`{"schemaVersion": 2}`))
			return true
		}),
		Entry("that sends another tarball than its digest says", "tarballs", kudo.ReasonPullFailed, "mismatch", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
				return false
			}
			_, _ = w.Write([]byte("something else"))
			return true
		}),
		Entry("that sends a tarball without an end", "endless", kudo.ReasonPullFailed, "does not match", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
				return false
			}
			for chunk := make([]byte, 1<<20); r.Context().Err() == nil; {
				if _, err := w.Write(chunk); err != nil {
					break
				}
			}
			return true
		}),
		Entry("that names an endless list of tags", "tags", kudo.ReasonPullFailed, "", func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/tags/list") {
				return false
			}
			_, _ = w.Write([]byte(`{"tags": ["` + strings.Repeat("a", 64<<20) + `"]}`))
			return true
		}),
		Entry("that fails", "fails", kudo.ReasonPullFailed, "500", func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte("\x1b[31mred"))
			return true
		}),
		Entry("that does not have it", "absent", kudo.ReasonPullFailed, "name a Secret with credentials in spec.pullSecret", func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusNotFound)
			return true
		}),
	)

	It("cannot redirect to a host that is not allowed, which receives no request", func(ctx SpecContext) {
		registry, elsewhere := newHost(), newHost()
		registry.push(ctx, "redirected", "1.0.0", "1.0.0", "a")
		elsewhere.push(ctx, "redirected", "1.0.0", "1.0.0", "a")
		registry.answers(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/blobs/") {
				return false
			}
			http.Redirect(w, r, "https://"+elsewhere.name+r.URL.Path, http.StatusTemporaryRedirect)
			return true
		})
		run(registry.name, elsewhere.name)
		follow(ctx, "redirected", kudo.SourcePackage{Reference: place(registry, "redirected"), Version: "*"})
		becomes(ctx, "redirected", kudo.ReasonHostNotAllowed, "add "+elsewhere.name+" to spec.allowedHosts")
		Expect(elsewhere.received("")).To(BeEmpty())
	}, SpecTimeout(timeout))

	It("on this machine is not reached unless the administrator allows it", func(ctx SpecContext) {
		registry := newHost()
		registry.push(ctx, "local", "1.0.0", "1.0.0", "a")
		run() // allows no host
		follow(ctx, "local", kudo.SourcePackage{Reference: place(registry, "local"), Version: "*"})
		becomes(ctx, "local", kudo.ReasonPullFailed, "is not https")
		Expect(environment.Edit(ctx, server, read(ctx, "local"), func(s *kudo.PackageSource) {
			s.Spec.Package = nil
			s.Spec.Chart = &kudo.SourceChart{Repository: "https://" + registry.name, Name: "local", Version: "*"}
		})).To(Succeed())
		becomes(ctx, "local", kudo.ReasonHostNotAllowed, "has address 127.0.0.1, which packages must not be read from")
		Expect(registry.received("")).To(BeEmpty())
	}, SpecTimeout(timeout))
})

var _ = Describe("A package that refers to another host", func() {
	It("is refused before a request, and stored once the source allows the host", func(ctx SpecContext) {
		registry, elsewhere := newHost(), newHost()
		child := elsewhere.push(ctx, "guest", "0.1.0", "0.1.0", "a")
		registry.push(ctx, "referring", "1.0.0", "1.0.0", "a", child.reference.String())
		run(registry.name, elsewhere.name)
		follow(ctx, "referring", kudo.SourcePackage{Reference: place(registry, "referring"), Version: "*"})
		refused := becomes(ctx, "referring", kudo.ReasonHostNotAllowed, "add "+elsewhere.name+" to spec.allowedHosts")
		Expect(refused.Status.Refused).To(HaveLen(1))
		Expect(elsewhere.received("")).To(BeEmpty())
		Expect(environment.Edit(ctx, server, refused, func(s *kudo.PackageSource) { s.Spec.AllowedHosts = []string{elsewhere.name} })).To(Succeed())
		stored := becomes(ctx, "referring", kudo.ReasonStored, "referring-1.0.0")
		Expect(stored.Status.Artifact.Versions).To(Equal([]string{"guest-0.1.0", "referring-1.0.0"}))
	}, SpecTimeout(timeout))

	It("is refused at each further attempt, although its content was stored before", func(ctx SpecContext) {
		registry, elsewhere := newHost(), newHost()
		child := elsewhere.push(ctx, "visitor", "0.1.0", "0.1.0", "a")
		registry.push(ctx, "unwelcome", "1.0.0", "1.0.0", "a", child.reference.String())
		run(registry.name, elsewhere.name)
		follow(ctx, "unwelcome", kudo.SourcePackage{Reference: place(registry, "unwelcome"), Version: "*"}, func(s *kudo.PackageSource) {
			s.Spec.AllowedHosts = []string{elsewhere.name}
		})
		stored := becomes(ctx, "unwelcome", kudo.ReasonStored, "unwelcome-1.0.0")
		Expect(environment.Edit(ctx, server, stored, func(s *kudo.PackageSource) { s.Spec.AllowedHosts = nil })).To(Succeed())
		becomes(ctx, "unwelcome", kudo.ReasonHostNotAllowed, "spec.allowedHosts")
		request(ctx, "unwelcome")
		becomes(ctx, "unwelcome", kudo.ReasonHostNotAllowed, "spec.allowedHosts")
	}, SpecTimeout(timeout))

	It("at a URL is refused in the same way", func(ctx SpecContext) {
		registry, elsewhere := newHost(), newHost()
		run(registry.name, elsewhere.name)
		registry.pushUnverified(ctx, "linking", "1.0.0", "http://"+elsewhere.name+"/guest.tgz#sha256="+strings.Repeat("0", 64))
		follow(ctx, "linking", kudo.SourcePackage{Reference: place(registry, "linking"), Version: "*"})
		becomes(ctx, "linking", kudo.ReasonHostNotAllowed, "add "+elsewhere.name+" to spec.allowedHosts")
		Expect(elsewhere.received("")).To(BeEmpty())
	}, SpecTimeout(timeout))
})

var _ = Describe("The Secret of a PackageSource", func() {
	It("may be created, and replaced, later", func(ctx SpecContext) {
		registry := newHost()
		registry.push(ctx, "private", "1.0.0", "1.0.0", "a")
		registry.answers(requiringPassword("joe", "one"))
		run(registry.name)
		follow(ctx, "private", kudo.SourcePackage{Reference: place(registry, "private"), Version: "*"})
		becomes(ctx, "private", kudo.ReasonPullFailed, "refused access (401 Unauthorized): name a Secret with credentials in spec.pullSecret")
		Expect(environment.Edit(ctx, server, read(ctx, "private"), func(s *kudo.PackageSource) { withSecret("private")(s) })).To(Succeed())
		becomes(ctx, "private", kudo.ReasonReferenceNotFound, `Secret "private" of spec.pullSecret`)

		secret := dockerConfig("private", "joe", "old", registry.name)
		store(ctx, secret)
		request(ctx, "private")
		becomes(ctx, "private", kudo.ReasonPullFailed, `check the credentials for this host in Secret "private"`)
		Expect(environment.Edit(ctx, server, secret, func(s *corev1.Secret) { s.Data = dockerConfig("", "joe", "one", registry.name).Data })).To(Succeed())
		request(ctx, "private")
		becomes(ctx, "private", kudo.ReasonStored, "private-1.0.0")
	}, SpecTimeout(timeout))

	It("goes to the host of the source only, even if it has credentials for others", func(ctx SpecContext) {
		registry, elsewhere := newHost(), newHost()
		child := elsewhere.push(ctx, "trap", "0.1.0", "0.1.0", "a")
		registry.push(ctx, "trapped", "1.0.0", "1.0.0", "a", child.reference.String())
		registry.answers(requiringPassword("joe", "one"))
		elsewhere.answers(requiringPassword("joe", "one"))
		store(ctx, dockerConfig("trapped", "joe", "one", registry.name, elsewhere.name))
		run(registry.name, elsewhere.name)
		follow(ctx, "trapped", kudo.SourcePackage{Reference: place(registry, "trapped"), Version: "*"}, withSecret("trapped"), func(s *kudo.PackageSource) {
			s.Spec.AllowedHosts = []string{elsewhere.name}
		})
		becomes(ctx, "trapped", kudo.ReasonInvalidPackage, "refused access")
		Expect(elsewhere.received("")).NotTo(BeEmpty())
		Expect(elsewhere.received("Basic ")).To(BeEmpty())
		Expect(registry.received("Basic ")).NotTo(BeEmpty())
	}, SpecTimeout(timeout))

	It("of a user and a password names the hosts that get them", func(ctx SpecContext) {
		registry := newHost()
		registry.push(ctx, "basic", "1.0.0", "1.0.0", "a")
		registry.answers(requiringPassword("joe", "one"))
		run(registry.name)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "basic"}, Type: corev1.SecretTypeBasicAuth,
			StringData: map[string]string{"username": "joe", "password": "one"}}
		store(ctx, secret)
		follow(ctx, "basic", kudo.SourcePackage{Reference: place(registry, "basic"), Version: "*"}, withSecret("basic"))
		becomes(ctx, "basic", kudo.ReasonReferenceNotFound, "annotation kudo.dev/hosts is missing")
		for hosts, ready := range map[string]string{"registry.example.com": kudo.ReasonPullFailed, "registry.example.com, " + registry.name: kudo.ReasonStored} {
			registry.mu.Lock()
			registry.requests = nil
			registry.mu.Unlock()
			Expect(environment.Edit(ctx, server, secret, func(s *corev1.Secret) { s.Annotations = map[string]string{kudo.AnnotationHosts: hosts} })).To(Succeed())
			request(ctx, "basic")
			becomes(ctx, "basic", ready, "")
			if ready != kudo.ReasonStored {
				Expect(registry.received("Basic ")).To(BeEmpty())
			}
		}
	}, SpecTimeout(timeout))

	It("is no other kind of Secret", func(ctx SpecContext) {
		run()
		store(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "opaque"}, StringData: map[string]string{"password": "secret"}})
		follow(ctx, "opaque", kudo.SourcePackage{Reference: "oci://registry.example.com/packages/opaque", Version: "*"}, withSecret("opaque"))
		becomes(ctx, "opaque", kudo.ReasonReferenceNotFound, `its type is "Opaque"`)
	}, SpecTimeout(timeout))
})
