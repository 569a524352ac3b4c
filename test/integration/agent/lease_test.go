package agent

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tandem-addons/tandem/pkg/agent"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/test/faults/proxy"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// standalone runs the agent without a klusterlet.
func standalone(o *agent.Options) { o.Standalone = true }

// leased is an add-on with a health check by the lease of its name in its install namespace.
type leased struct {
	*addonv1alpha1.ManagedClusterAddOn
}

// enableLeased creates an add-on on the hub, with an install namespace of its own on the managed cluster.
func enableLeased(ctx context.Context, change ...func(*addonv1alpha1.ManagedClusterAddOn)) leased {
	GinkgoHelper()
	made++
	name := fmt.Sprintf("leased-%d", made)
	l := leased{&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: clusterName}}}
	l.Spec.InstallNamespace = name
	for _, c := range change {
		c(l.ManagedClusterAddOn)
	}
	Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	Expect(hub.Create(ctx, l.ManagedClusterAddOn)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, l.ManagedClusterAddOn)).To(Succeed()) })
	return l
}

// lease returns the add-on's lease, to be read.
func (l leased) lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.Spec.InstallNamespace, Name: l.Name}}
}

// renew acts as the add-on: it renews its lease, with a time that long ago.
func (l leased) renew(ctx context.Context, ago time.Duration) {
	GinkgoHelper()
	renewed := metav1.NewMicroTime(time.Now().Add(-ago))
	lease := l.lease()
	err := managed.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	lease.Spec.RenewTime = &renewed
	if err != nil {
		lease.Spec.LeaseDurationSeconds = ptr.To[int32](60)
		Expect(managed.Create(ctx, lease)).To(Succeed())
		return
	}
	Expect(managed.Update(ctx, lease)).To(Succeed())
}

// check sets the health check mode, as the add-on's own manager does.
func (l leased) check(ctx context.Context, mode upstream.HealthCheckMode) {
	GinkgoHelper()
	Expect(environment.EditStatus(ctx, hub, l.ManagedClusterAddOn, func(a *addonv1alpha1.ManagedClusterAddOn) {
		a.Status.HealthCheck.Mode = mode
	})).To(Succeed())
}

// among returns the writes about the add-on: the agent's own lease may be renewed as well.
func (l leased) among(writes *environment.Writes) []string {
	return slices.DeleteFunc(writes.Requests(), func(request string) bool { return !strings.Contains(request, "/"+l.Name) })
}

func (l leased) available(ctx context.Context) func() metav1.Condition {
	return func() metav1.Condition { return available(ctx, l.ManagedClusterAddOn) }
}

