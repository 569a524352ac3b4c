package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/census"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// drained is the namespace of the workloads on the node that is drained.
const drained = "drained"

// uprooted lists the packages of these workloads. Their pods prefer a worker; the two of the Deployment require different nodes.
var uprooted = map[string]string{
	"moves": uprootedJob("backoffLimit: 1"),
	"stops": uprootedJob("podFailurePolicy: {rules: [{action: FailJob, onPodConditions: [{type: DisruptionTarget}]}]}"),
	"stays": uprootedDeployment,
}

var _ = Describe("A node that is drained", Label(onNodes, twoNodes), Ordered, func() {
	var (
		f    *fleet
		hub  client.Client
		pods *kubernetes.Clientset
		node string
	)

	BeforeAll(func(ctx SpecContext) {
		f = newFleet(ctx, 1)
		hub = hubClient(f.hub)
		var err error
		pods, err = kubernetes.NewForConfig(f.clusters["cluster1"])
		Expect(err).NotTo(HaveOccurred())
		workers, err := pods.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "!node-role.kubernetes.io/control-plane"})
		Expect(err).NotTo(HaveOccurred())
		Expect(workers.Items).NotTo(BeEmpty())
		node = workers.Items[0].Name
		for name, workload := range uprooted {
			version := onePlan(name, workload, kudo.Parameter{Name: "NODE", Default: &node}, kudo.Parameter{Name: "TEXT", Default: ptr.To("one")})
			if name == "stays" {
				version.Spec.Plans[kudo.DeployPlan].Phases[0].Steps[0].Timeout = &metav1.Duration{Duration: 30 * time.Second}
			}
			create(ctx, hub, version)
			create(ctx, hub, instanceOf(name, drained))
		}
		DeferCleanup(func(ctx SpecContext) {
			must(f.kubectl(ctx, "cluster1", "uncordon", node))
		})
	})

	It("takes no more pods, and evicts its own", func(ctx SpecContext) {
		completes(ctx, hub, instanceOf("stays", drained))
		Eventually(func(g Gomega) {
			running, err := pods.CoreV1().Pods(drained).List(ctx, metav1.ListOptions{
				LabelSelector: "job-name", FieldSelector: "status.phase=Running,spec.nodeName=" + node,
			})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(running.Items).To(HaveLen(2))
		}).WithContext(ctx).WithTimeout(time.Minute).WithPolling(interval).Should(Succeed())
		must(f.kubectl(ctx, "cluster1", "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=90s"))
	})

	It("lets a Job that may fail once complete on another node", func(ctx SpecContext) {
		completes(ctx, hub, instanceOf("moves", drained))
	})

	It("fails the plan of a Job that must not be evicted, with this reason", func(ctx SpecContext) {
		Expect(fails(ctx, hub, instanceOf("stops", drained))).To(MatchRegexp(
			`Job drained/stops: failed: PodFailurePolicy: Pod drained/stops-\w+ has condition DisruptionTarget matching FailJob rule at index 0`))
	})

	It("leaves the last pod that a PodDisruptionBudget protects", func(ctx SpecContext) {
		left, err := pods.CoreV1().Pods(drained).List(ctx, metav1.ListOptions{LabelSelector: "app=stays", FieldSelector: "status.phase=Running"})
		Expect(err).NotTo(HaveOccurred())
		Expect(left.Items).To(HaveLen(1))
		last := left.Items[0]
		DeferCleanup(func(ctx SpecContext) {
			must(f.kubectl(ctx, "cluster1", "uncordon", last.Spec.NodeName))
		})
		_, err = f.kubectl(ctx, "cluster1", "drain", last.Spec.NodeName, "--pod-selector=app=stays", "--timeout=5s")
		Expect(err).To(MatchError(ContainSubstring("disruption budget")))
		Expect(podsOf(ctx, pods, drained, "app=stays")).To(HaveKeyWithValue(last.Name, last.UID))
	})

	It("fails a plan whose pods fit on no other node, with this reason", func(ctx SpecContext) {
		Expect(environment.Edit(ctx, hub, instanceOf("stays", drained), func(i *kudo.Instance) {
			i.Spec.Parameters = map[string]string{"TEXT": "two"}
		})).To(Succeed())
		Expect(fails(ctx, hub, instanceOf("stays", drained))).To(MatchRegexp(
			`timed out after 30s: .*: Pod drained/stays-[a-z0-9-]+: is not scheduled: Unschedulable: 0/2 nodes are available: `))
	})

	It("runs the plan when it is back", func(ctx SpecContext) {
		must(f.kubectl(ctx, "cluster1", "uncordon", node))
		must(f.addon(ctx, "plan", "run", "stays", "deploy", "--cluster", "cluster1", "--wait", "--timeout", "2m"))
		Expect(podsOf(ctx, pods, drained, "app=stays")).To(HaveLen(2))
	})

	It("leaves nothing behind", func(ctx SpecContext) {
		for name := range uprooted {
			Expect(hub.Delete(ctx, instanceOf(name, drained))).To(Succeed())
		}
		Eventually(func() ([]string, error) { return census.OfTandem(ctx, f.clusters["cluster1"]) }).
			WithContext(ctx).WithTimeout(2 * time.Minute).WithPolling(interval).Should(BeEmpty())
	})
})

// uprootedJob returns the template of a Job that ends on all nodes but the one that is drained.
func uprootedJob(more string) string {
	return `
apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Name }}"}
spec:
  ` + more + `
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - {weight: 100, preference: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: ["{{ .Params.NODE }}"]}]}}
      containers:
      - name: main
        image: ` + container + `
        command: [sh, -c, '[ "$NODE" != "{{ .Params.NODE }}" ] || sleep 1000']
        env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
`
}

const uprootedDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Name }}"}
spec:
  replicas: 2
  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
  selector: {matchLabels: {app: stays}}
  template:
    metadata: {labels: {app: stays}}
    spec:
      terminationGracePeriodSeconds: 0
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: stays}}}
      containers: [{name: main, image: "` + container + `", command: [sleep, "100000"], env: [{name: TEXT, value: "{{ .Params.TEXT }}"}]}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: "{{ .Name }}"}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: stays}}
`
