package agent

import (
	"context"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("Instances whose names differ by dots and dashes only", func() {
	It("never run on the same objects, and removing the one that does not run removes nothing", func(ctx context.Context) {
		var pairs [6][2]*hubPart // the API server's clock has seconds: most of them are equally old
		for i := range pairs {
			dashed := newInstance(ctx, configOnly(), nil)
			dotted := &hubPart{name: strings.Replace(dashed.name, "-", ".", 1), namespace: dashed.namespace}
			dotted.make(ctx, configOnly(), nil)
			pairs[i] = [2]*hubPart{dashed, dotted}
		}
		DeferCleanup(runAgent())
		By("the hub resolving both, each before it has seen the other")
		var resolving sync.WaitGroup
		for _, pair := range pairs {
			for _, h := range pair {
				resolving.Go(func() {
					defer GinkgoRecover()
					h.resolve(ctx)
				})
			}
		}
		resolving.Wait()

		for _, pair := range pairs {
			config, executed := pair[0], func(h *hubPart) bool { return h.get(ctx).Status.Execution != nil }
			runs, waits := pair[0], pair[1]
			Eventually(func(g Gomega) {
				if executed(pair[1]) {
					runs, waits = pair[1], pair[0]
				}
				g.Expect(runs.ready(ctx)).To(HaveField("Reason", kudo.ReasonHealthy))
				g.Expect(waits.ready(ctx).Message).To(Or(ContainSubstring("%q", runs.name), ContainSubstring("/%s already has", runs.name)))
			}).Should(Succeed())
			Expect(executed(waits)).To(BeFalse())
			Expect(waits.mirror(ctx)).To(BeNil())

			waits.finish(ctx)
			Expect(config.config(ctx, "-config")).To(Equal("one"))
			runs.finish(ctx)
			Expect(config.config(ctx, "-config")).To(BeEmpty())
		}
	})
})
