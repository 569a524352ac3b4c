package agent

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// chartFiles are the files of a chart, by path.
type chartFiles map[string]string

// archive returns the archive of the chart.
func (f chartFiles) archive() []byte {
	GinkgoHelper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(f)) {
		Expect(archive.WriteHeader(&tar.Header{Name: "web/" + name, Mode: 0o644, Size: int64(len(f[name]))})).To(Succeed())
		_, err := archive.Write([]byte(f[name]))
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(archive.Close()).To(Succeed())
	Expect(zipped.Close()).To(Succeed())
	return packed.Bytes()
}

// with returns the chart with other files.
func (f chartFiles) with(others chartFiles) chartFiles {
	all := maps.Clone(f)
	maps.Copy(all, others)
	return all
}

// hookJob returns a hook that is a Job, with fields of its spec.
func hookJob(name, annotations, fields string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Release.Name }}-%s", annotations: {%s}}
spec:
  %s
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: "i:{{ .Release.Revision }}"}]}}
`, name, annotations, fields)
}

// web is a chart with definitions, hooks of all events, and an object to keep. GROUP is the API group of its definition.
var web = chartFiles{
	"Chart.yaml":  "apiVersion: v2\nname: web\nversion: 1.0.0\n",
	"values.yaml": "value: default\n",
	"crds/widgets.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.GROUP}
spec:
  group: GROUP
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`,
	"templates/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-config", labels: {heritage: "{{ .Release.Service }}"}}
data:
  value: {{ .Values.value | quote }}
  release: "{{ .Release.IsInstall }} {{ .Release.IsUpgrade }} {{ .Release.Revision }}"
  known: "{{ .Capabilities.APIVersions.Has "GROUP/v1/Widget" }}"
`,
	"templates/widget.yaml": "apiVersion: GROUP/v1\nkind: Widget\nmetadata: {name: \"{{ .Release.Name }}\"}\n",
	"templates/secret.yaml": `apiVersion: v1
kind: Secret
metadata: {name: "{{ .Release.Name }}-secret", annotations: {helm.sh/hook: pre-install}}
stringData: {password: "{{ randAlphaNum 20 }}"}
`,
	"templates/kept.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-kept", annotations: {helm.sh/resource-policy: keep}}
`,
	"templates/migrate.yaml": hookJob("migrate", `helm.sh/hook: "pre-install,pre-upgrade"`, "ttlSecondsAfterFinished: 0"),
	"templates/seed.yaml":    hookJob("seed", "helm.sh/hook: post-install, helm.sh/hook-delete-policy: hook-succeeded", ""),
	"templates/bye.yaml":     hookJob("bye", "helm.sh/hook: pre-delete", ""),
	"templates/gone.yaml":    hookJob("gone", "helm.sh/hook: post-delete", ""),
	"templates/test.yaml":    hookJob("test", "helm.sh/hook: test", ""),
}

// in returns the chart with its definition in an API group.
func (f chartFiles) in(group string) chartFiles {
	replaced := chartFiles{}
	for name, text := range f {
		replaced[name] = strings.ReplaceAll(text, "GROUP", group)
	}
	return replaced
}

// ofChart returns a package whose plan deploys a chart, and the chart's archive.
func ofChart(chart chartFiles) (kudo.OperatorVersionSpec, []byte) {
	GinkgoHelper()
	archive := chart.archive()
	helm := kudo.Task{Name: "web", Kind: kudo.TaskHelm}
	helm.Spec.Chart, helm.Spec.ValuesFile = "web.tgz", "values.yaml"
	spec := kudo.OperatorVersionSpec{
		Operator:   corev1.ObjectReference{Kind: "Operator", Name: "app"},
		Version:    "1.0.0",
		Templates:  map[string]string{"values.yaml": "value: {{ .Params.VALUE | quote }}\n"},
		Tasks:      []kudo.Task{helm},
		Parameters: []kudo.Parameter{{Name: "VALUE", Default: ptr.To("one")}},
		Plans:      map[string]kudo.Plan{"deploy": serial("web")},
	}
	content.Add(&spec, "web.tgz", archive)
	return spec, archive
}

// rightsOfChart returns the permissions of a package with a chart that `package rights` prints.
func rightsOfChart(ctx context.Context, chartOf chartFiles) *kudo.Permissions {
	GinkgoHelper()
	spec, archive := ofChart(chartOf)
	renderer, err := chart.NewRenderer()
	Expect(err).NotTo(HaveOccurred())
	var rendered pack.Chart
	for _, upgrade := range []bool{false, true} {
		out, err := renderer.Render(ctx, chart.Input{Archive: archive, Release: chart.Release{Name: "instance", Namespace: "namespace", Upgrade: upgrade},
			Capabilities: chart.DefaultCapabilities()}, func(_ context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
			rendered.Lookups = append(rendered.Lookups, pack.Lookup{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name})
			return map[string]any{}, nil
		})
		Expect(err).NotTo(HaveOccurred())
		rendered.Renderings = append(rendered.Renderings, *out)
	}
	p := &pack.Package{Version: spec}
	Expect(p.VerifyCharts(map[string]pack.Chart{"web": rendered})).To(BeEmpty())
	declared, _ := p.Rights()
	return declared
}

// newChart creates an unresolved Instance of a chart.
func newChart(ctx context.Context, chart chartFiles, change func(*kudo.OperatorVersionSpec)) *hubPart {
	GinkgoHelper()
	return newChartIn(ctx, "", chart, change)
}

