package hub

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/selector"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// storm makes random changes to a fleet.
type storm struct {
	fleet
	names, clusters []string
}

func newStorm(ctx context.Context) storm {
	GinkgoHelper()
	s := storm{fleet: newFleet()}
	s.clusters = []string{s.cluster(ctx, "one"), s.cluster(ctx, "two")}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s.names = append(s.names, s.nameOf(name))
	}
	DeferCleanup(func(ctx SpecContext) {
		for _, name := range s.names {
			Expect(client.IgnoreNotFound(server.Delete(ctx, s.definition(name)))).To(Succeed())
		}
	})
	return s
}

func (storm) definition(name string) *addonv1alpha1.ClusterManagementAddOn {
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
	definition.Spec.InstallStrategy.Type = "Manual"
	return definition
}

// change makes one change. Conflicting and empty changes count too.
func (s storm) change(ctx context.Context, dice *rand.Rand) {
	GinkgoHelper()
	name := s.names[dice.IntN(len(s.names))]
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: s.clusters[dice.IntN(len(s.clusters))], Name: name}}
	var err error
	switch n := dice.IntN(21); {
	case n == 20: // the cluster gains or loses a label
		cluster := managedCluster(addOn.Namespace)
		if err = server.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err == nil {
			cluster.SetLabels(map[string]string{"gpu": []string{"true", "false"}[dice.IntN(2)]})
			err = server.Update(ctx, cluster)
		}
	case n < 6:
		err = s.declare(ctx, name, dice)
	case n < 7:
		err = server.Delete(ctx, s.definition(name))
	case n < 10:
		err = server.Create(ctx, addOn)
	case n < 11:
		err = server.Delete(ctx, addOn)
	case n < 12: // disabled and immediately enabled
		if err = client.IgnoreNotFound(server.Delete(ctx, addOn)); err == nil {
			err = server.Create(ctx, addOn)
		}
	default:
		status := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}[dice.IntN(4)]
		if err = server.Get(ctx, client.ObjectKeyFromObject(addOn), addOn); err == nil {
			_, err = apply.Condition(ctx, server, addOn, addOn.Status.Conditions, "addon-agent-availability",
				metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: status, Reason: "Storm"}, time.Now())
		}
	}
	if !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
		Expect(err).NotTo(HaveOccurred())
	}
}

// declare sets up to two dependencies of an add-on, which may include itself.
func (s storm) declare(ctx context.Context, name string, dice *rand.Rand) error {
	definition := s.definition(name)
	if err := server.Get(ctx, client.ObjectKeyFromObject(definition), definition); client.IgnoreNotFound(err) != nil {
		return err
	}
	definition.Spec.Dependencies = nil
	drawn := dice.Perm(len(s.names))
	for _, at := range drawn[:dice.IntN(3)] {
		one := need{Name: s.names[at], Type: []addonv1alpha1.DependencyType{"Required", "Optional"}[dice.IntN(2)]}
		if dice.IntN(4) == 0 {
			one.Alternatives = []string{s.names[drawn[4]]}
		}
		if dice.IntN(4) == 0 {
			one.Clusters = withLabel("gpu")
		}
		definition.Spec.Dependencies = append(definition.Spec.Dependencies, one)
	}
	if definition.UID == "" {
		return server.Create(ctx, definition)
	}
	return server.Update(ctx, definition)
}

// expectVerdicts expects every condition and the metric to match the current objects.
func (s storm) expectVerdicts(g Gomega, ctx context.Context) {
	var list addonv1alpha1.ClusterManagementAddOnList
	g.Expect(server.List(ctx, &list)).To(Succeed())
	definitions := map[string]*addonv1alpha1.ClusterManagementAddOn{}
	for i := range list.Items {
		definitions[list.Items[i].Name] = &list.Items[i]
	}
	counted := map[string]float64{}
	for _, cluster := range s.clusters {
		var list addonv1alpha1.ManagedClusterAddOnList
		g.Expect(server.List(ctx, &list, client.InNamespace(cluster))).To(Succeed())
		addOns := map[string]*addonv1alpha1.ManagedClusterAddOn{}
		for i := range list.Items {
			addOns[list.Items[i].Name] = &list.Items[i]
		}
		stored := &clusterv1.ManagedCluster{}
		g.Expect(server.Get(ctx, client.ObjectKey{Name: cluster}, stored)).To(Succeed())
		needsOf := func(name string) []need {
			return dependency.On(dependency.Needs(definitions[name]), selector.ClusterOf(stored))
		}
		for name, addOn := range addOns {
			known := map[string]dependency.Seen{}
			for _, candidate := range dependency.CandidatesOf(needsOf(name)) {
				one := dependency.See(definitions[candidate], addOns[candidate])
				one.Cycle = dependency.Cycle(name, candidate, needsOf)
				known[candidate] = one
			}
			verdict := dependency.Evaluate(needsOf(name), known, nil)
			want := none
			if condition := verdict.Condition(); condition != nil {
				want = seenOf([]metav1.Condition{*condition}, condition.Type)
			}
			g.Expect(seenOf(addOn.Status.Conditions, "Degraded")).To(Equal(want), "%s on %s", name, cluster)
			for _, j := range verdict.Unmet() {
				series := []string{s.plain(name), string(j.Cause), s.plain(j.Name), string(j.Type)}
				counted[strings.Join(series, " ")]++
			}
		}
	}
	g.Expect(s.series("addon_dependency_unsatisfied")(g)).To(Equal(counted))
}

