package ui

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	dashboard "github.com/tandem-addons/tandem/pkg/ui"
	fleet "github.com/tandem-addons/tandem/test/dashboard"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// shown lists the pages with texts that they have to contain.
var shown = map[string][]string{
	"/":                                 {"10 managed clusters, 7 add-ons.", "What is wrong", "PlanFailed", "kubectl addon fleet"},
	"/?addon=kafka&state=Unknown":       {"cluster-03", "1 managed cluster,"},
	"/?state=Blocked":                   {"1 managed cluster,", "cluster-10", `<a href="/?reason=ParametersInvalid&amp;state=Blocked">ParametersInvalid</a>`, `<td class="blocked" title="blocked"><a href="/clusters/cluster-10/addons/kafka">⊘`},
	"/?state=Waiting":                   {"1 managed cluster,", "cluster-10", ">WaitingForConfiguration</a>", `<a href="/addons/zookeeper">zookeeper</a>`},
	"/clusters/cluster-10":              {"</span> blocked</span></td><td>ParametersInvalid</td>", "</span> waiting</span></td><td>WaitingForConfiguration</td>"},
	"/clusters/cluster-10/addons/kafka": {"</span> blocked</span> <span>ParametersInvalid</span>", "is blocked: ParametersInvalid"},
	"/?selector=region%3Dus":            {"5 managed clusters"},
	"/addons/kafka": {"Add-on kafka", "zookeeper", fleet.Version, "Dependencies of add-on kafka",
		`<th scope="row"><a href="/clusters/cluster-01/addons/kafka">cluster-01</a></th>`},
	"/clusters/cluster-01":             {"addon-agent v0.9.0", "kubectl addon tree --cluster cluster-01"},
	"/clusters/cluster-02/addons/shop": {"kafka -&gt; zookeeper), which is not installed: enable it", "kubectl addon enable zookeeper --cluster cluster-02"},
	"/clusters/cluster-01/instances/kafka": {"Phase <b>brokers</b>", "insufficient memory", "BROKERS", "StatefulSet kafka/kafka", "5m", "kubectl addon history kafka --cluster cluster-01",
		"kubectl addon events kafka --cluster cluster-01", "kubectl addon logs kafka --cluster cluster-01 --cluster-context CONTEXT"},
	"/addons/kafka/history": {"The last execution on 10 clusters", `<a href="/clusters/cluster-01/instances/kafka#history">cluster-01</a> <b>deploy</b>`, "kafka-3.8.1-1.3.0 -&gt; " + fleet.Version,
		"Revision 2, version: BROKERS", "kubectl addon history kafka"},
	"/packages": {fleet.Version, "kubectl addon package list"},
	"/packages/addon-packages/" + fleet.Version: {"RETENTION", "How long messages are kept.", "<td>integer</td>", "<td>backup</td>", "<td>(immutable)</td>"},
}

