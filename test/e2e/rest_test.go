package e2e

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/test/audit"
)

const (
	// restTime is how long both fleets are observed, such as 10m. The specs that use it have the label rest, and are skipped without it:
	// they take twice that time, in addition to the time in which two fleets start and settle.
	restTime  = "TANDEM_REST"
	restLabel = "rest"

	// quiet is how long nothing may change for a fleet to count as settled, and settling the timeout for that.
	quiet    = 30 * time.Second
	settling = 4 * time.Minute

	// klusterletTick is the interval at which OCM's klusterlet checks the leases of add-ons.
	klusterletTick = 30 * time.Second
)

//go:embed rest.yaml
var restAudit []byte

// The same fleet with the same add-ons runs twice: with OCM alone, and with Tandem added. The difference shows all writes that Tandem
// causes.
var _ = Describe("A fleet at rest", Label(restLabel), onSandbox("its audit logs are read"), Ordered, func() {
	clusters := []string{"cluster1", "cluster2"}
	var (
		programsOfOCM string
		lasts         time.Duration
		alone, beside map[restAuthor]audit.Count
	)
	BeforeAll(func() {
		var err error
		programsOfOCM, err = sandbox.FindOCM(os.Getenv)
		Expect(err).NotTo(HaveOccurred())
		lasts, err = time.ParseDuration(os.Getenv(restTime))
		Expect(err).NotTo(HaveOccurred())
	})
	start := func(ctx context.Context, tandem bool) (*sandbox.Sandbox, client.Client) {
		GinkgoHelper()
		box := startSandbox(ctx, len(clusters), func(o *sandbox.Options) {
			o.OCM, o.DeliverAgents, o.AuditPolicy = programsOfOCM, tandem, restAudit
			if !tandem {
				o.Tandem = ""
			}
		})
		hub, err := client.New(box.Hub().Config(), client.Options{Scheme: ocmScheme()})
		Expect(err).NotTo(HaveOccurred())
		return box, hub
	}

	It("is recorded without Tandem", func(ctx SpecContext) {
		box, hub := start(ctx, false)
		objects, err := manifests.Objects(manifests.FS, "admission/*.yaml", nil)
		Expect(err).NotTo(HaveOccurred())
		for _, object := range objects {
			Expect(hub.Delete(ctx, object)).To(Succeed())
		}
		enableAtRest(ctx, box, hub, clusters)
		for _, cluster := range clusters {
			Eventually(statusOf).WithContext(ctx).WithArguments(hub, cluster, "front", addonv1alpha1.ConditionAvailable).
				WithTimeout(ocmTimeout).WithPolling(interval).Should(Equal(metav1.ConditionTrue), cluster)
		}
		alone = restOf(ctx, box, lasts)
		box.Stop()
	})

	It("is not written to more often with Tandem, and not by Tandem at all", func(ctx SpecContext) {
		box, hub := start(ctx, true)
		enableAtRest(ctx, box, hub, clusters)
		for _, cluster := range clusters {
			for _, want := range []struct {
				name, condition string
				status          metav1.ConditionStatus
			}{
				{"store", addonv1alpha1.ConditionAvailable, metav1.ConditionTrue}, {"tandem", addonv1alpha1.ConditionAvailable, metav1.ConditionTrue},
				{"front", addonv1alpha1.ConditionAvailable, metav1.ConditionTrue}, {"front", addonv1alpha1.ConditionDegraded, ""},
				{"modest", addonv1alpha1.ConditionAvailable, metav1.ConditionTrue}, {"modest", addonv1alpha1.ConditionDegraded, metav1.ConditionTrue},
				{"lonely", addonv1alpha1.ConditionAvailable, metav1.ConditionFalse}, {"lonely", addonv1alpha1.ConditionDegraded, metav1.ConditionTrue},
			} {
				Eventually(statusOf).WithContext(ctx).WithArguments(hub, cluster, want.name, want.condition).
					WithTimeout(2*ocmTimeout).WithPolling(interval).Should(Equal(want.status), "%s of %s on %s", want.condition, want.name, cluster)
			}
		}
		beside = restOf(ctx, box, lasts)
		AddReportEntry("at rest for "+lasts.String(), restTable(alone, beside))
		Expect(writtenMoreOften(alone, beside, lasts)).To(BeEmpty())
	})
})

