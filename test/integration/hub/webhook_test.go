package hub

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/pkg/sandbox/port"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// The Secret and ConfigMap with the keys and the CA bundle of addon-manager's webhooks.
var kept = metav1.ObjectMeta{Namespace: "tandem-system", Name: "addon-manager-webhooks"}

func keys() *corev1.Secret     { return &corev1.Secret{ObjectMeta: kept} }
func trust() *corev1.ConfigMap { return &corev1.ConfigMap{ObjectMeta: kept} }
func lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "tandem-system", Name: "tandem-addon-manager"}}
}

func webhookConfiguration() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "tandem"}}
}

func definitionOf(resource string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: resource + ".addon.open-cluster-management.io"},
	}
}

// bundle returns the published CA bundle of addon-manager's webhooks; empty if there is none.
func bundle(ctx context.Context) []byte {
	current := trust()
	if err := server.Get(ctx, client.ObjectKeyFromObject(current), current); err != nil {
		return nil
	}
	return []byte(current.Data["ca-bundle.crt"])
}

// authorities returns the certificates in a bundle.
func authorities(bundle []byte) []*x509.Certificate {
	GinkgoHelper()
	var found []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		Expect(err).NotTo(HaveOccurred())
		found = append(found, certificate)
	}
	return found
}

// call connects to the webhook server on a new connection, trusting the bundle as the API server does, and returns the serving certificate.
func call(ctx context.Context, address string, bundle []byte) (*x509.Certificate, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/", nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Transport: transport, Timeout: 5 * time.Second}).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return response.TLS.PeerCertificates[0], nil
}

// servedCertificate returns the certificate at address, verified with the current bundle, for Eventually.
func servedCertificate(address string) func(Gomega, context.Context) *x509.Certificate {
	return func(g Gomega, ctx context.Context) *x509.Certificate {
		certificate, err := call(ctx, address, bundle(ctx))
		g.Expect(err).NotTo(HaveOccurred())
		return certificate
	}
}

// waitServed waits until the address is served, and returns the certificate.
func waitServed(ctx context.Context, address string) *x509.Certificate {
	GinkgoHelper()
	var certificate *x509.Certificate
	Eventually(func(g Gomega, ctx context.Context) { certificate = servedCertificate(address)(g, ctx) }).WithContext(ctx).Should(Succeed())
	return certificate
}

// lose removes an entry from the Secret.
func lose(ctx context.Context, entry string) {
	GinkgoHelper()
	patch := client.RawPatch("application/json-patch+json", fmt.Appendf(nil, `[{"op":"remove","path":"/data/%s"}]`, entry))
	Eventually(func() error { return server.Patch(ctx, keys(), patch) }).Should(Succeed(), "an addon-manager that starts creates the Secret")
}

// bundlesOfCallers returns the bundles in all of Tandem's objects that call the webhooks.
func bundlesOfCallers(g Gomega, ctx context.Context) map[string]string {
	bundles := map[string]string{}
	for _, resource := range []string{"clustermanagementaddons", "managedclusteraddons", "addondeploymentconfigs"} {
		definition := definitionOf(resource)
		g.Expect(server.Get(ctx, client.ObjectKeyFromObject(definition), definition)).To(Succeed())
		bundles[resource] = string(definition.Spec.Conversion.Webhook.ClientConfig.CABundle)
	}
	configuration := webhookConfiguration()
	g.Expect(server.Get(ctx, client.ObjectKeyFromObject(configuration), configuration)).To(Succeed())
	g.Expect(configuration.Webhooks).NotTo(BeEmpty())
	for _, webhook := range configuration.Webhooks {
		bundles[webhook.Name] = string(webhook.ClientConfig.CABundle)
	}
	return bundles
}

