package hub

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/hub"
)

// outdated makes the hub see one resource as it was at a resource version, like an API server whose cache is behind, until current is closed.
// Once the hub sees it, it sends to seen.
func outdated(resource, version string, seen chan<- struct{}, current <-chan struct{}) func(*rest.Config, *hub.Options) {
	return transported(func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		query := request.URL.Query()
		switch {
		case request.Method != http.MethodGet || !strings.HasSuffix(request.URL.Path, "/"+resource):
		case query.Get("sendInitialEvents") == "true": // the hub lists instead
			return &http.Response{
				StatusCode: http.StatusUnprocessableEntity, Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
				Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)),
			}, nil
		case query.Get("watch") == "true":
			select {
			case seen <- struct{}{}:
			default:
			}
			select {
			case <-current:
			case <-request.Context().Done():
				return nil, request.Context().Err()
			}
		case query.Get("resourceVersion") == "0":
			query.Set("resourceVersion", version)
			query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
			request = request.Clone(request.Context())
			request.URL.RawQuery = query.Encode()
		}
		return next.RoundTrip(request)
	})
}

var _ = Describe("A hub that starts with an outdated view of an add-on's configuration", func() {
	DescribeTable("does not undo what an earlier process has applied",
		func(ctx SpecContext, resource string, change func(ctx context.Context, f fleet, kafka *addonv1alpha1.ManagedClusterAddOn)) {
			f := newFleet()
			cluster := f.cluster(ctx, "cluster")
			version := f.push(ctx, "kafka", packages)
			one := f.variables(ctx, "one", packages, "TEXT", "one")
			f.define(ctx, "kafka", both(runs(version), defaulting(one)))
			kafka := f.enable(ctx, cluster, "kafka")
			text := func() string { return specOf(instanceOf(kafka))(Default, ctx).Parameters["TEXT"] }
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Status", "True"))
			Expect(text()).To(Equal("one"))
			var before addonv1alpha1.ManagedClusterAddOnList
			Expect(server.List(ctx, &before, client.Limit(1))).To(Succeed())
			change(ctx, f, kafka)
			Eventually(text).Should(Equal("two"))
			stopHub()

			seen, current := make(chan struct{}, 1), make(chan struct{})
			_, _ = runHub(serving, outdated(resource, before.ResourceVersion, seen, current))
			Eventually(seen).Should(Receive())
			Consistently(text).WithTimeout(2 * time.Second).Should(Equal("two"))

			close(current)
			three := f.variables(ctx, "three", packages, "TEXT", "three")
			edit(ctx, kafka, func(a *addonv1alpha1.ManagedClusterAddOn) {
				a.Spec.Configs = nil
				configured(three)(a)
			})
			Eventually(text).Should(Equal("three"))
			Expect(get(ctx, instanceOf(kafka)).Generation).To(Equal(int64(3)), "each change is applied once")
		},
		Entry("AddOnDeploymentConfig", "addondeploymentconfigs", func(ctx context.Context, f fleet, _ *addonv1alpha1.ManagedClusterAddOn) {
			config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: f.named("one")}}
			edit(ctx, config, func(c *addonv1alpha1.AddOnDeploymentConfig) { c.Spec.CustomizedVariables[0].Value = "two" })
		}),
		Entry("ClusterManagementAddOn", "clustermanagementaddons", func(ctx context.Context, f fleet, _ *addonv1alpha1.ManagedClusterAddOn) {
			definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: f.named("kafka")}}
			edit(ctx, definition, defaulting(f.variables(ctx, "two", packages, "TEXT", "two")))
		}),
		Entry("ManagedClusterAddOn", "managedclusteraddons", func(ctx context.Context, f fleet, kafka *addonv1alpha1.ManagedClusterAddOn) {
			edit(ctx, kafka, configured(f.variables(ctx, "two", packages, "TEXT", "two")))
		}),
	)
})
