package agent

import (
	"context"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// labelled is a ConfigMap with a label that a template computes.
const labelled = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"{{ .Name }}-s\"\n  labels:\n    owner: %s\n"

var _ = Describe("A package that computes with a sensitive parameter", func() {
	// start starts plan deploy with a value and a template of its first task.
	start := func(ctx context.Context, template, value string) *hubPart {
		GinkgoHelper()
		makeAgentNamespace(ctx)
		spec := confidential()
		spec.Templates["credential.yaml"] = template
		h := newInstance(ctx, spec, nil)
		h.edit(ctx, func(i *kudo.Instance) { i.Spec.ParametersFrom = from("given", "password") })
		Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())
		Expect(managed.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "given"}, Data: map[string][]byte{"password": []byte(value)},
		})).To(Succeed())
		h.resolve(ctx)
		return h
	}
	// disclose runs plan deploy until it fails, and returns its message.
	disclose := func(ctx context.Context, template, value string) (h *hubPart, message string) {
		GinkgoHelper()
		h = start(ctx, template, value)
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(kudo.FatalError))
		Eventually(func() string { return h.ready(ctx).Reason }).Should(Equal(kudo.ReasonPlanFailed))
		return h, h.plan(ctx, "deploy").Message
	}
	// secret checks that neither the hub nor a log has any of the texts.
	secret := func(ctx context.Context, texts ...string) {
		GinkgoHelper()
		for _, text := range texts {
			Expect(hubServer.Traces(ctx, text)).To(BeEmpty(), "the hub has %q", text)
			Expect(environment.Quotes([]byte(CurrentSpecReport().CapturedGinkgoWriterOutput), text)).To(BeFalse(), "a log has %q", text)
		}
	}

	DescribeTable("does not disclose it", func(ctx context.Context, template, value, message string, parts ...string) {
		runAgent()
		_, failed := disclose(ctx, template, value)
		Expect(failed).To(ContainSubstring(message))
		for _, part := range parts {
			Expect(failed).NotTo(ContainSubstring(part))
		}
		secret(ctx, parts...)
	},
		Entry("by a part that the API server quotes",
			fmt.Sprintf(labelled, `{{ (splitList "@db" (index (splitList ":" .Params.PASSWORD) 2)) | first | quote }}`),
			"postgres://app:p4ss word#17@db.example.com/x", `metadata.labels: Invalid value: "*****"`, "p4ss word#17", "word#17"),
		Entry("by a part of a part in the same value",
			fmt.Sprintf(labelled, `"x {{ substr 0 9 .Params.PASSWORD }}?"`), "quoted-pa-rt2", `metadata.labels: Invalid value: "x *****?"`, "quoted-pa"),
		Entry("by a quoted part",
			"apiVersion: v1\nkind: Service\nmetadata: {name: \"{{ .Name }}-s\"}\nspec:\n  ports: [{port: 80}]\n  type: {{ substr 0 11 .Params.PASSWORD | quote }}\n",
			"first-part3-and-more", `spec.type: Unsupported value: "*****"`, "first-part3"),
		Entry("by the number that YAML makes of it",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}-s\"}\ndata: {a: {{ .Params.PASSWORD }}}\n",
			"07304520417", "the message is not shown, because the object holds a part of a sensitive value", "991076623"),
		Entry("by a part that is too short to mask",
			fmt.Sprintf(labelled, `{{ substr 0 2 .Params.PASSWORD | quote }}`), "?!unmaskable", "the message is not shown, because the object holds a part of a sensitive value", `"?!"`),
		Entry("by the begin and the end of a long token in an error of its template",
			"{{ fail .Params.PASSWORD }}", "begin-501"+strings.Repeat("-token-501-", 200)+"501-end",
			`its message is not shown, because it depends on sensitive parameter "PASSWORD"`, "begin-501", "-token-501-", "501-end"),
		Entry("by another encoding in fail",
			"{{ fail (printf \"bad password %s\" (b32enc .Params.PASSWORD)) }}", "hunter2-base32",
			`its message is not shown, because it depends on sensitive parameter "PASSWORD"`, base32.StdEncoding.EncodeToString([]byte("hunter2-base32"))),
	)

	It("does not disclose it by a warning of the API server", func(ctx context.Context) {
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "warn-of-owners"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}}}},
				Validations: []admissionregistrationv1.Validation{{
					Expression: "!has(object.metadata.labels) || !('owner' in object.metadata.labels)", MessageExpression: "'owned by ' + object.metadata.labels.owner",
				}},
			},
		}
		bound := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}},
		}
		for _, o := range []client.Object{policy, bound} {
			Expect(managed.Create(ctx, o)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { Expect(managed.Delete(ctx, o)).To(Succeed()) })
		}
		By("waiting until the API server warns")
		heard := &warnings{}
		config := rest.CopyConfig(agentLocally)
		config.WarningHandlerWithContext = heard
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-", Namespace: "default", Labels: map[string]string{"owner": "probe"}}}
		Eventually(func() []string {
			Expect(clientOf(config).Create(ctx, probe.DeepCopy())).To(Succeed())
			return heard.texts()
		}).Should(ContainElement(ContainSubstring("owned by probe")))

		runAgent()
		h := start(ctx, fmt.Sprintf(labelled, "{{ substr 0 12 .Params.PASSWORD | quote }}"), "owner-part-88-hunter2")
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.there(ctx)).To(ContainElement("ConfigMap " + h.namespace + "/" + h.name + "-s"))
		secret(ctx, "owner-part-88"[:12])
	})

	DescribeTable("does not disclose it by the health of its objects", func(ctx context.Context, part, quoted, message string) {
		stop := runAgent()
		template := strings.Replace(deploymentTemplate, "metadata: {", "metadata: {annotations: {part: {{ "+part+" .Params.PASSWORD | quote }}}, ", 1)
		h := start(ctx, template, "gadget-1234-"+strings.Repeat("health", 400))
		app := &appsv1.Deployment{}
		Eventually(func() bool { return h.local(ctx, "-app", app) }).Should(BeTrue())
		Expect(app.Annotations["part"]).NotTo(BeEmpty())
		available := func(count int32) {
			GinkgoHelper()
			Eventually(func() error {
				return environment.EditStatus(ctx, managed, app, func(d *appsv1.Deployment) {
					d.Status = appsv1.DeploymentStatus{
						ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: count, AvailableReplicas: count,
						Conditions: []appsv1.DeploymentCondition{{
							Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate",
							Message: "it does not know " + d.Annotations["part"],
						}},
					}
				})
			}).Should(Succeed())
		}
		available(0)
		Eventually(func() string { return h.plan(ctx, "deploy").Message }).Should(ContainSubstring(message))
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring(message))

		By("judging it by an agent that has not applied it")
		available(2)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		stop()
		runAgent()
		available(1)
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring(message))
		secret(ctx, quoted)
	},
		Entry("which quotes a part", "substr 2 11", "dget-1234", "it does not know *****"),
		Entry("which quotes it longer than a message may be", "", "gadget-1234", "it does not know *****"),
		Entry("which quotes a part that is too short to mask", "substr 0 3", "not know gad", "the message is not shown, because the object holds a part of a sensitive value"),
	)

	DescribeTable("cannot let it decide about objects", func(ctx context.Context, template, message string) {
		runAgent()
		h, failed := disclose(ctx, template, password())
		Expect(failed).To(ContainSubstring(`sensitive parameter "PASSWORD" ` + message))
		Expect(h.there(ctx)).To(BeEmpty())
		Expect(h.inventoryOf(ctx)).To(BeEmpty())
	},
		Entry("by a name that a condition selects",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-{{ if eq (substr 0 1 .Params.PASSWORD) \"h\" }}h{{ else }}other{{ end }}'}\n",
			"decides about more than text inside of a field"),
		Entry("by a name in a variable",
			"{{ $name := \"other\" }}{{ if eq (substr 0 1 .Params.PASSWORD) \"h\" }}{{ $name = \"h\" }}{{ end }}"+
				"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-{{ $name }}'}\n", "is part of the name or namespace of an object"),
		Entry("by an object in a loop",
			"{{ range $i, $part := splitList \"-\" .Params.PASSWORD }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ $.Name }}-{{ $i }}'}\n{{ end }}\n",
			"decides about more than text inside of a field"),
	)
})

// warnings collects the warnings of an API server.
type warnings struct {
	mutex sync.Mutex
	heard []string
}

func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.heard = append(w.heard, text)
}

func (w *warnings) texts() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.heard)
}