// bundlesAreCurrent succeeds once every caller has the current bundle.
func bundlesAreCurrent(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		current := bundle(ctx)
		g.Expect(authorities(current)).To(ContainElement(WithTransform(servedCertificate(webhookAddress)(g, ctx).CheckSignatureFrom, Succeed())),
			"a bundle of an earlier spec may still be there")
		g.Expect(bundlesOfCallers(g, ctx)).To(HaveEach(string(current)))
	}).Should(Succeed())
}

// converts waits until the API server converts all add-on kinds from v1beta1, which requires the bundle in each definition.
func converts(ctx context.Context) {
	GinkgoHelper()
	for kind, spec := range map[string]map[string]any{
		"ClusterManagementAddOn": {"installStrategy": map[string]any{"type": "Manual"}}, "ManagedClusterAddOn": {}, "AddOnDeploymentConfig": {},
	} {
		probe := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		probe.SetAPIVersion("addon.open-cluster-management.io/v1beta1")
		probe.SetKind(kind)
		probe.SetGenerateName("probe-")
		if kind != "ClusterManagementAddOn" {
			probe.SetNamespace(metav1.NamespaceDefault)
		}
		Eventually(func() error { return server.Create(ctx, probe.DeepCopy(), client.DryRunAll) }).WithContext(ctx).Should(Succeed(), kind)
	}
}

// otherAddress returns an address for another replica, reserved until the spec ends.
func otherAddress() string {
	GinkgoHelper()
	reserved, err := port.Find()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(reserved.Release)
	return reserved.Address()
}

// ofWebhooks lists the writes except those of add-ons and Instances, because objects of earlier specs may still be settling.
func ofWebhooks(writes *environment.Writes) func() []string {
	return func() []string {
		return slices.DeleteFunc(writes.Requests(), func(request string) bool {
			return strings.Contains(request, "/apis/"+addonv1alpha1.GroupVersion.Group+"/") ||
				strings.Contains(request, "/apis/"+kudo.GroupVersion.Group+"/")
		})
	}
}

func servingAt(address string) func(*rest.Config, *hub.Options) {
	return func(_ *rest.Config, options *hub.Options) {
		options.WebhookBindAddress, options.WebhookHosts = address, []string{"127.0.0.1"}
	}
}

