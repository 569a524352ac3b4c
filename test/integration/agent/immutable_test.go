package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/preview"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// single returns a package of one task with one object that contains VALUE.
func single(template string) kudo.OperatorVersionSpec {
	spec := configOnly()
	spec.Templates = map[string]string{"config.yaml": template}
	spec.Tasks = []kudo.Task{task("config", kudo.TaskApply, "config.yaml")}
	spec.Parameters = []kudo.Parameter{{Name: "VALUE", Default: ptr.To("one")}}
	return spec
}

var _ = Describe("What cannot be changed of an object", func() {
	BeforeEach(func() { DeferCleanup(runAgent()) })

	DescribeTable("ends the plan with its name and the way out, and leaves the object alone",
		func(ctx context.Context, kind, fields, spec string) {
			template := "apiVersion: " + strings.Replace(kind, " ", "\nkind: ", 1) + "\nmetadata: {name: \"{{ .Name }}\"}\n" + spec
			h := newInstance(ctx, single(template), nil)
			h.resolve(ctx)
			object := blank(kind)
			Eventually(func() bool { return h.anywhere(ctx, object) }).Should(BeTrue())
			Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(
				BeElementOf(kudo.InProgress, kudo.Error, kudo.Complete)) // the StorageClass of the claim does not exist
			_, name, _ := strings.Cut(kind, " ")
			Eventually(func() string { // once the agent has reported the object
				foreseen := h.foresee(ctx, "other")
				return foreseen.Problem + strings.Join(foreseen.Warnings, "")
			}).Should(MatchRegexp(`%s \S+: [a-zA-Z.]+ cannot be changed while the object exists: `+
				`delete the object and run the plan again, or give it another name in the package$`, name), "the preview says so")
			h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "other"} })
			Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(HaveField("Status", kudo.FatalError))
			Expect(h.plan(ctx, "deploy").Message).To(MatchRegexp(
				`^phase "main": step "config": task "config": applying %s \S+: %s cannot be changed while the object exists: `+
					`delete the object and run the plan again, or give it another name in the package$`, name, fields))
			existing := blank(kind)
			Expect(h.anywhere(ctx, existing)).To(BeTrue())
			Expect(existing.GetUID()).To(Equal(object.GetUID()))
			Expect(existing.GetGeneration()).To(Equal(object.GetGeneration()))

			By("doing as it says")
			Expect(managed.Delete(ctx, existing)).To(Succeed())
			h.change(ctx, func(s *kudo.InstanceSpec) { s.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "again"} })
			Eventually(func() types.UID {
				if made := blank(kind); h.anywhere(ctx, made) {
					return made.GetUID()
				}
				return object.GetUID()
			}).ShouldNot(Equal(object.GetUID()))
			h.finish(ctx)
		},
		Entry("the selector of a Deployment", "apps/v1 Deployment", `spec\.selector\.matchLabels`, `
spec:
  selector: {matchLabels: {app: "{{ .Params.VALUE }}"}}
  template: {metadata: {labels: {app: "{{ .Params.VALUE }}"}}, spec: {containers: [{name: app, image: "app:1"}]}}`),
		Entry("the volume claim templates of a StatefulSet, beside fields of it that can", "apps/v1 StatefulSet", `spec\.volumeClaimTemplates`, `
spec:
  selector: {matchLabels: {app: x}}
  template: {metadata: {labels: {app: x, value: "{{ .Params.VALUE }}"}}, spec: {containers: [{name: app, image: "app:1"}]}}
  volumeClaimTemplates:
  - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: "{{ .Params.VALUE }}"}}`),
		Entry("the storage class of a volume claim", "v1 PersistentVolumeClaim", `spec\.storageClassName`, `
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: "{{ .Params.VALUE }}"}`),
		Entry("the address of a Service", "v1 Service", `spec\.clusterIPs\[0\]`, `
spec: {clusterIP: {{ if eq .Params.VALUE "one" }}None{{ else }}10.0.0.77{{ end }}, selector: {a: b}, ports: [{port: 80}]}`),
		Entry("the data of an immutable Secret", "v1 Secret", `data\.value`, `
immutable: true
stringData: {value: "{{ .Params.VALUE }}"}`),
		Entry("the type of a Secret", "v1 Secret", `type`, `
type: "example.com/{{ .Params.VALUE }}"`),
		Entry("the data of an immutable ConfigMap", "v1 ConfigMap", `data\.value`, `
immutable: true
data: {value: "{{ .Params.VALUE }}"}`),
		Entry("the role of a RoleBinding", "rbac.authorization.k8s.io/v1 RoleBinding", `roleRef\.name`, `
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "{{ .Params.VALUE }}"}`),
		Entry("the value of a PriorityClass", "scheduling.k8s.io/v1 PriorityClass", `value`, `
value: {{ len .Params.VALUE }}`),
		Entry("the service of a StatefulSet", "apps/v1 StatefulSet", `spec\.serviceName`, `
spec:
  selector: {matchLabels: {app: x}}
  serviceName: "{{ .Params.VALUE }}"
  template: {metadata: {labels: {app: x}}, spec: {containers: [{name: app, image: "app:1"}]}}`),
		Entry("the parameters of a StorageClass", "storage.k8s.io/v1 StorageClass", `parameters\.value`, `
provisioner: example.com/disks
parameters: {value: "{{ .Params.VALUE }}"}`),
		Entry("the controller of an IngressClass", "networking.k8s.io/v1 IngressClass", `spec\.controller`, `
spec: {controller: "example.com/{{ .Params.VALUE }}"}`),
		Entry("the handler of a RuntimeClass", "node.k8s.io/v1 RuntimeClass", `handler`, `
handler: "{{ .Params.VALUE }}"`),
		Entry("the containers of a Pod", "v1 Pod", `spec\.containers`, `
spec: {containers: [{name: app, image: "app:1", env: [{name: VALUE, value: "{{ .Params.VALUE }}"}]}]}`),
	)

	It("is not what only looks changed, or what the API server keeps", func(ctx context.Context) {
		h := newInstance(ctx, single(`
{{- $other := eq .Params.VALUE "other" }}
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ .Name }}"}
spec:
  selector: {matchLabels: {app: x}}
{{- if $other }}
  podManagementPolicy: OrderedReady
  serviceName: ""
{{- end }}
  template: {metadata: {labels: {app: x, value: "{{ .Params.VALUE }}"}}, spec: {containers: [{name: app, image: "app:1"}]}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: {{ if $other }}1024Mi{{ else }}1Gi{{ end }}}}}
---
apiVersion: v1
kind: Secret
metadata: {name: "{{ .Name }}"}
{{ if $other }}type: Opaque{{ end }}
data: {value: "{{ b64enc .Params.VALUE }}"}
---
apiVersion: v1
kind: Service
metadata: {name: "{{ .Name }}"}
spec: { {{- if not $other }}clusterIP: None, {{ end }}selector: {value: "{{ .Params.VALUE }}"}, ports: [{port: 80}]}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: "{{ .Name }}", labels: {value: "{{ .Params.VALUE }}"}}
provisioner: example.com/disks
{{ if $other }}reclaimPolicy: Delete{{ end }}
`), nil)
		h.playWorkloads()
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		before := h.plan(ctx, "deploy")
		foreseen := h.foresee(ctx, "other")
		Expect(foreseen.Problem + strings.Join(foreseen.Warnings, "")).To(BeEmpty())
		for _, object := range foreseen.Objects {
			Expect(object.Effect).To(Equal(preview.Changed), object.String())
		}
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "other"} })
		h.completes(ctx, "deploy", before)
		h.finish(ctx)
	})

	It("and that is wrong by itself as well, is left as it is", func(ctx context.Context) {
		h := newInstance(ctx, single(jobTemplate(`containers: [{name: "{{ .Params.VALUE }}", image: "app:1"}]`)), nil)
		h.resolve(ctx)
		uid := h.job(ctx).UID
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "Upper Case"} })
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", MatchRegexp(`task "config": applying Job \S+: spec.template.spec.containers\[0\].name: Invalid value: "Upper Case"`))))
		Expect(h.job(ctx).UID).To(Equal(uid), "a Job that could not be re-created is not deleted")
		h.finish(ctx)
	})

	It("of a kind whose API version is gone, says what to write instead", func(ctx context.Context) {
		h := newInstance(ctx, single("apiVersion: networking.k8s.io/v1beta1\nkind: Ingress\nmetadata: {name: x}"), nil)
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", ContainSubstring("no longer served as of Kubernetes 1.22: use networking.k8s.io/v1, which has different fields"))))
		h.finish(ctx)
	})
})