// The conditions that OCM sets by an add-on's lease.
func (l leased) fresh() OmegaMatcher {
	return is(metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated", l.Name+" add-on is available.")
}

func (l leased) stale() OmegaMatcher {
	return is(metav1.ConditionFalse, "ManagedClusterAddOnLeaseUpdateStopped", l.Name+" add-on is not available.")
}

func (l leased) leaseNotFound() OmegaMatcher {
	return is(metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound", "The status of "+l.Name+" add-on is unknown.")
}

// almost is the remaining time of a lease in these specs: long enough to observe the add-on as available, even on a busy machine.
const almost = 5 * time.Second

// ownLease returns the agent's own lease on the hub, or nil.
func ownLease(ctx context.Context) *coordinationv1.Lease {
	GinkgoHelper()
	lease := &coordinationv1.Lease{}
	err := hub.Get(ctx, client.ObjectKey{Namespace: clusterName, Name: addonv1alpha1.AgentLease}, lease)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	if err != nil {
		return nil
	}
	return lease
}

// metricValues returns the values of a metric for an add-on, from the process's Prometheus registry, by the other labels in order.
func metricValues(name, addOn string) map[string]float64 {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			var of, rest string
			for _, label := range metric.GetLabel() {
				if label.GetName() == "addon" {
					of = label.GetValue()
					continue
				}
				rest += " " + label.GetValue()
			}
			if of == addOn {
				values[rest] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return values
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

var (
	required = metav1.Condition{Type: addonv1alpha1.ConditionDegraded, Status: metav1.ConditionTrue,
		Reason: addonv1alpha1.ReasonRequiredDependencyNotSatisfied, Message: lacks}
	satisfied = metav1.Condition{Type: addonv1alpha1.ConditionDegraded}
)

var _ = Describe("Where no klusterlet runs, an add-on in Lease mode", func() {
	var (
		stop   func()
		writes *environment.Writes
	)
	BeforeEach(func() {
		onHub, recorded := environment.RecordWrites(agentOnHub)
		stop, writes = runAgentWith(onHub, agentLocally, standalone), recorded
	})
	AfterEach(func(ctx context.Context) {
		Expect(invariants.Violations(ctx, hub)).To(BeEmpty())
		stop()
	})

	It("is available while its lease is renewed, and its renewals are no reason to write", func(ctx context.Context) {
		l := enableLeased(ctx)
		l.renew(ctx, 0)
		Eventually(l.available(ctx)).Should(l.fresh())
		Expect(l.available(ctx)().ObservedGeneration).To(Equal(l.Generation))
		written := l.among(writes)
		Expect(written).NotTo(BeEmpty())
		for range 3 {
			l.renew(ctx, 0)
		}
		Consistently(func() []string { return l.among(writes) }).WithTimeout(time.Second).Should(Equal(written))
	})

	It("is not available once five periods have passed, and is again with the next renewal", func(ctx context.Context) {
		l := enableLeased(ctx)
		l.renew(ctx, time.Hour)
		Eventually(l.available(ctx)).Should(l.stale(), "the agent is running")
		l.renew(ctx, 5*time.Minute-almost)
		Eventually(l.available(ctx)).Should(l.fresh())
		Eventually(l.available(ctx)).Should(l.stale())
		l.renew(ctx, 0)
		Eventually(l.available(ctx)).Should(l.fresh())

		By("a lease that was set back")
		l.renew(ctx, time.Hour)
		Eventually(l.available(ctx)).Should(l.stale())
	})

	It("stays available when its lease is renewed in time", func(ctx context.Context) {
		l := enableLeased(ctx)
		l.renew(ctx, time.Hour)
		Eventually(l.available(ctx)).Should(l.stale(), "the agent is running")
		over := time.Now().Add(almost)
		l.renew(ctx, 5*time.Minute-almost)
		Eventually(l.available(ctx)).Should(l.fresh())
		l.renew(ctx, 0)
		Consistently(l.available(ctx)).WithTimeout(time.Until(over) + time.Second).Should(l.fresh())
	})

	It("is unknown without a lease", func(ctx context.Context) {
		l := enableLeased(ctx)
		Eventually(l.available(ctx)).Should(l.leaseNotFound())
		l.renew(ctx, 0)
		Eventually(l.available(ctx)).Should(l.fresh())
		Expect(managed.Delete(ctx, l.lease())).To(Succeed())
		Eventually(l.available(ctx)).Should(l.leaseNotFound())
	})

	It("is not available while required dependencies are missing, however fresh its lease is", func(ctx context.Context) {
		l := enableLeased(ctx)
		l.renew(ctx, 0)
		Eventually(l.available(ctx)).Should(l.fresh())
		judge(ctx, l.ManagedClusterAddOn, required)
		Eventually(l.available(ctx)).Should(is(metav1.ConditionFalse, addonv1alpha1.ReasonRequiredDependencyNotSatisfied, lacks))
		l.renew(ctx, 0)
		judge(ctx, l.ManagedClusterAddOn, satisfied)
		Eventually(l.available(ctx)).Should(l.fresh())
	})

	It("is left to its own writer when it leaves that mode, and taken back when it returns", func(ctx context.Context) {
		l := enableLeased(ctx)
		l.renew(ctx, 0)
		Eventually(l.available(ctx)).Should(l.fresh())
		l.check(ctx, upstream.HealthCheckModeCustomized)
		probed := metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: "Probed"}
		judge(ctx, l.ManagedClusterAddOn, probed)
		l.renew(ctx, time.Hour)
		Consistently(l.available(ctx)).WithTimeout(time.Second).Should(is(metav1.ConditionFalse, "Probed", ""))
		l.renew(ctx, 0)
		l.check(ctx, upstream.HealthCheckModeLease)
		Eventually(l.available(ctx)).Should(l.fresh())
	})

	It("whose agent runs on another cluster is left alone", func(ctx context.Context) {
		l := enableLeased(ctx, func(a *addonv1alpha1.ManagedClusterAddOn) {
			a.Annotations = map[string]string{upstream.HostingClusterNameAnnotationKey: "another"}
		})
		l.renew(ctx, 0)
		Consistently(l.available(ctx)).WithTimeout(time.Second).Should(BeZero())
	})

	It("takes Available back from a hub that did not know, by its watch, and when it starts again", func(ctx context.Context) {
		l := enableLeased(ctx)
		l.renew(ctx, 0)
		Eventually(l.available(ctx)).Should(l.fresh())
		silence := func() {
			GinkgoHelper()
			Expect(hub.Get(ctx, client.ObjectKeyFromObject(l), l.ManagedClusterAddOn)).To(Succeed())
			_, err := apply.Condition(ctx, hub, l.ManagedClusterAddOn, l.Status.Conditions, "addon-manager-lease", metav1.Condition{
				Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionUnknown, Reason: addonv1alpha1.ReasonClusterLeaseStopped,
			}, time.Now())
			Expect(err).NotTo(HaveOccurred())
		}
		silence()
		Eventually(l.available(ctx)).Should(l.fresh())

		stop()
		silence()
		stop = runAgentWith(agentOnHub, agentLocally, standalone)
		Eventually(l.available(ctx)).Should(l.fresh())
	})

	It("is written once, although its lease changes again before the cache has the condition", func(ctx context.Context) {
		stop()
		l := enableLeased(ctx)
		var link *proxy.Proxy
		link = startProxy(agentOnHub, func(w *proxy.Write) proxy.Fault {
			if w.Name != l.Name {
				return proxy.Fault{}
			}
			return proxy.Fault{Meanwhile: func() { link.Freeze("") }}
		})
		stop = runAgentWith(through(link), agentLocally, standalone)
		l.renew(ctx, time.Hour)
		Eventually(l.available(ctx)).Should(l.stale())
		for ago := range 3 {
			l.renew(ctx, time.Duration(ago+2)*time.Hour)
		}
		var written int
		applies := func() int {
			for _, w := range link.Journal() {
				if w.Name == l.Name {
					written++
				}
			}
			return written
		}
		Eventually(applies).Should(BeNumerically(">", 0))
		Consistently(applies).WithTimeout(2 * time.Second).Should(Equal(1))
		link.Thaw(false)
		l.renew(ctx, 0)
		Eventually(l.available(ctx)).Should(l.fresh())
		Expect(metricValues("addon_availability_changes_total", l.Name)).To(HaveKeyWithValue(" ManagedClusterAddOnLeaseUpdateStopped False", 1.0))
	})

	It("is measured", func(ctx context.Context) {
		l := enableLeased(ctx)
		delays := func() float64 { return metricValues("addon_availability_seconds", "")[""] }
		before := delays()
		l.renew(ctx, 0)
		Eventually(func() map[string]float64 { return metricValues("addon_available", l.Name) }).Should(Equal(map[string]float64{"": 1}))
		Eventually(l.available(ctx)).Should(l.fresh())
		judge(ctx, l.ManagedClusterAddOn, required)
		Eventually(func() map[string]float64 { return metricValues("addon_available", l.Name) }).Should(Equal(map[string]float64{"": 0}))
		l.renew(ctx, 5*time.Minute-time.Second) // its end is no change while the verdict decides
		judge(ctx, l.ManagedClusterAddOn, satisfied)
		Eventually(l.available(ctx)).Should(l.stale())
		Expect(managed.Delete(ctx, l.lease())).To(Succeed())
		Eventually(func() map[string]float64 { return metricValues("addon_available", l.Name) }).Should(BeEmpty())
		Eventually(func() map[string]float64 { return metricValues("addon_availability_changes_total", l.Name) }).Should(And(
			HaveKeyWithValue(" ManagedClusterAddOnLeaseUpdated True", BeNumerically(">=", 1)),
			HaveKeyWithValue(" RequiredDependencyNotSatisfied False", 1.0),
			HaveKeyWithValue(" ManagedClusterAddOnLeaseUpdateStopped False", 1.0),
			HaveKeyWithValue(" ManagedClusterAddOnLeaseNotFound Unknown", 1.0),
		))
		Expect(delays()).To(BeNumerically(">=", before+4))

		Expect(hub.Delete(ctx, l.ManagedClusterAddOn)).To(Succeed())
		Eventually(func() map[string]float64 { return metricValues("addon_availability_changes_total", l.Name) }).Should(BeEmpty())
		Expect(hub.Create(ctx, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: l.Name}})).To(Succeed())
	})

	It("is no longer measured if it is deleted while there is no connection to the hub", func(ctx context.Context) {
		l := enableLeased(ctx)
		l.renew(ctx, 0)
		Eventually(func() map[string]float64 { return metricValues("addon_available", l.Name) }).Should(Equal(map[string]float64{"": 1}))
		Eventually(l.available(ctx)).Should(l.fresh())

		stop()
		Expect(managed.Delete(ctx, l.lease())).To(Succeed())
		Expect(hub.Delete(ctx, l.ManagedClusterAddOn)).To(Succeed())
		stop = runAgentWith(agentOnHub, agentLocally, standalone) // in the same process, with the same metrics
		for _, name := range []string{"addon_available", "addon_availability_changes_total"} {
			Eventually(func() map[string]float64 { return metricValues(name, l.Name) }).Should(BeEmpty(), name)
		}
		Expect(hub.Create(ctx, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: l.Name}})).To(Succeed())
	})
})