var _ = Describe("the dashboard of one user", func() {
	It("shows every page", func(ctx context.Context) {
		s := local(ctx, nil)
		for path, texts := range shown {
			page := s.get(path)
			Expect(page.status).To(Equal(http.StatusOK), "%s: %s", path, page.body)
			for _, text := range texts {
				Expect(page.body).To(ContainSubstring(text), path)
			}
		}
		for _, path := range []string{"/clusters/none", "/clusters/cluster-01/addons/none", "/clusters/cluster-01/instances/none", "/addons/none", "/addons/none/history", "/packages/a/b", "/none"} {
			Expect(s.get(path).status).To(Equal(http.StatusNotFound), path)
		}
	})

	It("draws the versions, alternatives and clusters of dependencies", func(ctx context.Context) {
		objects, err := fleet.FillDrawn(ctx, hub)
		DeferCleanup(func(ctx context.Context) {
			for _, object := range objects {
				Expect(hub.Delete(ctx, object)).To(Succeed())
			}
		})
		Expect(err).NotTo(HaveOccurred())
		s := local(ctx, nil)
		page := s.get("/clusters/" + fleet.Drawn).body
		for _, text := range []string{
			`aria-hidden="true">instead of coal</text>`, `aria-hidden="true">&gt;=2, runs 1.4.0</text>`, `aria-hidden="true">does not apply here</text>`,
			`<path class="edge optional elsewhere"`, "dotted: does not apply to this cluster", "depends on coke (instead of coal)",
			"anvil: VersionMismatch: runs version 1.4.0, which does not satisfy &gt;=2", "bellows: Optional; does not apply to this cluster (region=mars)",
		} {
			Expect(page).To(ContainSubstring(text))
		}
		Expect(s.get("/addons/forge").body).To(And(ContainSubstring("only on region=mars"), ContainSubstring("requires &gt;=2"), ContainSubstring("instead of coal")))
	})

	It("shows the history of an Instance in the words of the command, and times as they are now", func(ctx context.Context) {
		s := local(ctx, nil)
		page := s.get("/clusters/cluster-01/instances/kafka").body
		former, failed := "kafka-3.8.1-1.3.0", "kafka-3.8.1-1.3.0 -&gt; "+fleet.Version
		Expect(page).To(MatchRegexp(`<li class="bad"><p><b>deploy</b> `+failed+` <span class="state bad"><span aria-hidden="true">✗</span> Failed</span> `+
			`<time datetime="\S+" title="20\d\d-[-0-9: ]+Z">\d+m ago</time> <span class="took">5m0?s?</span></p>\s*<p class="message">Revision 2, version: BROKERS</p><p class="message">StatefulSet`),
			"the failed upgrade")
		Expect(page).To(MatchRegexp(`<li class="good"><p><b>deploy</b> `+former+` .*Complete</span> <time [^>]*>3d ago</time> <span class="took">50s</span></p>\s*`+
			`<p class="message">Revision 1, installation</p>`), "the installation")
		Expect(strings.Index(page, failed)).To(BeNumerically("<", strings.LastIndex(page, former)), "the latest one first")
		Expect(strings.Count(page, fleet.Failure)).To(Equal(3), "once at the task, in the history, and in condition Ready")

		By("showing the last runs if the agent keeps no history")
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-05", Name: "kafka"}}
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
		Expect(environment.EditStatus(ctx, hub, instance, func(i *kudo.Instance) { i.Status.History = nil })).To(Succeed())
		Eventually(func() string { return s.get("/clusters/cluster-05/instances/kafka").body }).Should(And(
			ContainSubstring(`<th scope="col">Duration</th>`), Not(ContainSubstring("Revision 2"))))
	})

	It("leads from reasons, add-ons and cells of the matrix to what they are about", func(ctx context.Context) {
		s := local(ctx, nil)
		page := s.get("/?cluster=cluster-0").body
		for _, path := range []string{"/?cluster=cluster-0&reason=PlanFailed", "/addons/kafka", "/clusters/cluster-01/addons/kafka", "/clusters/cluster-03/addons/ingress"} {
			Expect(page).To(ContainSubstring(`href="`+strings.ReplaceAll(path, "&", "&amp;")+`"`), path)
			Expect(s.get(path).status).To(Equal(http.StatusOK), path)
		}
		Expect(s.get("/addons/kafka").body).To(ContainSubstring(`href="/?addon=kafka&amp;reason=PlanFailed"`))
		Expect(page).To(ContainSubstring(`<td class="none" title="not enabled">·`), "a cell of what is not enabled leads nowhere")

		By("offering no action beside a command if there are none")
		cached, err := dashboard.NewHub(ctx, env.Config, nil)
		Expect(err).NotTo(HaveOccurred())
		gate := dashboard.NewLocal("tandem-test")
		quiet := serve(cached, dashboard.Options{Gate: gate, ReadOnly: true})
		quiet.cookies = quiet.get(gate.Path()).cookies
		Expect(quiet.get("/clusters/cluster-01/addons/shop").body).To(And(ContainSubstring("kubectl addon plan run kafka deploy"), Not(ContainSubstring("Run plan"))))
	})

	It("says on every page that addon-manager does not run", func(ctx context.Context) {
		healthy := local(ctx, nil)
		Expect(healthy.get("/").body).NotTo(ContainSubstring("has not renewed its Lease"))
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tandem-system"}}
		Expect(client.IgnoreAlreadyExists(hub.Create(ctx, namespace))).To(Succeed())
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: addonv1alpha1.LeaderLease}}
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To("pod"), ptr.To[int32](15)
		lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-2*time.Hour - 30*time.Second)))
		Expect(hub.Create(ctx, lease)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, lease)).To(Succeed()) })
		s := local(ctx, nil)
		for _, path := range []string{"/", "/packages", "/clusters/cluster-01", "/none"} {
			Eventually(func() string { return s.get(path).body }).Should(ContainSubstring(
				`<p role="alert">addon-manager has not renewed its Lease for 120m: nothing on the hub changes until it runs; see &#39;kubectl addon check&#39;</p>`), path)
		}
	})

	It("streams a snapshot, its end, and then a change within a second", func(ctx context.Context) {
		s := local(ctx, nil)
		events := s.stream("/clusters/cluster-05/addons/ingress")
		var next event
		Eventually(events).Should(Receive(&next))
		Expect(next.Name).To(Equal("snapshot"))
		Expect(next.Data).To(ContainSubstring("is available"))
		Eventually(events).Should(Receive(&next))
		Expect(next.Name).To(Equal("end"))
		Eventually(events).Should(Receive(&next))
		Expect(next.Name).To(Equal("hub"))

		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-05", Name: "ingress"}}
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(addOn), addOn)).To(Succeed())
		start := time.Now()
		Expect(environment.EditStatus(ctx, hub, addOn, func(a *addonv1alpha1.ManagedClusterAddOn) {
			meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
				Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: "ProbeUnavailable", Message: "no route",
			})
		})).To(Succeed())
		Eventually(events).Should(Receive(&next))
		Expect(next.Name).To(Equal("change"))
		Expect(next.Data).To(ContainSubstring("ProbeUnavailable: no route"))
		GinkgoWriter.Println("the change was sent after", time.Since(start))
	})

	It("limits itself to the clusters that it is given", func(ctx context.Context) {
		s := local(ctx, []string{"cluster-04"})
		Expect(s.get("/clusters/cluster-04").body).To(ContainSubstring("ProbeUnavailable"))
		Expect(s.get("/clusters/cluster-01").body).NotTo(ContainSubstring("PlanFailed"))
	})

	It("shows the clusters that it is given to a user who may read nothing else", func(ctx context.Context) {
		rules := slices.Clone(fleet.Reading)
		for i := range rules {
			rules[i].Verbs = []string{"get", "list", "watch"}
		}
		config := rest.AnonymousClientConfig(env.Config)
		config.BearerToken = token(ctx, "tenant", "cluster-04", rules)
		s := localTo(ctx, config, []string{"cluster-04"})
		for path, want := range map[string]int{
			"/": http.StatusOK, "/clusters/cluster-04": http.StatusOK, "/clusters/cluster-04/instances/kafka": http.StatusOK, "/packages": http.StatusOK,
			"/clusters/cluster-01": http.StatusNotFound, "/packages/addon-packages/" + fleet.Version: http.StatusNotFound,
		} {
			page := s.get(path)
			Expect(page.status).To(Equal(want), "%s: %s", path, page.body)
		}

		By("showing the packages to a user who may read those")
		Expect(hub.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: kudo.DefaultPackagesNamespace, Name: "tenant"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tenant"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "tenant"}},
		})).To(Succeed())
		s = localTo(ctx, config, []string{"cluster-04"})
		Expect(s.get("/packages/addon-packages/" + fleet.Version).status).To(Equal(http.StatusOK))
	})
})