var _ = Describe("The webhook server", func() {
	It("serves with a certificate that everything which calls it trusts", func(ctx SpecContext) {
		certificate := waitServed(ctx, webhookAddress)
		bundlesAreCurrent(ctx)
		Expect(certificate.VerifyHostname("127.0.0.1")).To(Succeed())
		Expect(certificate.IsCA).To(BeFalse())
	})

	It("writes nothing if everything is in place, however often it starts", func(ctx SpecContext) {
		before := waitServed(ctx, webhookAddress)
		bundlesAreCurrent(ctx)
		stopHub()
		writes, _ := runHub(withWebhooks)
		Expect(waitServed(ctx, webhookAddress).Equal(before)).To(BeTrue(), "the same certificate")
		Consistently(ofWebhooks(writes)).Should(BeEmpty())
	})

	It("renews the authority and the certificate without a restart, and without a call that fails", func(ctx SpecContext) {
		first := waitServed(ctx, webhookAddress)
		bundlesAreCurrent(ctx)
		calls, failed := callAgainAndAgain(ctx)

		By("replacing the authority: both are trusted, the old one's certificate serves on")
		before := authorities(bundle(ctx))
		lose(ctx, "ca.crt")
		Eventually(func() []*x509.Certificate { return authorities(bundle(ctx)) }).Should(HaveLen(len(before) + 1))
		bundlesAreCurrent(ctx)
		Expect(waitServed(ctx, webhookAddress).Equal(first)).To(BeTrue(), "the same certificate")

		By("replacing the certificate: the new authority signs it")
		lose(ctx, "tls.crt")
		latest := authorities(bundle(ctx))[len(before)]
		Eventually(servedCertificate(webhookAddress)).WithContext(ctx).Should(
			WithTransform(func(c *x509.Certificate) error { return c.CheckSignatureFrom(latest) }, Succeed()))
		so := calls()
		Eventually(calls).Should(BeNumerically(">", so+10), "it is called with the new one")
		Expect(failed()).To(BeEmpty())
	})

	It("creates one authority, also beside many ConfigMaps with parameters", func(ctx SpecContext) {
		stopHub()
		for range 20 {
			parameters := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceDefault, GenerateName: "parameters-", Labels: map[string]string{kudo.LabelConfiguration: "true"},
			}}
			Expect(server.Create(ctx, parameters)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(server.Delete(ctx, parameters)).To(Succeed()) })
		}
		Expect(client.IgnoreNotFound(server.Delete(ctx, keys()))).To(Succeed())
		writes, _ := runHub(withWebhooks)
		waitServed(ctx, webhookAddress)
		bundlesAreCurrent(ctx)
		secret := keys()
		Expect(count(writes.Requests(), "/namespaces/"+secret.GetNamespace()+"/secrets/"+secret.GetName())).To(Equal(1))
	})

	It("renews the certificate when two thirds of its life are over", func(ctx SpecContext) {
		stopHub()
		Expect(client.IgnoreNotFound(server.Delete(ctx, keys()))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(server.Delete(ctx, keys()))).To(Succeed()) })
		runHub(withWebhooks, func(_ *rest.Config, options *hub.Options) {
			options.WebhookCertificateValidity, options.WebhookAuthorityValidity = time.Minute, time.Hour // a busy machine takes seconds
		})
		first := waitServed(ctx, webhookAddress)
		bundlesAreCurrent(ctx)
		calls, failed := callAgainAndAgain(ctx)
		var second *x509.Certificate
		Eventually(func(g Gomega) {
			second = servedCertificate(webhookAddress)(g, ctx)
			g.Expect(second.Equal(first)).To(BeFalse())
		}).Should(Succeed())
		so := calls()
		Eventually(calls).Should(BeNumerically(">", so+10))
		Expect(failed()).To(BeEmpty(), "it is renewed before it expires")
	})

	DescribeTable("mends what was deleted or is corrupt",
		func(ctx SpecContext, damage func(context.Context)) {
			waitServed(ctx, webhookAddress)
			bundlesAreCurrent(ctx)
			damage(ctx)
			Eventually(func(g Gomega) {
				secret := keys()
				g.Expect(server.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
				stored, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(servedCertificate(webhookAddress)(g, ctx).Equal(stored.Leaf)).To(BeTrue(), "it serves with what is stored")
			}).Should(Succeed())
			bundlesAreCurrent(ctx)
		},
		Entry("the Secret is deleted", func(ctx context.Context) { Expect(server.Delete(ctx, keys())).To(Succeed()) }),
		Entry("the ConfigMap is deleted", func(ctx context.Context) { Expect(server.Delete(ctx, trust())).To(Succeed()) }),
		Entry("both are deleted", func(ctx context.Context) {
			Expect(server.Delete(ctx, keys())).To(Succeed())
			Expect(server.Delete(ctx, trust())).To(Succeed())
		}),
		Entry("the Secret is corrupt", func(ctx context.Context) {
			edit(ctx, keys(), func(secret *corev1.Secret) {
				for entry := range secret.Data {
					secret.Data[entry] = []byte("corrupt")
				}
			})
		}),
		Entry("the bundle is corrupt", func(ctx context.Context) {
			edit(ctx, trust(), func(configMap *corev1.ConfigMap) { configMap.Data["ca-bundle.crt"] = "corrupt" })
		}),
	)

	It("says of which version the leader is, and writes that once", func(ctx SpecContext) {
		waitServed(ctx, webhookAddress)
		bundlesAreCurrent(ctx)
		stopHub()
		before := bundle(ctx)
		for _, version := range []string{"v1.2.3", "v1.2.4+build"} {
			writes, stop := runHub(withWebhooks, func(_ *rest.Config, o *hub.Options) { o.Version = version })
			Eventually(func() string { return get(ctx, trust()).Labels[addonv1alpha1.LabelVersion] }).Should(Equal(addonv1alpha1.VersionLabel(version)))
			waitServed(ctx, webhookAddress)
			stop()
			const record = "PATCH /api/v1/namespaces/tandem-system/configmaps/addon-manager-webhooks"
			Expect(ofWebhooks(writes)()).To(HaveEach(record))
			stored := slices.DeleteFunc(writes.Answers(), func(answer string) bool {
				return !strings.HasSuffix(answer, record) || strings.HasPrefix(answer, "409 ")
			})
			Expect(stored).To(Equal([]string{"200 " + record}), "all answers: %q", writes.Answers())
		}
		Expect(bundle(ctx)).To(Equal(before))
	})

	It("trusts no more authorities while nothing can be stored, and continues once it can", func(ctx SpecContext) {
		waitServed(ctx, webhookAddress)
		bundlesAreCurrent(ctx)
		stopHub()
		Expect(server.Delete(ctx, keys())).To(Succeed())
		foreign := keys()
		foreign.Immutable, foreign.Data = ptr.To(true), map[string][]byte{"tls.crt": []byte("somebody else's")}
		Expect(server.Create(ctx, foreign)).To(Succeed())
		before := bundle(ctx)
		writes, _ := runHub(withWebhooks)
		Eventually(func() int { return len(ofWebhooks(writes)()) }).Should(BeNumerically(">", 2), "it tries")
		Expect(ofWebhooks(writes)()).To(HaveEach("PATCH /api/v1/namespaces/tandem-system/secrets/addon-manager-webhooks"))
		Expect(bundle(ctx)).To(Equal(before))

		Expect(server.Delete(ctx, foreign)).To(Succeed())
		waitServed(ctx, webhookAddress)
		bundlesAreCurrent(ctx)
	})

	Context("with several replicas", func() {
		leads := func(ctx SpecContext) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				held := lease()
				g.Expect(server.Get(ctx, client.ObjectKeyFromObject(held), held)).To(Succeed())
				g.Expect(held.Spec.HolderIdentity).To(HaveValue(Not(BeEmpty())))
			}).Should(Succeed(), "it leads")
		}

		It("serves on one that is on standby, which uses new certificates", func(ctx SpecContext) {
			stopHub()
			runHub(withWebhooks, withElection)
			first := waitServed(ctx, webhookAddress)
			leads(ctx)
			other := otherAddress()
			writes, _ := runHub(servingAt(other), withElection)
			Expect(waitServed(ctx, other).Equal(first)).To(BeTrue(), "the same certificate")
			lose(ctx, "tls.crt")
			Eventually(servedCertificate(other)).WithContext(ctx).ShouldNot(Satisfy(first.Equal), "the standby has another one")
			Expect(writes.Requests()).To(BeEmpty(), "the standby writes nothing")
		})

		It("reads on standby what requests depend on before the first one", func(ctx SpecContext) {
			stopHub()
			runHub(withWebhooks, withElection)
			waitServed(ctx, webhookAddress)
			leads(ctx)
			read := make(chan string, 1000)
			runHub(servingAt(otherAddress()), withElection, before(func(request *http.Request) {
				if request.URL.Query().Has("watch") {
					read <- path.Base(request.URL.Path)
				}
			}))
			missing := sets.New("managedclusters", "namespaces", "instances", "operatorversions", "managedclusteraddons", "clustermanagementaddons")
			Eventually(func() sets.Set[string] {
				for len(read) > 0 {
					missing.Delete(<-read)
				}
				return missing
			}).WithContext(ctx).Should(BeEmpty())
		})

		It("is ready only once it can serve", func(ctx SpecContext) {
			stopHub()
			Expect(client.IgnoreNotFound(server.Delete(ctx, keys()))).To(Succeed())
			held := lease()
			Expect(client.IgnoreNotFound(server.Delete(ctx, held))).To(Succeed())
			now := metav1.NowMicro()
			held.Spec = coordinationv1.LeaseSpec{
				HolderIdentity: ptr.To("another"), LeaseDurationSeconds: ptr.To(int32(3600)), AcquireTime: &now, RenewTime: &now,
			}
			Expect(server.Create(ctx, held)).To(Succeed())
			health := otherAddress()
			runHub(withWebhooks, withElection, func(_ *rest.Config, options *hub.Options) { options.HealthProbeBindAddress = health })
			Eventually(readiness(health)).WithContext(ctx).Should(ContainSubstring("webhooks"), "there is no certificate, and none is created")
			Expect(server.Delete(ctx, held)).To(Succeed())
			Eventually(readiness(health)).WithContext(ctx).Should(Equal("ok"))
			waitServed(ctx, webhookAddress)
		})
	})

	It("does not start with invalid settings", func(ctx SpecContext) {
		for problem, change := range map[string]func(*hub.Options){
			"HOST:PORT":            func(o *hub.Options) { o.WebhookBindAddress = "nowhere" },
			"DNS name or IP":       func(o *hub.Options) { o.WebhookHosts = nil },
			"a namespace":          func(o *hub.Options) { o.Namespace = "" },
			"at least three times": func(o *hub.Options) { o.WebhookAuthorityValidity = time.Hour },
		} {
			options := hub.Options{PackagesNamespace: packages, Namespace: "tandem-system", MetricsBindAddress: "0", Logger: GinkgoLogr}
			withWebhooks(nil, &options)
			change(&options)
			Expect(hub.Run(ctx, config, options)).To(MatchError(ContainSubstring(problem)))
		}
	})
})

