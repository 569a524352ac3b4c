package agent

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/faults/proxy"
)

var _ = Describe("An agent that loses the event of a deletion", func() {
	It("completes the removal of an object whose definition was deleted, too", func(ctx context.Context) {
		var link *proxy.Proxy
		link, err := proxy.Start(agentLocally, func(w *proxy.Write) proxy.Fault {
			if w.Verb == "delete" && w.Resource == "gadgets" {
				return proxy.Fault{Meanwhile: func() { link.Freeze("") }}
			}
			return proxy.Fault{}
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(link.Stop)
		kubeconfig, err := link.Kubeconfig()
		Expect(err).NotTo(HaveOccurred())
		throughLink, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		runAgentWith(agentOnHub, throughLink)

		spec := configOnly()
		spec.Templates["definition.yaml"], spec.Templates["gadget.yaml"] = definitionTemplate, gadgetTemplate
		spec.Tasks = append(spec.Tasks, task("gadgets", kudo.TaskApply, "definition.yaml", "gadget.yaml"))
		spec.Plans["deploy"] = serial("config", "gadgets")
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})

		Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		Eventually(func(g Gomega) {
			definition := blank("apiextensions.k8s.io/v1 CustomResourceDefinition")
			g.Expect(apierrors.IsNotFound(managed.Get(ctx, client.ObjectKey{Name: "gadgets.tandem.test"}, definition))).To(BeTrue())
		}).Should(Succeed())
		link.Thaw(true)
		h.finish(ctx)
	})
})

var _ = Describe("An agent that starts", func() {
	It("deletes a mirrored OperatorVersion that it could not delete before it stopped, although no Instance is left", func(ctx context.Context) {
		left := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{
			GenerateName: "left-", Namespace: "default", Annotations: map[string]string{kudo.AnnotationHubUID: "gone"},
		}, Spec: configOnly()}
		Expect(managed.Create(ctx, left)).To(Succeed())
		runAgent()
		Eventually(func() bool {
			return apierrors.IsNotFound(managed.Get(ctx, client.ObjectKeyFromObject(left), &kudo.OperatorVersion{}))
		}).Should(BeTrue())
	})
})
