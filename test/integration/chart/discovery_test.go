package chart

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/tandem-addons/tandem/pkg/agent/charts"
	"github.com/tandem-addons/tandem/pkg/chart"
)

// counter counts requests.
type counter struct {
	http.RoundTripper
	requests atomic.Int32
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

var _ = Describe("What the cluster serves", func() {
	var (
		counted  *counter
		renderer *charts.Renderer
		archive  []byte
	)
	// render returns whether the chart sees the kind Gadget, if what was discovered before a time is stale.
	render := func(ctx context.Context, name string, since time.Time) string {
		GinkgoHelper()
		made, err := renderer.Render(ctx, charts.Request{
			Archive: archive, Digest: "digest", Release: chart.Release{Name: name, Namespace: namespace, Revision: 1}, Since: since,
		})
		Expect(err).NotTo(HaveOccurred())
		sees, _, err := unstructured.NestedString(made.Objects[0].Object.Object, "data", "sees")
		Expect(err).NotTo(HaveOccurred())
		return sees
	}
	BeforeEach(func() {
		config := rest.CopyConfig(server.Config)
		config.Wrap(func(to http.RoundTripper) http.RoundTripper {
			counted = &counter{RoundTripper: to}
			return counted
		})
		discovered, err := discovery.NewDiscoveryClientForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		own, err := chart.NewRenderer()
		Expect(err).NotTo(HaveOccurred())
		renderer = charts.New(own, discovered, "", func(time.Duration, error) {})
		folder := GinkgoT().TempDir()
		Expect(os.Mkdir(filepath.Join(folder, "templates"), 0o700)).To(Succeed())
		for name, content := range map[string]string{
			"Chart.yaml": "apiVersion: v2\nname: sees\nversion: 1.0.0\n",
			"templates/sees.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n" +
				"data: {sees: {{ .Capabilities.APIVersions.Has \"charts.example.com/v1/Gadget\" | quote }}}\n",
		} {
			Expect(os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600)).To(Succeed())
		}
		archive, err = chart.Pack(os.DirFS(folder))
		Expect(err).NotTo(HaveOccurred())
	})

	It("is discovered once for charts that start at the same time, and again for one that starts later", func(ctx context.Context) {
		began := time.Now()
		Expect(render(ctx, "first", began)).To(Equal("false"))
		once := counted.requests.Load()
		Expect(once).To(BeNumerically(">", 0))

		By("rendering other charts that have started before that")
		var all sync.WaitGroup
		for _, name := range []string{"second", "third"} {
			all.Go(func() {
				defer GinkgoRecover()
				Expect(render(ctx, name, began)).To(Equal("false"))
			})
		}
		all.Wait()
		Expect(counted.requests.Load()).To(Equal(once))

		By("defining a kind, and rendering a chart that starts after that")
		define(ctx)
		Expect(render(ctx, "fourth", time.Now())).To(Equal("true"))
		Expect(counted.requests.Load()).To(BeNumerically(">", once))
	})
})

// define creates the definition of kind Gadget, and deletes it after the spec. It returns once the kind is discovered.
func define(ctx context.Context) {
	GinkgoHelper()
	gadgets := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.charts.example.com}
spec:
  group: charts.example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`), &gadgets.Object)).To(Succeed())
	Expect(cluster.Create(ctx, gadgets)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(cluster.Delete(ctx, gadgets)).To(Succeed()) })
	Eventually(func() []string { return discover(server.Config).APIVersions }).Should(ContainElement("charts.example.com/v1/Gadget"))
}
