package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/test/bench/process"
)

// most is the memory in MB that each program may take, including its caches.
const most = 300

// The kernel measures the whole programs, each in a process of its own.
var _ = Describe("The memory of the programs", Label(quick), onSandbox("it reads the memory of processes"), Ordered, func() {
	var (
		box *sandbox.Sandbox
		hub client.Client
	)

	BeforeAll(func(ctx SpecContext) {
		box = startSandbox(ctx, 1)
		hub = hubClient(box.Hub().Config())
	})

	// peak reports the most memory that a program has taken since its start, which it has survived.
	peak := func(cluster, program string, restarts int) {
		GinkgoHelper()
		state := find(box, cluster, program)
		Expect(state.Restarts).To(Equal(restarts), program)
		used, err := process.UsageOf(state.PID)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry(program, fmt.Sprintf("%.0f MB", used.PeakMB()))
		Expect(used.PeakMB()).To(BeNumerically("<", most), "MB of "+program)
	}

	DescribeTable("is bounded in addon-manager while 20 OperatorVersions are verified at a time", func(ctx SpecContext, name, template string) {
		var creations sync.WaitGroup
		for i := range 20 {
			creations.Go(func() {
				defer GinkgoRecover()
				version := bomb(fmt.Sprint(name, i), "a: b")
				version.Spec.Templates = map[string]string{"bomb.yaml": template}
				err := hub.Create(ctx, version)
				Expect(err == nil || apierrors.IsInvalid(err)).To(BeTrue(), "%v", err) // a busy webhook leaves it to the controllers
			})
		}
		creations.Wait()
		peak("hub", "addon-manager", 0)
	},
		Entry("with a megabyte of unknown references", "references", strings.Repeat("{{.X}}", 170_000)),
		Entry("with 130,000 blocks without an end", "blocks", strings.Repeat("{{if 1}}", 130_000)),
		Entry("with a text of aliases", "aliases", aliases(strings.Repeat("x", 100_000), 100_000)),
	)

	It("is bounded in both while 20 Instances render bombs, also when the agent restarts", func(ctx SpecContext) {
		Expect(hub.Create(ctx, bomb("text", aliases(`{{ repeat 1000000 "x" }}`, 600)))).To(Succeed())
		Expect(hub.Create(ctx, bomb("value", "[{{ .Params.VALUE }}]"))).To(Succeed())
		for i := range 20 {
			name := []string{"text", "value"}[i%2]
			instance := bombed(name, i)
			if name == "value" {
				instance.Spec.Parameters = map[string]string{"VALUE": strings.Trim(aliases(strings.Repeat("x", 200_000), 1200), "[]")}
			}
			Expect(hub.Create(ctx, instance)).To(Succeed())
		}
		allFail := func(g Gomega, ctx context.Context) {
			for i := range 20 {
				instance := bombed([]string{"text", "value"}[i%2], i)
				g.Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
				g.Expect(instance.Status.PlanStatus["deploy"].Status).To(Equal(kudo.FatalError), "%s: %v", instance.Name, instance.Status.Conditions)
			}
		}
		Eventually(allFail).WithContext(ctx).WithTimeout(2 * patience).WithPolling(interval).Should(Succeed())
		peak("cluster1", "addon-agent", 0)

		Expect(syscall.Kill(find(box, "cluster1", "addon-agent").PID, syscall.SIGKILL)).To(Succeed())
		Eventually(func() int { return find(box, "cluster1", "addon-agent").PID }).WithTimeout(patience).WithPolling(interval).ShouldNot(BeZero())
		for i := range 20 {
			Expect(hub.Delete(ctx, bombed([]string{"text", "value"}[i%2], i))).To(Succeed())
		}
		Eventually(func(g Gomega, ctx context.Context) {
			list := &kudo.InstanceList{}
			g.Expect(hub.List(ctx, list, client.InNamespace("cluster1"))).To(Succeed())
			g.Expect(list.Items).To(BeEmpty())
		}).WithContext(ctx).WithTimeout(2 * patience).WithPolling(interval).Should(Succeed())
		peak("cluster1", "addon-agent", 1)
		peak("hub", "addon-manager", 0)
	})
})

// aliases returns a YAML list of a scalar and aliases to it.
func aliases(scalar string, count int) string {
	return "[&x " + scalar + strings.Repeat(", *x", count) + "]"
}

// bomb returns a package that applies a ConfigMap with a field that has that value.
func bomb(name, value string) *kudo.OperatorVersion {
	return &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-1.0.0", Namespace: kudo.DefaultPackagesNamespace},
		Spec: kudo.OperatorVersionSpec{
			Operator:   corev1.ObjectReference{Name: name},
			Version:    "1.0.0",
			Templates:  map[string]string{"bomb.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}\"}\nmore: " + value + "\n"},
			Parameters: []kudo.Parameter{{Name: "VALUE", Default: ptr.To("x"), Structure: new(true)}},
			Tasks: []kudo.Task{
				{Name: "bomb", Kind: kudo.TaskApply, Spec: kudo.TaskSpec{ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"bomb.yaml"}}}},
			},
			Plans: map[string]kudo.Plan{"deploy": {Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{{Name: "bomb", Tasks: []string{"bomb"}}}}}}},
		},
	}
}

// bombed returns an Instance of a bomb.
func bombed(name string, number int) *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: fmt.Sprintf("%s-%d", name, number)},
		Spec: kudo.InstanceSpec{
			OperatorVersion:  corev1.ObjectReference{Name: name + "-1.0.0", Namespace: kudo.DefaultPackagesNamespace},
			InstallNamespace: "default",
		},
	}
}
