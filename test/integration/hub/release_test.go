package hub

import (
	"io"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/hub"
)

// sluice holds back the events of a watch while it is locked.
type sluice struct {
	io.ReadCloser
	gate *sync.RWMutex
}

func (s sluice) Read(into []byte) (int, error) {
	n, err := s.ReadCloser.Read(into)
	s.gate.RLock()
	defer s.gate.RUnlock()
	return n, err
}

var _ = Describe("On a cluster that is detached", func() {
	// An agent removes an Instance that is being deleted and has a finalizer.
	It("an add-on's Instance is never seen in deletion, however late the hub learns that the ManagedCluster goes", func(ctx SpecContext) {
		stopHub()
		var gate sync.RWMutex
		runHub(withTransport(func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && strings.HasSuffix(request.URL.Path, "/managedclusters") && request.URL.Query().Has("watch") {
				response.Body = sluice{response.Body, &gate}
			}
			return response, err
		}))
		f := newFleet()
		cluster := f.cluster(ctx, "cluster")
		f.define(ctx, "kafka", runs(f.push(ctx, "kafka", packages)))
		kafka := f.enable(ctx, cluster, "kafka")
		instance := instanceOf(kafka)
		Eventually(exists(instance)).WithContext(ctx).Should(BeTrue())
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
		Expect(get(ctx, instance).Finalizers).To(Equal([]string{kudo.Finalizer}))

		gate.Lock()
		DeferCleanup(gate.Unlock)
		Expect(server.Delete(ctx, managedCluster(cluster))).To(Succeed())
		Expect(server.Delete(ctx, kafka)).To(Succeed())
		Eventually(exists(instance)).WithContext(ctx).Should(BeFalse())
		Eventually(exists(kafka)).WithContext(ctx).Should(BeFalse())
	})

	It("an add-on's Instance is released under whatever service account the hub runs", func(ctx SpecContext) {
		stopHub()
		_, stopHub = runHub(func(config *rest.Config, _ *hub.Options) {
			config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:platform:addons", Groups: []string{"system:masters"}}
		})
		f := newFleet()
		cluster := f.cluster(ctx, "cluster")
		f.define(ctx, "kafka", runs(f.push(ctx, "kafka", packages)))
		kafka := f.enable(ctx, cluster, "kafka")
		instance := instanceOf(kafka)
		Eventually(exists(instance)).WithContext(ctx).Should(BeTrue())
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))

		Expect(server.Delete(ctx, managedCluster(cluster))).To(Succeed())
		Eventually(func(g Gomega) { g.Expect(get(ctx, instance).Finalizers).To(BeEmpty()) }).WithContext(ctx).Should(Succeed())
		Expect(server.Delete(ctx, kafka)).To(Succeed())
		Eventually(exists(instance)).WithContext(ctx).Should(BeFalse())
		Eventually(exists(kafka)).WithContext(ctx).Should(BeFalse())
	})
})

var _ = Describe("A hub that is stopped while it fills its caches", func() {
	It("ends without an error", func(ctx SpecContext) {
		stopHub()
		asked := make(chan struct{}, 1)
		_, stop := runHub(withTransport(func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
			if !request.URL.Query().Has("watch") {
				return next.RoundTrip(request)
			}
			select {
			case asked <- struct{}{}:
			default:
			}
			<-request.Context().Done()
			return nil, request.Context().Err()
		}))
		Eventually(asked).WithContext(ctx).Should(Receive())
		stop()
	})
})
