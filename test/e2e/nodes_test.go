package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/test/census"
)

// onNodes is the label of specs that require nodes that run containers, and twoNodes that of specs that require two on each cluster that they
// use.
const onNodes, twoNodes = "nodes", "two nodes"

// nodesOf returns the number of nodes of the first of the given clusters that run containers, which those of a sandbox do not.
func nodesOf(ctx context.Context, files string) (int, error) {
	if files == "" {
		return 0, nil
	}
	file, _, _ := strings.Cut(files, ",")
	c, err := client.New(readConfig(file), client.Options{})
	if err != nil {
		return 0, err
	}
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		return 0, err
	}
	return len(slices.DeleteFunc(nodes.Items, func(n corev1.Node) bool { return n.Status.NodeInfo.ContainerRuntimeVersion == "" })), nil
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
			`Pod broken/[a-z0-9-]+: container main restarts: CrashLoopBackOff \(image .*\): exited with code 7 \(Error\): last line of its log: "no license"$`,
	},
	{
		// On a busy machine, the container's end may be reported before its reason is known, and it may live for longer than minReadySeconds.
		"containers that use too much memory",
		deploymentOf("resources: {limits: {memory: 16Mi}}\n        readinessProbe: {exec: {command: [\"true\"]}, initialDelaySeconds: 600}", "exec dd if=/dev/zero of=/dev/null bs=64M"),
		`timed out after 40s: .*Pod broken/[a-z0-9-]+: container main restarts: CrashLoopBackOff \(image .*\): exited with code 137 \((OOMKilled|Error)\)$`,
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
		`timed out after 40s: .*Pod broken/[a-z0-9-]+: container main restarts: CrashLoopBackOff \(image .*\): ` +
			`exited with code 128 \(StartError\): .*no-such-command`,
	},
}

// ofKUDO lists the Jobs of KUDO's case terminal-failed-job, and how their plans end.
var ofKUDO = []struct{ name, workload, message string }{
	{"failing-job", failingJob, `Job broken/failing-job: failed: BackoffLimitExceeded: .*: container main exited with code 1 \(Error\)`},
	{"timeout-job", timeoutJob, `Job broken/timeout-job: failed: DeadlineExceeded: Job was active longer than specified deadline`},
}

const (
	failingJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: failing-job, namespace: "{{ .Namespace }}"}
spec:
  backoffLimit: 0
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: "` + container + `", command: ["false"]}]}}
`
	timeoutJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: timeout-job, namespace: "{{ .Namespace }}"}
spec:
  backoffLimit: 3
  activeDeadlineSeconds: 60
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: "` + container + `", command: [sleep, "1000"]}]}}
`
)

var _ = Describe("On nodes that run containers", Label(onNodes), Ordered, ContinueOnFailure, func() {
	var (
		f   *fleet
		hub client.Client
	)

	BeforeAll(func(ctx SpecContext) {
		f = newFleet(ctx, 1)
		hub = hubClient(f.hub)
		for _, of := range ofKUDO {
			create(ctx, hub, onePlan(of.name, of.workload))
			must(f.addon(ctx, "install", of.name, "--cluster", "cluster1", "--namespace", broken))
			f.deletes("cluster1", "instance.kudo.dev/"+of.name)
		}
		for i, failure := range failures {
			version := onePlan(brokenInstance(i).Name, failure.workload)
			version.Spec.Plans[kudo.DeployPlan].Phases[0].Steps[0].Timeout = &metav1.Duration{Duration: 40 * time.Second}
			create(ctx, hub, version)
			create(ctx, hub, brokenInstance(i))
		}
	})

	for i, failure := range failures {
		It("a plan names the cause of "+failure.name, func(ctx SpecContext) {
			Expect(fails(ctx, hub, brokenInstance(i))).To(MatchRegexp(failure.message))
		})
	}

	for _, of := range ofKUDO {
		It("a plan of KUDO's case terminal-failed-job fails: "+of.name, func(ctx SpecContext) {
			Expect(fails(ctx, hub, instanceOf(of.name, broken))).To(MatchRegexp(of.message))
			must(f.addon(ctx, "uninstall", of.name, "--cluster", "cluster1", "--yes"))
		})
	}

	It("plan status, why and diagnose show the cause", func(ctx SpecContext) {
		const cause = `exited with code 3 (Error): last line of its log: "12: cannot open /data: no space"`
		failing := brokenInstance(0).Name
		status := must(f.addon(ctx, "plan", "status", failing, "--cluster", "cluster1"))
		Expect(status).To(ContainSubstring(cause))

		create(ctx, hub, definitionOf("doomed", failing+"-1.0.0"))
		addOn := newAddOn("doomed")
		addOn.Spec.InstallNamespace = broken
		create(ctx, hub, addOn)
		Eventually(func() (string, error) { return f.addon(ctx, "why", "doomed", "--cluster", "cluster1") }).
			WithContext(ctx).WithTimeout(timeout).WithPolling(time.Second).Should(ContainSubstring(cause))

		file := filepath.Join(GinkgoT().TempDir(), "diagnosis.tar.gz")
		must(f.addon(ctx, "diagnose", "--cluster", "cluster1", "--cluster-kubeconfig", f.files["cluster1"], "-o", file))
		files := unpack(file)
		Expect(files).To(HaveKeyWithValue("tandem-diagnosis/hub/clusters/cluster1/plans.txt", ContainSubstring(cause)))
		Expect(files).To(HaveKeyWithValue("tandem-diagnosis/managed/workloads/pod.yaml", ContainSubstring("exitCode: 3")))
		Expect(files).To(HaveKeyWithValue(HaveSuffix("-addon-manager.log"), ContainSubstring(`"level"`)))
		Expect(files).To(HaveKeyWithValue(HaveSuffix("-addon-agent.log"), ContainSubstring(`"level"`)))
		Expect(files).To(HaveKeyWithValue(ContainSubstring("/hub/program/metrics/addon-manager-"), ContainSubstring("controller_runtime_active_workers")))
		Expect(files).To(HaveKeyWithValue(ContainSubstring("/managed/program/metrics/addon-agent-"), ContainSubstring("controller_runtime_active_workers")))
	})

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
// between two crashes: minReadySeconds makes the difference.
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

// fails waits until plan deploy of an Instance has failed, and returns its message.
func fails(ctx context.Context, hub client.Client, instance *kudo.Instance) string {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
		deploy := instance.Status.PlanStatus[kudo.DeployPlan]
		g.Expect(deploy.Status).To(Equal(kudo.FatalError), deploy.Message)
	}).WithContext(ctx).WithTimeout(2 * time.Minute).WithPolling(interval).Should(Succeed())
	return instance.Status.PlanStatus[kudo.DeployPlan].Message
}

