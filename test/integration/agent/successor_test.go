package agent

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// removed lists minimal manifests of old packages, in API versions that were removed from Kubernetes, with their successors.
var removed = map[string]string{
	"policy/v1 PodDisruptionBudget": "apiVersion: policy/v1beta1\nspec: {minAvailable: 1, selector: {}}",
	"batch/v1 CronJob": "apiVersion: batch/v1beta1\nspec: {schedule: '0 0 1 1 *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, " +
		"containers: [{name: app, image: 'app:1'}]}}}}}",
	"apps/v1 DaemonSet": "apiVersion: apps/v1beta2\nspec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, " +
		"spec: {containers: [{name: app, image: 'app:1'}]}}}",
	"rbac.authorization.k8s.io/v1 Role": "apiVersion: rbac.authorization.k8s.io/v1beta1\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]",
	"rbac.authorization.k8s.io/v1 RoleBinding": "apiVersion: rbac.authorization.k8s.io/v1beta1\nroleRef: {apiGroup: rbac.authorization.k8s.io, " +
		"kind: Role, name: x}\nsubjects: [{kind: ServiceAccount, name: x, namespace: default}]",
	"networking.k8s.io/v1 NetworkPolicy": "apiVersion: extensions/v1beta1\nspec: {podSelector: {}}",
	"autoscaling/v2 HorizontalPodAutoscaler": "apiVersion: autoscaling/v2beta2\nspec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, " +
		"kind: Deployment, name: x}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}",
	"coordination.k8s.io/v1 Lease":         "apiVersion: coordination.k8s.io/v1beta1\nspec: {leaseDurationSeconds: 15}",
	"storage.k8s.io/v1 CSIStorageCapacity": "apiVersion: storage.k8s.io/v1beta1\nstorageClassName: x",
	"networking.k8s.io/v1 IngressClass":    "apiVersion: networking.k8s.io/v1beta1\nspec: {controller: example.com/x}",
	"scheduling.k8s.io/v1 PriorityClass":   "apiVersion: scheduling.k8s.io/v1beta1\nvalue: 1",
	"storage.k8s.io/v1 StorageClass":       "apiVersion: storage.k8s.io/v1beta1\nprovisioner: example.com/x",
	"storage.k8s.io/v1 CSIDriver":          "apiVersion: storage.k8s.io/v1beta1\nspec: {attachRequired: false}",
	"node.k8s.io/v1 RuntimeClass":          "apiVersion: node.k8s.io/v1beta1\nhandler: runc",
	"flowcontrol.apiserver.k8s.io/v1 FlowSchema": "apiVersion: flowcontrol.apiserver.k8s.io/v1beta3\nspec: {priorityLevelConfiguration: " +
		"{name: global-default}, matchingPrecedence: 9000}",
	"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy": "apiVersion: admissionregistration.k8s.io/v1beta1\nspec: {validations: " +
		"[{expression: 'true'}], matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: ['*'], operations: [CREATE], resources: ['*']}]}}",
}

// formerDefinition is a resource definition as older packages have it, with a schema that is not structural.
const formerDefinition = `
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: '{{ .Name | replace "-" "" }}s.toys.k8s.io'}
spec:
  group: toys.k8s.io
  version: v1
  names: {kind: 'Toy{{ .Name | replace "-" "" }}', plural: '{{ .Name | replace "-" "" }}s'}
  subresources: {status: {}}
  additionalPrinterColumns: [{name: Size, type: integer, JSONPath: .spec.size}]
  validation:
    openAPIV3Schema:
      $schema: http://json-schema.org/draft-04/schema#
      additionalProperties: true
      properties:
        apiVersion: {description: none}
        metadata: {description: only names can be restricted, properties: {labels: {type: object}, name: {maxLength: 60}}}
        spec:
          oneOf: [{required: [size]}, {title: without, properties: {inner: {required: [x]}}}]
          properties:
            target: {anyOf: [{type: string}, {type: integer}], description: in the other order}
            either: {oneOf: [{type: string}, {type: integer}], readOnly: true}
            any: {anyOf: [{type: string}, {type: object}], x-custom: y}
            empty:
            size: {type: integer}
            port: {anyOf: [{type: integer}, {type: string}]}
            inner: {properties: {known: {type: string}}}
            list: {type: array}
            free: {description: anything}
status: {acceptedNames: {kind: "", plural: ""}, conditions: [], storedVersions: []}
`

var _ = Describe("A kind in an API version that Kubernetes has removed", func() {
	BeforeEach(func() { DeferCleanup(runAgent()) })

	It("is converted, if it is a resource definition", func(ctx context.Context) {
		h := newInstance(ctx, single(formerDefinition), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		kind := schema.GroupVersionKind{Group: "toys.k8s.io", Version: "v1", Kind: "Toy" + strings.ReplaceAll(h.name, "-", "")}
		toy := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"target": int64(80), "either": "x", "any": map[string]any{"a": int64(1)}, "empty": int64(1), "port": "http", "size": int64(3), "inner": map[string]any{"unknown": "kept"}, "list": []any{"a", int64(1)}, "free": []any{int64(1)},
		}}}
		toy.SetGroupVersionKind(kind)
		toy.SetNamespace("default")
		toy.SetName("toy")
		want := toy.DeepCopy().Object["spec"]
		invalid := toy.DeepCopy()
		Expect(unstructured.SetNestedField(invalid.Object, "many", "spec", "size")).To(Succeed())
		Eventually(func() error { return managed.Create(ctx, invalid.DeepCopy()) }).Should(MatchError(ContainSubstring("spec.size")))
		Expect(managed.Create(ctx, toy)).To(Succeed())
		Expect(toy.Object["spec"]).To(Equal(want), "unknown fields are kept")
		definition := &unstructured.Unstructured{}
		definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		Expect(managed.Get(ctx, client.ObjectKey{Name: strings.ReplaceAll(h.name, "-", "") + "s.toys.k8s.io"}, definition)).To(Succeed())
		versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
		Expect(err).NotTo(HaveOccurred())
		Expect(versions).To(ConsistOf(And(HaveKeyWithValue("name", "v1"), HaveKey("subresources"), HaveKeyWithValue("additionalPrinterColumns",
			ConsistOf(HaveKeyWithValue("jsonPath", ".spec.size"))))))
		h.finish(ctx)
	})

	It("is applied as its successor, and means the same", func(ctx context.Context) {
		var manifests []string
		for kind, manifest := range removed {
			_, name, _ := strings.Cut(kind, " ")
			manifests = append(manifests, "kind: "+name+"\nmetadata: {name: \"{{ .Name }}\"}\n"+manifest)
		}
		h := newInstance(ctx, single(strings.Join(manifests, "\n---\n")), nil)
		h.resolve(ctx)
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(kudo.InProgress),
			"no controller looks at the disruption budget here")
		for kind := range removed {
			Expect(h.anywhere(ctx, blank(kind))).To(BeTrue(), kind)
		}
		By("selecting nothing by the empty selector of a disruption budget")
		budget := &policyv1.PodDisruptionBudget{}
		Expect(h.local(ctx, "", budget)).To(BeTrue())
		Expect(budget.Spec.Selector).To(BeNil())
		h.finish(ctx)
	})
})
