package ui

import (
	"context"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	dashboard "github.com/tandem-addons/tandem/pkg/ui"
	fleet "github.com/tandem-addons/tandem/test/dashboard"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// create creates objects until the spec ends.
func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(hub.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(hub.Delete(ctx, object))).To(Succeed()) })
	}
}

// define defines add-on store, whose package has two versions, and which requires the add-on vault.
func define(ctx context.Context) {
	GinkgoHelper()
	for _, number := range []string{"1.0.0", "1.1.0"} {
		version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: kudo.DefaultPackagesNamespace, Name: "store-" + number}}
		version.Spec.Operator.Name, version.Spec.Version = "store", number
		version.Spec.Templates = map[string]string{
			"config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: store}\ndata: {version: \"" + number + "\", size: \"{{ .Params.SIZE }}\", text: {{ .Params.TEXT }}}\n",
		}
		version.Spec.Tasks = []kudo.Task{{Name: "config", Kind: kudo.TaskApply, Spec: kudo.TaskSpec{
			ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"config.yaml"}},
		}}}
		steps := []kudo.Step{{Name: "config", Tasks: []string{"config"}}}
		version.Spec.Plans = map[string]kudo.Plan{"deploy": {Phases: []kudo.Phase{{Name: "main", Steps: steps}}}}
		version.Spec.Parameters = []kudo.Parameter{
			{Name: "SIZE", Default: ptr.To("1"), Type: kudo.IntegerType}, {Name: "PASSWORD", Sensitive: ptr.To(true)},
			{Name: "TEXT", Default: ptr.To("none")},
		}
		create(ctx, version)
	}
	vault := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "vault"}}
	store := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "store"}}
	store.Spec.Dependencies = []addonv1alpha1.AddonDependency{{Name: "vault", Type: addonv1alpha1.DependencyTypeRequired}}
	store.Spec.SupportedConfigs = []upstream.ConfigMeta{
		{ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
			DefaultConfig: &upstream.ConfigReferent{Namespace: kudo.DefaultPackagesNamespace, Name: "store-1.0.0"}},
		{ConfigGroupResource: upstream.ConfigGroupResource{
			Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs,
		}},
	}
	for _, definition := range []*addonv1alpha1.ClusterManagementAddOn{vault, store} {
		definition.Spec.InstallStrategy = upstream.InstallStrategy{Type: upstream.AddonInstallStrategyManual}
	}
	create(ctx, vault, store)
}

// createStore creates add-on store on a cluster, with its Instance, or with by nil the Instance alone.
func createStore(ctx context.Context, cluster string, byAddOn bool) *kudo.Instance {
	GinkgoHelper()
	instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "store"}}
	instance.Spec.OperatorVersion.Namespace, instance.Spec.OperatorVersion.Name = kudo.DefaultPackagesNamespace, "store-1.0.0"
	if byAddOn {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "store"}}
		create(ctx, addOn)
		instance.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn", Name: "store", UID: addOn.UID, Controller: ptr.To(true),
		}}
	}
	create(ctx, instance)
	return instance
}

// findAddOn returns add-on store on a cluster, nil if it is not enabled.
func findAddOn(ctx context.Context, cluster, name string) *addonv1alpha1.ManagedClusterAddOn {
	GinkgoHelper()
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	err := hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, addOn)
	if apierrors.IsNotFound(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return addOn
}

// variables returns the parameters in the AddOnDeploymentConfig of add-on store on a cluster.
func variables(ctx context.Context, cluster string) map[string]string {
	GinkgoHelper()
	config := &addonv1alpha1.AddOnDeploymentConfig{}
	err := hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "store-parameters"}, config)
	if apierrors.IsNotFound(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(hub.Delete(ctx, config))).To(Succeed()) })
	values := map[string]string{}
	for _, variable := range config.Spec.CustomizedVariables {
		values[variable.Name] = variable.Value
	}
	return values
}

// session returns the value that forms have to contain, from a page with a form.
func (s site) session() string {
	GinkgoHelper()
	token := ""
	Eventually(func() string { token = field(s.get("/addons/store").body, "token"); return token }).ShouldNot(BeEmpty())
	return token
}

// fill returns the values of a form with the hidden fields of a preview.
func fill(shown string, values url.Values) url.Values {
	filled := maps.Clone(values)
	filled.Set("seen", html.UnescapeString(field(shown, "seen")))
	return filled
}

