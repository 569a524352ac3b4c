package agent

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// exported is an object as the API server has once returned it.
const exported = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: "{{ .Name }}-config"
  uid: 11111111-2222-3333-4444-555555555555
  resourceVersion: "12"
  generation: 4
  selfLink: /api/v1/namespaces/default/configmaps/config
  creationTimestamp: "2020-01-01T00:00:00Z"
  deletionTimestamp: "2020-01-01T00:00:00Z"
  managedFields: [{manager: kubectl, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {}}]
data: {value: "{{ .Params.VALUE }}"}
---
apiVersion: v1
kind: Service
metadata: {name: "{{ .Name }}", creationTimestamp: null}
spec: {ports: [{port: 80}], selector: {value: "{{ .Params.VALUE }}"}}
status: {loadBalancer: {ingress: [{ip: 10.0.0.1}]}, conditions: [{type: A, status: "True", reason: B, message: "", lastTransitionTime: "2020-01-01T00:00:00Z"}]}
`

// formerly are objects with fields that Kubernetes has removed from their kinds.
const formerly = `
apiVersion: v1
kind: Service
metadata: {name: "{{ .Name }}", initializers: {pending: []}}
spec: {ports: [{port: 80}], ipFamily: IPv4, topologyKeys: ["*"]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Name }}", clusterName: ""}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}, initializers: {pending: []}}
    spec:
      containers: [{name: app, image: "app:1"}]
      volumes:
      - name: v
        ephemeral: {readOnly: false, volumeClaimTemplate: {metadata: {clusterName: c}, spec: {accessModes: [ReadWriteOnce], resources: {claims: [], requests: {storage: 1Gi}}}}}
---
apiVersion: batch/v1beta1
kind: CronJob
metadata: {name: "{{ .Name }}"}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate:
    metadata: {initializers: {pending: []}}
    spec: {template: {metadata: {clusterName: c}, spec: {restartPolicy: Never, containers: [{name: app, image: "app:1"}]}}}
---
apiVersion: apps/v1beta2
kind: StatefulSet
metadata: {name: "{{ .Name }}"}
spec:
  serviceName: x
  selector: {matchLabels: {app: s}}
  template: {metadata: {labels: {app: s}}, spec: {containers: [{name: app, image: "app:1"}]}}
  volumeClaimTemplates:
  - {metadata: {name: v, initializers: {}}, spec: {accessModes: [ReadWriteOnce], resources: {claims: [], requests: {storage: 1Gi}}}, status: {resizeStatus: ""}}
`

// secretWithText is a Secret, one of whose keys exists only with the default parameters.
const secretWithText = `
apiVersion: v1
kind: Secret
metadata: {name: "{{ .Name }}-secret"}
data: {encoded: eA==}
stringData:
  user: admin
  value: "{{ .Params.VALUE }}"
  {{- if eq .Params.VALUE "one" }}
  password: old
  {{- end }}
`

const deploymentOfAccount = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Name }}-app"}
spec:
  selector: {matchLabels: {app: "{{ .Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Name }}"}}
    spec: { serviceAccount: ACCOUNT, containers: [{name: app, image: "app:1"}]}
`

// applyAsBefore applies an object like an earlier release, after an edit.
func applyAsBefore(ctx context.Context, key client.ObjectKey, apiVersion, kind string, edit func(object map[string]any)) {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	Expect(managed.Get(ctx, key, object)).To(Succeed())
	for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	delete(object.Object, "status")
	edit(object.Object)
	Expect(managed.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("addon-agent-engine"), client.ForceOwnership)).To(Succeed())
}

