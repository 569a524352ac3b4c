package source

import (
	"context"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// follow creates a source of a package.
func follow(ctx context.Context, name string, wanted kudo.SourcePackage, change ...func(*kudo.PackageSource)) *kudo.PackageSource {
	GinkgoHelper()
	source := &kudo.PackageSource{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: name}}
	source.Spec.Package = &wanted
	for _, c := range change {
		c(source)
	}
	Expect(server.Create(ctx, source)).To(Succeed())
	return source
}

// place returns the place of a package without tag and digest.
func place(h *host, name string) string { return "oci://" + h.name + "/packages/" + name }

var _ = Describe("A PackageSource", func() {
	It("stores the highest version in its range, follows a higher one, and writes nothing at rest", func(ctx SpecContext) {
		registry := newHost()
		for _, version := range []string{"1.0.0", "1.1.0", "2.0.0", "1.2.0-rc.1"} {
			registry.push(ctx, "web", version, version, "a")
		}
		writes, stop := run(registry.name)
		follow(ctx, "web", kudo.SourcePackage{Reference: place(registry, "web"), Version: ">=1.0.0 <2"})
		stored := becomes(ctx, "web", kudo.ReasonStored, "OperatorVersion web-1.1.0 is stored")
		Expect(versions(ctx, "web")).To(ConsistOf("web-1.1.0"))
		Expect(stored.Status.Artifact.Version).To(Equal("1.1.0"))
		Expect(stored.Status.Artifact.Versions).To(Equal([]string{"web-1.1.0"}))

		By("finding nothing new")
		before, blobs := len(writes.Of("/operatorversions/")), len(registry.received("/blobs/"))
		again := request(ctx, "web")
		Expect(writes.Of("/operatorversions/")).To(HaveLen(before))
		Expect(registry.received("/blobs/")).To(HaveLen(blobs), "nothing is downloaded again")
		Expect(again.Status.Conditions).To(Equal(stored.Status.Conditions))

		By("starting again")
		stop()
		writes, _ = run(registry.name)
		heads := len(registry.received("HEAD "))
		Eventually(func() int { return len(registry.received("HEAD ")) }).Should(BeNumerically(">", heads))
		Consistently(writes.Requests).Should(BeEmpty())

		By("finding a higher version")
		registry.push(ctx, "web", "1.3.0", "1.3.0", "b")
		request(ctx, "web")
		becomes(ctx, "web", kudo.ReasonStored, "OperatorVersion web-1.3.0 is stored")
		Expect(versions(ctx, "web")).To(ConsistOf("web-1.1.0", "web-1.3.0"))
	}, SpecTimeout(timeout))

	It("says that a stored version is gone from the registry, and stores the highest that remains", func(ctx SpecContext) {
		registry := newHost()
		registry.push(ctx, "shrink", "1.0.0", "1.0.0", "a")
		registry.push(ctx, "shrink", "1.1.0", "1.1.0", "a")
		run(registry.name)
		follow(ctx, "shrink", kudo.SourcePackage{Reference: place(registry, "shrink"), Version: "1.x"})
		becomes(ctx, "shrink", kudo.ReasonStored, "shrink-1.1.0")
		registry.answers(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/tags/list") {
				return false
			}
			_, _ = w.Write([]byte(`{"name": "packages/shrink", "tags": ["1.0.0"]}`))
			return true
		})
		for range 2 {
			lower := request(ctx, "shrink")
			Expect(meta.FindStatusCondition(lower.Status.Conditions, kudo.ConditionReady).Message).To(ContainSubstring("version 1.1.0, which was stored before, is no longer there"))
		}
		Expect(versions(ctx, "shrink")).To(ConsistOf("shrink-1.0.0", "shrink-1.1.0"))
	}, SpecTimeout(timeout))

	It("never overwrites a version if its tag moves to other content, and names what fixes it", func(ctx SpecContext) {
		registry := newHost()
		registry.push(ctx, "moving", "1.0.0", "stable", "a")
		run(registry.name)
		follow(ctx, "moving", kudo.SourcePackage{Reference: place(registry, "moving"), Tag: "stable"})
		first := becomes(ctx, "moving", kudo.ReasonStored, "moving-1.0.0")
		version := &kudo.OperatorVersion{}
		Expect(server.Get(ctx, client.ObjectKey{Namespace: packages, Name: "moving-1.0.0"}, version)).To(Succeed())

		registry.push(ctx, "moving", "1.0.0", "stable", "b")
		request(ctx, "moving")
		refused := becomes(ctx, "moving", kudo.ReasonVersionConflict, "is immutable: raise operatorVersion")
		Expect(meta.IsStatusConditionTrue(refused.Status.Conditions, kudo.ConditionStalled)).To(BeTrue())
		Expect(refused.Status.Artifact).To(Equal(first.Status.Artifact))
		Expect(refused.Status.Refused).To(HaveLen(1))
		Expect(refused.Status.Refused[0].Version).To(Equal("stable"))
		now := &kudo.OperatorVersion{}
		Expect(server.Get(ctx, client.ObjectKey{Namespace: packages, Name: "moving-1.0.0"}, now)).To(Succeed())
		Expect(now.ResourceVersion).To(Equal(version.ResourceVersion))

		registry.push(ctx, "moving", "1.0.1", "stable", "b")
		request(ctx, "moving")
		next := becomes(ctx, "moving", kudo.ReasonStored, "moving-1.0.1")
		Expect(next.Status.Refused).To(BeEmpty())
		Expect(meta.FindStatusCondition(next.Status.Conditions, kudo.ConditionStalled)).To(BeNil())
	}, SpecTimeout(timeout))

	It("stores the manifest of a digest, and restores a version that was deleted", func(ctx SpecContext) {
		registry := newHost()
		old := registry.push(ctx, "pinned", "1.0.0", "1.0.0", "a")
		registry.push(ctx, "pinned", "1.1.0", "1.1.0", "a")
		run(registry.name)
		follow(ctx, "pinned", kudo.SourcePackage{Reference: place(registry, "pinned"), Digest: old.reference.Digest})
		becomes(ctx, "pinned", kudo.ReasonStored, "pinned-1.0.0")
		Expect(server.Delete(ctx, &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: "pinned-1.0.0"}})).To(Succeed())
		request(ctx, "pinned")
		Expect(versions(ctx, "pinned")).To(ConsistOf("pinned-1.0.0"))
	}, SpecTimeout(timeout))

	It("reports a version on the hub that was replaced by another one, at each attempt", func(ctx SpecContext) {
		registry := newHost()
		registry.push(ctx, "replaced", "1.0.0", "1.0.0", "a")
		run(registry.name)
		follow(ctx, "replaced", kudo.SourcePackage{Reference: place(registry, "replaced"), Version: "*"})
		becomes(ctx, "replaced", kudo.ReasonStored, "replaced-1.0.0")
		version := &kudo.OperatorVersion{}
		Expect(server.Get(ctx, client.ObjectKey{Namespace: packages, Name: "replaced-1.0.0"}, version)).To(Succeed())
		Expect(server.Delete(ctx, version)).To(Succeed())
		other := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: version.Name}, Spec: *version.Spec.DeepCopy()}
		for name := range other.Spec.Templates {
			other.Spec.Templates[name] += "\n# another one\n"
		}
		Expect(server.Create(ctx, other)).To(Succeed())
		for range 2 {
			request(ctx, "replaced")
			becomes(ctx, "replaced", kudo.ReasonVersionConflict, "is immutable: raise operatorVersion")
		}
	}, SpecTimeout(timeout))

	It("refuses a version of another name than its tag", func(ctx SpecContext) {
		registry := newHost()
		registry.push(ctx, "liar", "1.0.0", "9.9.9", "a")
		run(registry.name)
		follow(ctx, "liar", kudo.SourcePackage{Reference: place(registry, "liar"), Version: "*"})
		becomes(ctx, "liar", kudo.ReasonInvalidPackage, `tag 9.9.9 names version "1.0.0" of the package`)
		Expect(versions(ctx, "liar")).To(BeEmpty())
	}, SpecTimeout(timeout))

	It("is suspended, is attempted once for each value of its annotation, and deletes nothing with it", func(ctx SpecContext) {
		registry := newHost()
		registry.push(ctx, "rest", "1.0.0", "1.0.0", "a")
		run(registry.name)
		follow(ctx, "rest", kudo.SourcePackage{Reference: place(registry, "rest"), Version: "*"}, func(s *kudo.PackageSource) { s.Spec.Suspend = true })
		becomes(ctx, "rest", kudo.ReasonSourceSuspended, "nothing was stored")
		request(ctx, "rest")
		Expect(registry.received("")).To(BeEmpty())

		Expect(environment.Edit(ctx, server, read(ctx, "rest"), func(s *kudo.PackageSource) { s.Spec.Suspend = false })).To(Succeed())
		becomes(ctx, "rest", kudo.ReasonStored, "rest-1.0.0")
		requests := len(registry.received("/tags/list"))
		request(ctx, "rest")
		Expect(registry.received("/tags/list")).To(HaveLen(requests + 1))

		Expect(environment.Edit(ctx, server, read(ctx, "rest"), func(s *kudo.PackageSource) { s.Spec.Suspend = true })).To(Succeed())
		suspended := becomes(ctx, "rest", kudo.ReasonSourceSuspended, "OperatorVersion rest-1.0.0 is stored")
		Expect(meta.IsStatusConditionTrue(suspended.Status.Conditions, kudo.ConditionReady)).To(BeTrue())

		Expect(server.Delete(ctx, suspended)).To(Succeed())
		Consistently(ctx, func() []string { return versions(ctx, "rest") }).Should(ConsistOf("rest-1.0.0"))
	}, SpecTimeout(timeout))

	It("follows the last of several changes, although two attempts are seconds apart", func(ctx SpecContext) {
		registry := newHost()
		for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
			registry.push(ctx, "quick", version, version, "a")
		}
		run(registry.name)
		follow(ctx, "quick", kudo.SourcePackage{Reference: place(registry, "quick"), Version: "1.0.0"})
		becomes(ctx, "quick", kudo.ReasonStored, "quick-1.0.0")
		for _, version := range []string{"1.1.0", "1.2.0", "1.1.0"} {
			Expect(environment.Edit(ctx, server, read(ctx, "quick"), func(s *kudo.PackageSource) {
				s.Spec.Package.Version, s.Annotations = version, map[string]string{kudo.AnnotationReconcileAt: version}
			})).To(Succeed())
		}
		Expect(becomes(ctx, "quick", kudo.ReasonStored, "quick-1.1.0").Status.LastHandledReconcileAt).To(Equal("1.1.0"))
	}, SpecTimeout(timeout))

	It("stores child packages of its own registry first", func(ctx SpecContext) {
		registry := newHost()
		child := registry.push(ctx, "child", "0.1.0", "0.1.0", "a")
		registry.push(ctx, "parent", "1.0.0", "1.0.0", "a", child.reference.String())
		run(registry.name)
		follow(ctx, "parent", kudo.SourcePackage{Reference: place(registry, "parent"), Tag: "1.0.0"})
		stored := becomes(ctx, "parent", kudo.ReasonStored, "parent-1.0.0")
		Expect(stored.Status.Artifact.Versions).To(Equal([]string{"child-0.1.0", "parent-1.0.0"}))
		Expect(versions(ctx, "child")).To(ConsistOf("child-0.1.0"))
	}, SpecTimeout(timeout))

	It("has no version in its range, and names the highest", func(ctx SpecContext) {
		registry := newHost()
		registry.push(ctx, "early", "0.1.0", "0.1.0", "a")
		run(registry.name)
		follow(ctx, "early", kudo.SourcePackage{Reference: place(registry, "early"), Version: ">=1.0.0"})
		becomes(ctx, "early", kudo.ReasonVersionNotFound, `no version is in the range ">=1.0.0": the highest are 0.1.0`)
		Expect(environment.Edit(ctx, server, read(ctx, "early"), func(s *kudo.PackageSource) { s.Spec.Package.Version = "latest" })).To(Succeed())
		invalid := becomes(ctx, "early", kudo.ReasonInvalidSource, `"latest" is not a range of versions`)
		Expect(meta.IsStatusConditionTrue(invalid.Status.Conditions, kudo.ConditionStalled)).To(BeTrue())
	}, SpecTimeout(timeout))

	It("reports errors of a package", func(ctx SpecContext) {
		registry := newHost()
		p := registry.push(ctx, "broken", "1.0.0", "1.0.0", "{{ .Params.ABSENT }}")
		run(registry.name)
		follow(ctx, "broken", kudo.SourcePackage{Reference: place(registry, "broken"), Digest: p.reference.Digest})
		becomes(ctx, "broken", kudo.ReasonInvalidPackage, "it has 1 error")
		Expect(versions(ctx, "broken")).To(BeEmpty())
	}, SpecTimeout(timeout))
})