var _ = Describe("A Job", func() {
	var (
		toManaged *environment.Writes
		mute      atomic.Bool // the API server does not answer dry runs
	)
	BeforeEach(func() {
		locally, writes := environment.RecordWrites(agentLocally)
		toManaged = writes
		locally.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return sender(func(request *http.Request) (*http.Response, error) {
				if mute.Load() && request.URL.Query().Has("dryRun") {
					return nil, errors.New("no answer to a dry run")
				}
				return next.RoundTrip(request)
			})
		})
		DeferCleanup(runAgentWith(agentOnHub, locally))
	})
	showing := jobTemplate(`containers: [{name: app, image: "app:1", env: [{name: VALUE, value: "{{ .Params.VALUE }}"}]}]`)

	// deletions counts the agent's deletions of the Instance's Job.
	deletions := func(h *hubPart) (count int) {
		for _, request := range toManaged.Requests() {
			if request == fmt.Sprintf("DELETE /apis/batch/v1/namespaces/%s/jobs/%s", h.namespace, h.name) {
				count++
			}
		}
		return count
	}
	deployed := func(ctx context.Context, template string) (*hubPart, *batchv1.Job) {
		GinkgoHelper()
		h := newInstance(ctx, single(template), nil)
		h.resolve(ctx)
		h.end(ctx, batchv1.JobComplete)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		return h, h.job(ctx)
	}
	change := func(ctx context.Context, h *hubPart) kudo.PlanStatus {
		GinkgoHelper()
		before := h.plan(ctx, "deploy")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "two"} })
		return before
	}
	byHand := func(ctx context.Context, h *hubPart) kudo.PlanStatus {
		GinkgoHelper()
		before := h.plan(ctx, "deploy")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "by-hand"} })
		return before
	}

	for _, more := range []string{"", "  ttlSecondsAfterFinished: 600\n"} {
		It("whose template has changed is re-created, once in an execution and when the old one is gone "+more, func(ctx context.Context) {
			h, old := deployed(ctx, showing+more)
			Expect(environment.Edit(ctx, managed, old, func(j *batchv1.Job) { controllerutil.AddFinalizer(j, hold) })).To(Succeed())
			before := change(ctx, h)
			Eventually(func() string { return h.ready(ctx).Message }).Should(MatchRegexp(
				`plan "deploy" is running: .*task "config": Job .*/` + h.name + `: is being deleted.*, and will be re-created`))
			Expect(h.plan(ctx, "deploy").Status).To(Equal(kudo.Pending))
			Expect(h.job(ctx).UID).To(Equal(old.UID))

			Expect(removeFinalizers(ctx, old)).To(Succeed())
			Eventually(func() types.UID { return h.job(ctx).UID }).ShouldNot(Equal(old.UID))
			Expect(h.job(ctx).Spec.Template.Spec.Containers[0].Env[0].Value).To(Equal("two"))
			Consistently(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }, "300ms").ShouldNot(Equal(kudo.Complete),
				"the new one has not run yet")
			h.end(ctx, batchv1.JobComplete)
			h.completes(ctx, "deploy", before)
			Expect(deletions(h)).To(Equal(1))
			h.finish(ctx)
		})
	}

	It("whose template has changed is re-created, also if the API server does not say at first that it cannot be changed", func(ctx context.Context) {
		h, old := deployed(ctx, showing)
		mute.Store(true)
		DeferCleanup(mute.Store, false)
		before := change(ctx, h)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.Error),
			HaveField("Message", ContainSubstring("/"+h.name+" can be changed: "))))
		Expect(h.job(ctx).UID).To(Equal(old.UID))
		mute.Store(false)
		Eventually(func() types.UID { return h.job(ctx).UID }).ShouldNot(Equal(old.UID))
		h.end(ctx, batchv1.JobComplete)
		h.completes(ctx, "deploy", before)
		Expect(deletions(h)).To(Equal(1))
		h.finish(ctx)
	})

	It("that has finished is complete for every later execution that leaves its template as it is", func(ctx context.Context) {
		h, old := deployed(ctx, showing)
		h.completes(ctx, "deploy", byHand(ctx, h))
		Expect(h.job(ctx).UID).To(Equal(old.UID))
		Expect(h.job(ctx).Annotations).To(HaveKeyWithValue(kudo.AnnotationExecution, "by-hand"))
		h.finish(ctx)
	})

	It("that has failed is re-created by the next execution, which it would fail otherwise before it has run", func(ctx context.Context) {
		h := newInstance(ctx, single(showing), nil)
		h.resolve(ctx)
		h.end(ctx, batchv1.JobFailed)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", MatchRegexp(`task "config": Job .*: failed: BackoffLimitExceeded`))))
		failed := h.job(ctx).UID
		before := byHand(ctx, h)
		Eventually(func() types.UID { return h.job(ctx).UID }).ShouldNot(Equal(failed))
		h.end(ctx, batchv1.JobComplete)
		h.completes(ctx, "deploy", before)
		Expect(deletions(h)).To(Equal(1))
		h.finish(ctx)
	})

	It("of another owner is not re-created", func(ctx context.Context) {
		h := newInstance(ctx, single(showing), nil)
		Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())
		foreign := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: h.name, Namespace: h.namespace}}
		foreign.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "a"}}}
		Expect(managed.Create(ctx, foreign)).To(Succeed())
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", ContainSubstring("already exists and was not created by this Instance"))))
		Expect(deletions(h)).To(BeZero())
		h.finish(ctx)
		Expect(h.job(ctx).UID).To(Equal(foreign.UID))
	})
})