// enableAtRest creates the workload of a fleet at rest: a plan-based add-on, enabled by a Placement, and three with a lease: one
// that requires it, and two with a dependency that is not installed, one of them required.
func enableAtRest(ctx context.Context, box *sandbox.Sandbox, hub client.Client, clusters []string) {
	GinkgoHelper()
	Expect(hub.Create(ctx, bindingOfDefaultSet())).To(Succeed())
	everywhere := placement("everywhere", len(clusters))
	Expect(hub.Create(ctx, everywhere)).To(Succeed())
	version := storePackage()
	Expect(hub.Create(ctx, version)).To(Succeed())
	store := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "store"}}
	store.Spec.SupportedConfigs = []upstream.ConfigMeta{{
		ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
		DefaultConfig:       &upstream.ConfigReferent{Namespace: version.Namespace, Name: version.Name},
	}}
	store.Spec.InstallStrategy = upstream.InstallStrategy{
		Type: upstream.AddonInstallStrategyPlacements,
		Placements: []upstream.PlacementStrategy{{
			PlacementRef:    upstream.PlacementRef{Namespace: everywhere.Namespace, Name: everywhere.Name},
			RolloutStrategy: clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All},
		}},
	}
	Expect(hub.Create(ctx, store)).To(Succeed())
	for name, needs := range map[string]addonv1alpha1.AddonDependency{
		"front":  {Name: "store", Type: addonv1alpha1.DependencyTypeRequired},
		"modest": {Name: "missing", Type: addonv1alpha1.DependencyTypeOptional},
		"lonely": {Name: "missing", Type: addonv1alpha1.DependencyTypeRequired},
	} {
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{addonv1alpha1.AnnotationDependencies: declares(needs)},
		}}
		definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
		Expect(hub.Create(ctx, definition)).To(Succeed())
		for _, cluster := range clusters {
			createLease(ctx, box.Cluster(cluster), name)
			Expect(hub.Create(ctx, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}})).To(Succeed())
		}
	}
}

// createLease creates the lease of a live add-on, which stays valid without renewals.
func createLease(ctx context.Context, cluster *sandbox.Cluster, name string) {
	GinkgoHelper()
	c, err := client.New(cluster.Config(), client.Options{})
	Expect(err).NotTo(HaveOccurred())
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "open-cluster-management-agent-addon", Name: name}}
	lease.Spec.LeaseDurationSeconds = ptr.To[int32](60)
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(24 * time.Hour)))
	Expect(c.Create(ctx, lease)).To(Succeed())
}