var _ = Describe("changes on the dashboard", func() {
	BeforeEach(func(ctx context.Context) { define(ctx) })

	It("enables an add-on with its dependencies and parameters, as it was shown", func(ctx context.Context) {
		const cluster = "cluster-08"
		s := serveForActions(ctx).as(token(ctx, "enables", "", fleet.Operating))
		for path, texts := range map[string][]string{
			"/addons/store": {"Enable…", `value="` + cluster + `"`}, "/clusters/" + cluster: {"Enable…", "<option>store</option>"},
			"/clusters/" + cluster + "/addons/store": {"Enable…"},
		} {
			Eventually(func() string { return s.get(path).body }).Should(ContainSubstring(texts[0]), path)
			for _, text := range texts {
				Expect(s.get(path).body).To(ContainSubstring(text), path)
			}
		}
		form := url.Values{"token": {s.session()}, "addon": {"store"}, "cluster": {cluster}}

		By("stating what it waits for, and what runs")
		alone := s.post("/enable/preview", form)
		Expect(alone.status).To(Equal(http.StatusOK), alone.body)
		for _, text := range []string{
			"store is waiting for required add-ons: Required vault (NotInstalled)", "kubectl addon enable store --cluster " + cluster, "store-1.0.0",
			"are enabled too", "PASSWORD", "main, config: task <b>config</b>", "create ConfigMap store",
		} {
			Expect(alone.body).To(ContainSubstring(text))
		}
		form.Set("dependencies", "yes")
		form.Set("namespace", "data")
		form.Set("parameter", "SIZE")
		form.Set("value", "3")
		shown := s.post("/enable/preview", form)
		Expect(shown.body).To(ContainSubstring("kubectl addon enable store --cluster " + cluster + " --namespace data --with-dependencies -p SIZE=3"))
		Expect(shown.body).To(And(ContainSubstring("Add-on vault is enabled."), ContainSubstring("Add-on store is enabled in namespace data.")))
		Expect(findAddOn(ctx, cluster, "store")).To(BeNil())

		By("changing nothing after a change since the preview")
		vault := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "vault"}}
		create(ctx, vault)
		stale := s.post("/enable", fill(shown.body, form))
		Expect(stale.status).To(Equal(http.StatusConflict), stale.body)
		Expect(stale.body).To(ContainSubstring("Nothing was changed"))
		Expect(findAddOn(ctx, cluster, "store")).To(BeNil())
		Expect(variables(ctx, cluster)).To(BeNil())

		By("enabling all of it")
		Expect(hub.Delete(ctx, vault)).To(Succeed())
		done := s.post("/enable", fill(s.post("/enable/preview", form).body, form))
		Expect(done.status).To(Equal(http.StatusSeeOther), done.body)
		store := findAddOn(ctx, cluster, "store")
		vaulted := findAddOn(ctx, cluster, "vault")
		DeferCleanup(func(ctx context.Context) {
			for _, object := range []client.Object{store, vaulted} {
				Expect(client.IgnoreNotFound(hub.Delete(ctx, object))).To(Succeed())
			}
		})
		Expect(store.Spec.InstallNamespace).To(Equal("data"))
		Expect(store.ManagedFields[0].Manager).To(Equal("addon-manager-ui"))
		Expect(variables(ctx, cluster)).To(Equal(map[string]string{"SIZE": "3"}))
	})

	It("warns of a namespace in which nothing is installed", func(ctx context.Context) {
		s := local(ctx, nil)
		form := url.Values{"token": {s.session()}, "addon": {"store"}, "cluster": {"cluster-08"}, "namespace": {"kube-system"}}
		Expect(s.post("/enable/preview", form).body).To(ContainSubstring("store: addon-manager and addon-agent refuse namespace &#34;kube-system&#34;"))
	})

	It("refuses to enable what the command refuses", func(ctx context.Context) {
		s := local(ctx, nil)
		for _, test := range []struct {
			sentence string
			form     url.Values
			want     string
		}{
			{"an unknown add-on", url.Values{"addon": {"stores"}}, "did you mean store?"},
			{"an unknown cluster", url.Values{"cluster": {"cluster-8"}}, "managed cluster &#34;cluster-8&#34; not found"},
			{"no cluster", url.Values{"cluster": {""}}, "name an add-on and a cluster"},
			{"an invalid namespace", url.Values{"namespace": {"Data"}}, "namespace &#34;Data&#34;"},
			{"an invalid value", url.Values{"parameter": {"SIZE"}, "value": {"many"}}, "must be an integer"},
			{"an unknown parameter", url.Values{"parameter": {"SIZES"}, "value": {"3"}}, "did you mean SIZE?"},
			{"a plan that would fail", url.Values{"parameter": {"TEXT"}, "value": {"a, more: b"}}, "a plan of Instance &#34;store&#34; would fail"},
			{"a plain value of a sensitive parameter", url.Values{"parameter": {"PASSWORD"}, "value": {"hunter2"}}, "the value itself is not accepted"},
			{"one that OCM enables", url.Values{"addon": {"placed"}}, "OCM enables add-on"},
		} {
			By(test.sentence)
			if test.form.Get("addon") == "placed" {
				placed := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "placed"}}
				placed.Spec.InstallStrategy = upstream.InstallStrategy{Type: upstream.AddonInstallStrategyPlacements, Placements: []upstream.PlacementStrategy{
					{PlacementRef: upstream.PlacementRef{Namespace: "default", Name: "all"}},
				}}
				create(ctx, placed)
			}
			form := url.Values{"token": {s.session()}, "addon": {"store"}, "cluster": {"cluster-08"}}
			maps.Copy(form, test.form)
			for _, path := range []string{"/enable/preview", "/enable"} {
				refused := s.post(path, maps.Clone(form))
				Expect(refused.status).To(Equal(http.StatusUnprocessableEntity), refused.body)
				Expect(refused.body).To(ContainSubstring(test.want))
				Expect(refused.body).NotTo(ContainSubstring("hunter2"))
			}
		}
		Expect(findAddOn(ctx, "cluster-08", "store")).To(BeNil())
		Expect(variables(ctx, "cluster-08")).To(BeNil())
	})

	It("updates a parameter of an add-on that has no Instance yet because of its value", func(ctx context.Context) {
		const cluster, page = "cluster-09", "/clusters/cluster-09/addons/store"
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "store"}}
		config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "store-parameters"}}
		config.Spec.CustomizedVariables = []upstream.CustomizedVariable{{Name: "SIZE", Value: "many"}}
		addOn.Spec.Configs = []upstream.AddOnConfig{{
			ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupVersion.Group, Resource: "addondeploymentconfigs"},
			ConfigReferent:      upstream.ConfigReferent{Namespace: cluster, Name: config.Name},
		}}
		create(ctx, config, addOn)
		Expect(environment.EditStatus(ctx, hub, addOn, func(a *addonv1alpha1.ManagedClusterAddOn) {
			meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
				Type: kudo.ConditionResolved, Status: metav1.ConditionFalse, Reason: kudo.ReasonParametersInvalid,
				Message: `parameter "SIZE": value "many": must be an integer, such as 3`,
			})
		})).To(Succeed())
		s := serveForActions(ctx).as(token(ctx, "fixes", "", fleet.Operating))
		Eventually(func() string { return s.get(page).body }).Should(And(ContainSubstring("-p SIZE=3"),
			ContainSubstring(`action="/clusters/cluster-09/instances/store/parameters/preview"`), ContainSubstring(`<option value="SIZE">SIZE</option>`)))
		form := url.Values{"token": {s.session()}, "parameter": {"SIZE"}, "value": {"3"}}
		shown := s.post("/clusters/cluster-09/instances/store/parameters/preview", form)
		Expect(shown.status).To(Equal(http.StatusOK), shown.body)
		Expect(shown.body).To(And(ContainSubstring("Parameter SIZE: &#34;many&#34; → &#34;3&#34;"),
			ContainSubstring("kubectl addon update store --cluster "+cluster+" -p SIZE=3"), ContainSubstring(`href="`+page+`"`)))
		done := s.post("/clusters/cluster-09/instances/store/parameters", fill(shown.body, form))
		Expect(done.status).To(Equal(http.StatusSeeOther), done.body)
		Expect(variables(ctx, cluster)).To(Equal(map[string]string{"SIZE": "3"}))
	})

	for _, byAddOn := range []bool{true, false} {
		It("updates parameters of an "+map[bool]string{true: "add-on", false: "Instance"}[byAddOn]+", as it was shown", func(ctx context.Context) {
			const cluster, page = "cluster-09", "/clusters/cluster-09/instances/store"
			instance := createStore(ctx, cluster, byAddOn)
			s := serveForActions(ctx).as(token(ctx, "updates", "", fleet.Operating))
			Eventually(func() string { return s.get(page).body }).Should(And(ContainSubstring("Change parameter…"), ContainSubstring("Refer to Secret…")))
			form := url.Values{"token": {s.session()}, "parameter": {"SIZE"}, "value": {"3"}}
			shown := s.post(page+"/parameters/preview", form)
			Expect(shown.status).To(Equal(http.StatusOK), shown.body)
			for _, text := range []string{
				"kubectl addon update store --cluster " + cluster + " -p SIZE=3", "Parameter SIZE: &#34;1&#34; → &#34;3&#34;", "Plan <b>deploy</b> runs", "create ConfigMap",
			} {
				Expect(shown.body).To(ContainSubstring(text))
			}

			By("changing nothing after a change since the preview")
			Expect(environment.Edit(ctx, hub, instance, func(i *kudo.Instance) { i.Spec.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "1"} })).To(Succeed())
			stale := s.post(page+"/parameters", fill(shown.body, form))
			Expect(stale.status).To(Equal(http.StatusConflict), stale.body)
			Expect(stale.body).To(ContainSubstring("Nothing was changed"))

			By("changing several parameters, one of them sensitive")
			form.Set("set.SIZE", "3")
			for name, value := range map[string]string{"parameter": "PASSWORD", "value": "", "secret": "secrets", "key": "password"} {
				form.Set(name, value)
			}
			shown = s.post(page+"/parameters/preview", form)
			Expect(shown.body).To(ContainSubstring("-p PASSWORD=secret:secrets/password -p SIZE=3"))
			done := s.post(page+"/parameters", fill(shown.body, form))
			Expect(done.status).To(Equal(http.StatusSeeOther), done.body)
			Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
			if byAddOn {
				Expect(variables(ctx, cluster)).To(Equal(map[string]string{"SIZE": "3", "PASSWORD": "secret:secrets/password"}))
				Expect(findAddOn(ctx, cluster, "store").Spec.Configs).To(HaveLen(1))
				Expect(instance.Spec.Parameters).To(BeEmpty())
			} else {
				Expect(variables(ctx, cluster)).To(BeNil())
				Expect(instance.Spec.Parameters).To(Equal(map[string]string{"SIZE": "3"}))
				Expect(instance.Spec.ParametersFrom).To(HaveLen(1))
			}

			By("refusing a plain value of a sensitive parameter, and what the command refuses")
			for want, wrong := range map[string]url.Values{
				"the value itself is not accepted": {"parameter": {"PASSWORD"}, "value": {"hunter2"}},
				"must be secret:NAME/KEY":          {"set.PASSWORD": {"hunter2"}},
				"must be an integer":               {"parameter": {"SIZE"}, "value": {"many"}},
				"did you mean SIZE?":               {"parameter": {"SIZES"}, "value": {"3"}},
				"no parameter to change":           {},
				"changes the structure":            {"parameter": {"TEXT"}, "value": {"a, more: b"}},
			} {
				wrong.Set("token", form.Get("token"))
				for _, path := range []string{"/parameters/preview", "/parameters"} {
					refused := s.post(page+path, wrong)
					Expect(refused.status).To(Equal(http.StatusUnprocessableEntity), refused.body)
					Expect(refused.body).To(And(ContainSubstring(want), Not(ContainSubstring("hunter2"))))
				}
			}
		})
	}

	for _, byAddOn := range []bool{true, false} {
		It("upgrades an "+map[bool]string{true: "add-on", false: "Instance"}[byAddOn]+" to a version that the user chooses, as it was shown", func(ctx context.Context) {
			const cluster, page = "cluster-05", "/clusters/cluster-05/instances/store"
			instance := createStore(ctx, cluster, byAddOn)
			shared := serveForActions(ctx)
			s := shared.as(token(ctx, "upgrades", "", fleet.Operating))
			Eventually(func() string { return s.get(page).body }).Should(
				ContainSubstring(`<select name="version" required><option value="">choose one</option><option>store-1.1.0</option></select>`))
			Expect(shared.as(token(ctx, "watches", "", fleet.Reading)).get(page).body).NotTo(ContainSubstring("Change the version"))
			form := url.Values{"token": {s.session()}, "version": {"store-1.1.0"}}
			shown := s.post(page+"/upgrade/preview", form)
			Expect(shown.status).To(Equal(http.StatusOK), shown.body)
			Expect(shown.body).To(And(ContainSubstring("kubectl addon upgrade store --cluster "+cluster+" --version store-1.1.0"),
				ContainSubstring("OperatorVersion: store-1.0.0 → store-1.1.0"), ContainSubstring("Plan <b>deploy</b> runs")))

			By("changing nothing after a change since the preview")
			Expect(environment.Edit(ctx, hub, instance, func(i *kudo.Instance) { i.Spec.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "1"} })).To(Succeed())
			Expect(s.post(page+"/upgrade", fill(shown.body, form)).status).To(Equal(http.StatusConflict))

			By("changing the version")
			Expect(s.confirm(page+"/upgrade", form).status).To(Equal(http.StatusSeeOther))
			Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
			if byAddOn {
				Expect(findAddOn(ctx, cluster, "store").Spec.Configs).To(ConsistOf(HaveField("ConfigReferent.Name", "store-1.1.0")))
				Expect(instance.Spec.OperatorVersion.Name).To(Equal("store-1.0.0"), "the hub changes it")
				Expect(s.get("/addons/store").body).To(And(ContainSubstring(`action="/upgrade/preview"`), ContainSubstring(`<option value="cluster-05">`)))
			} else {
				Expect(instance.Spec.OperatorVersion.Name).To(Equal("store-1.1.0"))
			}

			By("refusing what is no version of the operator, and what does not exist")
			for want, wrong := range map[string]url.Values{
				"choose a version and a cluster": {"cluster": {cluster}, "addon": {"store"}},
				"kafka":                          {"cluster": {cluster}, "addon": {"store"}, "version": {fleet.Version}},
				"&lt;b&gt;":                      {"cluster": {cluster}, "addon": {"store"}, "version": {"<b>"}},
				"none":                           {"cluster": {cluster}, "addon": {"none"}, "version": {"store-1.1.0"}},
			} {
				wrong.Set("token", form.Get("token"))
				refused := s.post("/upgrade/preview", wrong)
				Expect(refused.status).To(Equal(http.StatusUnprocessableEntity), refused.body)
				Expect(refused.body).To(And(ContainSubstring(want), Not(ContainSubstring("<b>\""))))
			}
		})
	}

	It("reads an OperatorVersion once for all clusters of page What if", func(ctx context.Context) {
		createStore(ctx, "cluster-08", true)
		createStore(ctx, "cluster-09", true)
		config, reads := environment.RecordReads(env.Config)
		s := localTo(ctx, config, nil)
		shown := s.get("/addons/store/what-if?change=upgrade")
		Expect(shown.body).To(ContainSubstring("2 clusters: cluster-08, cluster-09"))
		for _, version := range []string{"store-1.0.0", "store-1.1.0"} {
			Expect(reads.Of("/operatorversions/" + version)).To(HaveLen(1))
		}
	})

	It("copies no other clusters for page What if, however many there are", func(ctx context.Context) {
		for i := range 25 {
			cluster := fmt.Sprintf("copied-%02d", i)
			Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}})).To(Succeed())
			createStore(ctx, cluster, true)
		}
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "not-copied"}})).To(Succeed())
		for i := range 40 {
			large := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "not-copied", Name: fmt.Sprintf("large-%02d", i)}}
			large.Spec.OperatorVersion.Name = "large-1.0.0"
			create(ctx, large)
			Expect(environment.EditStatus(ctx, hub, large, func(i *kudo.Instance) {
				i.Status.Inventory = make([]kudo.InventoryEntry, plan.MaxObjects)
				for at := range i.Status.Inventory {
					i.Status.Inventory[at] = kudo.InventoryEntry{Kind: "ConfigMap", Name: fmt.Sprint(at)}
				}
			})).To(Succeed())
		}
		s := local(ctx, nil)
		const page = "/addons/store/what-if"
		Expect(s.get(page).body).To(ContainSubstring("25 clusters: copied-00"))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		Expect(s.get(page).status).To(Equal(http.StatusOK))
		runtime.ReadMemStats(&after)
		// A copy of the other Instances takes more than 40 MB.
		Expect(after.TotalAlloc - before.TotalAlloc).To(BeNumerically("<", 20e6))
	})

	It("shows what would happen, and changes nothing", func(ctx context.Context) {
		instance := createStore(ctx, "cluster-08", true)
		createStore(ctx, "cluster-09", true)
		s := local(ctx, nil)
		const page = "/clusters/cluster-08/instances/store"
		Eventually(func() string { return s.get(page).body }).Should(ContainSubstring(page + "/what-if"))
		Eventually(func() string { return s.get("/addons/store").body }).Should(ContainSubstring("/addons/store/what-if"))
		before := s.get(page + "/what-if")
		for path, texts := range map[string][]string{
			page + "/what-if": {"would be removed", "kubectl addon uninstall store --cluster cluster-08 --dry-run"},
			page + "/what-if?change=upgrade": {"store-1.0.0 → store-1.1.0", "Plan <b>deploy</b> runs", "create ConfigMap",
				"kubectl addon upgrade store --cluster cluster-08 --dry-run", "<option>store-1.0.0</option>"},
			page + "/what-if?change=upgrade&version=store-9": {"Refused"},
			"/addons/store/what-if?change=upgrade&version=store-1.1.0": {
				"2 clusters: cluster-08, cluster-09", "kubectl addon upgrade store --all-clusters --version store-1.1.0 --dry-run"},
			"/addons/zookeeper/what-if":                    {"without zookeeper, add-on kafka becomes unavailable"},
			"/clusters/cluster-01/instances/kafka/what-if": {"remove StatefulSet"},
		} {
			shown := s.get(path)
			Expect(shown.status).To(Equal(http.StatusOK), path)
			for _, text := range texts {
				Expect(shown.body).To(ContainSubstring(text), path)
			}
		}
		Expect(s.get(page + "/what-if").body).To(Equal(before.body))
		generation := instance.Generation
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
		Expect(instance.Generation).To(Equal(generation))
		Expect(s.get("/addons/none/what-if").status).To(Equal(http.StatusNotFound))
		Expect(s.get("/clusters/cluster-08/instances/none/what-if").status).To(Equal(http.StatusNotFound))
	})

	It("shows what another version would do where a Placement rolls one out", func(ctx context.Context) {
		createStore(ctx, "cluster-08", true)
		rolledOut := upstream.AddOnConfig{
			ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
			ConfigReferent:      upstream.ConfigReferent{Namespace: kudo.DefaultPackagesNamespace, Name: "store-1.0.0"},
		}
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "store"}}
		Expect(environment.Edit(ctx, hub, definition, func(d *addonv1alpha1.ClusterManagementAddOn) {
			d.Spec.InstallStrategy = upstream.InstallStrategy{Type: upstream.AddonInstallStrategyPlacements, Placements: []upstream.PlacementStrategy{
				{PlacementRef: upstream.PlacementRef{Namespace: "default", Name: "all"}, Configs: []upstream.AddOnConfig{rolledOut}},
			}}
		})).To(Succeed())
		addOn := findAddOn(ctx, "cluster-08", "store")
		addOn.Status.ConfigReferences = []upstream.ConfigReference{{
			ConfigGroupResource: rolledOut.ConfigGroupResource, ConfigReferent: rolledOut.ConfigReferent,
			DesiredConfig: &upstream.ConfigSpecHash{ConfigReferent: rolledOut.ConfigReferent, SpecHash: "x"},
		}}
		Expect(hub.Status().Update(ctx, addOn)).To(Succeed())
		s := local(ctx, nil)
		Eventually(func() string {
			return s.get("/clusters/cluster-08/instances/store/what-if?change=upgrade&version=store-1.1.0").body
		}).Should(And(ContainSubstring("store-1.0.0 → store-1.1.0"), ContainSubstring("Plan <b>deploy</b> runs"),
			ContainSubstring("Placement default/all selects"), Not(ContainSubstring("Refused"))))

		By("printing a command that the plugin does not refuse, for one cluster and for all, also with the latest version")
		for path, want := range map[string]string{
			"/clusters/cluster-08/instances/store/what-if?change=upgrade&version=store-1.1.0": "kubectl addon what-if upgrade store store-1.1.0 --cluster cluster-08",
			"/addons/store/what-if?change=upgrade":                                            "kubectl addon what-if upgrade store store-1.1.0 --all-clusters",
			"/addons/store/what-if?change=upgrade&version=store-1.0.0":                        "kubectl addon what-if upgrade store store-1.0.0 --all-clusters",
		} {
			Expect(s.get(path).body).To(And(ContainSubstring(want), Not(ContainSubstring("--dry-run"))), path)
		}

		By("printing a command that the plugin does not refuse for the removal of an add-on that the Placement enables")
		Expect(s.get("/clusters/cluster-08/instances/store/what-if").body).To(And(
			ContainSubstring("kubectl addon what-if disable store --cluster cluster-08"), Not(ContainSubstring("--dry-run"))))

		By("leaving the version to the Placement")
		Expect(s.get("/addons/store").body).To(And(ContainSubstring("OCM applies OperatorVersion"), ContainSubstring("that Placement default/all selects"),
			ContainSubstring("<code>kubectl edit clustermanagementaddon store</code>"), Not(ContainSubstring("Change the version…"))))
		Expect(s.get("/clusters/cluster-08/instances/store").body).To(And(ContainSubstring("Placement default/all selects"),
			ContainSubstring("<code>kubectl edit clustermanagementaddon store</code>"), Not(ContainSubstring("Change the version…"))))
		refused := s.post("/upgrade/preview", url.Values{"cluster": {"cluster-08"}, "addon": {"store"}, "version": {"store-1.1.0"}, "token": {s.session()}})
		Expect(refused.status).To(Equal(http.StatusUnprocessableEntity))
		Expect(refused.body).To(And(ContainSubstring("Refused: "), ContainSubstring("kubectl edit clustermanagementaddon store")))
	})

	It("names rollouts that wait for each other to users who may read all of them", func(ctx context.Context) {
		for name, slots := range map[string]int32{"mill": 2, "oven": 1} {
			definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
			definition.Spec.InstallStrategy = upstream.InstallStrategy{Type: upstream.AddonInstallStrategyPlacements, Placements: []upstream.PlacementStrategy{{
				PlacementRef: upstream.PlacementRef{Namespace: "default", Name: "everywhere"},
				RolloutStrategy: clusterv1alpha1.RolloutStrategy{
					Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(slots)},
				},
			}}}
			create(ctx, definition)
		}
		enable := func(cluster, name, configured, message string) *addonv1alpha1.ManagedClusterAddOn {
			GinkgoHelper()
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
			create(ctx, addOn)
			Expect(environment.EditStatus(ctx, hub, addOn, func(a *addonv1alpha1.ManagedClusterAddOn) {
				reason := addonv1alpha1.ReasonWaitingForDependencies
				if configured == "False" {
					reason = addonv1alpha1.ReasonWaitingForConfiguration
				}
				for _, c := range []metav1.Condition{
					{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "Healthy"},
					{Type: addonv1alpha1.ConditionConfigured, Status: metav1.ConditionStatus(configured), Reason: "Configured"},
					{Type: addonv1alpha1.ConditionResolved, Status: metav1.ConditionFalse, Reason: reason, Message: message},
				} {
					meta.SetStatusCondition(&a.Status.Conditions, c)
				}
			})).To(Succeed())
			return addOn
		}
		account := token(ctx, "stuck", "", []rbacv1.PolicyRule{{APIGroups: []string{addonv1alpha1.GroupVersion.Group}, Resources: []string{"clustermanagementaddons"}, Verbs: []string{"get", "list"}}})
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "stuck-reading"}, Rules: fleet.Reading}
		create(ctx, role)
		for _, cluster := range []string{"stuck-1", "stuck-2", "stuck-3"} {
			Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}})).To(Succeed())
			if cluster != "stuck-3" {
				create(ctx, &rbacv1.RoleBinding{
					ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "stuck"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
					Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "stuck"}},
				})
			}
		}
		enable("stuck-1", "mill", "True", "waiting to change to mill-3.0.0: x; change oven to a version that accepts mill 3.0.0, or disable it")
		enable("stuck-1", "oven", "False", "not rolled out")
		enable("stuck-2", "oven", "True", "waiting to change to oven-3.0.0: x; change mill to a version that satisfies >=2")
		enable("stuck-2", "mill", "False", "not rolled out")
		third := enable("stuck-3", "mill", "True", "waiting to change to mill-3.0.0: x")
		enable("stuck-3", "oven", "False", "not rolled out")

		s := serveShared(ctx)
		all, some := s.as(token(ctx, "stuck-viewer", "", fleet.Reading)), s.as(account)
		const page, heading = "/clusters/stuck-2/addons/mill", "Rollouts that wait for each other"
		for name, user := range map[string]site{"all": all, "some": some} {
			Eventually(func() string { return user.get(page).body }).Should(And(
				ContainSubstring("The rollout of mill has not reached cluster stuck-2 yet: it is in progress on stuck-1"), Not(ContainSubstring(heading))), name)
		}
		By("the slot on the third cluster waiting, too")
		Expect(environment.EditStatus(ctx, hub, third, func(a *addonv1alpha1.ManagedClusterAddOn) {
			meta.FindStatusCondition(a.Status.Conditions, addonv1alpha1.ConditionResolved).Message = "waiting to change to mill-3.0.0: x; first changes oven"
		})).To(Succeed())
		Eventually(func() string { return all.get(page).body }).Should(And(ContainSubstring(heading), ContainSubstring("kubectl edit clustermanagementaddon mill"),
			ContainSubstring(`<a href="/addons/oven">oven</a> occupies <a href="/clusters/stuck-2/addons/oven">stuck-2</a> (waits for mill)`)))
		Expect(some.get(page).body).To(And(ContainSubstring("has not reached cluster stuck-2 yet"), Not(ContainSubstring(heading)), Not(ContainSubstring("wait for each other"))))
	})

	It("answers each user with the user's permissions", func(ctx context.Context) {
		createStore(ctx, "cluster-01", true)
		createStore(ctx, "cluster-02", true)
		s := serveForActions(ctx)
		users := map[string]site{
			"anonymous":             s,
			"viewer of one cluster": s.as(token(ctx, "change-one", "cluster-01", fleet.Reading)),
			"viewer":                s.as(token(ctx, "change-viewer", "", fleet.Reading)),
			"operator":              s.as(token(ctx, "change-operator", "", fleet.Operating)),
		}
		Eventually(func() string { return users["operator"].get("/clusters/cluster-02/instances/store").body }).Should(ContainSubstring("Change parameter…"))
		Expect(users["viewer"].get("/clusters/cluster-02/instances/store").body).NotTo(ContainSubstring("Change parameter…"))
		Expect(users["viewer"].get("/addons/store").body).NotTo(ContainSubstring("Enable…"))
		Expect(users["viewer"].get("/clusters/cluster-03").body).NotTo(ContainSubstring("Enable…"))

		By("showing what would happen to those who may read it")
		for name, want := range map[string]int{
			"anonymous": http.StatusUnauthorized, "viewer of one cluster": http.StatusNotFound, "viewer": http.StatusOK, "operator": http.StatusOK,
		} {
			for _, path := range []string{"/addons/store/what-if", "/clusters/cluster-02/instances/store/what-if", "/addons/store/what-if?change=upgrade"} {
				Expect(users[name].get(path).status).To(Equal(want), "%s of %s", path, name)
			}
		}
		hidden := users["viewer of one cluster"].get("/clusters/cluster-02/instances/store/what-if").body
		Expect(users["viewer of one cluster"].get("/clusters/cluster-0x/instances/store/what-if").body).To(
			Equal(strings.ReplaceAll(hidden, "cluster-02", "cluster-0x")))

		By("sending actions with their permissions")
		enable := url.Values{"addon": {"store"}, "cluster": {"cluster-03"}}
		update := url.Values{"parameter": {"SIZE"}, "value": {"3"}}
		for _, name := range []string{"anonymous", "viewer of one cluster", "viewer", "operator"} {
			user := users[name]
			want := map[string][2]int{ // of the preview, and of the action
				"anonymous": {http.StatusUnauthorized, http.StatusUnauthorized}, "viewer of one cluster": {http.StatusForbidden, http.StatusForbidden},
				"viewer": {http.StatusOK, http.StatusForbidden}, "operator": {http.StatusOK, http.StatusSeeOther},
			}[name]
			for path, values := range map[string]url.Values{"/enable": enable, "/clusters/cluster-02/instances/store/parameters": update} {
				form := maps.Clone(values)
				shown := user.post(path+"/preview", form)
				if name == "viewer" && path != "/enable" { // the preview reads the parameters of the add-on, which this viewer may not
					Expect(shown.status).To(Equal(http.StatusForbidden), "%s of %s: %s", path, name, shown.body)
					continue
				}
				Expect(shown.status).To(Equal(want[0]), "%s of %s: %s", path, name, shown.body)
				Expect(user.post(path, url.Values{"token": {"wrong"}}).status).To(BeElementOf(http.StatusForbidden, http.StatusUnauthorized))
				done := user.post(path, fill(shown.body, form))
				Expect(done.status).To(Equal(want[1]), "%s of %s: %s", path, name, done.body)
			}
		}
		Expect(variables(ctx, "cluster-02")).To(Equal(map[string]string{"SIZE": "3"}))
		Expect(hub.Delete(ctx, findAddOn(ctx, "cluster-03", "store"))).To(Succeed())

		By("omitting actions with --read-only, but not what would happen")
		cached, err := dashboard.NewHub(ctx, env.Config, nil)
		Expect(err).NotTo(HaveOccurred())
		quiet := serve(cached, dashboard.Options{Gate: dashboard.NewTokens(cached, false, nil), ReadOnly: true}).as(token(ctx, "change-reads", "", fleet.Operating))
		for path, text := range map[string]string{
			"/addons/store": "Enable…", "/clusters/cluster-03": "Enable…", "/clusters/cluster-02/instances/store": "Change parameter…",
		} {
			Expect(quiet.get(path).body).NotTo(ContainSubstring(text), path)
		}
		Expect(quiet.get("/addons/store/what-if").status).To(Equal(http.StatusOK))
		for _, path := range []string{"/enable", "/enable/preview", "/clusters/cluster-02/instances/store/parameters", "/clusters/cluster-02/instances/store/parameters/preview"} {
			Expect(quiet.post(path, url.Values{}).status).To(Equal(http.StatusMethodNotAllowed), path)
		}
	})
})
