package agent

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var _ = Describe("Image registries of an Instance", func() {
	var stop func()
	BeforeEach(func(ctx context.Context) {
		makeAgentNamespace(ctx)
		stop = runAgent()
	})
	AfterEach(func() { stop() })
	registries := func(pairs ...string) func(*kudo.InstanceSpec) {
		return func(s *kudo.InstanceSpec) {
			s.ImageRegistries = nil
			for i := 0; i < len(pairs); i += 2 {
				s.ImageRegistries = append(s.ImageRegistries, kudo.ImageRegistry{Source: pairs[i], Mirror: pairs[i+1]})
			}
		}
	}
	started := func(ctx context.Context, h *hubPart) []kudo.ImageRegistry {
		return h.get(ctx).Status.Execution.ImageRegistries
	}

	It("replace those of templates and of pods of Pipe tasks, and start plan update when they change", func(ctx context.Context) {
		n := newNode(ctx)
		spec := pipePackage()
		spec.Templates["maker.yaml"] = strings.ReplaceAll(makerTemplate, "maker:1", "quay.io/maker:1")
		spec.Templates["app.yaml"] = strings.ReplaceAll(deploymentTemplate, "app:1", "quay.io/app:1")
		spec.Plans = map[string]kudo.Plan{"deploy": serial("files", "app"), "update": serial("app"), "cleanup": serial("farewell")}
		spec.Templates["farewell.yaml"] = strings.ReplaceAll(deploymentTemplate, "app:1", "quay.io/farewell:1")
		spec.Templates["farewell.yaml"] = strings.ReplaceAll(spec.Templates["farewell.yaml"], "-app", "-farewell")
		h := newInstance(ctx, spec, nil)
		h.edit(ctx, func(i *kudo.Instance) {
			registries("docker.io", "mirror.corp:5000", "quay.io", "quay.io/mirror")(&i.Spec)
		})
		image := func(suffix string) func() string {
			return func() string {
				app := &appsv1.Deployment{}
				if !h.local(ctx, suffix, app) {
					return ""
				}
				return app.Spec.Template.Spec.Containers[0].Image
			}
		}
		h.resolve(ctx)
		h.runs(ctx, n, func(status *corev1.PodStatus) {
			pod := h.pod(ctx)
			Expect(pod.Spec.InitContainers).To(ConsistOf(HaveField("Image", "quay.io/mirror/maker:1")))
			Expect(pod.Spec.Containers).To(ConsistOf(HaveField("Image", "mirror.corp:5000"+strings.TrimPrefix(pipe.DefaultImage, "docker.io"))))
			environment.WaitInPipe(status)
		})
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(image("-app")()).To(Equal("quay.io/mirror/app:1"))
		Expect(started(ctx, h)).To(Equal(h.get(ctx).Spec.ImageRegistries))

		By("changing them")
		h.change(ctx, registries("quay.io", "other.corp"))
		Eventually(image("-app")).Should(Equal("other.corp/app:1"))
		h.rollOut(ctx)
		h.completes(ctx, "update", kudo.PlanStatus{})

		By("losing the mirror, which gets them from the hub, without a plan")
		before := h.plan(ctx, "update")
		stop()
		h.loseMirror(ctx)
		stop = runAgent()
		Eventually(func() *kudo.Instance { return h.mirror(ctx) }).ShouldNot(BeNil())
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(h.plan(ctx, "update").UID).To(Equal(before.UID))

		By("removing the Instance, which runs with those in use")
		h.edit(ctx, func(i *kudo.Instance) { registries("quay.io", "late.corp")(&i.Spec) })
		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(image("-farewell")).Should(Equal("other.corp/farewell:1"))
		h.rollOutDeployment(ctx, "-farewell")
		h.finish(ctx)
	})

	It("replace those of charts and their hooks, also in the removal", func(ctx context.Context) {
		files := web.in(fmt.Sprintf("chart%d.tandem.test", made+1)).with(chartFiles{
			"templates/cron.yaml": `apiVersion: batch/v1
kind: CronJob
metadata: {name: "{{ .Release.Name }}-cron"}
spec: {schedule: "@daily", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: quay.io/cron:1}]}}}}}
`,
		})
		for _, hook := range []string{"migrate", "seed", "bye", "gone"} {
			name := "templates/" + hook + ".yaml"
			files[name] = strings.ReplaceAll(files[name], `image: "i:`, `image: "quay.io/`+hook+`:`)
		}
		files["templates/seed.yaml"] = strings.ReplaceAll(files["templates/seed.yaml"], ", helm.sh/hook-delete-policy: hook-succeeded", "")
		h := newChart(ctx, files, nil)
		h.edit(ctx, func(i *kudo.Instance) { registries("quay.io", "quay.io/mirror")(&i.Spec) })
		job := func(name string) func() string {
			return func() string {
				found := &batchv1.Job{}
				if !h.local(ctx, "-"+name, found) {
					return ""
				}
				return found.Spec.Template.Spec.Containers[0].Image
			}
		}
		cron := func() string {
			found := &batchv1.CronJob{}
			if !h.local(ctx, "-cron", found) {
				return ""
			}
			return found.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Image
		}
		seen := watchJobs(ctx, h)
		runJobs(ctx, h)
		h.resolve(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(cron()).To(Equal("quay.io/mirror/cron:1"))
		Expect(job("seed")()).To(Equal("quay.io/mirror/seed:1"))

		By("changing them")
		h.change(ctx, registries("quay.io", "other.corp"))
		Eventually(cron).Should(Equal("other.corp/cron:1"))
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(And(HaveField("Status", metav1.ConditionTrue), HaveField("ObservedGeneration", BeEquivalentTo(3))))

		By("removing it")
		h.finish(ctx)
		Eventually(seen).Should(And(HaveKey("quay.io/mirror/migrate:1"), HaveKey("other.corp/migrate:2"), HaveKey("other.corp/bye:2"), HaveKey("other.corp/gone:2")))
	})
})

// watchJobs returns a function that returns the images of the Jobs that were created in a namespace since.
func watchJobs(ctx context.Context, h *hubPart) func() map[string]bool {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(cancel)
	jobs, err := managed.Watch(ctx, &batchv1.JobList{}, client.InNamespace(h.namespace))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(jobs.Stop)
	seen := map[string]bool{}
	return func() map[string]bool {
		for {
			select {
			case event := <-jobs.ResultChan():
				if found, isJob := event.Object.(*batchv1.Job); isJob {
					seen[found.Spec.Template.Spec.Containers[0].Image] = true
				}
			default:
				return seen
			}
		}
	}
}