var _ = Describe("The API server", func() {
	sha := "sha256:" + strings.Repeat("0a", 32)
	good := kudo.SourcePackage{Reference: "oci://registry.example.com/packages/web", Version: "*"}
	DescribeTable("refuses a PackageSource", func(ctx SpecContext, message string, change func(*kudo.PackageSourceSpec)) {
		source := &kudo.PackageSource{ObjectMeta: metav1.ObjectMeta{Namespace: packages, GenerateName: "bad-"}}
		source.Spec.Package = good.DeepCopy()
		change(&source.Spec)
		Expect(server.Create(ctx, source)).To(MatchError(ContainSubstring(message)))
	},
		Entry("of nothing", "exactly one of package and chart is required", func(s *kudo.PackageSourceSpec) { s.Package = nil }),
		Entry("of both", "exactly one of package and chart is required", func(s *kudo.PackageSourceSpec) {
			s.Chart = &kudo.SourceChart{Repository: "https://charts.example.com", Name: "web", Version: "1.0.0"}
		}),
		Entry("of a package without a version", "exactly one of version, tag and digest is required", func(s *kudo.PackageSourceSpec) { s.Package.Version = "" }),
		Entry("of a package with a range and a digest", "exactly one of version, tag and digest is required", func(s *kudo.PackageSourceSpec) { s.Package.Digest = sha }),
		Entry("with a tag in its reference", "spec.package.reference", func(s *kudo.PackageSourceSpec) { s.Package.Reference += ":1.0.0" }),
		Entry("with credentials in its reference", "spec.package.reference", func(s *kudo.PackageSourceSpec) { s.Package.Reference = "oci://joe:secret@registry.example.com/web" }),
		Entry("of a file", "spec.chart.repository", func(s *kudo.PackageSourceSpec) {
			s.Package, s.Chart = nil, &kudo.SourceChart{Repository: "file:///etc", Name: "web", Version: "1.0.0"}
		}),
		Entry("with a short interval", "must be between 1m and 24h", func(s *kudo.PackageSourceSpec) { s.Interval = &metav1.Duration{Duration: 1} }),
		Entry("with a long timeout", "must be between 1s and 5m", func(s *kudo.PackageSourceSpec) { s.Timeout = &metav1.Duration{Duration: timeout * 2} }),
		Entry("of a signed chart", "verify is for packages", func(s *kudo.PackageSourceSpec) {
			s.Package, s.Chart = nil, &kudo.SourceChart{Repository: "https://charts.example.com", Name: "web", Version: "1.0.0"}
			s.Verify = &kudo.SourceVerification{Keys: kudo.LocalName{Name: "keys"}}
		}),
		Entry("of a chart with two parameters of a value", "spec.chart.parameters[1]: Duplicate value", func(s *kudo.PackageSourceSpec) {
			s.Package, s.Chart = nil, &kudo.SourceChart{Repository: "https://charts.example.com", Name: "web", Version: "1.0.0"}
			s.Chart.Parameters = []kudo.SourceParameter{{Value: "a", Name: "A"}, {Value: "a", Name: "B"}}
		}),
		Entry("of a chart with a parameter that no template can name", "spec.chart.parameters[0].name", func(s *kudo.PackageSourceSpec) {
			s.Package, s.Chart = nil, &kudo.SourceChart{Repository: "https://charts.example.com", Name: "web", Version: "1.0.0"}
			s.Chart.Parameters = []kudo.SourceParameter{{Value: "a", Name: "a}}"}}
		}),
		Entry("of a chart with a list of values", "spec.chart.values", func(s *kudo.PackageSourceSpec) {
			s.Package, s.Chart = nil, &kudo.SourceChart{Repository: "https://charts.example.com", Name: "web", Version: "1.0.0"}
			s.Chart.Values = &runtime.RawExtension{Raw: []byte(`["a"]`)}
		}),
		Entry("with a URL as an allowed host", "spec.allowedHosts", func(s *kudo.PackageSourceSpec) { s.AllowedHosts = []string{"https://a.example"} }),
		Entry("with an object of another namespace", "spec.pullSecret.name", func(s *kudo.PackageSourceSpec) { s.PullSecret = &kudo.LocalName{Name: "kube-system/a"} }),
	)

	It("sets defaults", func(ctx SpecContext) {
		source := &kudo.PackageSource{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: "defaults"}}
		source.Spec.Package = good.DeepCopy()
		Expect(server.Create(ctx, source)).To(Succeed())
		Expect(source.Spec.Interval.Duration.String()).To(Equal("10m0s"))
		Expect(source.Spec.Timeout.Duration.String()).To(Equal("1m0s"))
		Expect(source.Status.ObservedGeneration).To(BeNumerically("==", -1))
		_, err := artifact.Parse(source.Spec.Package.Reference)
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(timeout))
})
