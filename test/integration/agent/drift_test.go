package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// driftOf returns condition Drifted of the Instance on the hub; the zero value if there is none.
func driftOf(ctx context.Context, h *hubPart) metav1.Condition {
	GinkgoHelper()
	return driftIn(h.get(ctx).Status)
}

func driftIn(status kudo.InstanceStatus) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(status.Conditions, kudo.ConditionDrifted), metav1.Condition{})
}

// drifted matches condition Drifted with that status, and a message that contains a text.
func drifted(status metav1.ConditionStatus, message string) types.GomegaMatcher {
	return And(HaveField("Status", status), HaveField("Message", ContainSubstring(message)))
}

// appliedFields returns the fields that the agent has applied to an object and owns.
func appliedFields(o client.Object) string {
	for _, entry := range o.GetManagedFields() {
		if entry.Manager == "addon-agent-engine" && entry.Operation == metav1.ManagedFieldsOperationApply {
			return string(entry.FieldsV1.Raw)
		}
	}
	return ""
}

var _ = Describe("Changes by other writers of what was applied", func() {
	var h *hubPart
	object := func(suffix string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: h.namespace, Name: h.name + suffix}
	}
	write := func(ctx context.Context, object client.Object, patch string) {
		GinkgoHelper()
		Expect(managed.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner("intruder"))).To(Succeed())
	}
	writeConfig := func(ctx context.Context, patch string) {
		GinkgoHelper()
		write(ctx, &corev1.ConfigMap{ObjectMeta: object("-config")}, patch)
	}
	install := func(ctx context.Context, spec kudo.OperatorVersionSpec, change ...func(*kudo.InstanceSpec)) {
		GinkgoHelper()
		h = newInstance(ctx, spec, nil)
		h.resolve(ctx)
		for _, edit := range change {
			h.change(ctx, edit)
		}
		if spec.Plans["update"].Phases != nil {
			Eventually(func() bool { return h.local(ctx, "-app", &appsv1.Deployment{}) }).Should(BeTrue())
			h.rollOut(ctx)
		}
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
	}
	eventually := func(ctx context.Context) AsyncAssertion {
		return Eventually(func() metav1.Condition { return driftOf(ctx, h) })
	}

	Context("while the agent runs", func() {
		BeforeEach(func() { DeferCleanup(runAgent()) })

		It("are reported with the object, the field and the writer, until they are put back", func(ctx context.Context) {
			install(ctx, configOnly())
			Expect(driftOf(ctx, h)).To(BeZero(), "nothing was compared yet")
			writeConfig(ctx, `{"data":{"value":"another","own":"more"}}`)
			eventually(ctx).Should(drifted(metav1.ConditionTrue, "ConfigMap "+h.namespace+"/"+h.name+"-config: /data/value was changed (by intruder)"))
			Expect(driftOf(ctx, h).Message).NotTo(ContainSubstring("own"), "a field that was not applied")
			Expect(h.ready(ctx)).To(HaveField("Status", metav1.ConditionTrue))
			Expect(metricValues("addon_drifted", "")[" app"]).To(BeNumerically(">=", 1))

			writeConfig(ctx, `{"data":{"value":"one"}}`)
			eventually(ctx).Should(drifted(metav1.ConditionFalse, "all objects are as they were applied"))
			h.finish(ctx)
		})

		It("are reported with images and numbers, and with an object that is gone", func(ctx context.Context) {
			install(ctx, standard())
			write(ctx, &appsv1.Deployment{ObjectMeta: object("-app")},
				`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"evil:latest"}]}}}}`)
			eventually(ctx).Should(drifted(metav1.ConditionTrue, "/spec/template/spec/containers/app/image is evil:latest instead of app:1 (by intruder)"))
			Expect(managed.Delete(ctx, &corev1.ConfigMap{ObjectMeta: object("-config")})).To(Succeed())
			eventually(ctx).Should(drifted(metav1.ConditionTrue, "ConfigMap "+h.namespace+"/"+h.name+"-config is gone"))

			By("applying all again")
			before := h.plan(ctx, "update")
			h.change(ctx, setParameter("VALUE", "two"))
			Eventually(func() string { return h.podTemplate(ctx).Spec.Containers[0].Image }).Should(Equal("app:1"))
			h.rollOut(ctx)
			h.completes(ctx, "update", before)
			eventually(ctx).Should(HaveField("Status", metav1.ConditionFalse))
			h.finish(ctx)
		})

		It("are no drift in an object whose template draws random values, unless it is gone", func(ctx context.Context) {
			spec := configOnly()
			spec.Templates["config.yaml"] += "  password: \"{{ randAlphaNum 16 }}\"\n"
			spec.Templates["config.yaml"] = strings.Replace(spec.Templates["config.yaml"], `data: {value: "{{ .Params.VALUE }}"}`, "data:\n  value: \"{{ .Params.VALUE }}\"", 1)
			install(ctx, spec)
			writeConfig(ctx, `{"data":{"password":"another"}}`)
			Consistently(func() metav1.Condition { return driftOf(ctx, h) }).Should(BeZero())
			Expect(managed.Delete(ctx, &corev1.ConfigMap{ObjectMeta: object("-config")})).To(Succeed())
			eventually(ctx).Should(drifted(metav1.ConditionTrue, "-config is gone"))
			h.finish(ctx)
		})

		It("make an Instance unhealthy that scale its workload to zero, unless an autoscaler does", func(ctx context.Context) {
			install(ctx, standard())
			scale := func(replicas int32) {
				GinkgoHelper()
				app := &appsv1.Deployment{ObjectMeta: object("-app")}
				Expect(managed.SubResource("scale").Update(ctx, app, client.FieldOwner("intruder"), client.WithSubResourceBody(
					&autoscalingv1.Scale{ObjectMeta: object("-app"), Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}))).To(Succeed())
				h.rollOut(ctx)
			}
			scale(0) // Kubernetes records no writer of a zero
			eventually(ctx).Should(drifted(metav1.ConditionTrue, "/spec/replicas is 0 instead of 2"))
			Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonUnhealthy,
				"Deployment "+h.namespace+"/"+h.name+"-app: has 0 replicas where 2 were applied"))
			scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: object("-scaler")}
			scaler.Spec.MaxReplicas = 9
			scaler.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: h.name + "-app"}
			Expect(managed.Create(ctx, scaler)).To(Succeed())
			scale(5)
			eventually(ctx).Should(HaveField("Status", metav1.ConditionFalse))
			Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
			h.finish(ctx)
		})

		It("are reported of what a chart has rendered, random values included", func(ctx context.Context) {
			h = newChart(ctx, chartFiles{
				"Chart.yaml":            "apiVersion: v2\nname: web\nversion: 1.0.0\n",
				"templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-config\"}\ndata: {token: \"{{ randAlphaNum 20 }}\"}\n",
			}, nil)
			h.resolve(ctx)
			h.completes(ctx, "deploy", kudo.PlanStatus{})
			Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
			config := &corev1.ConfigMap{}
			Expect(h.local(ctx, "-config", config)).To(BeTrue())
			writeConfig(ctx, `{"data":{"token":"another"}}`)
			eventually(ctx).Should(drifted(metav1.ConditionTrue, "-config: /data/token was changed (by intruder)"))
			writeConfig(ctx, `{"data":{"token":"`+config.Data["token"]+`"}}`)
			eventually(ctx).Should(HaveField("Status", metav1.ConditionFalse))
			h.finish(ctx)
		})

		It("are reported while the Instance is suspended, with each field in the status", func(ctx context.Context) {
			install(ctx, configOnly())
			h.change(ctx, func(s *kudo.InstanceSpec) { s.Suspend = true })
			Eventually(func() metav1.Condition { return waitCondition(ctx, h) }).Should(HaveField("Reason", kudo.ReasonSuspended))
			writeConfig(ctx, `{"data":{"value":"another"}}`)
			eventually(ctx).Should(HaveField("Status", metav1.ConditionTrue))
			Expect(h.get(ctx).Status.Drift).To(Equal([]kudo.DriftedObject{{
				Kind: "ConfigMap", Namespace: h.namespace, Name: h.name + "-config", Fields: []kudo.DriftedField{{Path: "/data/value", Managers: []string{"intruder"}}},
			}}))
			writeConfig(ctx, `{"data":{"value":"one"}}`)
			eventually(ctx).Should(HaveField("Status", metav1.ConditionFalse))
			Expect(h.get(ctx).Status.Drift).To(BeEmpty())
			h.finish(ctx)
		})

		It("are no drift in fields that the package ignores", func(ctx context.Context) {
			spec := configOnly()
			spec.Drift = &kudo.PackageDrift{Ignore: []kudo.IgnoredFields{{Paths: []string{"/data"}}}}
			install(ctx, spec)
			writeConfig(ctx, `{"data":{"value":"another"}}`)
			Consistently(func() metav1.Condition { return driftOf(ctx, h) }).Should(BeZero())
			h.finish(ctx)
		})

		It("are no drift in ignored fields, and in no field if the mode is Off", func(ctx context.Context) {
			install(ctx, configOnly(), func(s *kudo.InstanceSpec) {
				s.Drift = &kudo.DriftPolicy{Ignore: []kudo.IgnoredFields{{Kind: "ConfigMap", Paths: []string{"/data/value"}}}}
			})
			writeConfig(ctx, `{"data":{"value":"another"}}`)
			Consistently(func() metav1.Condition { return driftOf(ctx, h) }).Should(BeZero())
			h.change(ctx, func(s *kudo.InstanceSpec) { s.Drift = nil })
			writeConfig(ctx, `{"metadata":{"labels":{"kudo.dev/operator":"another"}}}`)
			eventually(ctx).Should(HaveField("Status", metav1.ConditionTrue))
			h.change(ctx, func(s *kudo.InstanceSpec) { s.Drift = &kudo.DriftPolicy{Mode: kudo.DriftOff} })
			eventually(ctx).Should(BeZero())
			h.finish(ctx)
		})
	})

	repair := func(s *kudo.InstanceSpec) { s.Drift = &kudo.DriftPolicy{Mode: kudo.DriftRepair} }

	It("are put back in mode Repair, exactly, once the Instance is not suspended", func(ctx context.Context) {
		DeferCleanup(runAgent())
		install(ctx, standard(), func(s *kudo.InstanceSpec) {
			s.Drift = &kudo.DriftPolicy{Mode: kudo.DriftRepair, Ignore: []kudo.IgnoredFields{{Kind: "Deployment", Paths: []string{"/spec/replicas"}}}}
		})
		written := h.plan(ctx, "deploy")
		config := &corev1.ConfigMap{}
		Expect(h.local(ctx, "-config", config)).To(BeTrue())

		writeConfig(ctx, `{"data":{"value":"another","own":"more"}}`)
		Eventually(func() []string { return h.eventsOf(ctx, "Repaired") }).Should(ConsistOf(
			"put back: ConfigMap " + h.namespace + "/" + h.name + "-config: /data/value was changed (by intruder)"))
		repaired := &corev1.ConfigMap{}
		Expect(h.local(ctx, "-config", repaired)).To(BeTrue())
		Expect(repaired.Data).To(Equal(map[string]string{"value": "one", "own": "more"}))
		Expect(repaired.Annotations).To(Equal(config.Annotations))
		Expect(repaired.Labels).To(Equal(config.Labels))
		Expect(appliedFields(repaired)).To(Equal(appliedFields(config)))

		By("an image, a number that is ignored, and an object that is gone")
		write(ctx, &appsv1.Deployment{ObjectMeta: object("-app")},
			`{"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"app","image":"evil:latest"}]}}}}`)
		Eventually(func() string { return h.podTemplate(ctx).Spec.Containers[0].Image }).Should(Equal("app:1"))
		app := &appsv1.Deployment{}
		Expect(h.local(ctx, "-app", app)).To(BeTrue())
		Expect(app.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
		h.rollOut(ctx)
		Expect(managed.Delete(ctx, &corev1.ConfigMap{ObjectMeta: object("-config")})).To(Succeed())
		Eventually(func() string { return h.config(ctx, "-config") }).Should(Equal("one"))

		By("a suspension")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Suspend = true })
		Eventually(func() metav1.Condition { return waitCondition(ctx, h) }).Should(HaveField("Reason", kudo.ReasonSuspended))
		writeConfig(ctx, `{"data":{"value":"another"}}`)
		eventually(ctx).Should(drifted(metav1.ConditionTrue, "/data/value was changed (by intruder)"))
		Consistently(func() string { return h.config(ctx, "-config") }).Should(Equal("another"))
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Suspend = false })
		Eventually(func() string { return h.config(ctx, "-config") }).Should(Equal("one"))
		eventually(ctx).Should(HaveField("Status", metav1.ConditionFalse))
		Expect(h.plan(ctx, "deploy")).To(Equal(written), "no plan ran")
		h.finish(ctx)
	})

	It("are put back ever more rarely if another writer repeats them, in five kinds", func(ctx context.Context) {
		locally, toManaged := environment.RecordWrites(agentLocally)
		DeferCleanup(runAgentWith(agentOnHub, locally))
		spec := configOnly()
		config := spec.Templates["config.yaml"]
		kinds := map[string]client.Object{"ConfigMap": &corev1.ConfigMap{}}
		for kind, o := range map[string]client.Object{
			"ServiceAccount": &corev1.ServiceAccount{}, "ResourceQuota": &corev1.ResourceQuota{}, "LimitRange": &corev1.LimitRange{}, "Secret": &corev1.Secret{},
		} {
			config += fmt.Sprintf("---\napiVersion: v1\nkind: %s\nmetadata: {name: \"{{ .Name }}-config\"}\n", kind)
			kinds[kind] = o
		}
		spec.Templates["config.yaml"] = strings.ReplaceAll(config, "metadata: {", "metadata: {annotations: {owned: original}, ")
		install(ctx, spec, repair)
		before, repairs := len(h.writesOf(toManaged, nil)), metricValues("addon_drift_repairs_total", "")[""]

		rounds, reported := 0, kudo.InstanceStatus{}
		Consistently(func(g Gomega) {
			rounds++
			for _, o := range kinds {
				o.SetNamespace(h.namespace)
				o.SetName(h.name + "-config")
				patch := fmt.Sprintf(`{"metadata":{"annotations":{"owned":"intruder %d"}}}`, rounds)
				g.Expect(managed.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner("intruder"))).To(Succeed())
			}
			found := h.get(ctx).Status
			if condition := meta.FindStatusCondition(found.Conditions, kudo.ConditionDrifted); len(found.Drift) == len(kinds) && condition.Status == metav1.ConditionTrue {
				reported = found
			}
		}, 12*time.Second, 100*time.Millisecond).Should(Succeed())
		Expect(reported.Drift).To(HaveEach(HaveField("Repairs", BeNumerically(">=", 1))))
		Expect(driftIn(reported)).To(drifted(metav1.ConditionTrue, "/metadata/annotations/owned was changed (by intruder), after "))
		Expect(rounds).To(BeNumerically(">", 5))
		done := metricValues("addon_drift_repairs_total", "")[""] - repairs
		Expect(done).To(And(BeNumerically(">=", len(kinds)), BeNumerically("<=", 3*len(kinds)+len(kinds))))
		Expect(len(h.writesOf(toManaged, nil)) - before).To(BeNumerically("<=", int(done)*2+10))
		By("the other writer being stopped")
		Eventually(func() metav1.Condition { return driftOf(ctx, h) }).WithTimeout(timeout).Should(HaveField("Status", metav1.ConditionFalse))
		for kind, o := range kinds {
			Expect(managed.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
			Expect(o.GetAnnotations()).To(HaveKeyWithValue("owned", "original"), kind)
		}
		h.finish(ctx)
	})

	It("are not what would only be rendered differently since, in any round", func(ctx context.Context) {
		DeferCleanup(runAgentWith(agentOnHub, agentLocally, func(o *agent.Options) { o.DriftInterval = time.Second }))
		spec := standard()
		spec.Parameters = append(spec.Parameters, kudo.Parameter{Name: "MODE", Default: ptr.To("old"), Trigger: "feature"})
		spec.Templates["config.yaml"] += `{{ if eq .Params.MODE "new" }}immutable: false{{ end }}` + "\n"
		install(ctx, spec)
		eventually(ctx).Should(HaveField("Status", metav1.ConditionFalse))
		before := h.plan(ctx, "feature")
		h.change(ctx, setParameter("MODE", "new"))
		h.completes(ctx, "feature", before)
		Consistently(func() metav1.Condition { return driftOf(ctx, h) }).Should(HaveField("Status", metav1.ConditionFalse))
		writeConfig(ctx, `{"data":{"value":"another"}}`)
		eventually(ctx).Should(drifted(metav1.ConditionTrue, "/data/value was changed (by intruder)"))
		h.finish(ctx)
	})

	It("are found when the agent starts if it did not run, and rounds write nothing", func(ctx context.Context) {
		stop := runAgent()
		install(ctx, configOnly())
		stop()
		writeConfig(ctx, `{"data":{"value":"another"}}`)
		stop = runAgentWith(agentOnHub, agentLocally, func(o *agent.Options) { o.DriftInterval = 24 * time.Hour })
		eventually(ctx).Should(drifted(metav1.ConditionTrue, "/data/value was changed"))
		stop()
		locally, toManaged := environment.RecordWrites(agentLocally)
		onHub, toHub := environment.RecordWrites(agentOnHub)
		DeferCleanup(runAgentWith(onHub, locally, func(o *agent.Options) { o.DriftInterval = time.Second }))
		compared := metricValues("addon_drift_comparisons_total", "")[""]
		Eventually(func() float64 { return metricValues("addon_drift_comparisons_total", "")[""] }).Should(BeNumerically(">", compared+3))
		Expect(h.writesOf(toManaged, toHub)).To(BeEmpty())
		h.finish(ctx)
	})
})