// storePackage returns a package with a plan that rolls out a Deployment.
func storePackage() *kudo.OperatorVersion {
	version := linkPackage()
	version.Name, version.Spec.Operator = "store-1.0.0", corev1.ObjectReference{Name: "store"}
	version.Spec.Templates = map[string]string{"settings.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Name }}"}
spec:
  selector: {matchLabels: {app: "{{ .Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Name }}"}}
    spec: {containers: [{name: main, image: simulated}]}
`}
	return version
}

// klusterlet matches the user of OCM's agents of a cluster on the hub, which ends in a random name.
var klusterlet = regexp.MustCompile(`^(system:open-cluster-management:[^:]+):[^:]+$`)

// restAuthor is a user that writes an object on a cluster.
type restAuthor struct {
	cluster string
	audit.Author
}

// tandems reports whether the user is Tandem: addon-manager, or an agent on either cluster.
func (a restAuthor) tandems() bool {
	return strings.HasPrefix(a.User, "system:serviceaccount:tandem-system:") || strings.HasSuffix(a.User, ":addon:tandem:agent:addon-agent")
}

// lease reports whether the object is a lease.
func (a restAuthor) lease() bool { return a.Kind.Resource == "leases" }

// heartbeat reports whether the object is written periodically although nothing changes.
func (a restAuthor) heartbeat() bool {
	return a.lease() || a.Kind.Resource == "nodes" || a.Kind.Resource == "events"
}

// restOf counts the writes on all clusters during that time, after they have settled. Programs must run during all of it, and Tandem's must
// write nothing but leases.
func restOf(ctx context.Context, box *sandbox.Sandbox, lasts time.Duration) map[restAuthor]audit.Count {
	GinkgoHelper()
	Eventually(func() []string {
		return changesSince(box, time.Now().Add(-quiet), func(a restAuthor) bool { return !a.heartbeat() })
	}).WithContext(ctx).WithTimeout(settling).WithPolling(quiet/10).Should(BeEmpty(), "what changes though nothing happens")
	begin, restarts := time.Now(), restartsOf(box)
	Consistently(func(g Gomega) {
		g.Expect(changesSince(box, begin, func(a restAuthor) bool { return a.tandems() && !a.lease() })).To(BeEmpty())
		g.Expect(restartsOf(box)).To(Equal(restarts))
	}).WithContext(ctx).WithTimeout(lasts).WithPolling(min(10*time.Second, lasts/10)).Should(Succeed())
	return countsSince(box, begin)
}

// changesSince returns the matching writes since that time.
func changesSince(box *sandbox.Sandbox, from time.Time, wanted func(restAuthor) bool) []string {
	GinkgoHelper()
	var asked []string
	for author, count := range countsSince(box, from) {
		if wanted(author) && (count.Changes > 0 || author.tandems()) {
			asked = append(asked, fmt.Sprintf("%s on %s: %+v", author, author.cluster, count))
		}
	}
	slices.Sort(asked)
	return asked
}

func countsSince(box *sandbox.Sandbox, from time.Time) map[restAuthor]audit.Count {
	GinkgoHelper()
	counts := map[restAuthor]audit.Count{}
	for _, cluster := range box.State().Clusters {
		on, err := audit.ChangesIn(entriesOf(cluster.AuditLog), from)
		Expect(err).NotTo(HaveOccurred())
		for author, count := range on {
			author.User = klusterlet.ReplaceAllString(author.User, "$1") // registered with a new name in every sandbox
			counts[restAuthor{cluster.Name, author}] = count
		}
	}
	return counts
}

// restartsOf returns the number of restarts of each program.
func restartsOf(box *sandbox.Sandbox) map[string]int {
	restarts := map[string]int{}
	for _, cluster := range box.State().Clusters {
		for _, process := range cluster.Processes {
			restarts[cluster.Name+" "+process.Name] = process.Restarts
		}
	}
	return restarts
}

// writtenMoreOften returns the authors that change something more often with Tandem than without it, or that repeatedly send requests
// without effect. Tandem's own leases are ignored. Two requests without effect are expected: a klusterlet, at every tick, reports the
// add-on lonely as available because its lease is valid, and the policy tandem-add-on-conditions keeps the verdict; and OCM's work agent,
// every five minutes, applies the agent's Deployment as delivered, without its defaults.
func writtenMoreOften(alone, beside map[restAuthor]audit.Count, lasts time.Duration) []string {
	var more []string
	for author, count := range beside {
		without := alone[author]
		if author.tandems() && author.lease() {
			continue
		}
		inVain := count.Requests - count.Changes
		maxInVain := without.Requests - without.Changes + int(lasts/klusterletTick) + 1
		if count.Changes > tolerance(without.Changes) || inVain > maxInVain {
			more = append(more, fmt.Sprintf("%s on %s: %+v, %+v without Tandem", author, author.cluster, count, without))
		}
	}
	slices.Sort(more)
	return more
}

// tolerance returns how often something may change that changes this often without Tandem: a periodic write may occur one more time in the
// observed time, and OCM's periods are not exact.
func tolerance(without int) int {
	if without == 0 {
		return 0
	}
	return without + 1 + without/20
}

// restTable returns a table with a row for every author, Tandem's separately.
func restTable(alone, beside map[restAuthor]audit.Count) string {
	authors := map[restAuthor]bool{}
	for author := range alone {
		authors[author] = true
	}
	for author := range beside {
		authors[author] = true
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\ncluster\tobject\tby\trequests without\tchanges\trequests beside\tchanges\t")
	for _, a := range slices.SortedFunc(maps.Keys(authors), func(a, b restAuthor) int {
		return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.Kind.String()+a.Object.String(), b.Kind.String()+b.Object.String()), cmp.Compare(a.User, b.User))
	}) {
		fmt.Fprintf(table, "%s\t%s %s\t%s\t%d\t%d\t%d\t%d\t\n", a.cluster, a.Kind, a.Object, a.User,
			alone[a].Requests, alone[a].Changes, beside[a].Requests, beside[a].Changes)
	}
	_ = table.Flush() // writes to a strings.Builder do not fail
	return text.String()
}
