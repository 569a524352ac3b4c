package ui

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/read"
	dashboard "github.com/tandem-addons/tandem/pkg/ui"
	fleet "github.com/tandem-addons/tandem/test/dashboard"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// field returns the value of a hidden field of a page.
func field(page, name string) string {
	if found := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page); found != nil {
		return found[1]
	}
	return ""
}

// post sends a form with the token of the session, unless the values contain another one.
func (s site) post(path string, values url.Values) answer {
	GinkgoHelper()
	if !values.Has("token") {
		values.Set("token", field(s.get("/").body, "token"))
	}
	request := s.request(context.Background(), http.MethodPost, path, strings.NewReader(values.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.send(request)
}

// confirm asks for the preview of an action, which has to contain the texts, and then for what it shows.
func (s site) confirm(path string, values url.Values, texts ...string) answer {
	GinkgoHelper()
	shown := s.post(path+"/preview", values)
	Expect(shown.status).To(Equal(http.StatusOK), shown.body)
	for _, text := range texts {
		Expect(shown.body).To(ContainSubstring(text))
	}
	values.Set("seen", field(shown.body, "seen"))
	return s.post(path, values)
}

// serving are the rules of a server with actions, as docs/dashboard.md lists them.
var serving = []rbacv1.PolicyRule{
	{APIGroups: []string{"addon.open-cluster-management.io", "kudo.dev", "cluster.open-cluster-management.io", "coordination.k8s.io"},
		Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
	{APIGroups: []string{"authentication.k8s.io", "authorization.k8s.io"},
		Resources: []string{"tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews"}, Verbs: []string{"create"}},
	{APIGroups: []string{""}, Resources: []string{"users", "groups", "serviceaccounts"}, Verbs: []string{"impersonate"}},
	{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"uids", "userextras/authentication.kubernetes.io/credential-id"},
		Verbs: []string{"impersonate"}},
}

// serveForActions serves the dashboard as `addon-manager ui` does, with no permissions but to read and to impersonate.
func serveForActions(ctx context.Context) site {
	GinkgoHelper()
	config := rest.AnonymousClientConfig(env.Config)
	config.BearerToken = token(ctx, "server", "", serving)
	cached, err := dashboard.NewHub(ctx, config, nil)
	Expect(err).NotTo(HaveOccurred())
	return serve(cached, dashboard.Options{Gate: dashboard.NewTokens(cached, false, nil)})
}

var _ = Describe("actions of the dashboard", func() {
	const page = "/clusters/cluster-06/instances/kafka"
	stored := func(ctx context.Context) *kudo.Instance {
		GinkgoHelper()
		instance := &kudo.Instance{}
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: "cluster-06", Name: "kafka"}, instance)).To(Succeed())
		return instance
	}
	It("runs and cancels a plan as it was shown, as the user who asks", func(ctx context.Context) {
		operator := serveForActions(ctx).as(token(ctx, "acts", "", fleet.Operating))
		Expect(operator.get(page).body).To(And(ContainSubstring("Run…"), ContainSubstring(`<select name="plan" required><option value="">choose one</option>`)))
		Expect(operator.post(page+"/run/preview", url.Values{"plan": {""}}).status).To(Equal(http.StatusUnprocessableEntity))
		before := stored(ctx)
		run := url.Values{"plan": {"deploy"}}
		shown := operator.post(page+"/run/preview", run)
		Expect(shown.status).To(Equal(http.StatusOK), shown.body)
		Expect(shown.body).To(ContainSubstring("kubectl addon plan run kafka deploy --cluster cluster-06"))
		Expect(stored(ctx).ResourceVersion).To(Equal(before.ResourceVersion))

		By("refusing what was previewed for another state")
		Expect(environment.Edit(ctx, hub, before, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"BROKERS": "4"} })).To(Succeed())
		run.Set("seen", field(shown.body, "seen"))
		stale := operator.post(page+"/run", run)
		Expect(stale.status).To(Equal(http.StatusConflict))
		Expect(stale.body).To(ContainSubstring("Nothing was changed"))
		Expect(stored(ctx).Spec.PlanExecution.PlanName).To(BeEmpty())

		By("running and cancelling it")
		Expect(operator.confirm(page+"/run", url.Values{"plan": {"backup"}}).status).To(Equal(http.StatusSeeOther))
		Expect(stored(ctx).Spec.PlanExecution.PlanName).To(Equal("backup"))
		Expect(operator.confirm(page+"/cancel", url.Values{}, "Plan backup is no longer requested.").status).To(Equal(http.StatusSeeOther))
		Expect(stored(ctx).Spec.PlanExecution.PlanName).To(BeEmpty())
		Expect(operator.post(page+"/cancel/preview", url.Values{}).status).To(Equal(http.StatusUnprocessableEntity))
		none := operator.post(page+"/run/preview", url.Values{"plan": {"none"}})
		Expect(none.body).To(ContainSubstring("has no plan"))
	})

	It("asks the agent for a diagnosis, and shows the answer without trusting it", func(ctx context.Context) {
		const page = "/clusters/cluster-06/instances/kafka"
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-06", Name: "kafka"}}
		shared := serveForActions(ctx)
		operator, viewer := shared.as(token(ctx, "asks", "", fleet.Operating)), shared.as(token(ctx, "only-looks", "", fleet.Reading))
		Expect(operator.get(page).body).To(ContainSubstring("<button>Ask the agent…</button>"))
		Expect(viewer.get(page).body).NotTo(ContainSubstring("Ask the agent"))
		Expect(operator.confirm(page+"/diagnose", url.Values{}, "Values of sensitive parameters are masked.", "kubectl annotate instances.kudo.dev kafka").status).To(Equal(http.StatusSeeOther))
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
		request := instance.Annotations[kudo.AnnotationDiagnose]
		_, err := time.Parse(time.RFC3339, request)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() string { return viewer.get(page).body }).Should(ContainSubstring("no answer yet. Agents of earlier releases do not answer, nor do agents"))

		Expect(environment.EditStatus(ctx, hub, instance, func(i *kudo.Instance) {
			i.Status.Diagnosis = &kudo.Diagnosis{Request: request, Time: metav1.Now(), Pods: []kudo.DiagnosedPod{{
				Namespace: "shop", Name: "kafka-0", Reason: "<script>\u202e", Logs: []kudo.DiagnosedLog{{Container: "kafka", Lines: []string{"no space left on device"}}},
			}}}
		})).To(Succeed())
		Eventually(func() string { return viewer.get(page).body }).Should(And(ContainSubstring("shop/kafka-0"), ContainSubstring("<td>&lt;script&gt;</td>"),
			ContainSubstring("no space left on device"), Not(ContainSubstring("no answer yet"))))
	})

	It("offers the actions that page Why recommends to those who may send them", func(ctx context.Context) {
		const failed, invalid = "/clusters/cluster-01/addons/shop", "/clusters/cluster-10/addons/kafka"
		shared := serveForActions(ctx)
		operator, viewer := shared.as(token(ctx, "fixes", "", fleet.Operating)), shared.as(token(ctx, "looks", "", fleet.Reading))
		page := operator.get(failed).body
		Expect(page).To(And(ContainSubstring(`<form class="filter" method="post" action="/clusters/cluster-01/instances/kafka/run/preview">`),
			ContainSubstring("<button>Run plan deploy of kafka…</button>"), Not(ContainSubstring("Cancel plan"))))
		shown := operator.post("/clusters/cluster-01/instances/kafka/run/preview", url.Values{"plan": {field(page, "plan")}})
		Expect(shown.status).To(Equal(http.StatusOK), shown.body)
		Expect(shown.body).To(ContainSubstring("kubectl addon plan run kafka deploy --cluster cluster-01"))
		Expect(operator.get(invalid).body).To(And(ContainSubstring(`action="/clusters/cluster-10/instances/kafka/parameters/preview"`),
			ContainSubstring(`<option value="BROKERS">`), Not(ContainSubstring(`<option value="DISK">`)), Not(ContainSubstring("Reset to default"))))
		Expect(operator.get("/clusters/cluster-02/addons/shop").body).To(ContainSubstring("<button>Enable zookeeper…</button>"))
		for _, path := range []string{failed, invalid, "/clusters/cluster-02/addons/shop"} {
			Expect(viewer.get(path).body).To(And(ContainSubstring("What to run"), Not(ContainSubstring("<form class=\"filter\""))), path)
		}

		By("cancelling a plan that is requested")
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-01", Name: "kafka"}}
		Expect(operator.confirm("/clusters/cluster-01/instances/kafka/run", url.Values{"plan": {"backup"}}).status).To(Equal(http.StatusSeeOther))
		Eventually(func() string { return operator.get("/clusters/cluster-01/addons/kafka").body }).Should(And(
			ContainSubstring(`action="/clusters/cluster-01/instances/kafka/cancel/preview"`), ContainSubstring(`<button class="danger">Cancel plan backup…</button>`)))
		Expect(viewer.get("/clusters/cluster-01/addons/kafka").body).NotTo(ContainSubstring("Cancel plan"))
		Expect(operator.confirm("/clusters/cluster-01/instances/kafka/cancel", url.Values{}).status).To(Equal(http.StatusSeeOther))
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
		Expect(instance.Spec.PlanExecution.PlanName).To(BeEmpty())
	})

	It("suspends and resumes an Instance, starts a plan outside of a window, and resumes a failed plan", func(ctx context.Context) {
		const cluster, path = "cluster-resting", "/clusters/cluster-resting/instances/kafka"
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}})).To(Succeed())
		registered := &unstructured.Unstructured{}
		registered.SetGroupVersionKind(read.ManagedClusterKind)
		registered.SetName(cluster)
		Expect(hub.Create(ctx, registered)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, registered)).To(Succeed()) })
		instance := fleet.Instance(cluster, false)
		instance.OwnerReferences = nil
		status := instance.Status
		Expect(hub.Create(ctx, instance)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(hub.Delete(ctx, instance))).To(Succeed()) })
		report := func(change func(*kudo.Instance)) {
			GinkgoHelper()
			Expect(environment.EditStatus(ctx, hub, instance, change)).To(Succeed())
		}
		report(func(i *kudo.Instance) { i.Status = status })
		restingSpec := func() kudo.InstanceSpec {
			GinkgoHelper()
			Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
			return instance.Spec
		}
		shared := serveForActions(ctx)
		operator, viewer := shared.as(token(ctx, "rests", "", fleet.Operating)), shared.as(token(ctx, "watches", "", fleet.Reading))
		seen := func(s site, path string, texts ...string) {
			GinkgoHelper()
			for _, text := range texts {
				Eventually(func() string { return s.get(path).body }).Should(ContainSubstring(text), path)
			}
		}

		By("suspending and resuming it")
		seen(operator, path, "Suspend…")
		Expect(operator.confirm(path+"/suspend", url.Values{}, "<code>kubectl addon suspend kafka --cluster cluster-resting</code>").status).To(Equal(http.StatusSeeOther))
		Expect(restingSpec().Suspend).To(BeTrue())
		Expect(operator.post(path+"/suspend/preview", url.Values{}).status).To(Equal(http.StatusUnprocessableEntity))
		for _, page := range []string{"/", "/clusters/" + cluster, path} {
			seen(viewer, page, "<code>kubectl addon resume kafka --cluster cluster-resting</code>")
		}
		seen(viewer, "/", "<td>spec.suspend</td>")
		Expect(viewer.get(path).body).NotTo(ContainSubstring("<form class=\"filter\" method=\"post\""))
		seen(operator, path, "<button>Resume kafka…</button>")

		By("naming what else suspends it")
		registered.SetAnnotations(map[string]string{kudo.AnnotationSuspend: "<disks>"})
		Expect(hub.Update(ctx, registered)).To(Succeed())
		Expect(environment.Edit(ctx, hub, instance, func(i *kudo.Instance) { i.Spec.SuspendedBy = `ManagedCluster cluster-resting ("<disks>")` })).To(Succeed())
		seen(viewer, "/", "<td>ManagedCluster cluster-resting</td><td>&lt;disks&gt;</td>", "<code>kubectl addon resume --all --cluster cluster-resting</code>")
		Expect(operator.confirm(path+"/resume", url.Values{}, "It stays suspended by ManagedCluster cluster-resting").status).To(Equal(http.StatusSeeOther))
		Expect(restingSpec().Suspend).To(BeFalse())
		Expect(environment.Edit(ctx, hub, instance, func(i *kudo.Instance) { i.Spec.SuspendedBy = "" })).To(Succeed())
		Expect(operator.post(path+"/resume/preview", url.Values{}).status).To(Equal(http.StatusUnprocessableEntity))

		By("starting a plan outside of the windows of the hub")
		report(func(i *kudo.Instance) {
			meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{Type: kudo.ConditionWaiting, Status: metav1.ConditionTrue, Reason: kudo.ReasonWindow,
				Message: `plan "deploy" waits for a maintenance window, closed by the hub (ManagedCluster): opens at 2026-12-29T08:00:00Z`})
		})
		seen(operator, path, "<button>Run plan deploy of kafka now…</button>", "waits for a window")
		Expect(operator.confirm(path+"/run", url.Values{"plan": {"deploy"}, "now": {"yes"}},
			"<code>kubectl addon plan run kafka deploy --cluster cluster-resting --now</code>").status).To(Equal(http.StatusSeeOther))
		Expect(restingSpec().IgnoreWindowsUntil).NotTo(BeNil())

		By("resuming a failed plan")
		report(func(i *kudo.Instance) {
			failed := i.Status.PlanStatus["deploy"]
			failed.Status, failed.Message = kudo.FatalError, "no more disks"
			failed.Phases[0].Steps[0].Tasks[0].Rendered = "digest"
			i.Status.PlanStatus["deploy"] = failed
		})
		seen(viewer, "/", "<td>plan failed</td>", "<code>kubectl addon plan resume kafka --cluster cluster-resting</code>")
		seen(operator, path, "<button>Resume plan deploy of kafka…</button>")
		Expect(operator.confirm(path+"/resume-plan", url.Values{}, "Plan deploy is requested again").status).To(Equal(http.StatusSeeOther))
		Expect(restingSpec().PlanExecution.Resume).To(BeEquivalentTo("1"))
	})

	It("disables an add-on after stating what depends on it", func(ctx context.Context) {
		const path = "/clusters/cluster-07/addons/kafka"
		s := local(ctx, nil)
		Expect(s.get(path).body).To(ContainSubstring("Disable…"))
		form := url.Values{"token": {field(s.get(path).body, "token")}}
		Expect(s.confirm(path+"/disable", form,
			"<code>kubectl addon disable kafka --cluster cluster-07 --force</code>", `<button class="danger">Disable kafka anyway</button>`, "add-on logging becomes unavailable",
			"This removes its applied objects, including their data.").status).To(Equal(http.StatusSeeOther))
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		err := hub.Get(ctx, client.ObjectKey{Namespace: "cluster-07", Name: "kafka"}, addOn)
		Expect(apierrors.IsNotFound(err) || !addOn.DeletionTimestamp.IsZero()).To(BeTrue())
	})

	It("states what goes with a definition, and what is kept", func(ctx context.Context) {
		const cluster = "cluster-defining"
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "certs"}}
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}})).To(Succeed())
		registered := &unstructured.Unstructured{}
		registered.SetGroupVersionKind(read.ManagedClusterKind)
		registered.SetName(cluster)
		Expect(hub.Create(ctx, registered)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, registered)).To(Succeed()) })
		Expect(hub.Create(ctx, addOn)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(hub.Delete(ctx, addOn))).To(Succeed()) })
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "certs", OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(addOn, addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn")),
		}}}
		Expect(hub.Create(ctx, instance)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(hub.Delete(ctx, instance))).To(Succeed()) })
		Expect(environment.EditStatus(ctx, hub, instance, func(i *kudo.Instance) {
			i.Status.Inventory = []kudo.InventoryEntry{
				{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "certificates.example.com"},
				{Kind: "Secret", Namespace: "ns", Name: "ca", Keep: true},
			}
		})).To(Succeed())
		s := local(ctx, nil)
		const path = "/clusters/" + cluster + "/addons/certs"
		Eventually(func() string { return s.get(path).body }).Should(ContainSubstring("Disable…"))
		form := url.Values{"token": {field(s.get(path).body, "token")}}
		Expect(s.confirm(path+"/disable", form,
			"CustomResourceDefinition certificates.example.com is deleted with every object of its kind, including objects that users have created, which the hub does not know; "+
				"Instances have 0 objects of its API group.",
			"The package keeps Secret ns/ca.").status).To(Equal(http.StatusSeeOther))
	})

	It("says that objects stay before it disables an add-on on a cluster that is being detached", func(ctx context.Context) {
		const cluster = "cluster-leaving"
		registered := &unstructured.Unstructured{}
		registered.SetGroupVersionKind(read.ManagedClusterKind)
		registered.SetName(cluster)
		registered.SetFinalizers([]string{"example.com/held"})
		Expect(hub.Create(ctx, registered)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			Expect(hub.Patch(ctx, registered, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		})
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "kafka"}}
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}})).To(Succeed())
		Expect(hub.Create(ctx, addOn)).To(Succeed())
		Expect(hub.Delete(ctx, registered)).To(Succeed())
		s := local(ctx, nil)
		const path = "/clusters/" + cluster + "/addons/kafka"
		Eventually(func() string { return s.get(path).body }).Should(ContainSubstring("Disable…"))
		form := url.Values{"token": {field(s.get(path).body, "token")}}
		Expect(s.confirm(path+"/disable", form, "The cluster is detached, so its objects stay there.").status).To(Equal(http.StatusSeeOther))
	})

	It("refuses what the API server refuses to the user, and every action with --read-only", func(ctx context.Context) {
		s := serveShared(ctx)
		viewer, one := s.as(token(ctx, "looks", "", fleet.Reading)), s.as(token(ctx, "looks-at-one", "cluster-01", fleet.Reading))
		Expect(viewer.get(page).body).NotTo(ContainSubstring("Run…"))
		Expect(viewer.get("/clusters/cluster-06/addons/kafka").body).NotTo(ContainSubstring("Disable…"))
		refused := viewer.confirm(page+"/run", url.Values{"plan": {"deploy"}})
		Expect(refused.status).To(Equal(http.StatusForbidden))
		Expect(refused.body).To(ContainSubstring("cannot patch resource"))
		Expect(viewer.confirm("/clusters/cluster-06/addons/kafka/disable", url.Values{}).status).To(Equal(http.StatusForbidden))
		for _, action := range []string{"/run", "/cancel"} {
			Expect(s.post(page+action, url.Values{"plan": {"deploy"}}).status).To(Equal(http.StatusUnauthorized), action)
			there := one.post(page+action+"/preview", url.Values{"plan": {"deploy"}})
			none := one.post(strings.Replace(page, "06", "0x", 1)+action+"/preview", url.Values{"plan": {"deploy"}})
			Expect(there.status).To(Equal(http.StatusForbidden), action)
			Expect(strings.ReplaceAll(there.body, "cluster-06", "cluster-0x")).To(Equal(none.body), action)
			Expect(viewer.post(page+action, url.Values{"token": {"wrong"}}).status).To(Equal(http.StatusForbidden), action)
		}
		Expect(stored(ctx).Spec.PlanExecution.PlanName).To(BeEmpty())

		cached, err := dashboard.NewHub(ctx, env.Config, nil)
		Expect(err).NotTo(HaveOccurred())
		quiet := serve(cached, dashboard.Options{Gate: dashboard.NewTokens(cached, false, nil), ReadOnly: true}).as(token(ctx, "reads", "", fleet.Operating))
		Expect(quiet.get(page).body).NotTo(ContainSubstring("Run…"))
		for _, path := range []string{page + "/run", page + "/run/preview", page + "/cancel", "/clusters/cluster-06/addons/kafka/disable"} {
			Expect(quiet.post(path, url.Values{}).status).To(Equal(http.StatusMethodNotAllowed), path)
		}
	})
})
