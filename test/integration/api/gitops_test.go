package api

import (
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A GitOps tool compares an object with the result of a dry run that applies the manifest again.
var _ = Describe("A manifest that is applied again", func() {
	DescribeTable("changes nothing:", func(ctx SpecContext, document string) {
		namespace := newNamespace(ctx)
		manifest := func() *unstructured.Unstructured {
			parsed := object(document)
			if parsed.GetKind() != "ClusterManagementAddOn" {
				parsed.SetNamespace(namespace)
			}
			return parsed
		}
		apply := func(options ...client.ApplyOption) *unstructured.Unstructured {
			GinkgoHelper()
			applied := manifest()
			Expect(server.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), append(options, client.FieldOwner("gitops"), client.ForceOwnership)...)).To(Succeed())
			return applied
		}
		first := apply()
		DeferCleanup(func(ctx SpecContext) { Expect(server.Delete(ctx, manifest())).To(Succeed()) })
		Expect(apply(client.DryRunAll)).To(Equal(first))
		stored := apply() // stores the default of status, which the first write does not
		Expect(apply()).To(Equal(stored), "not even a write")
	},
		Entry("an Instance", `{apiVersion: kudo.dev/v1beta1, kind: Instance, spec: {operatorVersion: {name: kafka-1.3.1}, parameters: {A: "1"}}}`),
		Entry("an Instance without a spec", `{apiVersion: kudo.dev/v1beta1, kind: Instance}`),
		Entry("an Instance with a request", `{apiVersion: kudo.dev/v1beta1, kind: Instance, spec: {planExecution: {planName: backup}}}`),
		Entry("an OperatorVersion", "apiVersion: kudo.dev/v1beta1\nkind: OperatorVersion"+kudoOperatorVersion),
		Entry("an add-on", `{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: ManagedClusterAddOn, spec: {}}`),
		Entry("an add-on with a configuration", `{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: ManagedClusterAddOn, spec: {installNamespace: kafka,
			configs: [{group: kudo.dev, resource: operatorversions, name: kafka-1.3.1, namespace: addon-packages}]}}`),
		Entry("the definition of an add-on", `{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: ClusterManagementAddOn, metadata: {name: gitops-shop}, spec: {
			dependencies: [{name: kafka}, {name: monitoring, type: Optional}], supportedConfigs: [{group: kudo.dev, resource: operatorversions,
			defaultConfig: {name: shop-1.0.0}}]}}`),
		Entry("the definition of an add-on with placements", `{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: ClusterManagementAddOn,
			metadata: {name: gitops-placed}, spec: {installStrategy: {type: Placements, placements: [{namespace: default, name: all, rolloutStrategy: {
			type: Progressive, progressive: {maxConcurrency: 10%}}}]}}}`),
		Entry("a configuration", `{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: AddOnDeploymentConfig, spec: {
			customizedVariables: [{name: NODE_COUNT, value: "3"}]}}`),
	)

	It("is not current before a controller has observed it", func(ctx SpecContext) {
		stored := kudoObject("Instance", newNamespace(ctx), `spec: {operatorVersion: {name: kafka-1.3.1}}`)
		Expect(server.Create(ctx, stored)).To(Succeed())
		Expect(server.Get(ctx, client.ObjectKeyFromObject(stored), stored)).To(Succeed())
		result, err := status.Compute(stored)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Status).To(Equal(status.InProgressStatus))
	})
})
