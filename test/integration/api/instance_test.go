package api

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("Instance", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = newNamespace(ctx) })

	create := func(ctx SpecContext, body string) *unstructured.Unstructured {
		GinkgoHelper()
		stored := kudoObject("Instance", namespace, body)
		Expect(server.Create(ctx, stored)).To(Succeed())
		return stored
	}

	DescribeTable("is accepted with",
		func(ctx SpecContext, body string) {
			Expect(server.Create(ctx, kudoObject("Instance", namespace, body))).To(Succeed())
		},
		Entry("no spec at all", `{}`),
		Entry("an empty planExecution", `spec: {operatorVersion: {name: zk-1.0.0}, planExecution: {}}`),
		Entry("a planExecution as KUDO writes it", `spec: {planExecution: {planName: backup, uid: 4d2c, status: IN_PROGRESS}}`),
		Entry("a planExecution of an empty status", `spec: {planExecution: {planName: backup, status: ""}}`),
		Entry("a reference that carries a kind",
			`spec: {operatorVersion: {apiVersion: kudo.dev/v1beta1, kind: OperatorVersion, namespace: a, name: zk-1.0.0}}`),
		Entry("no parameters, said as null", `spec: {parameters: null}`),
		Entry("a request to cancel", `spec: {planExecution: {uid: 4d2c, cancel: true}}`),
		Entry("an install namespace", `spec: {installNamespace: kafka}`),
		Entry("image registries",
			`spec: {imageRegistries: [{source: quay.io/a, mirror: "mirror.corp:5000/a/"}, {mirror: "[fd00::1]:5000"}, {source: "", mirror: a}]}`),
	)

	DescribeTable("is refused with",
		func(ctx SpecContext, body, place string) {
			err := server.Create(ctx, kudoObject("Instance", namespace, body))
			Expect(err).To(MatchError(ContainSubstring(place)))
		},
		Entry("a parameter that is no string", `spec: {parameters: {NODE_COUNT: 3}}`, "spec.parameters.NODE_COUNT"),
		Entry("an unknown status of planExecution", `spec: {planExecution: {status: DONE}}`, "spec.planExecution.status"),
		Entry("an image registry without a mirror", `spec: {imageRegistries: [{source: quay.io}]}`, "spec.imageRegistries[0].mirror"),
		Entry("a mirror that is empty", `spec: {imageRegistries: [{mirror: ""}]}`, "spec.imageRegistries[0].mirror"),
		Entry("a mirror that is a URL", `spec: {imageRegistries: [{mirror: "https://mirror.corp"}]}`, "spec.imageRegistries[0].mirror"),
		Entry("a source with a line break", `spec: {imageRegistries: [{source: "a\nb", mirror: a}]}`, "spec.imageRegistries[0].source"),
		Entry("an install namespace that is too long",
			`spec: {installNamespace: a123456789b123456789c123456789d123456789e123456789f123456789-123}`, "spec.installNamespace"),
		Entry("an install namespace that is no namespace's name", `spec: {installNamespace: Kafka_1}`, "spec.installNamespace"),
	)

	DescribeTable("has an install namespace that is immutable:",
		func(ctx SpecContext, before, change string) {
			stored := create(ctx, before)
			Expect(patch(ctx, stored, change)).To(MatchError(ContainSubstring("spec.installNamespace is immutable")))
		},
		Entry("it changes", `spec: {installNamespace: kafka}`, `{"spec": {"installNamespace": "other"}}`),
		Entry("it becomes empty", `spec: {installNamespace: kafka}`, `{"spec": {"installNamespace": ""}}`),
		Entry("it is removed", `spec: {installNamespace: kafka, parameters: {A: "1"}}`, `{"spec": {"installNamespace": null}}`),
		Entry("the whole spec is removed", `spec: {installNamespace: kafka}`, `{"spec": null}`),
		Entry("it comes after none", `spec: {parameters: {A: "1"}}`, `{"spec": {"installNamespace": "kafka"}}`),
		Entry("it comes after an empty one", `spec: {installNamespace: ""}`, `{"spec": {"installNamespace": "kafka"}}`),
		Entry("it comes with the spec", `{}`, `{"spec": {"installNamespace": "kafka"}}`),
	)

	DescribeTable("lets everything else of its spec change, and says an empty install namespace either way:",
		func(ctx SpecContext, before, change string) {
			Expect(patch(ctx, create(ctx, before), change)).To(Succeed())
		},
		Entry("a parameter", `spec: {installNamespace: kafka, parameters: {A: "1"}}`, `{"spec": {"parameters": {"A": "2"}}}`),
		Entry("an empty one is removed", `spec: {installNamespace: ""}`, `{"spec": {"installNamespace": null}}`),
		Entry("none is said to be empty", `spec: {parameters: {A: "1"}}`, `{"spec": {"installNamespace": ""}}`),
		Entry("a spec comes later", `{}`, `{"spec": {"parameters": {"A": "1"}}}`),
	)

	It("has atomic parameters: who applies them says all of them", func(ctx SpecContext) {
		apply := func(manager, parameters string) *unstructured.Unstructured {
			wanted := kudoObject("Instance", namespace, `spec: {parameters: `+parameters+`}`)
			Expect(server.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted),
				client.FieldOwner(manager), client.ForceOwnership)).To(Succeed())
			return wanted
		}
		apply("first", `{A: "1", B: "1"}`)
		Expect(field(apply("second", `{C: "1"}`), "spec", "parameters")).To(Equal(map[string]any{"C": "1"}))
	})

	It("keeps spec and status apart", func(ctx SpecContext) {
		stored := create(ctx, `{spec: {parameters: {A: "1"}}, status: {observedGeneration: 7}}`)
		Expect(field(stored, "status")).To(Equal(map[string]any{"observedGeneration": int64(-1)}))

		Expect(server.SubResource("status").Patch(ctx, stored, client.RawPatch("application/merge-patch+json",
			[]byte(`{"spec": {"parameters": {"A": "2"}}, "status": {"observedGeneration": 7}}`)))).To(Succeed())
		Expect(field(stored, "spec", "parameters")).To(Equal(map[string]any{"A": "1"}))
		Expect(field(stored, "status")).To(Equal(map[string]any{"observedGeneration": int64(7)}))
		Expect(stored.GetGeneration()).To(Equal(int64(1)))
	})

	DescribeTable("refuses a status with",
		func(ctx SpecContext, status, place string) {
			stored := create(ctx, `{}`)
			stored.Object["status"] = object(status).Object["status"]
			Expect(server.Status().Update(ctx, stored)).To(MatchError(ContainSubstring(place)))
		},
		Entry("an unknown state of a plan", `status: {planStatus: {deploy: {status: DONE}}}`, "status.planStatus.deploy.status"),
		Entry("an unknown state of a task",
			`status: {planStatus: {deploy: {phases: [{steps: [{tasks: [{name: a, status: DONE}]}]}]}}}`,
			"status.planStatus.deploy.phases[0].steps[0].tasks[0].status"),
		Entry("an unknown state of a child", `status: {children: [{task: a, state: Gone}]}`, "status.children[0].state"),
		Entry("two acknowledgements of one task", `status: {children: [{task: a}, {task: a}]}`, "status.children[1]"),
		Entry("an execution without a uid", `status: {execution: {plan: deploy}}`, "status.execution.uid"),
		Entry("a time that is none", `status: {planStatus: {deploy: {lastUpdatedTimestamp: yesterday}}}`,
			"status.planStatus.deploy.lastUpdatedTimestamp"),
	)

	It("reads and writes what KUDO 0.19 wrote without a loss", func(ctx SpecContext) {
		stored := create(ctx, kudoInstance)
		sent := object(kudoInstance)
		stored.Object["status"] = sent.DeepCopy().Object["status"]
		Expect(server.Status().Update(ctx, stored)).To(Succeed())
		Expect(stored.Object["spec"]).To(Equal(sent.Object["spec"]), "the spec that the API server stores")
		Expect(stored.Object["status"]).To(Equal(sent.Object["status"]), "the status that the API server stores")

		typed := &kudo.Instance{}
		Expect(server.Get(ctx, client.ObjectKeyFromObject(stored), typed)).To(Succeed())
		typed.Labels = map[string]string{"touched": "true"}
		Expect(server.Update(ctx, typed)).To(Succeed())
		typed.Status.ObservedGeneration = 1
		Expect(server.Status().Update(ctx, typed)).To(Succeed())

		Expect(server.Get(ctx, client.ObjectKeyFromObject(stored), stored)).To(Succeed())
		sent.Object["status"].(map[string]any)["observedGeneration"] = int64(1)
		Expect(stored.Object["spec"]).To(Equal(sent.Object["spec"]), "the spec that a client with Go types writes back")
		Expect(stored.Object["status"]).To(Equal(sent.Object["status"]), "the status that a client with Go types writes back")
	})

	It("keeps its generation when a client with Go types writes labels", func(ctx SpecContext) {
		stored := create(ctx, `spec: {parameters: {A: "1"}}`)
		typed := &kudo.Instance{}
		Expect(server.Get(ctx, client.ObjectKeyFromObject(stored), typed)).To(Succeed())
		typed.Labels = map[string]string{"touched": "true"}
		Expect(server.Update(ctx, typed)).To(Succeed())

		Expect(server.Get(ctx, client.ObjectKeyFromObject(stored), stored)).To(Succeed())
		Expect(stored.Object["spec"]).To(Equal(map[string]any{"parameters": map[string]any{"A": "1"}}))
		Expect(stored.GetGeneration()).To(Equal(int64(1)))
	})
})
