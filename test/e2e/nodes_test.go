package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/pipe"
	"github.com/tandem-addons/tandem/test/census"
)

// onNodes is the label of specs that require nodes that run containers.
const onNodes = "nodes"

// simulated reports whether the nodes of given clusters do not run containers, as those of a sandbox.
func simulated(ctx context.Context, files string) (bool, error) {
	if files == "" {
		return true, nil
	}
	file, _, _ := strings.Cut(files, ",")
	c, err := client.New(given(file), client.Options{})
	if err != nil {
		return false, err
	}
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		return false, err
	}
	return !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return n.Status.NodeInfo.ContainerRuntimeVersion != "" }), nil
}

// container is the image of the containers. It is the one of Pipe tasks, so that nodes need no other.
const container = pipe.DefaultImage

// broken is the namespace of the workloads that fail.
const broken = "broken"

// failures lists workloads that never become healthy, and how the message of their plan ends.
var failures = []struct{ name, workload, message string }{
	{
		"a Job that fails",
		jobOf("Never", "", "echo opening; echo '12: cannot open  /data: no space'; exit 3"),
		`Job broken/[a-z0-9-]+: failed: BackoffLimitExceeded: .*: ` +
			`Pod broken/[a-z0-9-]+: failed: container main exited with code 3 \(Error\): last line of its log: "12: cannot open /data: no space"$`,
	},
	{
		"a Job past its deadline",
		jobOf("Never", "activeDeadlineSeconds: 5", "sleep 1000"),
		`Job broken/[a-z0-9-]+: failed: DeadlineExceeded: Job was active longer than specified deadline`,
	},
	{
		"containers that exit again and again",
		deploymentOf("", "echo 'no license'; exit 7"),
		`timed out after 40s: .*Deployment broken/[a-z0-9-]+: 0 of 1 replicas available: ` +
			`Pod broken/[a-z0-9-]+: container main restarts: CrashLoopBackOff: exited with code 7 \(Error\): last line of its log: "no license"$`,
	},
	{
		"containers that use too much memory",
		deploymentOf("resources: {limits: {memory: 16Mi}}", "exec dd if=/dev/zero of=/dev/null bs=64M"),
		`timed out after 40s: .*Pod broken/[a-z0-9-]+: container main restarts: CrashLoopBackOff: exited with code 137 \(OOMKilled\)$`,
	},
	{
		"an image that cannot be pulled",
		strings.ReplaceAll(deploymentOf("", "sleep 1000"), container, "registry.invalid/none/such:1"),
		`timed out after 40s: .*Pod broken/[a-z0-9-]+: container main is waiting: ImagePullBackOff: image registry.invalid/none/such:1$`,
	},
	{
		"a probe that never passes",
		deploymentOf("readinessProbe: {exec: {command: [sh, -c, 'echo not yet; exit 1']}, periodSeconds: 1}", "sleep 1000"),
		`timed out after 40s: .*Pod broken/[a-z0-9-]+: is not ready: ContainersNotReady: .*\[main\]: Readiness probe failed: not yet$`,
	},
	{
		"a command that does not exist",
		strings.ReplaceAll(deploymentOf("", "sleep 1000"), "[sh,", "[no-such-command,"),
		`timed out after 40s: .*Pod broken/[a-z0-9-]+: container main restarts: CrashLoopBackOff: ` +
			`exited with code 128 \(StartError\): .*no-such-command`,
	},
}

var _ = Describe("On nodes that run containers", Label(onNodes), Ordered, ContinueOnFailure, func() {
	var (
		f   *fleet
		hub client.Client
	)

	BeforeAll(func(ctx SpecContext) {
		f = newFleet(ctx, 1)
		hub = hubClient(f.hub)
		for i := range failures {
			create(ctx, hub, brokenPackage(i))
			create(ctx, hub, brokenInstance(i))
		}
	})

	for i, failure := range failures {
		It("a plan names the cause of "+failure.name, func(ctx SpecContext) {
			instance := brokenInstance(i)
			Eventually(func(g Gomega) {
				g.Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
				g.Expect(instance.Status.PlanStatus[kudo.DeployPlan].Status).To(Equal(kudo.FatalError))
			}).WithContext(ctx).WithTimeout(2 * time.Minute).WithPolling(interval).Should(Succeed())
			Expect(instance.Status.PlanStatus[kudo.DeployPlan].Message).To(MatchRegexp(failure.message))
		})
	}

	It("leaves nothing behind", func(ctx SpecContext) {
		for i := range failures {
			Expect(hub.Delete(ctx, brokenInstance(i))).To(Succeed())
		}
		Eventually(func() ([]string, error) { return census.OfTandem(ctx, f.clusters["cluster1"]) }).
			WithContext(ctx).WithTimeout(2 * time.Minute).WithPolling(interval).Should(BeEmpty())
	})
})

// jobOf returns the template of a Job that runs a shell script, once.
func jobOf(restartPolicy, more, script string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Name }}"}
spec:
  backoffLimit: 0
  %s
  template:
    spec:
      restartPolicy: %s
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: %q, command: [sh, -c, %q]}]
`, more, restartPolicy, container, script)
}

// deploymentOf returns the template of a Deployment that runs a shell script. Without a probe, a container is ready as soon as it runs, also
// between two crashes: minReadySeconds tells the difference.
func deploymentOf(more, script string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Name }}"}
spec:
  minReadySeconds: 5
  selector: {matchLabels: {app: "{{ .Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Name }}"}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: main
        image: %q
        command: [sh, -c, %q]
        %s
`, container, script, more)
}

// brokenPackage returns a package that deploys the workload of a failure within 40 seconds.
func brokenPackage(i int) *kudo.OperatorVersion {
	name := fmt.Sprintf("broken-%d", i)
	return &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-1.0.0", Namespace: kudo.DefaultPackagesNamespace},
		Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: name}, Version: "1.0.0",
			Templates: map[string]string{"workload.yaml": failures[i].workload},
			Tasks: []kudo.Task{{Name: "workload", Kind: kudo.TaskApply, Spec: kudo.TaskSpec{
				ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"workload.yaml"}},
			}}},
			Plans: map[string]kudo.Plan{kudo.DeployPlan: {Phases: []kudo.Phase{{
				Name: "main", Steps: []kudo.Step{{
					Name: "workload", Tasks: []string{"workload"}, Timeout: &metav1.Duration{Duration: 40 * time.Second},
				}},
			}}}},
		},
	}
}

func brokenInstance(i int) *kudo.Instance {
	name := fmt.Sprintf("broken-%d", i)
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "cluster1"},
		Spec: kudo.InstanceSpec{
			OperatorVersion:  corev1.ObjectReference{Namespace: kudo.DefaultPackagesNamespace, Name: name + "-1.0.0"},
			InstallNamespace: broken,
		},
	}
}