// callAgainAndAgain calls the webhook server until the spec ends as the API server does: with the current bundle of the webhook
// configuration.
func callAgainAndAgain(ctx context.Context) (calls func() int, failed func() []string) {
	type outcome struct {
		calls  int
		failed []string
	}
	state := make(chan outcome, 1)
	state <- outcome{}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(ended)
		for ctx.Err() == nil {
			configuration := webhookConfiguration()
			err := server.Get(ctx, client.ObjectKeyFromObject(configuration), configuration)
			if err == nil {
				_, err = call(ctx, webhookAddress, configuration.Webhooks[0].ClientConfig.CABundle)
			}
			if ctx.Err() != nil {
				return
			}
			now := <-state
			now.calls++
			if err != nil {
				now.failed = append(now.failed, err.Error())
			}
			state <- now
		}
	}()
	DeferCleanup(func() { cancel(); <-ended })
	read := func() outcome {
		now := <-state
		state <- now
		return now
	}
	return func() int { return read().calls }, func() []string { return read().failed }
}

// readiness returns the response of /readyz, for Eventually.
func readiness(address string) func(Gomega, context.Context) string {
	return func(g Gomega, ctx context.Context) string {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := http.DefaultClient.Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		g.Expect(err).NotTo(HaveOccurred())
		return string(text)
	}
}