// completes waits until plan deploy of an Instance is complete.
func completes(ctx context.Context, hub client.Client, instance *kudo.Instance) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
		deploy := instance.Status.PlanStatus[kudo.DeployPlan]
		g.Expect(deploy.Status).To(Equal(kudo.Complete), deploy.Message)
	}).WithContext(ctx).WithTimeout(2 * time.Minute).WithPolling(interval).Should(Succeed())
}

// onePlan returns a package whose plan deploy applies one template, in parallel phases as in KUDO's cases.
func onePlan(name, workload string, parameters ...kudo.Parameter) *kudo.OperatorVersion {
	return &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-1.0.0", Namespace: kudo.DefaultPackagesNamespace},
		Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: name}, Version: "1.0.0",
			Parameters: parameters,
			Templates:  map[string]string{"workload.yaml": workload},
			Tasks: []kudo.Task{{Name: "workload", Kind: kudo.TaskApply, Spec: kudo.TaskSpec{
				ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"workload.yaml"}},
			}}},
			Plans: map[string]kudo.Plan{kudo.DeployPlan: {Phases: []kudo.Phase{{
				Name: "main", Strategy: kudo.Parallel, Steps: []kudo.Step{{Name: "workload", Tasks: []string{"workload"}}},
			}}}},
		},
	}
}

// instanceOf returns an Instance on cluster1 of a package with its name.
func instanceOf(name, namespace string) *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "cluster1"},
		Spec: kudo.InstanceSpec{
			OperatorVersion:  corev1.ObjectReference{Namespace: kudo.DefaultPackagesNamespace, Name: name + "-1.0.0"},
			InstallNamespace: namespace,
		},
	}
}

func brokenInstance(i int) *kudo.Instance { return instanceOf(fmt.Sprintf("broken-%d", i), broken) }

// definitionOf returns the definition of an add-on that runs an OperatorVersion and requires other add-ons.
func definitionOf(name, version string, required ...string) *addonv1alpha1.ClusterManagementAddOn {
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, other := range required {
		definition.Spec.Dependencies = append(definition.Spec.Dependencies,
			addonv1alpha1.AddonDependency{Name: other, Type: addonv1alpha1.DependencyTypeRequired})
	}
	if len(required) > 0 { // OCM's definitions drop the field
		definition.Annotations = map[string]string{addonv1alpha1.AnnotationDependencies: declares(definition.Spec.Dependencies...)}
	}
	definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
	kind := upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions}
	parameters := upstream.ConfigGroupResource{Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs}
	definition.Spec.SupportedConfigs = []upstream.ConfigMeta{
		{ConfigGroupResource: kind, DefaultConfig: &upstream.ConfigReferent{Namespace: kudo.DefaultPackagesNamespace, Name: version}},
		{ConfigGroupResource: parameters},
	}
	return definition
}
