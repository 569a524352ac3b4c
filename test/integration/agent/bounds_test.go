package agent

import (
	"context"
	"runtime"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/invariants"
)

// bombTemplate renders 600 aliases to one scalar of 1 MB.
const bombTemplate = `
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}-bomb"}
data:
  x: &x {{ repeat 1000000 "x" }}
more: [{{ repeat 599 "*x, " }}*x]
`

// withBomb returns a package that applies a ConfigMap, and then renders a bomb.
func withBomb() kudo.OperatorVersionSpec {
	spec := configOnly()
	spec.Templates["bomb.yaml"] = bombTemplate
	spec.Tasks = append(spec.Tasks, task("bomb", kudo.TaskApply, "bomb.yaml"))
	spec.Plans["deploy"] = serial("config", "bomb")
	return spec
}

var _ = Describe("A template that expands to more than its limit", func() {
	AfterEach(func(ctx context.Context) { Expect(invariants.Violations(ctx, hub)).To(BeEmpty()) })

	It("ends the plan, with its name and the limit, and the Instance can be removed", func(ctx context.Context) {
		DeferCleanup(runAgent())
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h := newInstance(ctx, withBomb(), nil)
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(
			HaveField("Status", kudo.FatalError), HaveField("Message", And(ContainSubstring("bomb.yaml"), ContainSubstring("8 MiB")))))
		Expect(h.config(ctx, "-config")).To(Equal("one"), "other tasks are not affected")
		h.finish(ctx)
		Expect(h.config(ctx, "-config")).To(BeEmpty())
		runtime.ReadMemStats(&after)
		Expect((after.Sys-before.Sys)>>20).To(BeNumerically("<", 300), "MiB of the process, beside its objects")
	})
})