var _ = Describe("Fields of a template that an API server does not take as they are", func() {
	var stop func()
	BeforeEach(func() { stop = runAgent() })
	AfterEach(func() { stop() })

	It("are not applied if it sets them, so that updates do not conflict", func(ctx context.Context) {
		h := newInstance(ctx, single(exported), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Eventually(func() []string { return h.eventsOf(ctx, "FieldsOmitted") }).Should(ConsistOf(And(
			ContainSubstring("ConfigMap "+h.name+"-config: metadata.resourceVersion (the API server sets it)"), ContainSubstring("and 3 more"))))
		before := h.plan(ctx, "deploy")
		h.set(ctx, map[string]string{"VALUE": "two"})
		h.completes(ctx, "deploy", before)
		Expect(h.config(ctx, "-config")).To(Equal("two"))
		h.finish(ctx)
	})

	It("are not applied if Kubernetes has removed them", func(ctx context.Context) {
		h := newInstance(ctx, single(formerly), nil)
		h.resolve(ctx)
		for _, kind := range []string{"v1 Service", "apps/v1 Deployment", "batch/v1 CronJob", "apps/v1 StatefulSet"} {
			Eventually(func() bool { return h.anywhere(ctx, blank(kind)) }).Should(BeTrue(), kind)
		}
		Eventually(func() []string { return h.eventsOf(ctx, "FieldsOmitted") }).Should(ConsistOf(
			ContainSubstring("Service " + h.name + ": metadata.initializers (Kubernetes has removed the field in 1.16)")))
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(kudo.InProgress),
			"no controller looks at the workloads here")
		h.finish(ctx)
	})

	It("are data of a Secret, and are removed with their key", func(ctx context.Context) {
		h := newInstance(ctx, single(secretWithText), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		secret := &corev1.Secret{}
		Expect(h.local(ctx, "-secret", secret)).To(BeTrue())
		Expect(secret.Data).To(Equal(map[string][]byte{"encoded": []byte("x"), "user": []byte("admin"), "value": []byte("one"), "password": []byte("old")}))
		before := h.plan(ctx, "deploy")
		h.set(ctx, map[string]string{"VALUE": "two"})
		h.completes(ctx, "deploy", before)
		Expect(h.local(ctx, "-secret", secret)).To(BeTrue())
		Expect(secret.Data).To(Equal(map[string][]byte{"encoded": []byte("x"), "user": []byte("admin"), "value": []byte("two")}))
		h.finish(ctx)
	})

	It("are removed from a Secret that an earlier release has applied, beside the keys of others", func(ctx context.Context) {
		h := newInstance(ctx, single(secretWithText), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		before := h.plan(ctx, "deploy")
		stop()
		key := client.ObjectKey{Namespace: h.namespace, Name: h.name + "-secret"}
		applyAsBefore(ctx, key, "v1", "Secret", func(secret map[string]any) {
			secret["data"] = map[string]any{"encoded": "eA=="}
			secret["stringData"] = map[string]any{"user": "admin", "value": "one", "password": "old"}
		})
		secret := &corev1.Secret{}
		Expect(managed.Get(ctx, key, secret)).To(Succeed())
		patched := secret.DeepCopy()
		patched.Data["other"] = []byte("kept")
		Expect(managed.Patch(ctx, patched, client.MergeFrom(secret), client.FieldOwner("someone"))).To(Succeed())

		stop = runAgent()
		h.set(ctx, map[string]string{"VALUE": "two"})
		h.completes(ctx, "deploy", before)
		Expect(managed.Get(ctx, key, secret)).To(Succeed())
		Expect(secret.Data).To(Equal(map[string][]byte{
			"encoded": []byte("x"), "user": []byte("admin"), "value": []byte("two"), "other": []byte("kept"),
		}))
		h.finish(ctx)
	})

	It("change and remove the service account by its former name and its name", func(ctx context.Context) {
		h := newInstance(ctx, single(strings.Replace(deploymentOfAccount, "serviceAccount: ACCOUNT,",
			`{{ with .Params.VALUE }}{{ if ne . "none" }}{{ if eq . "one" }}serviceAccount{{ else }}serviceAccountName{{ end }}: {{ . }},{{ end }}{{ end }}`, 1)), nil)
		h.resolve(ctx)
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.set(ctx, map[string]string{"VALUE": "two"})
		Eventually(func() string { return h.podTemplate(ctx).Spec.ServiceAccountName }).Should(Equal("two"))
		Expect(h.podTemplate(ctx).Spec.DeprecatedServiceAccount).To(Equal("two"))
		h.rollOut(ctx)
		h.set(ctx, map[string]string{"VALUE": "none"})
		Eventually(func() string { return h.podTemplate(ctx).Spec.ServiceAccountName }).Should(BeEmpty())
		h.finish(ctx)
	})

	It("restart no pods of an earlier release", func(ctx context.Context) {
		spec := single(strings.Replace(deploymentOfAccount, "ACCOUNT", "account", 1) + "---\n" + strings.Replace(configTemplate, "%s", "config", 1))
		spec.Parameters[0].ForcePodRestart = new(kudo.Flag(false))
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		before := h.plan(ctx, "deploy")
		stop()
		key := client.ObjectKey{Namespace: h.namespace, Name: h.name + "-app"}
		applyAsBefore(ctx, key, "apps/v1", "Deployment", func(deployment map[string]any) {
			spec := deployment["spec"].(map[string]any)
			deployment["spec"] = map[string]any{"selector": spec["selector"], "template": map[string]any{
				"metadata": spec["template"].(map[string]any)["metadata"],
				"spec":     map[string]any{"serviceAccount": "account", "containers": []any{map[string]any{"name": "app", "image": "app:1"}}},
			}}
		})
		deployment := &appsv1.Deployment{}
		Expect(managed.Get(ctx, key, deployment)).To(Succeed())
		template := deployment.Spec.Template.DeepCopy()
		stop = runAgent()
		h.set(ctx, map[string]string{"VALUE": "two"})
		Eventually(func() string { return h.config(ctx, "-config") }).Should(Equal("two"))
		h.rollsOut(ctx, "deploy", before)
		h.completes(ctx, "deploy", before)
		Expect(h.podTemplate(ctx)).To(Equal(template))
		Expect(template.Spec.ServiceAccountName).To(Equal("account"))
		h.finish(ctx)
	})
})