// newChartIn is newChart in an install namespace of another Instance; in one of its own if that is empty.
func newChartIn(ctx context.Context, namespace string, chart chartFiles, change func(*kudo.OperatorVersionSpec)) *hubPart {
	GinkgoHelper()
	spec, archive := ofChart(chart)
	if change != nil {
		change(&spec)
	}
	made++
	h := &hubPart{name: fmt.Sprintf("app-%d", made), namespace: cmp.Or(namespace, fmt.Sprintf("apps-%d", made))}
	h.make(ctx, spec, nil)
	storeFile(ctx, h.name+"-1.0.0", archive)
	DeferCleanup(func(ctx context.Context) {
		if h.get(ctx) != nil {
			h.finish(ctx)
		}
	})
	return h
}

// storeFile stores a file as content of an OperatorVersion on the hub.
func storeFile(ctx context.Context, version string, file []byte) {
	GinkgoHelper()
	pushed := &kudo.OperatorVersion{}
	Expect(hub.Get(ctx, client.ObjectKey{Namespace: packages, Name: version}, pushed)).To(Succeed())
	for _, part := range content.Split(file) {
		stored := content.New(pushed, part)
		Expect(hub.Create(ctx, stored)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(hub.Delete(ctx, stored))).To(Succeed()) })
	}
}

// jobs completes the Jobs of a namespace, as their controller does, and deletes those whose time to live is over.
type jobs struct {
	mutex sync.Mutex
	ran   []string
	// fails are the Jobs that fail.
	fails map[string]bool
}

func runJobs(ctx context.Context, h *hubPart) *jobs {
	j := &jobs{fails: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var ended sync.WaitGroup
	ended.Go(func() {
		poll := time.NewTicker(30 * time.Millisecond)
		defer poll.Stop()
		for ctx.Err() == nil {
			list := &batchv1.JobList{}
			if managed.List(ctx, list, client.InNamespace(h.namespace)) == nil {
				for i := range list.Items {
					j.advance(ctx, h, &list.Items[i])
				}
			}
			<-poll.C
		}
	})
	DeferCleanup(func() {
		cancel()
		ended.Wait()
	})
	return j
}

// advance ends a Job, or deletes it once its time to live is over.
func (j *jobs) advance(ctx context.Context, h *hubPart, job *batchv1.Job) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	name := strings.TrimPrefix(job.Name, h.name+"-")
	if len(job.Status.Conditions) > 0 {
		if ttl := job.Spec.TTLSecondsAfterFinished; ttl != nil && *ttl == 0 {
			_ = managed.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))
		}
		return
	}
	ended := []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}
	if j.fails[name] {
		ended = []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed}
	} else {
		job.Status.Succeeded, job.Status.CompletionTime = 1, ptr.To(metav1.Now())
	}
	job.Status.StartTime = ptr.To(metav1.Now())
	for _, condition := range ended {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: condition, Status: corev1.ConditionTrue, Reason: "Ended", Message: "it has ended", LastTransitionTime: metav1.Now(),
		})
	}
	if managed.Status().Update(ctx, job) == nil {
		j.ran = append(j.ran, name)
	}
}

// all returns the Jobs that have run, in order.
func (j *jobs) all() []string {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return slices.Clone(j.ran)
}

func (j *jobs) fail(name string, fails bool) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.fails[name] = fails
}

