package e2e

import (
	"context"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/pkg/sandbox/story"
	"github.com/tandem-addons/tandem/test/audit"
)

// respite is the time between two kills.
const respite = 4 * time.Second

// victims are killed in turn; cluster1 depends on all of them.
var victims = []struct{ cluster, program string }{
	{"hub", "kube-apiserver"}, {"cluster1", "addon-agent"}, {"cluster1", "kube-apiserver"},
	{"hub", "addon-manager"}, {"cluster1", "etcd"}, {"hub", "etcd"},
}

var _ = Describe("Tandem", onSandbox("it kills programs and reads audit logs"), func() {
	It("runs its story to the end while one program after another is killed", func(ctx SpecContext) {
		box := startSandbox(ctx, 2)
		killing, stop := context.WithCancel(ctx)
		killed := make(chan int)
		go func() {
			defer GinkgoRecover()
			killed <- killInTurn(killing, box)
		}()
		options := story.Options{
			Plugin: filepath.Join(programs, "kubectl-addon"), Packages: root + "/examples/packages", Out: GinkgoWriter,
		}
		options.UseSandbox(box.State())
		err := story.Run(ctx, options)
		stop()
		interruptions := <-killed
		Expect(err).NotTo(HaveOccurred())
		Expect(interruptions).To(BeNumerically(">", 2))

		By("doing nothing twice that was complete")
		Expect(countCreations(box.Cluster("cluster1").AuditLog(), "jobs")).To(Equal(map[string]int{
			"zookeeper-validation": 1, "kafka-topics": 1, "kafka-drain": 1,
		}))
	}, SpecTimeout(5*time.Minute))
})

// killInTurn kills the victims until ctx ends, and returns the number of kills.
func killInTurn(ctx context.Context, box *sandbox.Sandbox) int {
	n := 0
	wait.UntilWithContext(ctx, func(context.Context) {
		victim := victims[n%len(victims)]
		for _, process := range box.Cluster(victim.cluster).State().Processes {
			if process.Name == victim.program && process.PID != 0 {
				Expect(syscall.Kill(process.PID, syscall.SIGKILL)).To(Succeed())
				n++
			}
		}
	}, respite)
	return n
}

// countCreations counts, from an audit log, how often the agent has created each object of a resource.
func countCreations(log, resource string) map[string]int {
	GinkgoHelper()
	counts := map[string]int{}
	for _, e := range entriesOf(log) {
		if e.Is(resource, "") && e.Verb == "patch" && e.ResponseStatus.Code == http.StatusCreated {
			counts[e.ObjectRef.Name]++
		}
	}
	return counts
}

// entriesOf returns all entries of an audit log.
func entriesOf(file string) []audit.Entry {
	GinkgoHelper()
	log, err := audit.Open(file)
	Expect(err).NotTo(HaveOccurred())
	defer log.Close()
	entries, err := log.Next()
	Expect(err).NotTo(HaveOccurred())
	return entries
}
