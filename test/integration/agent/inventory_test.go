package agent

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

const hold = "tandem.test/hold"

const definitionTemplate = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.tandem.test}
spec:
  group: tandem.test
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

const gadgetTemplate = `
apiVersion: tandem.test/v1
kind: Gadget
metadata: {name: "{{ .Name }}-gadget"}
`

const storageTemplate = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: "{{ .Name }}-volume"}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /x}, storageClassName: manual}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: "{{ .Name }}-claim"}
spec: {resources: {requests: {storage: 1Gi}}, accessModes: [ReadWriteOnce], volumeName: "{{ .Name }}-volume", storageClassName: manual}
`

// widespread returns a package with one task that applies objects in the Instance's namespace, in another namespace and cluster-scoped.
// Their names contain VALUE.
func widespread() kudo.OperatorVersionSpec {
	spec := configOnly()
	spec.Templates = map[string]string{
		"near.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}-{{ .Params.VALUE }}\"}\n",
		"far.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}-{{ .Params.VALUE }}\", namespace: default}\n",
		"role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: \"{{ .Name }}-{{ .Params.VALUE }}\"}\n",
	}
	spec.Tasks = []kudo.Task{task("config", kudo.TaskApply, "near.yaml", "far.yaml", "role.yaml")}
	return spec
}

// deadWebhook returns a webhook without a server, for updates of gadgets in a namespace.
func deadWebhook(namespace string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "dead-" + namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "dead.tandem.test",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/")},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"tandem.test"}, APIVersions: []string{"*"}, Resources: []string{"gadgets"}},
			}},
		}},
	}
}

// there lists, in the format of the inventory, the ConfigMaps and ClusterRoles on the managed cluster with the Instance's name.
func (h *hubPart) there(ctx context.Context) []string {
	GinkgoHelper()
	var found []string
	for kind, list := range map[string]client.ObjectList{"ConfigMap": &corev1.ConfigMapList{}, "ClusterRole": &rbacv1.ClusterRoleList{}} {
		Expect(managed.List(ctx, list)).To(Succeed())
		Expect(eachItem(list, func(o client.Object) {
			if strings.HasPrefix(o.GetName(), h.name+"-") {
				found = append(found, kind+" "+path.Join(o.GetNamespace(), o.GetName()))
			}
		})).To(Succeed())
	}
	return found
}

// inventoryOf returns the inventory in the Instance's status on the hub.
func (h *hubPart) inventoryOf(ctx context.Context) []string {
	GinkgoHelper()
	return entries(h.get(ctx))
}

func entries(instance *kudo.Instance) []string {
	var names []string
	for _, e := range instance.Status.Inventory {
		names = append(names, e.Kind+" "+path.Join(e.Namespace, e.Name))
	}
	return names
}

// everywhere returns the names of the widespread package's objects for that VALUE.
func (h *hubPart) everywhere(value string) []string {
	return []string{
		"ConfigMap " + h.namespace + "/" + h.name + "-" + value, "ConfigMap default/" + h.name + "-" + value, "ClusterRole " + h.name + "-" + value,
	}
}

// object returns a ConfigMap of the Instance.
func (h *hubPart) object(ctx context.Context, suffix string) *corev1.ConfigMap {
	GinkgoHelper()
	config := &corev1.ConfigMap{}
	Expect(h.local(ctx, suffix, config)).To(BeTrue())
	return config
}

// foreign replaces a ConfigMap of the Instance by one of another owner.
func (h *hubPart) foreign(ctx context.Context, suffix string) {
	GinkgoHelper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: h.name + suffix, Namespace: h.namespace}}
	Expect(client.IgnoreNotFound(managed.Delete(ctx, config))).To(Succeed())
	config.Data = map[string]string{"value": "foreign"}
	Expect(managed.Create(ctx, config)).To(Succeed())
}

// holds sets the finalizers of a ConfigMap of the Instance.
func (h *hubPart) holds(ctx context.Context, suffix string, finalizers ...string) {
	GinkgoHelper()
	Expect(environment.Edit(ctx, managed, h.object(ctx, suffix), func(c *corev1.ConfigMap) { c.Finalizers = finalizers })).To(Succeed())
}

func gadget(name, namespace string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("tandem.test/v1")
	o.SetKind("Gadget")
	o.SetName(name)
	o.SetNamespace(namespace)
	return o
}

// removeFinalizers removes all finalizers from an object.
func removeFinalizers(ctx context.Context, o client.Object) error {
	return managed.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
}

type sender func(*http.Request) (*http.Response, error)

func (s sender) RoundTrip(request *http.Request) (*http.Response, error) { return s(request) }

// withRequestHook returns a copy of config that calls show before each request.
func withRequestHook(config *rest.Config, show func(*http.Request)) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return sender(func(request *http.Request) (*http.Response, error) {
			show(request)
			return next.RoundTrip(request)
		})
	})
	return config
}

// once calls do before the first request of that method for an object of that name.
func once(method string, name func() string, do func()) func(*http.Request) {
	var done atomic.Bool
	return func(request *http.Request) {
		if request.Method == method && name() != "" && path.Base(request.URL.Path) == name() && done.CompareAndSwap(false, true) {
			defer GinkgoRecover()
			do()
		}
	}
}

var _ = Describe("The inventory", func() {
	AfterEach(func(ctx context.Context) { Expect(invariants.Violations(ctx, hub)).To(BeEmpty()) })

	It("lists every object before it is applied", func(ctx context.Context) {
		var (
			mutex    sync.Mutex
			applied  []string
			unlisted []string
		)
		show := func(request *http.Request) {
			name, folder := path.Base(request.URL.Path), path.Base(path.Dir(request.URL.Path))
			if request.Method != http.MethodPatch || !slices.Contains([]string{"configmaps", "deployments", "clusterroles", "gadgets"}, folder) {
				return
			}
			mirrors := &kudo.InstanceList{}
			err := managed.List(context.Background(), mirrors)
			mutex.Lock()
			defer mutex.Unlock()
			applied = append(applied, name)
			listed := slices.ContainsFunc(mirrors.Items, func(i kudo.Instance) bool {
				return slices.ContainsFunc(i.Status.Inventory, func(e kudo.InventoryEntry) bool { return e.Name == name })
			})
			if err != nil || !listed {
				unlisted = append(unlisted, name)
			}
		}
		DeferCleanup(runAgentWith(agentOnHub, withRequestHook(agentLocally, show)))
		spec := standard()
		spec.Templates["gadget.yaml"] = definitionTemplate + "---" + gadgetTemplate
		spec.Tasks = append(spec.Tasks, task("gadget", kudo.TaskApply, "gadget.yaml"), task("goodbye", kudo.TaskDelete, "gadget.yaml"))
		spec.Plans["deploy"] = serial("config", "gadget", "app", "feature")
		spec.Plans["cleanup"] = serial("farewell", "goodbye")
		h := newInstance(ctx, spec, map[string]string{"FEATURE": "true"})
		h.resolve(ctx)
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		name := func(suffix string) string { return h.namespace + "/" + h.name + suffix }
		Expect(h.inventoryOf(ctx)).To(ConsistOf(
			"ClusterRole "+h.namespace+"-"+h.name, "ConfigMap "+name("-config"), "CustomResourceDefinition gadgets.tandem.test",
			"Gadget "+name("-gadget"), "Deployment "+name("-app"), "ConfigMap "+name("-feature")))
		Expect(h.get(ctx).Status.Inventory).To(ContainElement(And(HaveField("Name", h.name+"-app"), HaveField("Group", "apps"),
			HaveField("Task", "app"))))
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() string { return h.ready(ctx).Reason }).Should(Equal(kudo.ReasonRemoved))
		Expect(h.inventoryOf(ctx)).To(BeEmpty())
		h.release(ctx)
		mutex.Lock()
		defer mutex.Unlock()
		Expect(applied).To(ContainElements(h.name+"-config", h.name+"-gadget", h.name+"-app", h.name+"-feature", h.name+"-farewell"))
		Expect(unlisted).To(BeEmpty())
	})

	It("costs no write of its own", func(ctx context.Context) {
		locally, toManaged := environment.RecordWrites(agentLocally)
		DeferCleanup(runAgentWith(agentOnHub, locally))
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		status := func() []string {
			return slices.DeleteFunc(toManaged.Requests(), func(r string) bool { return !strings.HasSuffix(r, "/"+h.name+"/status") })
		}
		Expect(status()).To(HaveLen(2), "that the plan has started, and that it has ended")
		h.finish(ctx)
	})

	It("is restored from the hub with the mirror", func(ctx context.Context) {
		stop := runAgent()
		h := newInstance(ctx, widespread(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		stop()
		h.loseMirror(ctx)
		DeferCleanup(runAgent())
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).Should(HaveField("Annotations", HaveKey(kudo.AnnotationHubGeneration)))
		Expect(entries(h.mirror(ctx))).To(ConsistOf(h.everywhere("one")))
		h.finish(ctx)
	})

	It("takes no names that change whenever they are rendered", func(ctx context.Context) {
		DeferCleanup(runAgent())
		spec := configOnly()
		spec.Templates["config.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}-{{ randAlpha 16 | lower }}\"}"
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", ContainSubstring("its name changes with every rendering"))))
		h.finish(ctx)
	})

	It("is bounded in bytes, before anything is applied", func(ctx context.Context) {
		DeferCleanup(runAgent())
		spec := configOnly()
		spec.Parameters = append(spec.Parameters, kudo.Parameter{Name: "CONTENT"})
		spec.Templates["many.yaml"] = `{{ range until 7000 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ $.Name }}-` + strings.Repeat("long-", 30) + `{{ . }}"}
{{ end }}`
		spec.Tasks = append(spec.Tasks, task("many", kudo.TaskApply, "many.yaml"))
		spec.Plans["deploy"] = serial("config", "many")
		h := newInstance(ctx, spec, map[string]string{"CONTENT": strings.Repeat("c", 400<<10)})
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", ContainSubstring("at most 1300000 bytes of inventory and parameters, and this one would have"))))
		Expect(h.ready(ctx)).To(is(metav1.ConditionFalse, kudo.ReasonPlanFailed, "for 7002 objects"))
		Expect(h.config(ctx, "-config")).To(BeEmpty())

		By("parameters that alone are too large")
		h.change(ctx, setParameter("CONTENT", strings.Repeat("c", 660<<10)))
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanFailed, "for 0 objects"))
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = nil })
		h.finish(ctx)
	})

	It("keeps the restart that a refused execution requires", func(ctx context.Context) {
		DeferCleanup(runAgent())
		spec := configOnly()
		spec.Parameters = append(spec.Parameters, kudo.Parameter{Name: "COUNT", Default: new("0"), ForcePodRestart: new(kudo.Flag(false))})
		spec.Templates["cron.yaml"] = `{{ range until (int .Params.COUNT) }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ $.Name }}-{{ . }}"}
{{ end }}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: "{{ .Name }}"}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate: {spec: {template: {metadata: {labels: {app: x}}, spec: {restartPolicy: Never, containers: [{name: app, image: "app:1"}]}}}}
`
		spec.Tasks = append(spec.Tasks, task("cron", kudo.TaskApply, "cron.yaml"))
		spec.Plans["deploy"] = serial("config", "cron")
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "two", "COUNT": "10001"} })
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", ContainSubstring("at most 10000 objects"))))
		refused := h.plan(ctx, "deploy")
		h.change(ctx, setParameter("COUNT", "0"))
		h.completes(ctx, "deploy", refused)
		cron := blank("batch/v1 CronJob")
		Expect(h.local(ctx, "", cron)).To(BeTrue())
		stamp, _, err := unstructured.NestedString(cron.Object, "spec", "jobTemplate", "spec", "template", "metadata", "annotations", kudo.AnnotationExecution)
		Expect(err).NotTo(HaveOccurred())
		Expect(stamp).To(Equal(string(refused.UID)))
		h.finish(ctx)
	})

	It("does not keep a plan from starting while the kind of a later task cannot be discovered", func(ctx context.Context) {
		DeferCleanup(runAgent())
		const group = "later.tandem.test"
		spec := configOnly()
		spec.Templates["widget.yaml"] = "apiVersion: " + group + "/v1\nkind: Widget\nmetadata: {name: x}"
		spec.Tasks = append(spec.Tasks, task("widget", kudo.TaskApply, "widget.yaml"))
		spec.Plans["deploy"] = serial("config", "widget")
		revive := deadGroup(ctx, group)
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanError, group))
		revive()
		h.finish(ctx)
	})

	It("forgets what was listed ahead and never applied", func(ctx context.Context) {
		DeferCleanup(runAgent())
		spec := configOnly()
		spec.Templates["lost.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}-lost\", namespace: nowhere}"
		spec.Tasks = append(spec.Tasks, task("lost", kudo.TaskApply, "lost.yaml"))
		spec.Plans["update"], spec.Plans["more"] = serial("config"), serial("config", "lost")
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.change(ctx, func(s *kudo.InstanceSpec) { s.PlanExecution = kudo.PlanExecution{PlanName: "more", UID: "more"} })
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "more").Status }).Should(Equal(kudo.Error))
		Expect(entries(h.mirror(ctx))).To(ContainElement("ConfigMap nowhere/" + h.name + "-lost"))
		h.change(ctx, setParameter("VALUE", "two"))
		h.completes(ctx, "update", kudo.PlanStatus{})
		Expect(h.inventoryOf(ctx)).To(ConsistOf("ClusterRole "+h.namespace+"-"+h.name, "ConfigMap "+h.namespace+"/"+h.name+"-config"))
		h.finish(ctx)
	})
})

var _ = Describe("An object that its task applies no more", func() {
	var stop func()
	BeforeEach(func() { stop = runAgent() })
	AfterEach(func(ctx context.Context) { Expect(invariants.Violations(ctx, hub)).To(BeEmpty()) })

	// deployed returns a deployed Instance.
	deployed := func(ctx context.Context, spec kudo.OperatorVersionSpec) *hubPart {
		GinkgoHelper()
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		return h
	}
	// upgrade changes to another version of the package.
	upgrade := func(ctx context.Context, h *hubPart, spec kudo.OperatorVersionSpec) {
		GinkgoHelper()
		spec.Version = "2.0.0"
		push(ctx, h.name+"-2.0.0", spec)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-2.0.0" })
	}
	// two returns a package of two tasks that apply a ConfigMap each.
	two := func() kudo.OperatorVersionSpec {
		spec := configOnly()
		spec.Templates["other.yaml"] = fmt.Sprintf(configTemplate, "other")
		spec.Tasks = []kudo.Task{task("config", kudo.TaskApply, "config.yaml"), task("other", kudo.TaskApply, "other.yaml")}
		spec.Plans["deploy"] = serial("config", "other")
		return spec
	}

	It("is deleted wherever it is, and the new one is in the inventory", func(ctx context.Context) {
		h := deployed(ctx, widespread())
		Expect(h.there(ctx)).To(ConsistOf(h.everywhere("one")))
		before := h.plan(ctx, "deploy")
		h.change(ctx, setParameter("VALUE", "two"))
		h.completes(ctx, "deploy", before)
		Expect(h.there(ctx)).To(ConsistOf(h.everywhere("two")))
		Expect(h.inventoryOf(ctx)).To(ConsistOf(h.everywhere("two")))
		h.finish(ctx)
		Expect(h.there(ctx)).To(BeEmpty())
	})

	It("is not touched if another task applies it now", func(ctx context.Context) {
		h := deployed(ctx, two())
		uid := h.object(ctx, "-config").UID
		next := two()
		next.Tasks = []kudo.Task{task("config", kudo.TaskApply), task("other", kudo.TaskApply, "config.yaml", "other.yaml")}
		upgrade(ctx, h, next)
		h.completes(ctx, "deploy", kudo.PlanStatus{UID: h.plan(ctx, "deploy").UID})
		Eventually(func() []kudo.InventoryEntry { return h.get(ctx).Status.Inventory }).Should(HaveEach(HaveField("Task", "other")))
		Expect(h.object(ctx, "-config").UID).To(Equal(uid))
		Expect(h.inventoryOf(ctx)).To(HaveLen(2))
		h.finish(ctx)
	})

	It("goes with the task, once the version without it is in place and not before", func(ctx context.Context) {
		h := deployed(ctx, two())
		next := two()
		next.Templates["app.yaml"] = deploymentTemplate
		next.Tasks = []kudo.Task{task("config", kudo.TaskApply, "config.yaml"), task("app", kudo.TaskApply, "app.yaml")}
		next.Plans["deploy"] = serial("config", "app")
		upgrade(ctx, h, next)
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("Deployment"))
		Expect(h.config(ctx, "-other")).To(Equal("one"), "nothing has taken its place yet")
		h.rollOut(ctx)
		Eventually(func() string { return h.config(ctx, "-other") }).Should(BeEmpty())
		Eventually(func() metav1.ConditionStatus { return h.ready(ctx).Status }).Should(Equal(metav1.ConditionTrue))
		Expect(h.inventoryOf(ctx)).NotTo(ContainElement(ContainSubstring("-other")))
		h.finish(ctx)
	})

	It("stays until the rollout that stops using it is healthy", func(ctx context.Context) {
		spec := configOnly()
		spec.Templates["config.yaml"] = strings.ReplaceAll(spec.Templates["config.yaml"], "-config", "-config-{{ .Params.VALUE }}")
		spec.Templates["app.yaml"] = strings.Replace(deploymentTemplate, "spec: {containers",
			`spec: {volumes: [{name: c, configMap: {name: "{{ .Name }}-config-{{ .Params.VALUE }}"}}], containers`, 1)
		spec.Tasks = []kudo.Task{task("config", kudo.TaskApply, "config.yaml"), task("app", kudo.TaskApply, "app.yaml")}
		spec.Plans["deploy"] = serial("config", "app")
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		before := h.plan(ctx, "deploy")
		h.change(ctx, setParameter("VALUE", "two"))
		Eventually(func() string { return h.plan(ctx, "deploy").Message }).Should(ContainSubstring("Deployment"))
		Expect(h.config(ctx, "-config-two")).To(Equal("two"))
		Expect(h.config(ctx, "-config-one")).To(Equal("one"), "pods of the previous rollout use it")
		h.rollOut(ctx)
		h.completes(ctx, "deploy", before)
		Expect(h.config(ctx, "-config-one")).To(BeEmpty())
		Expect(h.inventoryOf(ctx)).NotTo(ContainElement(ContainSubstring("-config-one")))
		h.finish(ctx)
	})

	It("stays with an upgrade that fails", func(ctx context.Context) {
		h := deployed(ctx, two())
		next := two()
		next.Tasks = []kudo.Task{task("config", kudo.TaskDummy)}
		next.Tasks[0].Spec.WantErr, next.Tasks[0].Spec.Fatal = true, true
		next.Plans["deploy"] = serial("config")
		upgrade(ctx, h, next)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Reason", kudo.ReasonPlanFailed))
		Consistently(func() string { return h.config(ctx, "-other") }).Should(Equal("one"))
		h.finish(ctx)
		Expect(h.there(ctx)).To(BeEmpty())
	})

	It("is named with the finalizer that holds it", func(ctx context.Context) {
		h := deployed(ctx, widespread())
		h.holds(ctx, "-one", hold)
		h.change(ctx, setParameter("VALUE", "two"))
		Eventually(func() string { return h.ready(ctx).Message }).Should(Equal(fmt.Sprintf(
			"ConfigMap %s/%s-one: is being deleted, held by finalizer %s", h.namespace, h.name, hold)))
		Expect(h.inventoryOf(ctx)).To(ContainElement("ConfigMap " + h.namespace + "/" + h.name + "-one"))
		h.holds(ctx, "-one")
		Eventually(func() metav1.ConditionStatus { return h.ready(ctx).Status }).Should(Equal(metav1.ConditionTrue))
		Expect(h.there(ctx)).To(ConsistOf(h.everywhere("two")))
		h.finish(ctx)
	})

	It("is not changed if another writer has re-created it", func(ctx context.Context) {
		h := deployed(ctx, widespread())
		h.foreign(ctx, "-one")
		before := h.plan(ctx, "deploy")
		h.change(ctx, setParameter("VALUE", "two"))
		h.completes(ctx, "deploy", before)
		Expect(h.config(ctx, "-one")).To(Equal("foreign"))
		Expect(h.inventoryOf(ctx)).To(ConsistOf(h.everywhere("two")))
		h.finish(ctx)
		Expect(h.there(ctx)).To(ConsistOf("ConfigMap " + h.namespace + "/" + h.name + "-one"))
	})

	It("goes under the name that it was switched on with", func(ctx context.Context) {
		spec := configOnly()
		spec.Templates["feature.yaml"] = strings.ReplaceAll(fmt.Sprintf(configTemplate, "feature"), "-feature", "-{{ .Params.VALUE }}")
		spec.Tasks[2].Name = "config" // the Toggle
		spec.Tasks = spec.Tasks[2:3]
		spec.Parameters[2].Trigger, spec.Parameters[2].Default = "", ptr.To("true")
		h := deployed(ctx, spec)
		Expect(h.config(ctx, "-one")).To(Equal("one"))
		before := h.plan(ctx, "deploy")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "two", "FEATURE": "false"} })
		h.completes(ctx, "deploy", before)
		Expect(h.there(ctx)).To(BeEmpty())
		Expect(h.inventoryOf(ctx)).To(BeEmpty())
		h.finish(ctx)
	})

	It("has no owner any more once a Delete task has deleted it, or its kind", func(ctx context.Context) {
		spec := configOnly()
		spec.Templates["definition.yaml"], spec.Templates["gadget.yaml"] = definitionTemplate, gadgetTemplate
		spec.Templates["widget.yaml"] = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: unknown}"
		resources := []string{"definition.yaml", "gadget.yaml"}
		spec.Tasks = append(spec.Tasks, task("gadgets", kudo.TaskApply, resources...),
			task("drop", kudo.TaskDelete, append(resources, "widget.yaml")...))
		spec.Plans["deploy"], spec.Plans["drop"] = serial("config", "gadgets"), serial("drop")
		h := deployed(ctx, spec)
		Expect(h.inventoryOf(ctx)).To(ContainElement("Gadget " + h.namespace + "/" + h.name + "-gadget"))
		stop()
		definition := blank("apiextensions.k8s.io/v1 CustomResourceDefinition")
		definition.SetName("gadgets.tandem.test")
		Expect(managed.Delete(ctx, definition)).To(Succeed())
		Eventually(func() error { return managed.Get(ctx, client.ObjectKeyFromObject(definition), definition) }).ShouldNot(Succeed())
		stop = runAgent()
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Reason", kudo.ReasonUnhealthy))
		h.change(ctx, byHand("drop", "drop-1"))
		h.completes(ctx, "drop", kudo.PlanStatus{})
		Expect(h.inventoryOf(ctx)).To(ConsistOf("ClusterRole "+h.namespace+"-"+h.name, "ConfigMap "+h.namespace+"/"+h.name+"-config"))
		h.finish(ctx)
	})

	It("has no owner any more once a Delete task has deleted what another task applied", func(ctx context.Context) {
		spec := two()
		spec.Tasks = append(spec.Tasks, task("drop", kudo.TaskDelete, "other.yaml"))
		spec.Plans["drop"] = serial("drop")
		h := deployed(ctx, spec)
		h.change(ctx, byHand("drop", "drop-1"))
		h.completes(ctx, "drop", kudo.PlanStatus{})
		Expect(h.there(ctx)).To(ConsistOf("ConfigMap " + h.namespace + "/" + h.name + "-config"))
		Expect(h.inventoryOf(ctx)).To(ConsistOf("ConfigMap " + h.namespace + "/" + h.name + "-config"))
		h.finish(ctx)
	})
})

var _ = Describe("An object of another owner", func() {
	// name is the name of the object; one of its requests is preceded by a change of another writer.
	var name string
	named := func() string { return name }
	BeforeEach(func() { name = "" })

	It("that appears between look and apply is not taken over", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		name = h.name + "-config"
		DeferCleanup(runAgentWith(agentOnHub, withRequestHook(agentLocally, once(http.MethodPatch, named, func() { h.foreign(ctx, "-config") }))))
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanFailed,
			"ConfigMap "+h.namespace+"/"+name+": already exists and was not created by this Instance"))
		Expect(h.inventoryOf(ctx)).NotTo(ContainElement(ContainSubstring(name)))
		h.finish(ctx)
		Expect(h.object(ctx, "-config")).To(And(HaveField("Labels", BeEmpty()), HaveField("Data", HaveKeyWithValue("value", "foreign"))))
	})

	DescribeTable("is not taken over, wherever it is", func(ctx context.Context, object, shown string) {
		spec := configOnly()
		spec.Templates["theirs.yaml"] = object
		spec.Tasks = append(spec.Tasks, task("theirs", kudo.TaskApply, "theirs.yaml"))
		spec.Plans["deploy"] = serial("theirs")
		foreign := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(object), &foreign.Object)).To(Succeed())
		Expect(managed.Get(ctx, client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
		before := foreign.GetResourceVersion()
		DeferCleanup(runAgent())
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanFailed,
			shown+": already exists and was not created by this Instance"))
		h.finish(ctx)
		Expect(managed.Get(ctx, client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
		Expect(foreign.GetResourceVersion()).To(Equal(before))
	},
		Entry("in kube-system", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extension-apiserver-authentication, namespace: kube-system}\ndata: {a: b}\n",
			"ConfigMap kube-system/extension-apiserver-authentication"),
		Entry("the role of administrators", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: cluster-admin}\nrules: []\n",
			"ClusterRole cluster-admin"),
		Entry("the API server's Service", "apiVersion: v1\nkind: Service\nmetadata: {name: kubernetes, namespace: default}\nspec: {externalName: a}\n",
			"Service default/kubernetes"),
		Entry("a namespace", "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system, labels: {a: b}}\n", "Namespace kube-system"),
	)

	It("that takes an object's place between look and apply is not taken over", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		DeferCleanup(runAgentWith(agentOnHub, withRequestHook(agentLocally, once(http.MethodPatch, named, func() { h.foreign(ctx, "-config") }))))
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		name = h.name + "-config"
		h.change(ctx, setParameter("VALUE", "two"))
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanFailed,
			"ConfigMap "+h.namespace+"/"+name+": already exists and was not created by this Instance"))
		h.finish(ctx)
		Expect(h.object(ctx, "-config")).To(And(HaveField("Labels", BeEmpty()), HaveField("Data", HaveKeyWithValue("value", "foreign"))))
	})

	It("that takes an object's place between look and deletion is not deleted", func(ctx context.Context) {
		h := newInstance(ctx, widespread(), nil)
		DeferCleanup(runAgentWith(agentOnHub, withRequestHook(agentLocally, once(http.MethodDelete, named, func() { h.foreign(ctx, "-one") }))))
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		before := h.plan(ctx, "deploy")
		name = h.name + "-one"
		h.change(ctx, setParameter("VALUE", "two"))
		h.completes(ctx, "deploy", before)
		Expect(h.config(ctx, "-one")).To(Equal("foreign"))
		h.finish(ctx)
		Expect(h.config(ctx, "-one")).To(Equal("foreign"))
	})
})

var _ = Describe("Removal", func() {
	var stop func()
	BeforeEach(func() { stop = runAgent() })
	AfterEach(func(ctx context.Context) { Expect(invariants.Violations(ctx, hub)).To(BeEmpty()) })

	It("takes with it what is cluster-scoped or in another namespace", func(ctx context.Context) {
		h := newInstance(ctx, widespread(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.finish(ctx)
		Expect(h.there(ctx)).To(BeEmpty())
	})

	It("finds objects missing in a restored inventory by their labels", func(ctx context.Context) {
		h := newInstance(ctx, widespread(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		stop()
		h.tamperStatus(ctx, func(mirror *kudo.Instance) { mirror.Status.Inventory = nil })
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		stop = runAgent()
		Eventually(func() string { return h.ready(ctx).Reason }).Should(Equal(kudo.ReasonRemoved))
		Expect(h.there(ctx)).To(BeEmpty())
		h.release(ctx)
	})

	It("does not delete listed objects that have another owner now", func(ctx context.Context) {
		h := newInstance(ctx, widespread(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.foreign(ctx, "-one")
		h.finish(ctx)
		Expect(h.there(ctx)).To(ConsistOf("ConfigMap " + h.namespace + "/" + h.name + "-one"))
	})

	It("does not delete objects of others that have got its labels and a place in its inventory", func(ctx context.Context) {
		h := newInstance(ctx, widespread(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		victim := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: h.name + "-victim", Labels: map[string]string{kudo.LabelHeritage: kudo.Heritage, kudo.LabelInstance: h.name},
			Annotations: map[string]string{kudo.AnnotationInstanceNamespace: h.namespace},
		}}
		Expect(managed.Create(ctx, victim)).To(Succeed())
		h.tamperStatus(ctx, func(i *kudo.Instance) {
			i.Status.Inventory = append(i.Status.Inventory, kudo.InventoryEntry{Kind: "ConfigMap", Namespace: victim.Namespace, Name: victim.Name})
		})
		h.finish(ctx)
		Expect(h.there(ctx)).To(ConsistOf("ConfigMap default/" + victim.Name))
	})

	It("keeps an operator running until it has removed its finalizers from objects of its kinds", func(ctx context.Context) {
		spec := configOnly()
		kept := strings.Replace(gadgetTemplate, `-gadget"`, `-gadget", finalizers: [`+hold+`]`, 1)
		spec.Templates["definition.yaml"], spec.Templates["gadget.yaml"] = definitionTemplate, kept
		spec.Tasks = []kudo.Task{
			task("definition", kudo.TaskApply, "definition.yaml"),
			task("operator", kudo.TaskApply, "config.yaml"),
			task("gadget", kudo.TaskApply, "gadget.yaml"),
		}
		spec.Plans["deploy"] = serial("definition", "operator", "gadget")
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		users := gadget("users", h.namespace)
		users.SetFinalizers([]string{hold})
		Expect(managed.Create(ctx, users)).To(Succeed())
		operator := func() string { return h.config(ctx, "-config") }

		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		for _, name := range []string{h.name + "-gadget", "users"} {
			Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonRemoving, "is being deleted, held by finalizer"))
			Eventually(func(g Gomega) {
				held := gadget(name, h.namespace)
				g.Expect(managed.Get(ctx, client.ObjectKeyFromObject(held), held)).To(Succeed())
				g.Expect(held.GetDeletionTimestamp()).NotTo(BeNil())
			}).Should(Succeed())
			Consistently(operator).Should(Equal("one"), "it has yet to let go of %s", name)
			Eventually(func() error { return removeFinalizers(ctx, gadget(name, h.namespace)) }).Should(Succeed())
		}
		h.finish(ctx)
		Expect(operator()).To(BeEmpty())
	})

	It("is not blocked by a dead webhook for updates, and names the webhook that blocks a finalizer", func(ctx context.Context) {
		spec := configOnly()
		spec.Templates["definition.yaml"] = definitionTemplate
		spec.Templates["held.yaml"] = strings.Replace(gadgetTemplate, `-gadget"`, `-held", finalizers: [`+hold+`]`, 1)
		spec.Templates["free.yaml"] = strings.Replace(gadgetTemplate, `-gadget"`, `-free"`, 1)
		spec.Tasks = []kudo.Task{task("definition", kudo.TaskApply, "definition.yaml"), task("gadgets", kudo.TaskApply, "held.yaml", "free.yaml")}
		spec.Plans["deploy"] = serial("definition", "gadgets")
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		dead := deadWebhook(h.namespace)
		Expect(managed.Create(ctx, dead)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(managed.Delete(ctx, dead))).To(Succeed()) })
		Eventually(func() error { // the API server reads webhooks from a cache
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"probe":"true"}}}`))
			return managed.Patch(ctx, gadget(h.name+"-free", h.namespace), patch, client.DryRunAll)
		}).Should(MatchError(ContainSubstring("failed calling webhook")))

		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		free := gadget(h.name+"-free", h.namespace)
		Eventually(func() error { return managed.Get(ctx, client.ObjectKeyFromObject(free), free) }).Should(MatchError(apierrors.IsNotFound, "it is gone"))
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonRemoving,
			"Gadget "+h.namespace+"/"+h.name+"-held: is being deleted, held by finalizer "+hold+", whose removal is refused: "))
		Expect(h.ready(ctx).Message).To(ContainSubstring(`failed calling webhook "dead.tandem.test"`))
		Expect(managed.Delete(ctx, dead)).To(Succeed())
		Eventually(func() error { return removeFinalizers(ctx, gadget(h.name+"-held", h.namespace)) }).Should(Succeed())
		h.finish(ctx)
	})

	It("deletes a volume together with the claim that Kubernetes keeps it for", func(ctx context.Context) {
		spec := configOnly()
		spec.Templates["storage.yaml"] = storageTemplate
		spec.Tasks = []kudo.Task{task("config", kudo.TaskApply, "storage.yaml")}
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: h.name + "-volume"}}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.name + "-claim"}}
		Eventually(func() error {
			return environment.EditStatus(ctx, managed, volume, func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound })
		}).Should(Succeed())
		Eventually(func() error {
			return environment.EditStatus(ctx, managed, claim, func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound })
		}).Should(Succeed())
		h.completes(ctx, "deploy", kudo.PlanStatus{})

		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() bool { return h.local(ctx, "-claim", claim) }).Should(BeFalse())
		Eventually(func() error { return removeFinalizers(ctx, volume) }).Should(Succeed(), "as Kubernetes does then")
		h.finish(ctx)
		Expect(apierrors.IsNotFound(managed.Get(ctx, client.ObjectKeyFromObject(volume), volume))).To(BeTrue())
	})

	It("names what holds it up, with the finalizer", func(ctx context.Context) {
		h := newInstance(ctx, widespread(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.holds(ctx, "-one", hold)
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonRemoving,
			"ConfigMap "+h.namespace+"/"+h.name+"-one: is being deleted, held by finalizer "+hold))
		Eventually(func() []string { return h.inventoryOf(ctx) }).Should(ConsistOf("ConfigMap " + h.namespace + "/" + h.name + "-one"))
		h.holds(ctx, "-one")
		h.finish(ctx)
	})
})