// plain returns a name without the spec's suffix.
func (f fleet) plain(name string) string { return strings.TrimSuffix(name, "-"+f.suffix) }

// watches are the hub's open watches of resources with that suffix.
type watches struct {
	resource string
	mutex    sync.Mutex
	open     []io.Closer
	gap      chan struct{} // no new one is opened until it is closed
}

func newWatches(resource string) *watches {
	w := &watches{resource: resource, gap: make(chan struct{})}
	close(w.gap)
	return w
}

// carry sends a request of the hub; a watch waits until there is no gap.
func (w *watches) carry(request *http.Request, next http.RoundTripper) (*http.Response, error) {
	if request.URL.Query().Get("watch") == "" || !strings.HasSuffix(request.URL.Path, w.resource) {
		return next.RoundTrip(request)
	}
	w.mutex.Lock()
	gap := w.gap
	w.mutex.Unlock()
	select {
	case <-gap:
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
	response, err := next.RoundTrip(request)
	if err == nil {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.open = append(w.open, response.Body)
	}
	return response, err
}

// cut breaks all watches, and delays new ones until reconnect is called.
func (w *watches) cut() (reconnect func()) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, body := range w.open {
		_ = body.Close() // the hub may have closed it already
	}
	w.open, w.gap = nil, make(chan struct{})
	return sync.OnceFunc(func() { close(w.gap) })
}

var _ = Describe("A fleet in a storm", func() {
	It("is judged right in the end, however watches break and the hub starts again", func(ctx SpecContext) {
		stopHub()
		s, w := newStorm(ctx), newWatches("addons")
		_, stopHub = runHub(withTransport(w.carry))
		seeds := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0))
		spell := func(changes int) {
			var group sync.WaitGroup
			for range 4 {
				dice := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), seeds.Uint64()))
				group.Go(func() {
					defer GinkgoRecover()
					for range changes {
						s.change(ctx, dice)
					}
				})
			}
			group.Wait()
		}
		judged := func() {
			GinkgoHelper()
			Eventually(s.expectVerdicts).WithContext(ctx).Should(Succeed())
		}
		for range 3 {
			// Few concurrent changes, none of which is compensated by a later one.
			for range 20 {
				spell(1)
				judged()
			}
			By("changing much while the hub sees nothing")
			reconnect := w.cut()
			DeferCleanup(reconnect)
			spell(20)
			reconnect()
			judged()
			By("starting the hub again amid changes")
			spell(10)
			stopHub()
			spell(10)
			_, stopHub = runHub(withTransport(w.carry))
			spell(10)
			judged()
		}
		Consistently(s.expectVerdicts).WithContext(ctx).Should(Succeed())
	})

	It("lets the hub stop immediately, however busy it is", func(ctx SpecContext) {
		stopHub()
		s := newStorm(ctx)
		over := make(chan struct{})
		var group sync.WaitGroup
		for worker := range 4 {
			dice := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), uint64(worker)))
			group.Go(func() {
				defer GinkgoRecover()
				for {
					select {
					case <-over:
						return
					default:
						s.change(ctx, dice)
					}
				}
			})
		}
		for range 10 {
			writes, stop := runHub(func(_ *rest.Config, options *hub.Options) { options.Concurrency = 20 })
			Eventually(func() int { return len(writes.Requests()) }).Should(BeNumerically(">", 10))
			stop()
		}
		close(over)
		group.Wait()
		_, stopHub = runHub()
		Eventually(s.expectVerdicts).WithContext(ctx).Should(Succeed())
	})
})
