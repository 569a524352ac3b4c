package e2e

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/census"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// tandem is the namespace of Tandem's programs.
const tandem = "tandem-system"

const (
	// nextAgent names another image of addon-agent on the nodes of cluster1, to which a spec upgrades the agent.
	nextAgent = "TANDEM_NEXT_AGENT"
	// nextAgentLabel is the label of that spec.
	nextAgentLabel = "next agent"
)

var _ = Describe("Pods on nodes that run containers", Label(onNodes), Ordered, func() {
	var (
		f       *fleet
		hub     client.Client // with Tandem's kinds
		pods    *kubernetes.Clientset
		onHub   *kubernetes.Clientset
		volumes map[string]string // the first line that each pod has written to its volume
	)

	BeforeAll(func(ctx SpecContext) {
		f = newFleet(ctx, 1)
		hub = hubClient(f.hub)
		var err error
		pods, err = kubernetes.NewForConfig(f.clusters["cluster1"])
		Expect(err).NotTo(HaveOccurred())
		onHub, err = kubernetes.NewForConfig(f.hub)
		Expect(err).NotTo(HaveOccurred())
		create(ctx, hub, storedPackage())
		create(ctx, hub, storedInstance())
	})

	It("have volumes of a provisioner, and the file that a Pipe task made in a container", func(ctx SpecContext) {
		storedSettles(ctx, hub)
		volumes = map[string]string{}
		for name := range storedPods(ctx, pods) {
			said := strings.Fields(logOf(ctx, pods, name))
			Expect(said).To(HaveLen(3))
			Expect(said[1:]).To(Equal([]string{"one", "made-in-a-container"}))
			volumes[name] = said[0]
		}
		Expect(volumes).To(HaveLen(2))
		Expect(volumes["stored-0"]).NotTo(Equal(volumes["stored-1"]))
	})

	It("are replaced one after the other by a changed parameter, and keep their volumes", func(ctx SpecContext) {
		before := storedPods(ctx, pods)
		storedChange(ctx, hub, map[string]string{"TEXT": "two"})
		for name, uid := range storedPods(ctx, pods) {
			Expect(uid).NotTo(Equal(before[name]), name)
			Expect(strings.Fields(logOf(ctx, pods, name))).To(Equal([]string{volumes[name], "two", "made-in-a-container"}))
		}
	})

	It("are not replaced by a changed parameter with forcePodRestart: \"false\"", func(ctx SpecContext) {
		before := storedPods(ctx, pods)
		storedChange(ctx, hub, map[string]string{"TEXT": "two", "QUIET": "changed"})
		config, err := pods.CoreV1().ConfigMaps("stored").Get(ctx, "stored", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(config.Data).To(HaveKeyWithValue("quiet", "changed"))
		Expect(storedPods(ctx, pods)).To(Equal(before))
	})

	It("of addon-manager are evicted one at a time, and the other one takes over", func(ctx SpecContext) {
		lease, err := onHub.CoordinationV1().Leases(tandem).Get(ctx, "tandem-addon-manager", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		leader := leaderOf(lease)
		managers := podsOf(ctx, onHub, tandem, "app.kubernetes.io/name=addon-manager")
		Expect(managers).To(And(HaveLen(2), HaveKey(leader)))
		evict := func(name string) error {
			return onHub.PolicyV1().Evictions(tandem).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: tandem}})
		}
		Expect(evict(leader)).To(Succeed())
		for _, name := range slices.Sorted(maps.Keys(managers)) {
			if name != leader {
				Expect(apierrors.IsTooManyRequests(evict(name))).To(BeTrue(), "its PodDisruptionBudget refuses")
			}
		}
		storedChange(ctx, hub, map[string]string{"TEXT": "three", "QUIET": "changed"})
		Eventually(func(g Gomega) {
			lease, err := onHub.CoordinationV1().Leases(tandem).Get(ctx, "tandem-addon-manager", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(leaderOf(lease)).NotTo(Equal(leader))
			deployment, err := onHub.AppsV1().Deployments(tandem).Get(ctx, "addon-manager", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(deployment.Status.AvailableReplicas).To(Equal(int32(2)))
		}).WithContext(ctx).WithTimeout(2 * time.Minute).WithPolling(interval).Should(Succeed())
	})

	It("of addon-manager move to another node when theirs is drained, and nothing is lost", Label(twoNodes), func(ctx SpecContext) {
		const managers = "app.kubernetes.io/name=addon-manager"
		node := nodeOfLeader(ctx, onHub)
		DeferCleanup(func(ctx SpecContext) { must(f.kubectl(ctx, "hub", "uncordon", node)) })
		drained := make(chan error, 1)
		go func() {
			_, err := f.kubectl(ctx, "hub", "drain", node, "--pod-selector="+managers, "--timeout=90s")
			drained <- err
		}()
		storedChange(ctx, hub, map[string]string{"TEXT": "four", "QUIET": "changed"})
		Eventually(drained).WithContext(ctx).WithTimeout(2 * time.Minute).Should(Receive(Not(HaveOccurred())))
		must(f.kubectl(ctx, "hub", "rollout", "status", "deployment/addon-manager", "-n", tandem, "--timeout=90s"))
		list, err := onHub.CoreV1().Pods(tandem).List(ctx, metav1.ListOptions{LabelSelector: managers})
		Expect(err).NotTo(HaveOccurred())
		Expect(list.Items).To(HaveLen(2))
		Expect(list.Items).NotTo(ContainElement(HaveField("Spec.NodeName", node)))
		for name := range storedPods(ctx, pods) {
			Expect(strings.Fields(logOf(ctx, pods, name))).To(Equal([]string{volumes[name], "four", "made-in-a-container"}))
		}
	})

	It("are not replaced when addon-agent is upgraded, and the running plan continues", Label(nextAgentLabel), func(ctx SpecContext) {
		slow := instanceOf("slow", "stored")
		create(ctx, hub, onePlan(slow.Name, jobOf("Never", "", "sleep 40")))
		create(ctx, hub, slow)
		job := func() (types.UID, error) {
			job, err := pods.BatchV1().Jobs("stored").Get(ctx, slow.Name, metav1.GetOptions{})
			return job.UID, err
		}
		Eventually(func(g Gomega) {
			g.Expect(hub.Get(ctx, client.ObjectKeyFromObject(slow), slow)).To(Succeed())
			g.Expect(slow.Status.PlanStatus[kudo.DeployPlan].Status).To(Equal(kudo.InProgress))
			g.Expect(job()).NotTo(BeEmpty())
		}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed())
		execution, before := slow.Status.Execution.UID, storedPods(ctx, pods)
		began, err := job()
		Expect(err).NotTo(HaveOccurred())

		image := "addon-agent=" + os.Getenv(nextAgent)
		must(f.kubectl(ctx, "cluster1", "set", "image", "deployment/addon-agent", image, "-n", tandem))
		must(f.kubectl(ctx, "cluster1", "rollout", "status", "deployment/addon-agent", "-n", tandem, "--timeout=90s"))
		Expect(job()).To(Equal(began), "the plan's Job still runs")
		completes(ctx, hub, slow)
		Expect(slow.Status.Execution.UID).To(Equal(execution))
		Expect(job()).To(Equal(began))
		storedSettles(ctx, hub)
		Expect(storedPods(ctx, pods)).To(Equal(before))
	})

	It("are gone when their Instance is deleted", func(ctx SpecContext) {
		Expect(hub.Delete(ctx, storedInstance())).To(Succeed())
		Expect(client.IgnoreNotFound(hub.Delete(ctx, instanceOf("slow", "stored")))).To(Succeed())
		Eventually(func(g Gomega) {
			left, err := census.OfTandem(ctx, f.clusters["cluster1"])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(left).To(BeEmpty())
			g.Expect(podsOf(ctx, pods, "stored", "")).To(BeEmpty())
		}).WithContext(ctx).WithTimeout(2 * time.Minute).WithPolling(interval).Should(Succeed())
	})

	// A machine that is too busy to renew a lease ends them too.
	It("of Tandem have not exceeded the memory limits of their manifests", func(ctx SpecContext) {
		for _, at := range []*kubernetes.Clientset{onHub, pods} {
			list, err := at.CoreV1().Pods(tandem).List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(list.Items).NotTo(BeEmpty())
			for _, pod := range list.Items {
				Expect(pod.Spec.Containers[0].Resources.Limits).To(HaveKey(corev1.ResourceMemory))
				for _, status := range pod.Status.ContainerStatuses {
					last := ptr.Deref(status.LastTerminationState.Terminated, corev1.ContainerStateTerminated{})
					Expect(last.Reason).NotTo(Equal("OOMKilled"), pod.Name)
				}
			}
		}
	})
})

// leaderOf returns the name of the pod that holds a lease.
func leaderOf(lease *coordinationv1.Lease) string {
	name, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	return name
}

// nodeOfLeader returns the node of the replica of addon-manager that leads.
func nodeOfLeader(ctx context.Context, hub *kubernetes.Clientset) string {
	GinkgoHelper()
	lease, err := hub.CoordinationV1().Leases(tandem).Get(ctx, "tandem-addon-manager", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	pod, err := hub.CoreV1().Pods(tandem).Get(ctx, leaderOf(lease), metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return pod.Spec.NodeName
}

// podsOf returns the pods of a namespace that match a selector, by name.
func podsOf(ctx context.Context, c *kubernetes.Clientset, namespace, selector string) map[string]types.UID {
	GinkgoHelper()
	list, err := c.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	Expect(err).NotTo(HaveOccurred())
	uids := map[string]types.UID{}
	for _, pod := range list.Items {
		uids[pod.Name] = pod.UID
	}
	return uids
}

func storedPods(ctx context.Context, c *kubernetes.Clientset) map[string]types.UID {
	GinkgoHelper()
	return podsOf(ctx, c, "stored", "app=stored")
}

// logOf returns the log of a pod of the StatefulSet.
func logOf(ctx context.Context, c *kubernetes.Clientset, name string) string {
	GinkgoHelper()
	log, err := c.CoreV1().Pods("stored").GetLogs(name, &corev1.PodLogOptions{}).DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	return string(log)
}

// storedChange sets the parameters, and waits until the plan has completed.
func storedChange(ctx context.Context, hub client.Client, parameters map[string]string) {
	GinkgoHelper()
	Eventually(func() error { // requests may reach the replica of addon-manager that ends
		return environment.Edit(ctx, hub, storedInstance(), func(i *kudo.Instance) { i.Spec.Parameters = parameters })
	}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed())
	storedSettles(ctx, hub)
}

// storedSettles waits until the Instance is ready for its current spec.
func storedSettles(ctx context.Context, hub client.Client) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		instance := storedInstance()
		g.Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
		ready := ptr.Deref(meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionReady), metav1.Condition{})
		g.Expect(ready.Status).To(Equal(metav1.ConditionTrue), ready.Message)
		g.Expect(ready.ObservedGeneration).To(Equal(instance.Generation))
	}).WithContext(ctx).WithTimeout(2 * time.Minute).WithPolling(interval).Should(Succeed())
}

