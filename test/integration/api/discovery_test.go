package api

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// table requests the table that kubectl get prints for the single object in a namespace: the names of the columns, and the object's cells.
func table(ctx context.Context, resource, namespace string) (columns []string, cells []any) {
	GinkgoHelper()
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	answer, err := discoverer.RESTClient().Get().
		AbsPath("apis", kudo.GroupVersion.String(), "namespaces", namespace, resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	parsed := &metav1.Table{}
	Expect(json.Unmarshal(answer, parsed)).To(Succeed())
	for _, column := range parsed.ColumnDefinitions {
		columns = append(columns, column.Name)
	}
	Expect(parsed.Rows).To(HaveLen(1))
	return columns, parsed.Rows[0].Cells
}

var _ = Describe("kubectl", func() {
	It("shows an Operator's description and home page", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		Expect(server.Create(ctx, kudoObject("Operator", namespace,
			`spec: {description: Fish, url: "https://pond.example", maintainers: [{name: A, email: a@pond.example}]}`))).To(Succeed())

		columns, cells := table(ctx, "operators", namespace)
		Expect(columns).To(Equal([]string{"Name", "Description", "URL", "Age"}))
		Expect(cells[:3]).To(Equal([]any{"sample", "Fish", "https://pond.example"}))
	})

	It("shows what an OperatorVersion is a version of", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		Expect(server.Create(ctx, kudoObject("OperatorVersion", namespace, kudoOperatorVersion))).To(Succeed())

		columns, cells := table(ctx, "operatorversions", namespace)
		Expect(columns).To(Equal([]string{"Name", "Operator", "Version", "App-Version", "Age"}))
		Expect(cells[:4]).To(Equal([]any{"pond-4.2.0-1.3.1", "pond", "1.3.1", "4.2.0"}))
	})

	It("shows what an Instance runs and whether it is ready", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		stored := kudoObject("Instance", namespace, kudoInstance)
		Expect(server.Create(ctx, stored)).To(Succeed())
		status := object(`
status:
  execution: {uid: e1, plan: deploy}
  conditions:
  - {type: Resolved, status: "True", reason: Resolved, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
  - {type: Ready, status: "False", reason: PlanInProgress, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}`)
		stored.Object["status"] = status.Object["status"]
		Expect(server.Status().Update(ctx, stored)).To(Succeed())

		columns, cells := table(ctx, "instances", namespace)
		Expect(columns).To(Equal([]string{"Name", "Operator-Version", "Plan", "Resolved", "Ready", "Reason", "Age"}))
		Expect(cells[:6]).To(Equal([]any{"pond", "pond-4.2.0-1.3.1", "deploy", "True", "False", "PlanInProgress"}))
	})

	DescribeTable("knows short names",
		func(resource, shortName string) {
			discoverer, err := discovery.NewDiscoveryClientForConfig(config)
			Expect(err).NotTo(HaveOccurred())
			found, err := discoverer.ServerResourcesForGroupVersion(kudo.GroupVersion.String())
			Expect(err).NotTo(HaveOccurred())
			Expect(found.APIResources).To(ContainElement(And(
				HaveField("Name", resource), HaveField("ShortNames", ConsistOf(shortName)), HaveField("Categories", ConsistOf("kudo")))))
		},
		Entry("of Operators", "operators", "op"),
		Entry("of OperatorVersions", "operatorversions", "ov"),
		Entry("of Instances", "instances", "inst"),
	)
})
