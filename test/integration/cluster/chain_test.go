package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// depth is the number of plan-based add-ons in the chain, above the one that renews a lease.
const depth = 10

// chain is a list of add-ons, each of which requires the next. The last is checked by its lease; all others are plan-based.
type chain []*addonv1alpha1.ManagedClusterAddOn

func (c chain) first() *addonv1alpha1.ManagedClusterAddOn { return c[0] }
func (c chain) last() *addonv1alpha1.ManagedClusterAddOn  { return c[len(c)-1] }

// newChain defines a chain and enables all add-ons at the same time, without the lease.
func newChain(ctx context.Context) chain {
	GinkgoHelper()
	suffix := rand.String(6)
	named := func(i int) string { return fmt.Sprintf("link-%d-%s", i, suffix) }
	version := pushVersion(ctx, "link-"+suffix)
	var links chain
	for i := range depth + 1 {
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: named(i)}}
		definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
		if i < depth {
			definition.Spec.Dependencies = []addonv1alpha1.AddonDependency{{Name: named(i + 1)}}
			definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{
				ConfigGroupResource: upstream.ConfigGroupResource{
					Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions,
				},
				DefaultConfig: &upstream.ConfigReferent{Namespace: version.Namespace, Name: version.Name},
			}}
		}
		Expect(server.Create(ctx, definition)).To(Succeed())
		link := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: named(i)}}
		link.Spec.InstallNamespace = addOns
		Expect(server.Create(ctx, link)).To(Succeed())
		links = append(links, link)
	}
	return links
}

// pushVersion stores a package whose plan is complete once its ConfigMap exists.
func pushVersion(ctx context.Context, name string) *kudo.OperatorVersion {
	GinkgoHelper()
	version := &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: name + "-1.0.0"},
		Spec: kudo.OperatorVersionSpec{
			Operator:  corev1.ObjectReference{Name: name},
			Version:   "1.0.0",
			Templates: map[string]string{"config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}\n"},
			Tasks: []kudo.Task{{Name: "config", Kind: kudo.TaskApply, Spec: kudo.TaskSpec{
				ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"config.yaml"}},
			}}},
			Plans: map[string]kudo.Plan{kudo.DeployPlan: {Phases: []kudo.Phase{{
				Name: "main", Steps: []kudo.Step{{Name: "main", Tasks: []string{"config"}}},
			}}}},
		},
	}
	Expect(server.Create(ctx, version)).To(Succeed())
	return version
}

// renew acts as the last add-on of the chain: it renews its lease with that time.
func (c chain) renew(ctx context.Context, at time.Time) {
	GinkgoHelper()
	lease := c.lease()
	err := managed.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	lease.Spec.RenewTime = &metav1.MicroTime{Time: at}
	if err != nil {
		Expect(managed.Create(ctx, lease)).To(Succeed())
		return
	}
	Expect(managed.Update(ctx, lease)).To(Succeed())
}

func (c chain) lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: addOns, Name: c.last().Name}}
}

// state returns STATUS REASON of a condition; empty if there is none.
func state(addOn *addonv1alpha1.ManagedClusterAddOn, conditionType string) string {
	condition := meta.FindStatusCondition(addOn.Status.Conditions, conditionType)
	if condition == nil {
		return ""
	}
	return string(condition.Status) + " " + condition.Reason
}

// The expected states of condition Available.
const (
	works   = "True PlanComplete"
	renewed = "True ManagedClusterAddOnLeaseUpdated"
	stale   = "False ManagedClusterAddOnLeaseUpdateStopped"
	lacks   = "False RequiredDependencyNotSatisfied"
	silent  = "Unknown ManagedClusterLeaseUpdateStopped"
)

// moment is a state of a condition and its time.
type moment struct {
	at    time.Time
	state string
}

// timeline records every state of conditions Available and Degraded of a cluster's add-ons on the hub, by add-on.
type timeline struct {
	mutex               sync.Mutex
	available, degraded map[string][]moment
}

// watch starts a timeline that ends with the spec.
func watch(ctx context.Context) *timeline {
	GinkgoHelper()
	return watchIn(ctx, clusterName)
}

