package source

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart/registry/registrytest"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// newChart returns the archive of a chart.
func newChart(name, version string) []byte {
	return registrytest.Chart(GinkgoTB(), name, version, map[string]string{
		"templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {version: {{ .Chart.Version | quote }}}\n",
	})
}

// followChart creates a source of a chart.
func followChart(ctx SpecContext, name string, wanted kudo.SourceChart, change ...func(*kudo.PackageSource)) {
	GinkgoHelper()
	source := &kudo.PackageSource{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: name}, Spec: kudo.PackageSourceSpec{Chart: &wanted}}
	for _, c := range change {
		c(source)
	}
	Expect(server.Create(ctx, source)).To(Succeed())
}

var _ = Describe("A PackageSource of a chart", func() {
	It("stores the highest version in a repository as a package, and writes nothing at rest", func(ctx SpecContext) {
		archives := map[string][]byte{"shop-1.0.0.tgz": newChart("shop", "1.0.0"), "shop-2.0.0.tgz": newChart("shop", "2.0.0")}
		repository := newHostOf(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { registrytest.Repository(archives).ServeHTTP(w, r) }))
		writes, _ := run(repository.name)
		followChart(ctx, "shop", kudo.SourceChart{Repository: "http://" + repository.name + "/charts", Name: "shop", Version: "<2"})
		stored := becomes(ctx, "shop", kudo.ReasonStored, "OperatorVersion shop-1.0.0 is stored")
		Expect(stored.Status.Artifact.Version).To(Equal("1.0.0"))
		Expect(stored.Status.Artifact.Reference).To(HaveSuffix("/charts/shop-1.0.0.tgz@" + content.DigestOf(archives["shop-1.0.0.tgz"])))
		version := &kudo.OperatorVersion{}
		Expect(server.Get(ctx, client.ObjectKey{Namespace: packages, Name: "shop-1.0.0"}, version)).To(Succeed())
		Expect(version.Spec.Tasks).To(HaveLen(1))
		Expect(version.Spec.Content).To(HaveLen(1))

		before := len(writes.Of("/operator"))
		request(ctx, "shop")
		Expect(writes.Of("/operator")).To(HaveLen(before))
		Expect(environment.Edit(ctx, server, read(ctx, "shop"), func(s *kudo.PackageSource) { s.Spec.Chart.Version = "*" })).To(Succeed())
		becomes(ctx, "shop", kudo.ReasonStored, "OperatorVersion shop-2.0.0 is stored")
		Expect(environment.Edit(ctx, server, read(ctx, "shop"), func(s *kudo.PackageSource) { s.Spec.Chart.Version = ">=3" })).To(Succeed())
		becomes(ctx, "shop", kudo.ReasonVersionNotFound, `no version that satisfies ">=3": the highest are 2.0.0, 1.0.0`)
	}, SpecTimeout(timeout))

	It("stores one of a registry, and refuses another archive than its digest says", func(ctx SpecContext) {
		registry := newHost()
		digest := registrytest.Push(GinkgoTB(), registry.name+"/charts/stall:1.0.0", newChart("stall", "1.0.0"))
		run(registry.name)
		followChart(ctx, "stall", kudo.SourceChart{
			Repository: "oci://" + registry.name + "/charts", Name: "stall", Version: "1.0.0", Digest: "sha256:" + strings.Repeat("0a", 32),
		})
		becomes(ctx, "stall", kudo.ReasonVerificationFailed, "its archive has digest")
		Expect(environment.Edit(ctx, server, read(ctx, "stall"), func(s *kudo.PackageSource) { s.Spec.Chart.Digest = digest })).To(Succeed())
		stored := becomes(ctx, "stall", kudo.ReasonStored, "OperatorVersion stall-1.0.0 is stored")
		Expect(stored.Status.Artifact.Reference).To(HaveSuffix("/charts/stall@" + digest))
	}, SpecTimeout(timeout))

	It("stores one with parameters and values, which take effect in versions that are not stored yet", func(ctx SpecContext) {
		files := map[string]string{
			"values.yaml":           "# Number of pods\nreplicas: 1\nimage: {tag: v1}\npassword: \"\"\n",
			"templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {all: {{ .Values | toJson | quote }}}\n",
		}
		registry := newHost()
		push := func(version string) {
			registrytest.Push(GinkgoTB(), registry.name+"/charts/tuned:"+version, registrytest.Chart(GinkgoTB(), "tuned", version, files))
		}
		push("1.0.0")
		run(registry.name)
		followChart(ctx, "tuned", kudo.SourceChart{
			Repository: "oci://" + registry.name + "/charts", Name: "tuned", Version: "*",
			Parameters: []kudo.SourceParameter{{Value: "replicas"}, {Value: "password", Name: "SECRET", Sensitive: true}},
			Values:     &runtime.RawExtension{Raw: []byte(`{"replicas": 3, "image": {"tga": "v2"}}`)},
		})
		change := func(change func(*kudo.SourceChart)) {
			GinkgoHelper()
			Expect(environment.Edit(ctx, server, read(ctx, "tuned"), func(s *kudo.PackageSource) { change(s.Spec.Chart) })).To(Succeed())
		}
		becomes(ctx, "tuned", kudo.ReasonInvalidPackage, `version 1.0.0: chart "tuned" has no value "image.tga" (did you mean image.tag?)`)
		change(func(c *kudo.SourceChart) { c.Values.Raw = []byte(`{"replicas": 3, "image": {"tag": "v2"}}`) })
		becomes(ctx, "tuned", kudo.ReasonStored, "OperatorVersion tuned-1.0.0 is stored")
		version := &kudo.OperatorVersion{}
		Expect(server.Get(ctx, client.ObjectKey{Namespace: packages, Name: "tuned-1.0.0"}, version)).To(Succeed())
		Expect(version.Spec.Parameters).To(HaveExactElements(
			And(HaveField("Name", "REPLICAS"), HaveField("Default", HaveValue(Equal("3"))), HaveField("Description", "Number of pods")),
			And(HaveField("Name", "SECRET"), HaveField("Default", BeNil()), HaveField("Sensitive", HaveValue(BeTrue())))))
		Expect(version.Spec.Templates["values.yaml"]).To(ContainSubstring("tag: v2"))

		By("changing them")
		change(func(c *kudo.SourceChart) { c.Values.Raw = []byte(`{"image": {"tag": "v3"}}`) })
		becomes(ctx, "tuned", kudo.ReasonVersionConflict, "is immutable: an earlier spec, another source or a push has stored it")
		push("1.1.0")
		request(ctx, "tuned")
		becomes(ctx, "tuned", kudo.ReasonStored, "OperatorVersion tuned-1.1.0 is stored")
		Expect(server.Get(ctx, client.ObjectKey{Namespace: packages, Name: "tuned-1.1.0"}, version)).To(Succeed())
		Expect(version.Spec.Templates["values.yaml"]).To(ContainSubstring("tag: v3"))
		change(func(c *kudo.SourceChart) { c.Parameters[0].Value = "replicas..count" })
		becomes(ctx, "tuned", kudo.ReasonInvalidSource, "spec.chart.parameters[0]: value")
	}, SpecTimeout(timeout))

	It("refuses one that requires gigabytes of memory, which only the process for the chart would need", func(ctx SpecContext) {
		files := map[string]string{"values.yaml": "a: [" + strings.Repeat("a,", 2<<20) + "a]\n"}
		for _, sub := range []string{"b", "c"} {
			files["charts/"+sub+"/Chart.yaml"] = "apiVersion: v2\nname: " + sub + "\nversion: 1.0.0\n"
			files["charts/"+sub+"/values.yaml"] = files["values.yaml"]
		}
		repository := newHostOf(registrytest.Repository(map[string][]byte{"bomb-1.0.0.tgz": registrytest.Chart(GinkgoTB(), "bomb", "1.0.0", files)}))
		run(repository.name)
		followChart(ctx, "bomb", kudo.SourceChart{Repository: "http://" + repository.name + "/charts", Name: "bomb", Version: "*"})
		becomes(ctx, "bomb", kudo.ReasonInvalidPackage, "requires more than 512 MiB of memory")
		Expect(versions(ctx, "bomb")).To(BeEmpty())
	}, SpecTimeout(timeout))

	It("replaces content on the hub that was altered, after a start", func(ctx SpecContext) {
		registry := newHost()
		registrytest.Push(GinkgoTB(), registry.name+"/charts/stand:1.0.0", newChart("stand", "1.0.0"))
		_, stop := run(registry.name)
		followChart(ctx, "stand", kudo.SourceChart{Repository: "oci://" + registry.name + "/charts", Name: "stand", Version: "1.0.0"})
		becomes(ctx, "stand", kudo.ReasonStored, "OperatorVersion stand-1.0.0 is stored")
		stop()

		version := &kudo.OperatorVersion{}
		Expect(server.Get(ctx, client.ObjectKey{Namespace: packages, Name: "stand-1.0.0"}, version)).To(Succeed())
		name := content.Name(version.Name, version.Spec.Content[0].Parts[0])
		stored := &kudo.OperatorContent{}
		Expect(server.Get(ctx, client.ObjectKey{Namespace: packages, Name: name}, stored)).To(Succeed())
		altered := content.New(version, []byte("other"))
		altered.Name, altered.Digest = stored.Name, stored.Digest
		Expect(server.Delete(ctx, stored)).To(Succeed())
		Expect(server.Create(ctx, altered)).To(Succeed())

		run(registry.name)
		Eventually(func(g Gomega) {
			now := &kudo.OperatorContent{}
			g.Expect(server.Get(ctx, client.ObjectKey{Namespace: packages, Name: name}, now)).To(Succeed())
			g.Expect(now.Data).To(Equal(stored.Data))
		}).Should(Succeed())
		becomes(ctx, "stand", kudo.ReasonStored, "OperatorVersion stand-1.0.0 is stored")
	}, SpecTimeout(timeout))

	It("stores one again that was deleted, before its content is collected", func(ctx SpecContext) {
		registry := newHost()
		registrytest.Push(GinkgoTB(), registry.name+"/charts/stage:1.0.0", newChart("stage", "1.0.0"))
		run(registry.name)
		followChart(ctx, "stage", kudo.SourceChart{Repository: "oci://" + registry.name + "/charts", Name: "stage", Version: "1.0.0"})
		becomes(ctx, "stage", kudo.ReasonStored, "OperatorVersion stage-1.0.0 is stored")
		version := &kudo.OperatorVersion{}
		Expect(server.Get(ctx, client.ObjectKey{Namespace: packages, Name: "stage-1.0.0"}, version)).To(Succeed())
		Expect(server.Delete(ctx, version)).To(Succeed())

		request(ctx, "stage")
		becomes(ctx, "stage", kudo.ReasonStored, "OperatorVersion stage-1.0.0 is stored")
		version = &kudo.OperatorVersion{}
		Expect(server.Get(ctx, client.ObjectKey{Namespace: packages, Name: "stage-1.0.0"}, version)).To(Succeed())
		stored := &kudo.OperatorContent{}
		Expect(server.Get(ctx, client.ObjectKey{Namespace: packages, Name: content.Name(version.Name, version.Spec.Content[0].Parts[0])}, stored)).To(Succeed())
		Expect(stored.OwnerReferences).To(ConsistOf(HaveField("UID", version.UID)))
	}, SpecTimeout(timeout))

	It("sends the password of a repository to its host, and to no other to which its index refers", func(ctx SpecContext) {
		archives := map[string][]byte{"kiosk-1.0.0.tgz": newChart("kiosk", "1.0.0")}
		elsewhere := newHostOf(registrytest.Repository(archives))
		repository := newHostOf(registrytest.Private(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("apiVersion: v1\nentries:\n  kiosk:\n  - {name: kiosk, version: 1.0.0, urls: [\"http://" + elsewhere.name + "/charts/kiosk-1.0.0.tgz\"]}\n"))
		})))
		store(ctx, dockerConfig("kiosk", registrytest.User, registrytest.Password, repository.name, elsewhere.name))
		run(repository.name, elsewhere.name)
		followChart(ctx, "kiosk", kudo.SourceChart{Repository: "http://" + repository.name + "/charts", Name: "kiosk", Version: "*"}, withSecret("kiosk"))
		becomes(ctx, "kiosk", kudo.ReasonHostNotAllowed, "add "+elsewhere.name+" to spec.allowedHosts")
		Expect(elsewhere.received("")).To(BeEmpty())
		Expect(environment.Edit(ctx, server, read(ctx, "kiosk"), func(s *kudo.PackageSource) { s.Spec.AllowedHosts = []string{elsewhere.name} })).To(Succeed())
		becomes(ctx, "kiosk", kudo.ReasonStored, "OperatorVersion kiosk-1.0.0 is stored")
		Expect(elsewhere.received("Basic ")).To(BeEmpty())
		Expect(repository.received("Basic ")).NotTo(BeEmpty())
	}, SpecTimeout(timeout))
})