var _ = Describe("A Helm task", func() {
	var stop func()
	BeforeEach(func(ctx context.Context) {
		makeAgentNamespace(ctx)
		stop = runAgent()
	})
	group := func() string { return fmt.Sprintf("chart%d.tandem.test", made+1) }
	data := func(ctx context.Context, h *hubPart, suffix string) map[string]string {
		found := &corev1.ConfigMap{}
		if !h.local(ctx, "-"+suffix, found) {
			return nil
		}
		return found.Data
	}

	It("lives through install, change and removal, with all hooks", func(ctx context.Context) {
		h := newChart(ctx, web.in(group()), func(spec *kudo.OperatorVersionSpec) { spec.Operator.Name = "counted" })
		rendered := metricValues("addon_chart_rendering_seconds", "")[" Rendered"]
		ran := runJobs(ctx, h)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(ran.all()).To(Equal([]string{"migrate", "seed"}))
		Expect(data(ctx, h, "config")).To(Equal(map[string]string{"value": "one", "release": "true false 1", "known": "true"}))
		secret := &corev1.Secret{}
		Expect(h.local(ctx, "-secret", secret)).To(BeTrue())
		config := &corev1.ConfigMap{}
		Expect(h.local(ctx, "-config", config)).To(BeTrue())
		Expect(config.Labels).To(And(HaveKeyWithValue("heritage", "Helm"), HaveKeyWithValue(kudo.LabelInstance, h.name)))
		Expect(h.get(ctx).Status.Tasks).To(ConsistOf(And(
			HaveField("Task", "web"), HaveField("Release", h.name), HaveField("Revision", BeEquivalentTo(1)), HaveField("Installed", true))))

		By("changing a value")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "two: x"} })
		Eventually(func() map[string]string { return data(ctx, h, "config") }).Should(
			Equal(map[string]string{"value": "two: x", "release": "false true 2", "known": "true"}))
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(And(HaveField("Status", metav1.ConditionTrue), HaveField("ObservedGeneration", BeEquivalentTo(2))))
		Expect(ran.all()).To(Equal([]string{"migrate", "seed", "migrate"}))
		after := &corev1.Secret{}
		Expect(h.local(ctx, "-secret", after)).To(BeTrue())
		Expect(after.Data).To(Equal(secret.Data), "a hook of the installation does not run again")
		Expect(after.ResourceVersion).To(Equal(secret.ResourceVersion))

		By("removing it")
		h.finish(ctx)
		Expect(ran.all()).To(Equal([]string{"migrate", "seed", "migrate", "bye", "gone"}))
		Expect(data(ctx, h, "config")).To(BeNil())
		Expect(h.local(ctx, "-kept", &corev1.ConfigMap{})).To(BeTrue())
		list := &batchv1.JobList{}
		Expect(managed.List(ctx, list, client.InNamespace(h.namespace))).To(Succeed())
		Expect(list.Items).To(BeEmpty())
		stop()
		hooks := metricValues("addon_chart_hooks_total", "")
		maps.DeleteFunc(hooks, func(labels string, _ float64) bool { return !strings.Contains(labels, " counted ") })
		Expect(hooks).To(Equal(map[string]float64{
			" pre-install counted Succeeded": 2, " post-install counted Succeeded": 1, " pre-upgrade counted Succeeded": 1,
			" pre-delete counted Succeeded": 1, " post-delete counted Succeeded": 1,
		}))
		Expect(metricValues("addon_chart_rendering_seconds", "")[" Rendered"]).To(BeNumerically(">=", rendered+2))
	})

	It("runs each hook once, however often the agent is stopped", func(ctx context.Context) {
		h := newChart(ctx, web.in(group()), nil)
		ran := runJobs(ctx, h)
		h.resolve(ctx)
		stopped := 0
		Eventually(func() metav1.ConditionStatus {
			stop()
			stopped++
			stop = runAgent()
			// It is stopped at another moment each time, and later and later: a busy machine needs seconds to start it and to render the chart.
			<-time.After(time.Duration(stopped*97%500+stopped*stopped*20) * time.Millisecond)
			return h.ready(ctx).Status
		}).WithTimeout(3 * timeout).Should(Equal(metav1.ConditionTrue))
		Expect(ran.all()).To(Equal([]string{"migrate", "seed"}))
		Expect(data(ctx, h, "config")).To(HaveKeyWithValue("release", "true false 1"))
		GinkgoLogr.Info("stopped", "times", stopped)
		h.finish(ctx)
	})

	It("ends with the failure of a hook, and recovers in another execution, which is still an installation", func(ctx context.Context) {
		h := newChart(ctx, web.in(group()), nil)
		ran := runJobs(ctx, h)
		ran.fail("migrate", true)
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(
			HaveField("Status", kudo.FatalError), HaveField("Message", ContainSubstring("hook pre-install: Job "+h.namespace+"/"+h.name+"-migrate: "))))
		Expect(data(ctx, h, "config")).To(BeNil(), "the manifests follow the hooks")
		ran.fail("migrate", false)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "two"} })
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(data(ctx, h, "config")).To(Equal(map[string]string{"value": "two", "release": "true false 2", "known": "true"}))

		By("failing in the removal, which goes on")
		ran.fail("bye", true)
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("hook pre-delete: Job " + h.namespace + "/" + h.name + "-bye: "))
		Expect(data(ctx, h, "config")).NotTo(BeNil())
		ran.fail("bye", false)
		Eventually(func() string { return h.ready(ctx).Reason }).Should(Equal(kudo.ReasonRemoved))
		Expect(ran.all()[len(ran.all())-2:]).To(Equal([]string{"bye", "gone"}))
		h.release(ctx)
	})

	DescribeTable("ends before it applies anything", func(ctx context.Context, change chartFiles, value, message string) {
		h := newChart(ctx, web.in(group()).with(change), nil)
		h.edit(ctx, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"VALUE": value} })
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).WithTimeout(4 * timeout).Should(And( // half a minute of CPU time
			HaveField("Status", kudo.FatalError), HaveField("Message", ContainSubstring(message))))
		for _, suffix := range []string{"-config", "-kept"} {
			Expect(h.local(ctx, suffix, &corev1.ConfigMap{})).To(BeFalse())
		}
		Expect(h.local(ctx, "-secret", &corev1.Secret{})).To(BeFalse())
		Expect(h.get(ctx).Status.Inventory).To(BeEmpty())
	},
		Entry("a template with an error", chartFiles{"templates/wrong.yaml": "{{ required \"name a host\" .Values.host }}"}, "x",
			`phase "main": step "web": task "web": execution error at (web/templates/wrong.yaml:1:3): name a host`),
		Entry("a schema that the values violate", chartFiles{"values.schema.json": `{"properties": {"value": {"maxLength": 3}}}`}, "long text",
			"the values do not conform to the schema"),
		Entry("a value that breaks out of its place", chartFiles{"templates/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-config"}
data:
  value: {{ .Values.value }}
`}, "x\n  other: y", `parameter "VALUE" changes the structure of what the chart renders`),
		Entry("a value that is a template", chartFiles{}, "{{ .Values }}", `parameter "VALUE" contains {{`),
		Entry("an object that is rendered twice", chartFiles{"templates/again.yaml": web["templates/kept.yaml"]}, "x", "is also rendered by web/templates/"),
		Entry("an object without a name", chartFiles{"templates/nameless.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: x-}\n"}, "x",
			"metadata.generateName is not supported"),
		Entry("a template without end", chartFiles{"templates/bomb.yaml": "{{ range 9999999999 }}x{{ end }}"}, "x", "requires more than"),
	)

	It("is deleted with its hooks when it is disabled, and installed again when it is enabled", func(ctx context.Context) {
		h := newChart(ctx, web.in(group()), func(spec *kudo.OperatorVersionSpec) {
			spec.Tasks[0].Spec.EnablingParameter = "ENABLED"
			spec.Parameters = append(spec.Parameters, kudo.Parameter{Name: "ENABLED", Type: kudo.BooleanType, Default: ptr.To("true")})
		})
		ran := runJobs(ctx, h)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"ENABLED": "false"} })
		Eventually(func() []kudo.TaskRecord { return h.get(ctx).Status.Tasks }).Should(BeEmpty())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(ran.all()).To(Equal([]string{"migrate", "seed", "bye", "gone"}))
		Expect(data(ctx, h, "config")).To(BeNil())
		Expect(h.local(ctx, "-secret", &corev1.Secret{})).To(BeFalse())
		Expect(h.local(ctx, "-kept", &corev1.ConfigMap{})).To(BeTrue())
		Expect(h.get(ctx).Status.Inventory).To(BeEmpty())
		rendered := &corev1.SecretList{}
		Expect(managed.List(ctx, rendered, client.MatchingLabels{"kudo.dev/rendering-of": string(h.get(ctx).UID)})).To(Succeed())
		Expect(rendered.Items).To(BeEmpty())

		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"ENABLED": "true"} })
		Eventually(func() map[string]string { return data(ctx, h, "config") }).Should(HaveKeyWithValue("release", "true false 1"))
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(And(HaveField("Status", metav1.ConditionTrue), HaveField("ObservedGeneration", BeEquivalentTo(3))))
		Expect(ran.all()).To(Equal([]string{"migrate", "seed", "bye", "gone", "migrate", "seed"}))
		h.finish(ctx)
	})

	It("shares its definitions with other charts, and takes no version away", func(ctx context.Context) {
		shared := web.in(group())
		first := newChart(ctx, shared, nil)
		runJobs(ctx, first)
		first.resolve(ctx)
		Eventually(func() metav1.Condition { return first.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		second := newChart(ctx, shared, nil)
		runJobs(ctx, second)
		second.resolve(ctx)
		Eventually(func() metav1.Condition { return second.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(second.get(ctx).Status.Inventory).NotTo(ContainElement(HaveField("Kind", "CustomResourceDefinition")))

		newer := shared.with(chartFiles{"crds/widgets.yaml": strings.ReplaceAll(shared["crds/widgets.yaml"], "name: v1,", "name: v2,")})
		third := newChart(ctx, newer, nil)
		third.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return third.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", ContainSubstring("belongs to another owner, and lacks version v2, which the chart defines"))))
		Expect(third.local(ctx, "-secret", &corev1.Secret{})).To(BeFalse())

		spec, archive := ofChart(newer)
		push(ctx, first.name+"-2.0.0", spec)
		storeFile(ctx, first.name+"-2.0.0", archive)
		first.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = first.name + "-2.0.0" })
		Eventually(func() kudo.PlanStatus { return first.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", ContainSubstring("the chart drops version v1, in which objects are stored"))))
		second.finish(ctx)
		third.finish(ctx)
		first.finish(ctx)
	})

	It("is rendered once in an execution, so that hooks and manifests have the same random values", func(ctx context.Context) {
		h := newChart(ctx, web.in(group()).with(chartFiles{"templates/token.yaml": `{{- $token := randAlphaNum 20 -}}
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-token", annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "-1"}}
data: {token: {{ $token }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-uses"}
data: {token: {{ $token }}}
`}), nil)
		h.resolve(ctx)
		Eventually(func() bool { return h.local(ctx, "-migrate", &batchv1.Job{}) }).Should(BeTrue())
		token := data(ctx, h, "token")
		Expect(token).To(HaveKey("token"))
		stop()
		mirror := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.name}}
		Expect(environment.EditStatus(ctx, managed, mirror, func(i *kudo.Instance) { // as if it had been stopped before it recorded the hooks
			i.Status.Tasks[0].Hooks = nil
			for at := range i.Status.Inventory {
				i.Status.Inventory[at].Pending = i.Status.Inventory[at].Pending || i.Status.Inventory[at].Hook
			}
		})).To(Succeed())
		stop = runAgent()
		runJobs(ctx, h)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(data(ctx, h, "uses")).To(Equal(token))
		Expect(data(ctx, h, "token")).To(Equal(token))
		for _, entry := range h.get(ctx).Status.Inventory {
			deletes := strings.HasSuffix(entry.Name, "-bye") || strings.HasSuffix(entry.Name, "-gone")
			Expect(entry.Pending).To(Equal(deletes), entry.Name)
		}
		h.finish(ctx)
	})

	It("applies its objects in another version after the definition has lost the version in which they were applied", func(ctx context.Context) {
		former := web.in(group())
		kind, _, _ := strings.Cut(former["templates/widget.yaml"], "/v1")
		second := strings.NewReplacer("name: v1,", "name: v2,", "storage: true", "storage: false").Replace(
			former["crds/widgets.yaml"][strings.Index(former["crds/widgets.yaml"], "{name: v1"):])
		h := newChart(ctx, former.with(chartFiles{
			"crds/widgets.yaml":     strings.TrimSuffix(former["crds/widgets.yaml"], "]\n") + ", " + second,
			"templates/widget.yaml": kind + "/v2\nkind: Widget\nmetadata: {name: \"{{ .Release.Name }}\"}\nspec: {former: one}\n",
		}), nil)
		runJobs(ctx, h)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))

		spec, archive := ofChart(former.with(chartFiles{"templates/widget.yaml": former["templates/widget.yaml"] + "spec: {later: two}\n"}))
		push(ctx, h.name+"-2.0.0", spec)
		storeFile(ctx, h.name+"-2.0.0", archive)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-2.0.0" })
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("ObservedGeneration", BeEquivalentTo(2))))
		widget := &unstructured.Unstructured{}
		widget.SetAPIVersion(strings.TrimPrefix(kind, "apiVersion: ") + "/v1")
		widget.SetKind("Widget")
		Expect(h.local(ctx, "", widget)).To(BeTrue())
		Expect(widget.Object).To(HaveKeyWithValue("spec", Equal(map[string]any{"later": "two"})), "what it no longer applies is removed")
		h.finish(ctx)
	})

	It("keeps the volume claims of its StatefulSets, unless the task says otherwise", func(ctx context.Context) {
		set := chartFiles{"Chart.yaml": web["Chart.yaml"], "templates/set.yaml": `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ .Release.Name }}-set"}
spec:
  replicas: 0
  serviceName: set
  selector: {matchLabels: {app: set}}
  template: {metadata: {labels: {app: set}}, spec: {containers: [{name: c, image: i}]}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`}
		for policy, stays := range map[kudo.ClaimPolicy]bool{"": true, kudo.DeleteClaims: false} {
			h := newChart(ctx, set, func(spec *kudo.OperatorVersionSpec) {
				spec.Tasks[0].Spec.Claims, spec.Tasks[0].Spec.ValuesFile = policy, ""
			})
			h.resolve(ctx)
			made := &appsv1.StatefulSet{}
			Eventually(func() bool { return h.local(ctx, "-set", made) }).Should(BeTrue())
			claim := made.Spec.VolumeClaimTemplates[0].DeepCopy() // as the controller of StatefulSets makes it
			claim.Namespace, claim.Name, claim.Status = h.namespace, "data-"+made.Name+"-0", corev1.PersistentVolumeClaimStatus{}
			Expect(managed.Create(ctx, claim)).To(Succeed())
			h.finish(ctx)
			err := managed.Get(ctx, client.ObjectKeyFromObject(claim), claim)
			Expect(client.IgnoreNotFound(err)).To(Succeed())
			Expect(err == nil && claim.DeletionTimestamp == nil).To(Equal(stays), "%q", policy)
		}
	})

	It("is deleted with its hooks once a version does not have it", func(ctx context.Context) {
		h := newChart(ctx, web.in(group()), nil)
		ran := runJobs(ctx, h)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		push(ctx, h.name+"-2.0.0", configOnly())
		ran.fail("bye", true)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-2.0.0" })
		Eventually(func() string { return h.ready(ctx).Message }).Should(HavePrefix(
			`removing task "web", which the version does not have: hook pre-delete: Job ` + h.namespace + "/" + h.name + "-bye: "))
		Expect(h.local(ctx, "-secret", &corev1.Secret{})).To(BeTrue())

		By("running the hook again")
		ran.fail("bye", false)
		Eventually(func() []kudo.TaskRecord { return h.get(ctx).Status.Tasks }).Should(BeEmpty())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(len(ran.all())).To(BeNumerically(">", len([]string{"migrate", "seed", "bye", "bye"})))
		Expect(slices.Compact(ran.all())).To(Equal([]string{"migrate", "seed", "bye", "gone"}))
		Expect(h.local(ctx, "-secret", &corev1.Secret{})).To(BeFalse())
		h.finish(ctx)
	})

	It("leaves the objects to a task of another kind that has its name", func(ctx context.Context) {
		h := newChart(ctx, web.in(group()), nil)
		ran := runJobs(ctx, h)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		other := configOnly()
		other.Tasks = []kudo.Task{task("web", kudo.TaskApply, "config.yaml")}
		other.Plans = map[string]kudo.Plan{"deploy": serial("web")}
		push(ctx, h.name+"-2.0.0", other)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-2.0.0" })
		Eventually(func() []kudo.TaskRecord { return h.get(ctx).Status.Tasks }).Should(BeEmpty())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(data(ctx, h, "config")).To(HaveKeyWithValue("value", "one"))
		Expect(h.local(ctx, "-secret", &corev1.Secret{})).To(BeFalse())
		Expect(ran.all()).To(Equal([]string{"migrate", "seed", "bye", "gone"}))
		h.finish(ctx)
	})

	It("applies its definitions and hides nothing but values with sensitive parameters", func(ctx context.Context) {
		h := newChart(ctx, web.in(group()), func(spec *kudo.OperatorVersionSpec) {
			spec.Parameters = append(spec.Parameters, kudo.Parameter{Name: "TOKEN", Sensitive: ptr.To(true)})
			spec.Templates["values.yaml"] += "token: {{ .Params.TOKEN | quote }}\n"
		})
		runJobs(ctx, h)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}
		Expect(client.IgnoreAlreadyExists(managed.Create(ctx, namespace))).To(Succeed())
		token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "token"}, StringData: map[string]string{"token": "hunter22"}}
		Expect(managed.Create(ctx, token)).To(Succeed())
		h.edit(ctx, func(i *kudo.Instance) {
			i.Spec.ParametersFrom = []kudo.ParameterFrom{{Name: "TOKEN", SecretKeyRef: kudo.SecretKeyRef{Name: "token", Key: "token"}}}
		})
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(data(ctx, h, "config")).To(HaveKeyWithValue("known", "true"))
		Expect(h.get(ctx).Status.Inventory).To(ContainElement(HaveField("Kind", "CustomResourceDefinition")))
		h.finish(ctx)
	})

	It("needs no permissions but those that package rights prints", func(ctx context.Context) {
		const read = `{{ $_ := lookup "v1" "Secret" .Release.Namespace "other" }}{{ $_ := lookup "v1" "Namespace" "" "" }}`
		reading := web.in(group()).with(chartFiles{"templates/read.yaml": read})
		declared := rightsOfChart(ctx, reading)
		h := newChart(ctx, reading, func(spec *kudo.OperatorVersionSpec) { spec.Permissions = declared })
		ran := runJobs(ctx, h)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "two"} })
		Eventually(func() map[string]string { return data(ctx, h, "config") }).Should(HaveKeyWithValue("value", "two"))
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		h.finish(ctx)
		Expect(ran.all()).To(Equal([]string{"migrate", "seed", "migrate", "bye", "gone"}))
	})

	It("does not share an object with another task", func(ctx context.Context) {
		h := newChart(ctx, web.in(group()), func(spec *kudo.OperatorVersionSpec) {
			spec.Templates["config.yaml"] = fmt.Sprintf(configTemplate, "config")
			spec.Tasks = append(spec.Tasks, task("config", kudo.TaskApply, "config.yaml"))
			spec.Plans["deploy"] = serial("config", "web")
		})
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", ContainSubstring(`is rendered by task "config" and by task "web": remove it from one`))))
		Expect(data(ctx, h, "config")).To(BeNil())
	})

	It("takes back the objects of hooks that belong to no Instance, but runs no Job of others", func(ctx context.Context) {
		h := newChart(ctx, web.in(group()), nil)
		released := map[string]string{kudo.AnnotationReleasedBy: h.namespace + "/" + h.name}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.name + "-secret", Annotations: released}}
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.name + "-migrate", Annotations: released}}
		job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}}
		Expect(client.IgnoreAlreadyExists(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))).To(Succeed())
		Expect(managed.Create(ctx, secret)).To(Succeed())
		Expect(managed.Create(ctx, job)).To(Succeed())
		h.resolve(ctx)
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("hook pre-install: Job " + h.namespace + "/" + h.name +
			"-migrate: exists and belongs to no Instance, so it is neither deleted nor run again: delete it"))

		Expect(managed.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		ran := runJobs(ctx, h)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(ran.all()).To(Equal([]string{"migrate", "seed"}))
		Expect(h.local(ctx, "-secret", secret)).To(BeTrue())
		Expect(secret.Labels).To(HaveKeyWithValue(kudo.LabelInstance, h.name))
		h.finish(ctx)
	})

	It("executes no value as a template that its values file decodes, and reads nothing of the agent", func(ctx context.Context) {
		config := func(value string) chartFiles {
			return chartFiles{"Chart.yaml": web["Chart.yaml"], "values.yaml": web["values.yaml"], "templates/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-config"}
data: {value: ` + value + `}
`}
		}
		h := newChart(ctx, config(`{{ tpl .Values.value . | quote }}`), func(spec *kudo.OperatorVersionSpec) {
			spec.Templates["values.yaml"] = `value: "{{ .Params.VALUE }}"` + "\n"
		})
		h.edit(ctx, func(i *kudo.Instance) {
			i.Spec.Parameters = map[string]string{"VALUE": `\u007b\u007b (lookup \u0022v1\u0022 \u0022Secret\u0022 .Release.Namespace \u0022\u0022) }}`}
		})
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError), HaveField("Message",
			ContainSubstring(`parameter "VALUE" brings {{ or a final { into the values of the chart, which the chart could execute as a template`))))
		Expect(data(ctx, h, "config")).To(BeNil())
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "plain"} })
		Eventually(func() map[string]string { return data(ctx, h, "config") }).Should(HaveKeyWithValue("value", "plain"))
		h.finish(ctx)

		own := newChart(ctx, config(`{{ (lookup "v1" "Secret" "`+agent.DefaultNamespace+`" "tandem-mirror-key") | toJson | quote }}`), nil)
		own.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return own.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError), HaveField("Message",
			ContainSubstring(`lookup of Secret in namespace "`+agent.DefaultNamespace+`", which belongs to the agent, is not allowed`))))

		all := newChart(ctx, config(`{{ range (lookup "v1" "Secret" "" "").items }}{{ .metadata.namespace }} {{ end }}`), nil)
		Expect(client.IgnoreAlreadyExists(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: all.namespace}}))).To(Succeed())
		Expect(managed.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: all.namespace, Name: "seen"}})).To(Succeed())
		all.resolve(ctx)
		Eventually(func() string { return data(ctx, all, "config")["value"] }).Should(And(
			ContainSubstring(all.namespace), Not(ContainSubstring(agent.DefaultNamespace))))
	})

	It("emits an event about hooks that are not known", func(ctx context.Context) {
		h := newChart(ctx, chartFiles{"Chart.yaml": web["Chart.yaml"], "values.yaml": web["values.yaml"],
			"templates/odd.yaml": hookJob("odd", "helm.sh/hook: pre-flight", "")}, nil)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Eventually(func() []string { return h.eventsOf(ctx, "ChartWarning") }).Should(ConsistOf(ContainSubstring("pre-flight")))
		h.finish(ctx)
	})

	It("waits while discovery is incomplete, and prunes nothing meanwhile", func(ctx context.Context) {
		const served = `{{- if .Capabilities.APIVersions.Has "apps/v1/Deployment" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-served"}
{{- end }}
`
		h := newChart(ctx, web.in(group()).with(chartFiles{"templates/served.yaml": served}), nil)
		runJobs(ctx, h)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		revive := deadGroup(ctx, "dead.tandem.test")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "two"} })
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("discovering the kinds of the managed cluster, which charts depend on"))
		Consistently(func() bool {
			return h.local(ctx, "-served", &corev1.ConfigMap{}) && data(ctx, h, "config")["value"] == "one"
		}).Should(BeTrue())
		revive()
		Eventually(func() map[string]string { return data(ctx, h, "config") }).Should(HaveKeyWithValue("value", "two"))
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(h.local(ctx, "-served", &corev1.ConfigMap{})).To(BeTrue())
		h.finish(ctx)
	})

	It("is changed while the API that it serves does not work, but waits for APIs of others", func(ctx context.Context) {
		const apiService = `{{- if eq .Values.value "one" }}
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.GROUP}
spec:
  group: GROUP
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 15
  insecureSkipTLSVerify: true
  service: {namespace: default, name: dead}
{{- end }}
`
		const versioned = `{{- if or (eq .Values.value "one") (.Capabilities.APIVersions.Has "GROUP/v1") }}
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-versioned"}
{{- end }}
`
		const kept = `{{- if or (eq .Values.value "one") (.Capabilities.APIVersions.Has "GROUP/v1/Gadget") }}
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-kept"}
{{- end }}
`
		own := chartFiles{"Chart.yaml": web["Chart.yaml"], "values.yaml": web["values.yaml"], "templates/config.yaml": web["templates/config.yaml"]}
		h := newChart(ctx, own.with(chartFiles{"templates/service.yaml": apiService, "templates/versioned.yaml": versioned, "templates/kept.yaml": kept}).in(group()), nil)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanInProgress, "APIService v1."))
		revive := deadGroup(ctx, "dead.tandem.test")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "two"} })
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("discovering the kinds of the managed cluster, which charts depend on"))
		revive()
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue),
			func() string { return h.ready(ctx).Message })
		Expect(data(ctx, h, "config")).To(HaveKeyWithValue("value", "two"))

		By("deleting nothing of which the API may be the reason")
		for _, name := range []string{"-versioned", "-kept"} {
			Expect(h.local(ctx, name, &corev1.ConfigMap{})).To(BeTrue(), name)
		}
		Eventually(func() []string { return h.eventsOf(ctx, "ChartWarning") }).Should(ContainElement(ContainSubstring("are unknown, because the API does not work")))
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "three"} })
		Eventually(func() map[string]string { return data(ctx, h, "config") }).Should(HaveKeyWithValue("value", "three"))
		for _, name := range []string{"-versioned", "-kept"} {
			Eventually(func() bool { return h.local(ctx, name, &corev1.ConfigMap{}) }).Should(BeFalse(), name)
		}
		h.finish(ctx)
	})

	It("waits for discovery before any task of its plan runs", func(ctx context.Context) {
		h := newChart(ctx, web.in(group()), func(spec *kudo.OperatorVersionSpec) {
			spec.Templates["config.yaml"] = fmt.Sprintf(configTemplate, "first")
			spec.Tasks = append(spec.Tasks, task("first", kudo.TaskApply, "config.yaml"))
			spec.Plans["deploy"] = serial("first", "web")
		})
		runJobs(ctx, h)
		revive := deadGroup(ctx, "dead.tandem.test")
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonPlanPending,
			`plan "deploy" waits: phase "main": step "web": task "web": discovering the kinds of the managed cluster, which charts depend on`))
		Consistently(func() bool { return h.local(ctx, "-first", &corev1.ConfigMap{}) }).Should(BeFalse())
		revive()
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		h.finish(ctx)
	})

	It("starts although a task before it defines what its templates look up", func(ctx context.Context) {
		in := group()
		h := newChart(ctx, chartFiles{"Chart.yaml": web["Chart.yaml"], "values.yaml": web["values.yaml"],
			"templates/read.yaml": `{{ $_ := lookup "` + in + `/v1" "Widget" .Release.Namespace "" }}` + "\n"}, func(spec *kudo.OperatorVersionSpec) {
			spec.Templates["definition.yaml"] = web.in(in)["crds/widgets.yaml"]
			spec.Tasks = append(spec.Tasks, task("define", kudo.TaskApply, "definition.yaml"))
			spec.Plans["deploy"] = serial("define", "web")
		})
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		h.finish(ctx)
	})

	It("ends before any task of its plan runs if a definition drops a stored version", func(ctx context.Context) {
		in := group()
		first := newChart(ctx, web.in(in), nil)
		runJobs(ctx, first)
		first.resolve(ctx)
		Eventually(func() metav1.Condition { return first.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		first.finish(ctx)
		next := web.in(in)
		next["crds/widgets.yaml"] = strings.ReplaceAll(next["crds/widgets.yaml"], "v1, served", "v2, served")
		h := newChartIn(ctx, first.namespace, next, func(spec *kudo.OperatorVersionSpec) {
			spec.Templates["config.yaml"] = fmt.Sprintf(configTemplate, "first")
			spec.Tasks = append(spec.Tasks, task("first", kudo.TaskApply, "config.yaml"))
			spec.Plans["deploy"] = serial("first", "web")
		})
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", And(HavePrefix(`phase "main": step "web": task "web": CustomResourceDefinition widgets.`+in), ContainSubstring("v1")))))
		Expect(h.local(ctx, "-first", &corev1.ConfigMap{})).To(BeFalse())
	})

	It("maintains a definition that another Instance of a chart has left", func(ctx context.Context) {
		in := group()
		first := newChart(ctx, web.in(in), nil)
		runJobs(ctx, first)
		first.resolve(ctx)
		Eventually(func() metav1.Condition { return first.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		first.finish(ctx)
		next := web.in(in)
		next["crds/widgets.yaml"] = strings.Replace(next["crds/widgets.yaml"], "versions: [", `versions: [{name: v2, served: true, storage: false, `+
			`schema: {openAPIV3Schema: {type: object}}}, `, 1)
		second := newChart(ctx, next, nil)
		runJobs(ctx, second)
		second.resolve(ctx)
		Eventually(func() metav1.Condition { return second.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		definition := &unstructured.Unstructured{}
		definition.SetAPIVersion("apiextensions.k8s.io/v1")
		definition.SetKind("CustomResourceDefinition")
		Expect(managed.Get(ctx, client.ObjectKey{Name: "widgets." + in}, definition)).To(Succeed())
		Expect(definition.GetLabels()).To(HaveKeyWithValue(kudo.LabelInstance, second.name))
		versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
		Expect(err).NotTo(HaveOccurred())
		Expect(versions).To(HaveLen(2))
		second.finish(ctx)
		Expect(managed.Get(ctx, client.ObjectKey{Name: "widgets." + in}, definition)).To(Succeed(), "it stays")
	})

	It("runs a Job with a time to live once, although another object cannot be applied for a while", func(ctx context.Context) {
		const done = `apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Release.Name }}-once"}
spec:
  ttlSecondsAfterFinished: 0
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
`
		const service = "apiVersion: v1\nkind: Service\nmetadata: {name: '{{ .Release.Name }}-later'}\nspec: {ports: [{port: 80}]}\n---\n" +
			"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: '{{ .Release.Name }}-refused'}\n" +
			"spec: {defaultBackend: {service: {name: s, port: {number: 80}}}}\n"
		const ingresses = "count/ingresses.networking.k8s.io"
		h := newChart(ctx, chartFiles{"Chart.yaml": web["Chart.yaml"], "values.yaml": web["values.yaml"], "templates/once.yaml": done,
			"templates/later.yaml": service}, nil)
		quota := h.exhaust(ctx, ingresses)
		ran := runJobs(ctx, h)
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(HaveField("Status", kudo.Error))
		Eventually(ran.all).Should(Equal([]string{"once"}))
		job := &batchv1.Job{}
		Expect(h.local(ctx, "-once", job)).To(BeTrue(), "it does not expire before the plan continues")
		Expect(job.Spec.TTLSecondsAfterFinished).To(HaveValue(BeEquivalentTo(24 * 60 * 60)))
		stop()
		stop = runAgent()
		Consistently(ran.all, 6*time.Second).Should(Equal([]string{"once"}))
		Expect(managed.Delete(ctx, quota)).To(Succeed())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(ran.all()).To(Equal([]string{"once"}))
		Eventually(func() bool { return h.local(ctx, "-once", job) }).Should(BeFalse(), "it has expired")
		h.finish(ctx)
	})

	It("does not share an object with another Instance", func(ctx context.Context) {
		const shared = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared-by-charts}\n"
		charts := web.in(group()).with(chartFiles{"templates/shared.yaml": shared})
		first := newChart(ctx, charts, nil)
		runJobs(ctx, first)
		first.resolve(ctx)
		Eventually(func() metav1.Condition { return first.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		second := newChart(ctx, web.in(group()).with(chartFiles{"templates/shared.yaml": strings.Replace(shared, "name:", "namespace: "+first.namespace+", name:", 1)}), nil)
		runJobs(ctx, second)
		second.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return second.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", ContainSubstring("ConfigMap "+first.namespace+"/shared-by-charts: already exists and belongs to Instance "+first.namespace+"/"+first.name))))
		owner := &corev1.ConfigMap{}
		Expect(managed.Get(ctx, client.ObjectKey{Namespace: first.namespace, Name: "shared-by-charts"}, owner)).To(Succeed())
		second.finish(ctx)
		Expect(managed.Get(ctx, client.ObjectKeyFromObject(owner), owner)).To(Succeed())
		first.finish(ctx)
	})

	It("ends with what the API server says of a name that is too long", func(ctx context.Context) {
		const long = "apiVersion: v1\nkind: Service\nmetadata: {name: '{{ repeat 64 \"s\" }}'}\nspec: {ports: [{port: 80}]}\n"
		h := newChart(ctx, web.in(group()).with(chartFiles{"templates/long.yaml": long}), nil)
		runJobs(ctx, h)
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", ContainSubstring("must be no more than 63"))))
		h.finish(ctx)
	})

	It("is rendered again only by another execution if what it rendered is lost", func(ctx context.Context) {
		h := newChart(ctx, web.in(group()), nil)
		ran := runJobs(ctx, h)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		stop()
		Expect(managed.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(agent.DefaultNamespace),
			client.MatchingLabels{"kudo.dev/rendering-of": string(h.get(ctx).UID)})).To(Succeed())
		stop = runAgent()
		Consistently(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "two"} })
		Eventually(func() map[string]string { return data(ctx, h, "config") }).Should(HaveKeyWithValue("release", "false true 2"))
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("ObservedGeneration", BeEquivalentTo(2)))
		Expect(ran.all()).To(Equal([]string{"migrate", "seed", "migrate"}))
		h.finish(ctx)
	})
})
