package hub

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// peakOf returns the most memory, in MiB, that the heap and the stacks of this process have while do runs: those of the hub, which runs in
// it, and of the clients.
func peakOf(do func()) uint64 {
	runtime.GC()
	ctx, stop := context.WithCancel(context.Background())
	peaks := make(chan uint64, 1)
	go func() {
		var stats runtime.MemStats
		var peak uint64
		for ticks := time.NewTicker(5 * time.Millisecond); ctx.Err() == nil; <-ticks.C {
			runtime.ReadMemStats(&stats)
			peak = max(peak, stats.HeapInuse+stats.StackInuse)
		}
		peaks <- peak
	}()
	do()
	stop()
	return <-peaks >> 20
}

var _ = Describe("Admission of OperatorVersions that take much memory to verify", func() {
	const parallel = 20
	DescribeTable("takes little memory, however many are created at a time", func(ctx SpecContext, template string) {
		f := newFleet()
		user, _ := newUser()
		awaitWebhooks(ctx)
		create := func(number int) error {
			version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: fmt.Sprint(f.nameOf("poison"), number)}}
			version.Spec.Operator, version.Spec.Version = corev1.ObjectReference{Name: "poison"}, "1.0.0"
			version.Spec.Templates = map[string]string{"a.yaml": template}
			DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(server.Delete(ctx, version))).To(Succeed()) })
			return user.Create(ctx, version)
		}
		isRefused := MatchError(apierrors.IsInvalid, "is invalid")
		isLate := MatchError(func(err error) bool {
			return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || strings.Contains(err.Error(), "request timed out")
		}, "is late") // on a busy machine, the API server and etcd may give up
		peak := peakOf(func() {
			var creations sync.WaitGroup
			for i := range parallel {
				creations.Go(func() {
					defer GinkgoRecover()
					Expect(create(i)).To(Or(Succeed(), isRefused, isLate))
				})
			}
			creations.Wait()
		})
		Eventually(func() error { return create(parallel) }).WithContext(ctx).Should(isRefused)
		AddReportEntry("peak", fmt.Sprintf("%d MiB", peak))
		Expect(peak).To(BeNumerically("<", 300), "MiB")
	},
		Entry("with a megabyte of unknown references", strings.Repeat("{{.X}}", 170_000)),
		Entry("with as many unknown references as are parsed", strings.Repeat("{{.X}}", 37_000)+strings.Repeat("#", 700_000)),
		Entry("with 130,000 blocks without an end", strings.Repeat("{{if 1}}", 130_000)),
	)
})
