package hub

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// leaseTimeout is the timeout of the agents in these specs, whatever the durations of their leases; on a busy machine, renewals are
// late.
const leaseTimeout = 5 * time.Second

// withLeaseTimeout sets that timeout.
func withLeaseTimeout(_ *rest.Config, options *hub.Options) { options.LeaseTimeout = leaseTimeout }

// renew acts as an agent: it renews a lease of that name until it is stopped or the spec ends, with a clock of its own.
func renew(ctx context.Context, cluster, name string) (stop func()) {
	GinkgoHelper()
	clock := time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
	Expect(client.IgnoreAlreadyExists(server.Create(ctx, lease))).To(Succeed())
	beat := func(ctx context.Context) {
		before := lease.DeepCopy()
		clock = clock.Add(time.Minute)
		lease.Spec = coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: clock}}
		Expect(server.Patch(ctx, lease, client.MergeFrom(before))).To(Succeed())
	}
	beat(ctx)
	ctx = context.WithoutCancel(ctx)
	renewing, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(ended)
		wait.UntilWithContext(renewing, func(context.Context) { beat(ctx) }, leaseTimeout/10)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	DeferCleanup(stop)
	return stop
}

// hearing is the body of a watch that stays open but silent while deaf is locked.
type hearing struct {
	io.ReadCloser
	deaf *sync.RWMutex
}

func (h *hearing) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	h.deaf.RLock()
	defer h.deaf.RUnlock()
	return n, err
}

// deaf stalls the watches of the hub's leases while it is locked.
func deaf(locked *sync.RWMutex) func(*rest.Config, *hub.Options) {
	return withTransport(func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil && strings.HasSuffix(request.URL.Path, "/leases") {
			response.Body = &hearing{response.Body, locked}
		}
		return response, err
	})
}