func storedInstance() *kudo.Instance { return instanceOf("stored", "stored") }

// storedPackage returns a package with a StatefulSet whose pods log what their volume, a parameter and a file of a Pipe task contain.
func storedPackage() *kudo.OperatorVersion {
	apply := kudo.Task{Name: "server", Kind: kudo.TaskApply}
	apply.Spec.Resources = []string{"config.yaml", "server.yaml"}
	file := kudo.Task{Name: "file", Kind: kudo.TaskPipe}
	file.Spec.PipeTaskSpec = kudo.PipeTaskSpec{Pod: "maker.yaml", Pipe: []kudo.PipeSpec{{File: "/out/file", Kind: "ConfigMap", Key: "file"}}}
	return &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "stored-1.0.0", Namespace: kudo.DefaultPackagesNamespace},
		Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: "stored"}, Version: "1.0.0",
			Templates: map[string]string{"maker.yaml": storedMaker, "config.yaml": storedConfig, "server.yaml": storedServer},
			Parameters: []kudo.Parameter{
				{Name: "TEXT", Default: ptr.To("one")},
				{Name: "QUIET", Default: ptr.To("at first"), ForcePodRestart: new(kudo.Flag(false))},
			},
			Tasks: []kudo.Task{file, apply},
			Plans: map[string]kudo.Plan{
				kudo.DeployPlan: {Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{
					{Name: "file", Tasks: []string{"file"}}, {Name: "server", Tasks: []string{"server"}},
				}}}},
				kudo.UpdatePlan: {Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{{Name: "server", Tasks: []string{"server"}}}}}},
			},
		},
	}
}