// watchIn starts a timeline of another cluster.
func watchIn(ctx context.Context, cluster string) *timeline {
	GinkgoHelper()
	watched := &timeline{available: map[string][]moment{}, degraded: map[string][]moment{}}
	changes, err := server.Watch(ctx, &addonv1alpha1.ManagedClusterAddOnList{}, client.InNamespace(cluster))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(changes.Stop)
	go func() {
		for change := range changes.ResultChan() {
			if addOn, ok := change.Object.(*addonv1alpha1.ManagedClusterAddOn); ok {
				watched.note(addOn)
			}
		}
	}()
	return watched
}

func (t *timeline) note(addOn *addonv1alpha1.ManagedClusterAddOn) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for conditionType, moments := range map[string]map[string][]moment{
		addonv1alpha1.ConditionAvailable: t.available, addonv1alpha1.ConditionDegraded: t.degraded,
	} {
		before, now := moments[addOn.Name], state(addOn, conditionType)
		if len(before) == 0 || before[len(before)-1].state != now {
			moments[addOn.Name] = append(before, moment{time.Now(), now})
		}
	}
}

// states returns all recorded states of an add-on's condition Available.
func (t *timeline) states(addOn *addonv1alpha1.ManagedClusterAddOn) []string {
	return t.stateHistory(t.available, addOn)
}

// verdicts returns all recorded states of an add-on's condition Degraded.
func (t *timeline) verdicts(addOn *addonv1alpha1.ManagedClusterAddOn) []string {
	return t.stateHistory(t.degraded, addOn)
}

func (t *timeline) stateHistory(moments map[string][]moment, addOn *addonv1alpha1.ManagedClusterAddOn) []string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var states []string
	for _, m := range moments[addOn.Name] {
		states = append(states, m.state)
	}
	return states
}

// currentState returns the current state of an add-on, for Eventually.
func (t *timeline) currentState(addOn *addonv1alpha1.ManagedClusterAddOn) func() string {
	return func() string {
		states := t.states(addOn)
		if len(states) == 0 {
			return ""
		}
		return states[len(states)-1]
	}
}

// took returns the time between the last changes of two add-ons.
func (t *timeline) took(from, to *addonv1alpha1.ManagedClusterAddOn) time.Duration {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	last := func(addOn *addonv1alpha1.ManagedClusterAddOn) time.Time {
		moments := t.available[addOn.Name]
		return moments[len(moments)-1].at
	}
	return last(to).Sub(last(from))
}

var _ = Describe("A chain of ten plan-based add-ons, above one that renews a lease", Ordered, func() {
	var (
		links     chain
		stopAgent func()
	)
	BeforeAll(func(ctx SpecContext) {
		cluster := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hubAcceptsClient": true}}}
		cluster.SetAPIVersion("cluster.open-cluster-management.io/v1")
		cluster.SetKind("ManagedCluster")
		cluster.SetName(clusterName)
		Expect(server.Create(ctx, cluster)).To(Succeed())
		runHub()
		stopAgent = runAgent()
		links = newChain(ctx)
		watched := watch(ctx)
		for _, link := range links[:depth] {
			Eventually(watched.currentState(link)).WithContext(ctx).Should(Equal(lacks))
		}
	})

	DescribeTable("settles when the last", func(ctx SpecContext, ago time.Duration, last, first string) {
		watched := watch(ctx)
		links.renew(ctx, time.Now().Add(-ago))
		Eventually(watched.currentState(links.last())).WithContext(ctx).Should(Equal(last))
		Eventually(watched.currentState(links.first())).WithContext(ctx).Should(Equal(first))
		AddReportEntry(fmt.Sprintf("the chain took %v", watched.took(links.last(), links.first())))
	},
		Entry("becomes available, and all are installed", time.Duration(0), renewed, works),
		Entry("is not available any more", time.Hour, stale, lacks),
		Entry("is available again", time.Duration(0), renewed, works),
	)

	It("is unknown while the agent is gone, and recovers with it, without a change of verdict", func(ctx SpecContext) {
		watched := watch(ctx)
		stopAgent()
		for _, link := range links {
			Eventually(watched.currentState(link)).WithContext(ctx).Should(Equal(silent))
		}
		runAgent()
		for i, link := range links {
			healthy := works
			if i == depth {
				healthy = renewed
			}
			Eventually(watched.currentState(link)).WithContext(ctx).Should(Equal(healthy))
			Consistently(func() []string { return watched.states(link) }).WithTimeout(leasePeriod/4).Should(
				Equal([]string{healthy, silent, healthy}), link.Name)
			Expect(watched.verdicts(link)).To(Equal([]string{""}), link.Name)
		}
	})
})