var _ = Describe("Ready", func() {
	BeforeEach(func() { DeferCleanup(runAgent()) })
	AfterEach(func(ctx context.Context) { Expect(invariants.Violations(ctx, hub)).To(BeEmpty()) })

	It("is false with the name of what is gone, cluster-scoped or not, until it is back", func(ctx context.Context) {
		h := newInstance(ctx, widespread(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: h.name + "-one"}}
		Expect(managed.Delete(ctx, role)).To(Succeed())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(
			is(metav1.ConditionFalse, kudo.ReasonUnhealthy, "ClusterRole "+role.Name+": is missing"))
		before := h.plan(ctx, "deploy")
		h.change(ctx, byHand("deploy", "again"))
		h.completes(ctx, "deploy", before)

		Expect(managed.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: h.name + "-one", Namespace: "default"}})).To(Succeed())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(
			is(metav1.ConditionFalse, kudo.ReasonUnhealthy, "ConfigMap default/"+h.name+"-one: is missing"))
		h.finish(ctx)
	})

	It("is false when another writer has replaced an object", func(ctx context.Context) {
		h := newInstance(ctx, widespread(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.foreign(ctx, "-one")
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonUnhealthy,
			"ConfigMap "+h.namespace+"/"+h.name+"-one: "))
		h.finish(ctx)
	})

	DescribeTable("does not mind a Job that has done its work and gone", func(ctx context.Context, spec string) {
		h := newInstance(ctx, single(jobTemplate("containers: [{name: c, image: i}]")+spec), nil)
		h.resolve(ctx)
		h.end(ctx, batchv1.JobComplete)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		background := client.PropagationPolicy(metav1.DeletePropagationBackground)
		Expect(managed.Delete(ctx, h.job(ctx), background)).To(Succeed())
		Consistently(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		h.finish(ctx)
	},
		Entry("deleted by hand", ""),
		Entry("by its time to live", "  ttlSecondsAfterFinished: 0\n"),
	)
})
