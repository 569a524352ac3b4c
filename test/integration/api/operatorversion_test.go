package api

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("OperatorVersion", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = newNamespace(ctx) })

	DescribeTable("is accepted with",
		func(ctx SpecContext, body string) {
			Expect(server.Create(ctx, kudoObject("OperatorVersion", namespace, body))).To(Succeed())
		},
		Entry("no spec at all", `{}`),
		Entry("an empty spec", `spec: {}`),
		Entry("an empty plan", `spec: {plans: {deploy: {}}}`),
		Entry("no plans, said as null", `spec: {plans: null}`),
		Entry("a plan without phases, said as null", `spec: {plans: {deploy: {strategy: serial, phases: null}}}`),
		Entry("a phase and a step of nothing but null", `spec: {plans: {deploy: {phases: [{steps: null}, {steps: [{tasks: null}]}]}}}`),
		Entry("an empty strategy", `spec: {plans: {deploy: {strategy: "", phases: [{name: a, strategy: ""}]}}}`),
		Entry("no templates, tasks, parameters and predecessors, said as null",
			`spec: {templates: null, tasks: null, parameters: null, upgradableFrom: null}`),
		Entry("a reference that carries a kind", `spec: {operator: {kind: Operator, apiVersion: kudo.dev/v1beta1, name: zk}}`),
		Entry("a task without a spec", `spec: {tasks: [{name: nothing, kind: Dummy}]}`),
		Entry("a task with a spec of null", `spec: {tasks: [{name: nothing, kind: Dummy, spec: null}]}`),
		Entry("a task of an unknown kind, which only its execution refuses", `spec: {tasks: [{name: a, kind: Teleport}]}`),
		Entry("a pipe task without files, said as null", `spec: {tasks: [{name: a, kind: Pipe, spec: {pod: p.yaml, pipe: null}}]}`),
		Entry("a parameter without a default, said as null", `spec: {parameters: [{name: A, default: null, required: null, enum: null}]}`),
		Entry("a parameter with an empty type", `spec: {parameters: [{name: A, value-type: ""}]}`),
		Entry("a switch of pod restarts, with quotes and without",
			`spec: {parameters: [{name: A, forcePodRestart: "false"}, {name: B, forcePodRestart: false}]}`),
		Entry("timeouts", `spec: {plans: {deploy: {timeout: 1h30m, phases: [{timeout: 1.5h, steps: [{timeout: 500ms}]}]}}}`),
		Entry("the shortest and the longest timeout that packages can have",
			`spec: {plans: {deploy: {timeout: 1ms, phases: [{timeout: 1.000001ms, steps: [{timeout: 99999h59m59.999999999s}]}]}}}`),
		Entry("no permissions, said as an empty map", `spec: {permissions: {}}`),
		Entry("permissions", `spec: {permissions: {rules: [{apiGroups: [""], resources: [pods], verbs: [create]}],
clusterRules: [{nonResourceURLs: [/metrics], verbs: [get]}], namespaces: [{name: a, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}]}}`),
		Entry("an enabling parameter",
			`spec: {tasks: [{name: a, kind: KudoOperator, spec: {package: zookeeper, enablingParameter: ZOOKEEPER}}]}`),
	)

	DescribeTable("is refused with",
		func(ctx SpecContext, body, place string) {
			err := server.Create(ctx, kudoObject("OperatorVersion", namespace, body))
			Expect(err).To(MatchError(ContainSubstring(place)))
		},
		Entry("an unknown strategy of a plan", `spec: {plans: {deploy: {strategy: random}}}`, "spec.plans.deploy.strategy"),
		Entry("an unknown strategy of a phase", `spec: {plans: {deploy: {phases: [{strategy: random}]}}}`,
			"spec.plans.deploy.phases[0].strategy"),
		Entry("an unknown type of parameter", `spec: {parameters: [{name: A, value-type: date}]}`,
			"spec.parameters[0].value-type"),
		Entry("a default that is no string", `spec: {parameters: [{name: A, default: 3}]}`, "spec.parameters[0].default"),
		Entry("a switch of pod restarts that is neither true nor false",
			`spec: {parameters: [{name: A, forcePodRestart: sometimes}]}`, "spec.parameters[0].forcePodRestart"),
		Entry("a switch of pod restarts that is an object",
			`spec: {parameters: [{name: A, forcePodRestart: {"true": false}}]}`, "spec.parameters[0].forcePodRestart"),
		Entry("a permission without verbs", `spec: {permissions: {rules: [{apiGroups: [""], resources: [pods]}]}}`,
			"spec.permissions.rules[0].verbs"),
		Entry("permissions in a namespace twice", `spec: {permissions: {namespaces: [{name: a}, {name: a}]}}`, "spec.permissions.namespaces[1]"),
		Entry("permissions in a namespace without a name", `spec: {permissions: {namespaces: [{rules: []}]}}`, "spec.permissions.namespaces[0].name"),
		Entry("an unknown kind of pipe", `spec: {tasks: [{name: a, spec: {pipe: [{kind: Pod}]}}]}`,
			"spec.tasks[0].spec.pipe[0].kind"),
		Entry("a template that is no string", `spec: {templates: {a.yaml: {kind: Pod}}}`, "spec.templates.a.yaml"),
		Entry("a timeout without a unit", `spec: {plans: {deploy: {timeout: "30"}}}`, "spec.plans.deploy.timeout"),
		Entry("a timeout in days, which Go does not read", `spec: {plans: {deploy: {timeout: 2d}}}`, "spec.plans.deploy.timeout"),
		Entry("a timeout below zero", `spec: {plans: {deploy: {timeout: "-1s"}}}`, "spec.plans.deploy.timeout"),
		Entry("a timeout that no duration can hold", `spec: {plans: {deploy: {timeout: 9999999h}}}`, "spec.plans.deploy.timeout"),
		Entry("a timeout below a millisecond", `spec: {plans: {deploy: {timeout: 999µs}}}`, "spec.plans.deploy.timeout"),
		Entry("a timeout of six digits", `spec: {plans: {deploy: {timeout: 100000h0m0s}}}`, "spec.plans.deploy.timeout"),
		Entry("a timeout that is empty", `spec: {plans: {deploy: {timeout: ""}}}`, "spec.plans.deploy.timeout"),
	)

	It("gets the defaults of strategy and value-type", func(ctx SpecContext) {
		stored := kudoObject("OperatorVersion", namespace,
			`spec: {parameters: [{name: A}], plans: {deploy: {phases: [{name: a}]}}}`)
		Expect(server.Create(ctx, stored)).To(Succeed())

		Expect(field(stored, "spec", "parameters")).To(ConsistOf(map[string]any{"name": "A", "value-type": "string"}))
		Expect(field(stored, "spec", "plans", "deploy")).To(Equal(map[string]any{
			"strategy": "serial",
			"phases":   []any{map[string]any{"name": "a", "strategy": "serial"}},
		}))
	})

	DescribeTable("is immutable:",
		func(ctx SpecContext, before, change string) {
			stored := kudoObject("OperatorVersion", namespace, before)
			Expect(server.Create(ctx, stored)).To(Succeed())
			Expect(patch(ctx, stored, change)).To(MatchError(ContainSubstring("the spec of an OperatorVersion is immutable")))
		},
		Entry("a field changes", `spec: {version: 1.0.0}`, `{"spec": {"version": "1.0.1"}}`),
		Entry("a field deep inside changes", `spec: {templates: {a.yaml: old, b.yaml: same}}`, `{"spec": {"templates": {"a.yaml": "new"}}}`),
		Entry("a field is added", `spec: {version: 1.0.0}`, `{"spec": {"appVersion": "3"}}`),
		Entry("a field is removed", `spec: {version: 1.0.0}`, `{"spec": {"version": null}}`),
		Entry("a switch of pod restarts changes", `spec: {parameters: [{name: A, forcePodRestart: "false"}]}`,
			`{"spec": {"parameters": [{"name": "A", "value-type": "string", "forcePodRestart": "true"}]}}`),
		Entry("the order of tasks changes", `spec: {tasks: [{name: a}, {name: b}]}`, `{"spec": {"tasks": [{"name": "b"}, {"name": "a"}]}}`),
		Entry("the spec is removed", `spec: {version: 1.0.0}`, `{"spec": null}`),
		Entry("a spec is added later", `{}`, `{"spec": {"version": "1.0.0"}}`),
	)

	It("is read with a switch of pod restarts that is quoted, as KEP-27 writes it", func(ctx SpecContext) {
		stored := kudoObject("OperatorVersion", namespace,
			`spec: {parameters: [{name: A, forcePodRestart: "false"}, {name: B, forcePodRestart: "true"}, {name: C, forcePodRestart: false}, {name: D}]}`)
		Expect(server.Apply(ctx, client.ApplyConfigurationFromUnstructured(stored), client.FieldOwner("test"))).To(Succeed())
		var read kudo.OperatorVersion
		Expect(server.Get(ctx, client.ObjectKeyFromObject(stored), &read)).To(Succeed())
		var flags []*kudo.Flag
		for _, p := range read.Spec.Parameters {
			flags = append(flags, p.ForcePodRestart)
		}
		Expect(flags).To(Equal([]*kudo.Flag{new(kudo.Flag(false)), new(kudo.Flag(true)), new(kudo.Flag(false)), nil}))
	})

	It("takes labels, annotations and finalizers at any time, however large it is", func(ctx SpecContext) {
		stored := kudoObject("OperatorVersion", namespace, `{}`)
		templates := map[string]any{}
		for letter := 'a'; letter <= 'z'; letter++ {
			templates[string(letter)+".yaml"] = longText
		}
		stored.Object["spec"] = map[string]any{"templates": templates}
		Expect(server.Create(ctx, stored)).To(Succeed())

		Expect(patch(ctx, stored, `{"metadata": {"labels": {"team": "data"}, "annotations": {"note": "x"}}}`)).To(Succeed())
	})

	It("reads and writes what KUDO 0.19 wrote without a loss", func(ctx SpecContext) {
		sent := kudoObject("OperatorVersion", namespace, kudoOperatorVersion)
		spec := sent.DeepCopy().Object["spec"]
		Expect(server.Create(ctx, sent)).To(Succeed())
		Expect(sent.Object["spec"]).To(Equal(spec), "what the API server stores")

		typed := &kudo.OperatorVersion{}
		Expect(server.Get(ctx, client.ObjectKeyFromObject(sent), typed)).To(Succeed())
		typed.Labels = map[string]string{"touched": "true"}
		Expect(server.Update(ctx, typed)).To(Succeed())

		Expect(server.Get(ctx, client.ObjectKeyFromObject(sent), sent)).To(Succeed())
		Expect(sent.Object["spec"]).To(Equal(spec), "what a client with Go types writes back")
	})

	It("lets a client with Go types write labels, however little the spec says", func(ctx SpecContext) {
		for _, body := range []string{`{}`, `spec: {version: 1.0.0}`, `spec: {tasks: [{name: nothing, kind: Dummy}]}`} {
			stored := kudoObject("OperatorVersion", namespace, body)
			stored.SetName("")
			stored.SetGenerateName("sparse-")
			Expect(server.Create(ctx, stored)).To(Succeed())

			typed := &kudo.OperatorVersion{}
			Expect(server.Get(ctx, client.ObjectKeyFromObject(stored), typed)).To(Succeed())
			typed.Labels = map[string]string{"touched": "true"}
			Expect(server.Update(ctx, typed)).To(Succeed(), body)
		}
	})
})
