package agent

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var _ = Describe("On a cluster whose definition of Instances is older than the agent", Serial, func() {
	It("nothing is applied and hardly anything written, until the definition is updated", func(ctx context.Context) {
		upToDate := withoutInventory(ctx)
		locally, writes := environment.RecordWrites(agentLocally)
		runAgentWith(agentOnHub, locally)
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(kudo.Pending))
		ofStatus := func() (n int) {
			for _, request := range writes.Requests() {
				if strings.HasSuffix(request, h.name+"/status") {
					n++
				}
			}
			return n
		}
		Consistently(ofStatus).Should(BeNumerically("<", 20))
		Expect(h.config(ctx, "config")).To(BeEmpty())
		upToDate()
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.finish(ctx)
	})
})

// withoutInventory makes the managed cluster drop the field status.inventory until restore is called.
func withoutInventory(ctx context.Context) (restore func()) {
	GinkgoHelper()
	definition := blank("apiextensions.k8s.io/v1 CustomResourceDefinition")
	Expect(managed.Get(ctx, client.ObjectKey{Name: "instances.kudo.dev"}, definition)).To(Succeed())
	at := []string{"schema", "openAPIV3Schema", "properties", "status", "properties"}
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	Expect(err).NotTo(HaveOccurred())
	inventory, found, err := unstructured.NestedMap(versions[0].(map[string]any), append(at, "inventory")...)
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue())
	patch := func(ctx context.Context, operation map[string]any) {
		GinkgoHelper()
		operation["path"] = "/spec/versions/0/" + strings.Join(at, "/") + "/inventory"
		body, err := json.Marshal([]any{operation})
		Expect(err).NotTo(HaveOccurred())
		Expect(managed.Patch(ctx, definition, client.RawPatch(types.JSONPatchType, body))).To(Succeed())
	}
	probe := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-", Namespace: "default"}}
	Expect(managed.Create(ctx, probe)).To(Succeed())
	DeferCleanup(managed.Delete, probe)
	keeps := func(g Gomega) bool {
		tried := probe.DeepCopy()
		entry := client.RawPatch(types.MergePatchType, []byte(`{"status":{"inventory":[{"kind":"Pod","name":"x"}]}}`))
		g.Expect(managed.Status().Patch(context.Background(), tried, entry, client.DryRunAll)).To(Succeed())
		return len(tried.Status.Inventory) > 0
	}
	patch(ctx, map[string]any{"op": "remove"})
	Eventually(keeps).Should(BeFalse())
	restore = sync.OnceFunc(func() {
		patch(context.Background(), map[string]any{"op": "add", "value": inventory})
		Eventually(keeps).Should(BeTrue())
	})
	DeferCleanup(restore)
	return restore
}