const (
	storedMaker = `
apiVersion: v1
kind: Pod
spec:
  volumes: [{name: out, emptyDir: {}}]
  initContainers:
  - name: make
    image: ` + container + `
    command: [sh, -c, "echo made-in-a-container >/out/file"]
    volumeMounts: [{name: out, mountPath: /out}]
`
	storedConfig = `
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}"}
data:
  text: {{ .Params.TEXT | quote }}
  quiet: {{ .Params.QUIET | quote }}
`
	storedServer = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ .Name }}"}
spec:
  replicas: 2
  serviceName: stored
  selector: {matchLabels: {app: stored}}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}
  template:
    metadata: {labels: {app: stored}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: main
        image: ` + container + `
        command:
        - sh
        - -euc
        - |
          [ -s /data/first ] || cat /proc/sys/kernel/random/uuid >/data/first
          echo "$(cat /data/first) $(cat /config/text) $(cat /file/file)"
          exec sleep 100000
        readinessProbe: {exec: {command: [test, -s, /data/first]}, periodSeconds: 1}
        volumeMounts:
        - {name: data, mountPath: /data}
        - {name: config, mountPath: /config}
        - {name: file, mountPath: /file}
      volumes:
      - {name: config, configMap: {name: "{{ .Name }}"}}
      - {name: file, configMap: {name: "{{ .Pipes.file }}"}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 16Mi}}}
`
)