var _ = Describe("A cluster whose agent renews a lease on the hub", func() {
	var (
		f       fleet
		cluster string
		writes  *environment.Writes
		silent  = seen{"Unknown", "ManagedClusterLeaseUpdateStopped", "Registration agent stopped updating its lease."}
		works   = seen{"True", "Works", ""}
	)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
		stopHub()
		writes, stopHub = runHub(withLeaseTimeout)
	})

	It("has add-ons with unknown availability once its time has passed without it, until the agent reports again", func(ctx SpecContext) {
		f.define(ctx, "b", nil)
		f.define(ctx, "a", f.withNeeds(addonv1alpha1.AddonDependency{Name: "b"}))
		a, b, mute := f.enable(ctx, cluster, "a"), f.enable(ctx, cluster, "b"), f.enable(ctx, cluster, "mute")
		Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(HaveField("Status", "True"))
		report(ctx, b, metav1.ConditionTrue, "Works")
		Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(Equal(none))
		report(ctx, a, metav1.ConditionTrue, "Works") // not before: a policy replaces it while the add-on is degraded

		By("the agent renewing its lease, whatever its clock says")
		stop := renew(ctx, cluster, addonv1alpha1.AgentLease)
		Consistently(conditionOf(a, "Available")).WithContext(ctx).WithTimeout(leaseTimeout + leaseTimeout/2).Should(Equal(works))
		before := on(cluster, writes)()

		By("the agent stopping")
		stop()
		last := time.Now()
		renew(ctx, cluster, addonv1alpha1.AgentLease)()
		for _, addOn := range []*addonv1alpha1.ManagedClusterAddOn{a, b, mute} {
			Eventually(conditionOf(addOn, "Available")).WithContext(ctx).Should(Equal(silent))
		}
		Expect(time.Since(last)).To(BeNumerically(">=", leaseTimeout))
		Expect(get(ctx, a).ManagedFields).To(ContainElement(HaveField("Manager", "addon-manager-lease")))

		By("an add-on that is enabled meanwhile")
		late := f.enable(ctx, cluster, "late")
		Eventually(conditionOf(late, "Available")).WithContext(ctx).Should(Equal(silent))

		By("what depends on others keeping its verdict: one write for each add-on, and no other")
		Consistently(func() int { return len(on(cluster, writes)()) - len(before) }).Should(Equal(4))
		Expect(conditionOf(a, "Degraded")(Default, ctx)).To(Equal(none))

		By("the agent coming back")
		renew(ctx, cluster, addonv1alpha1.AgentLease)
		report(ctx, a, metav1.ConditionTrue, "Works")
		report(ctx, b, metav1.ConditionTrue, "Works")
		Consistently(conditionOf(a, "Available")).WithContext(ctx).Should(Equal(works))
		Expect(conditionOf(mute, "Available")(Default, ctx)).To(Equal(silent), "the hub takes nothing back")
		Expect(on(cluster, writes)()).To(HaveLen(len(before) + 4))
	})

	It("has its full time again when the hub starts, which then writes nothing twice", func(ctx SpecContext) {
		a := f.enable(ctx, cluster, "a")
		renew(ctx, cluster, addonv1alpha1.AgentLease)()
		Eventually(conditionOf(a, "Available")).WithContext(ctx).Should(Equal(silent))
		stopHub()
		report(ctx, a, metav1.ConditionTrue, "Works")

		writes, stop := runHub(withLeaseTimeout)
		Consistently(conditionOf(a, "Available")).WithContext(ctx).WithTimeout(leaseTimeout / 2).Should(Equal(works))
		Eventually(conditionOf(a, "Available")).WithContext(ctx).Should(Equal(silent))
		Expect(on(cluster, writes)()).To(HaveLen(1))
		stop()

		writes, _ = runHub(withLeaseTimeout)
		Consistently(on(cluster, writes)).WithContext(ctx).WithTimeout(leaseTimeout + leaseTimeout/2).Should(BeEmpty())
	})

	It("is not regarded as silent when it is the hub that receives nothing", func(ctx SpecContext) {
		stopHub()
		var locked sync.RWMutex
		writes, stop := runHub(withLeaseTimeout, deaf(&locked))
		a := f.enable(ctx, cluster, "a")
		report(ctx, a, metav1.ConditionTrue, "Works")
		renew(ctx, cluster, addonv1alpha1.AgentLease)
		Consistently(on(cluster, writes)).WithContext(ctx).WithTimeout(leaseTimeout / 2).Should(BeEmpty())
		locked.Lock()
		Consistently(on(cluster, writes)).WithContext(ctx).WithTimeout(2 * leaseTimeout).Should(BeEmpty())
		locked.Unlock()
		stop()
	})

	It("has its full time again when it could not renew because no API server responded", func(ctx SpecContext) {
		stopHub()
		var failed, written atomic.Pointer[time.Time]
		writes, _ := runHub(withLeaseTimeout, withTransport(func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
			now := time.Now()
			switch here := strings.Contains(request.URL.Path, "/namespaces/"+cluster+"/"); {
			case here && strings.HasSuffix(request.URL.Path, "/leases/"+addonv1alpha1.AgentLease) && failed.CompareAndSwap(nil, &now):
				return nil, errors.New("no API server")
			case here && request.Method == http.MethodPatch && request.URL.Query().Get("fieldManager") == "addon-manager-lease":
				written.CompareAndSwap(nil, &now)
			}
			return next.RoundTrip(request)
		}))
		a := f.enable(ctx, cluster, "a")
		report(ctx, a, metav1.ConditionTrue, "Works")
		renew(ctx, cluster, addonv1alpha1.AgentLease)()

		Eventually(failed.Load).WithContext(ctx).ShouldNot(BeNil())

		By("the agent renewing its lease later than the API server answers again")
		stop := renew(ctx, cluster, addonv1alpha1.AgentLease)
		Consistently(on(cluster, writes)).WithContext(ctx).WithTimeout(leaseTimeout + leaseTimeout/2).Should(BeEmpty())
		Expect(conditionOf(a, "Available")(Default, ctx)).To(Equal(works))

		By("the agent not renewing it")
		stop()
		failed.Store(nil)
		Eventually(conditionOf(a, "Available")).WithContext(ctx).Should(Equal(silent))
		Expect(written.Load().Sub(*failed.Load())).To(BeNumerically(">=", leaseTimeout))
	})

	It("is left alone where it has no such lease, as with an OCM klusterlet, or has it no longer", func(ctx SpecContext) {
		renew(ctx, cluster, "managed-cluster-lease")()
		renew(ctx, cluster, addonv1alpha1.AgentLease)()
		Expect(server.Delete(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: addonv1alpha1.AgentLease},
		})).To(Succeed())
		f.enable(ctx, cluster, "a")
		Consistently(on(cluster, writes)).WithContext(ctx).WithTimeout(leaseTimeout + leaseTimeout/2).Should(BeEmpty())

		By("a lease without a time, which says the agent's version")
		Expect(server.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: addonv1alpha1.AgentLease, Labels: map[string]string{addonv1alpha1.LabelVersion: "v1.2.3"},
		}})).To(Succeed())
		Consistently(on(cluster, writes)).WithContext(ctx).WithTimeout(leaseTimeout + leaseTimeout/2).Should(BeEmpty())
	})
})