var _ = Describe("The CA bundle", func() {
	BeforeEach(func(ctx SpecContext) {
		waitServed(ctx, webhookAddress) // the Secret exists, even if an earlier spec deleted it
		bundlesAreCurrent(ctx)
	})

	DescribeTable("is restored",
		func(ctx SpecContext, value func(context.Context) []byte) {
			other := value(ctx)
			for _, resource := range []string{"clustermanagementaddons", "managedclusteraddons", "addondeploymentconfigs"} {
				edit(ctx, definitionOf(resource), func(d *apiextensionsv1.CustomResourceDefinition) {
					d.Spec.Conversion.Webhook.ClientConfig.CABundle = other
				})
			}
			edit(ctx, webhookConfiguration(), func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
				for i := range c.Webhooks {
					c.Webhooks[i].ClientConfig.CABundle = other
				}
			})
			bundlesAreCurrent(ctx)
		},
		Entry("removed", func(context.Context) []byte { return nil }),
		Entry("changed", func(ctx context.Context) []byte { return get(ctx, keys()).Data["tls.crt"] }),
	)

	It("is all that addon-manager writes there", func(ctx SpecContext) {
		for _, object := range []client.Object{webhookConfiguration(), definitionOf("managedclusteraddons")} {
			for _, field := range fieldsOf(ctx, object, "addon-manager-certificates") {
				Expect(field).To(HaveSuffix(".clientConfig.caBundle"))
			}
		}
	})

	It("stays as it is in what is not Tandem's", func(ctx SpecContext) {
		foreign := webhookConfiguration()
		foreign.Name = newFleet().nameOf("theirs")
		foreign.Webhooks = []admissionregistrationv1.ValidatingWebhook{{
			Name: "theirs.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy: ptr.To(admissionregistrationv1.Ignore), ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/")},
		}}
		Expect(server.Create(ctx, foreign)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(server.Delete(ctx, foreign)).To(Succeed()) })
		definition := get(ctx, definitionOf("addondeploymentconfigs"))
		labels := definition.Labels
		edit(ctx, definition, func(d *apiextensionsv1.CustomResourceDefinition) { // like a stock OCM definition, without the label
			d.Labels, d.Spec.Conversion.Webhook.ClientConfig.CABundle = nil, nil
		})
		DeferCleanup(func(ctx SpecContext) {
			edit(ctx, definition, func(d *apiextensionsv1.CustomResourceDefinition) { d.Labels = labels })
			bundlesAreCurrent(ctx)
		})

		before := bundle(ctx)
		lose(ctx, "ca.crt") // all of Tandem's objects get a new bundle
		Eventually(func(g Gomega) {
			current := bundlesOfCallers(g, ctx)
			delete(current, "addondeploymentconfigs")
			g.Expect(bundle(ctx)).NotTo(Satisfy(func(now []byte) bool { return bytes.Equal(now, before) }))
			g.Expect(current).To(HaveEach(string(bundle(ctx))))
		}).Should(Succeed())
		Expect(get(ctx, foreign).ResourceVersion).To(Equal(foreign.ResourceVersion))
		Expect(get(ctx, definition).Spec.Conversion.Webhook.ClientConfig.CABundle).To(BeEmpty())
	})

	It("does not conflict with a user who applies the manifests again", func(ctx SpecContext) {
		objects, err := manifests.Objects(manifests.FS, "admission/webhooks.yaml", nil)
		Expect(err).NotTo(HaveOccurred())
		applied := objects[0]
		started.ServeWebhooks(applied)
		all := applied.Object["webhooks"].([]any)
		apply := func(ctx context.Context, webhooks []any) {
			applied := applied.DeepCopy()
			applied.Object["webhooks"] = webhooks
			Expect(server.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("administrator"))).To(Succeed())
		}
		DeferCleanup(func(ctx SpecContext) { apply(ctx, all); bundlesAreCurrent(ctx) })

		before := get(ctx, webhookConfiguration())
		apply(ctx, all)
		Expect(get(ctx, before).ResourceVersion).To(Equal(before.ResourceVersion), "applied again, nothing changes")
		apply(ctx, all[1:])
		Expect(get(ctx, before).Webhooks).To(HaveLen(len(all)-1), "a webhook that is no longer there goes")
		bundlesAreCurrent(ctx)
	})
})

// fieldsOf returns the leaf fields owned by a field manager.
func fieldsOf(ctx context.Context, object client.Object, manager string) []string {
	GinkgoHelper()
	var found []string
	for _, entry := range get(ctx, object).GetManagedFields() {
		if entry.Manager != manager {
			continue
		}
		var fields fieldpath.Set
		Expect(fields.FromJSON(bytes.NewReader(entry.FieldsV1.Raw))).To(Succeed())
		fields.Leaves().Iterate(func(path fieldpath.Path) { found = append(found, path.String()) })
	}
	Expect(found).NotTo(BeEmpty())
	return found
}