var _ = Describe("The agent's own lease on the hub", func() {
	// lose deletes the lease of an earlier spec.
	lose := func(ctx context.Context) {
		GinkgoHelper()
		left := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: addonv1alpha1.AgentLease}}
		Expect(client.IgnoreNotFound(hub.Delete(ctx, left))).To(Succeed())
	}

	It("is renewed once a period, and made again when it is lost", func(ctx context.Context) {
		lose(ctx)
		start := time.Now().Truncate(time.Microsecond)
		DeferCleanup(runAgentWith(agentOnHub, agentLocally, standalone, func(o *agent.Options) {
			o.LeasePeriod, o.Version = time.Second, "v1.2.3"
		}))
		Eventually(func() string {
			if lease := ownLease(ctx); lease != nil {
				return lease.Labels[addonv1alpha1.LabelVersion]
			}
			return ""
		}).Should(Equal("v1.2.3"))
		first := ownLease(ctx)
		Expect(first.Spec.HolderIdentity).To(HaveValue(Equal("addon-agent")))
		Expect(first.Spec.LeaseDurationSeconds).To(HaveValue(BeEquivalentTo(1)))
		Expect(first.Spec.RenewTime.Time).To(And(BeTemporally(">=", start), BeTemporally("<=", time.Now())))
		Expect(first.ManagedFields).To(HaveExactElements(HaveField("Manager", "addon-agent-lease")))
		Expect(first.Labels).To(HaveKeyWithValue(addonv1alpha1.LabelVersion, "v1.2.3"))

		Eventually(func() time.Time { return ownLease(ctx).Spec.RenewTime.Time }).Should(
			BeTemporally(">=", first.Spec.RenewTime.Add(time.Second)))
		Expect(hub.Delete(ctx, first)).To(Succeed())
		Eventually(func() *coordinationv1.Lease { return ownLease(ctx) }).ShouldNot(BeNil())
	})

	It("is not renewed while the API server of the managed cluster does not answer", func(ctx context.Context) {
		lose(ctx)
		locally := &link{}
		DeferCleanup(runAgentWith(agentOnHub, locally.through(agentLocally), standalone, func(o *agent.Options) { o.LeasePeriod = time.Second }))
		renewed := func() time.Time {
			if lease := ownLease(ctx); lease != nil {
				return lease.Spec.RenewTime.Time
			}
			return time.Time{}
		}
		Eventually(renewed).ShouldNot(BeZero())
		locally.cut()
		last := time.Now().Add(time.Second) // a renewal may be under way
		Consistently(renewed).WithTimeout(4 * time.Second).Should(BeTemporally("<", last))
		locally.mend()
		Eventually(renewed).Should(BeTemporally(">", last))
	})

	It("is tried to be renewed once a period while the hub does not answer", func(ctx context.Context) {
		const period = time.Second
		attempts := make(chan time.Time, 100)
		hanging := rest.CopyConfig(agentOnHub)
		hanging.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				if !strings.HasSuffix(request.URL.Path, "/leases/"+addonv1alpha1.AgentLease) {
					return next.RoundTrip(request)
				}
				attempts <- time.Now()
				<-request.Context().Done()
				return nil, request.Context().Err()
			})
		})
		DeferCleanup(runAgentWith(hanging, agentLocally, standalone, func(o *agent.Options) { o.LeasePeriod = period }))
		var first, last time.Time
		Eventually(attempts).Should(Receive(&first))
		for range 3 {
			Eventually(attempts).Should(Receive(&last))
		}
		Expect(last.Sub(first)).To(BeNumerically(">", 2*period))
	})

	It("has no time where a klusterlet runs, which judges add-ons by their leases itself", func(ctx context.Context) {
		lose(ctx)
		left := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: addonv1alpha1.AgentLease}}
		left.Spec.RenewTime, left.Spec.LeaseDurationSeconds = ptr.To(metav1.NowMicro()), ptr.To[int32](60)
		Expect(hub.Create(ctx, left)).To(Succeed())
		timed := func() bool {
			lease := ownLease(ctx)
			return lease == nil || lease.Spec.RenewTime != nil || lease.Spec.LeaseDurationSeconds != nil
		}
		l := enableLeased(ctx)
		l.renew(ctx, 0)
		DeferCleanup(runAgentWith(agentOnHub, agentLocally, func(o *agent.Options) { o.Version = "v1.2.3+build" }))
		Eventually(timed).Should(BeFalse())
		declared := ownLease(ctx)
		Expect(declared.Labels).To(HaveKeyWithValue(addonv1alpha1.LabelVersion, "v1.2.3_build"))
		Consistently(l.available(ctx)).WithTimeout(time.Second).Should(BeZero())

		By("the hub's verdict, which counts all the same")
		judge(ctx, l.ManagedClusterAddOn, required)
		Eventually(l.available(ctx)).Should(is(metav1.ConditionFalse, addonv1alpha1.ReasonRequiredDependencyNotSatisfied, lacks))
		judge(ctx, l.ManagedClusterAddOn, satisfied)
		Eventually(l.available(ctx)).Should(BeZero())
		Consistently(l.available(ctx)).WithTimeout(time.Second).Should(BeZero())
		Expect(ownLease(ctx).ResourceVersion).To(Equal(declared.ResourceVersion))
	})

	It("without a time is created where there is none, and is deleted with the add-on that installed the agent", func(ctx context.Context) {
		brought := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: addonv1alpha1.AgentAddOn}}
		Expect(hub.Create(ctx, brought)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, brought)).To(Succeed()) })
		lose(ctx)
		DeferCleanup(runAgent())
		Eventually(func() *coordinationv1.Lease { return ownLease(ctx) }).ShouldNot(BeNil())
		lease := ownLease(ctx)
		Expect(lease.Spec.RenewTime).To(BeNil())
		Expect(lease.OwnerReferences).To(ConsistOf(HaveField("UID", brought.UID)))
	})
})

var _ = Describe("The agent's own lease on the managed cluster", func() {
	It("is renewed for OCM's klusterlet, which judges the agent by it, also while the hub is away", func(ctx context.Context) {
		const namespace = "spoke"
		Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		nowhere := rest.CopyConfig(agentOnHub)
		nowhere.Host = "https://127.0.0.1:1"
		DeferCleanup(runAgentWith(nowhere, agentLocally, func(o *agent.Options) {
			o.LeaseNamespace, o.LeasePeriod = namespace, time.Second
		}))
		renewed := func() time.Time {
			lease := &coordinationv1.Lease{}
			err := managed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: addonv1alpha1.AgentAddOn}, lease)
			Expect(client.IgnoreNotFound(err)).To(Succeed())
			return ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time
		}
		Eventually(renewed).ShouldNot(BeZero())
		Eventually(renewed).Should(BeTemporally(">=", renewed().Add(time.Second)))
	})
})

// plansWaiting returns the number of Instances of an operator whose plan waits for that reason.
func plansWaiting(operator, reason string) float64 {
	GinkgoHelper()
	return metricValues("addon_plans_waiting", "")[" "+operator+" "+reason]
}