func jobTemplate(containers string) string {
	return `apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Name }}"}
spec:
  template: {spec: {restartPolicy: Never, ` + containers + `}}
`
}

// anywhere reads the namespaced or cluster-scoped object with the Instance's name; it returns false if there is none.
func (h *hubPart) anywhere(ctx context.Context, into client.Object) bool {
	GinkgoHelper()
	namespaced, err := managed.IsObjectNamespaced(into)
	Expect(err).NotTo(HaveOccurred())
	if namespaced {
		return h.local(ctx, "", into)
	}
	err = managed.Get(ctx, client.ObjectKey{Name: h.name}, into)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err == nil
}

// foresee returns the preview of the first task of a change of VALUE.
func (h *hubPart) foresee(ctx context.Context, value string) preview.Task {
	GinkgoHelper()
	version := &kudo.OperatorVersion{}
	Expect(hub.Get(ctx, client.ObjectKey{Namespace: packages, Name: h.name + "-1.0.0"}, version)).To(Succeed())
	change := preview.Change{Before: h.get(ctx), After: h.get(ctx), Version: version, Started: version}
	change.After.Spec.Parameters = map[string]string{"VALUE": value}
	return preview.Of(change).Plans[0].Tasks[0]
}

// job waits for the Instance's Job.
func (h *hubPart) job(ctx context.Context) *batchv1.Job {
	GinkgoHelper()
	job := &batchv1.Job{}
	Eventually(func() bool { return h.local(ctx, "", job) }).Should(BeTrue())
	return job
}

// end acts as the Job controller: it ends the Instance's Job with a condition.
func (h *hubPart) end(ctx context.Context, by batchv1.JobConditionType) {
	GinkgoHelper()
	Expect(environment.EditStatus(ctx, managed, h.job(ctx), func(job *batchv1.Job) { environment.EndJob(job, by) })).To(Succeed())
}
