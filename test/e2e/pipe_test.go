package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sandbox"
)

// Only the containers are simulated: the files that they would create are placed where the sandbox's kubelet finds them. Everything else is
// real: pods, the transfer of the files through the API server, and the resulting objects.
var _ = Describe("A package with Pipe tasks", Label(quick), onSandbox("it makes the files of containers and kills programs"), Ordered, func() {
	const certificate = "-----BEGIN CERTIFICATE-----\n\x00\xff"
	var (
		box          *sandbox.Sandbox
		hub, cluster client.Client
	)

	BeforeAll(func(ctx SpecContext) {
		box = startSandbox(ctx, 1)
		hub = hubClient(box.Hub().Config())
		var err error
		cluster, err = client.New(box.Cluster("cluster1").Config(), client.Options{})
		Expect(err).NotTo(HaveOccurred())

		folder := filepath.Join(box.Cluster("cluster1").Files(), "out")
		Expect(os.Mkdir(folder, 0o700)).To(Succeed())
		for name, content := range map[string]string{
			"tls.crt": certificate, "index.html": "<h1>moo</h1>", "large": strings.Repeat("x", 1<<20), "too-large": strings.Repeat("x", 1<<20+1),
		} {
			Expect(os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600)).To(Succeed())
		}
		Expect(hub.Create(ctx, pipePackage())).To(Succeed())
		Expect(hub.Create(ctx, pipeInstance())).To(Succeed())
	})

	It("is deployed while the agent is killed again and again, and its pod made once", func(ctx SpecContext) {
		killing, stop := context.WithCancel(ctx)
		killed := make(chan int)
		go func() {
			defer GinkgoRecover()
			killed <- killAgent(killing, box)
		}()
		Eventually(pipeReady).WithContext(ctx).WithArguments(hub).WithTimeout(2 * timeout).WithPolling(interval).
			Should(HaveField("Status", metav1.ConditionTrue))
		stop()
		Expect(<-killed).To(BeNumerically(">", 1))
		Expect(countCreations(box.Cluster("cluster1").AuditLog(), "pods")).To(HaveLen(1))
		for _, times := range countCreations(box.Cluster("cluster1").AuditLog(), "pods") {
			Expect(times).To(Equal(1))
		}
	})

	It("has its files in objects that templates find", func(ctx SpecContext) {
		volumes := map[string]corev1.Volume{}
		for _, volume := range pipeDeployment(ctx, cluster).Spec.Template.Spec.Volumes {
			volumes[volume.Name] = volume
		}
		key := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: "piped", Name: name} }
		secret, environment := &corev1.Secret{}, &corev1.Secret{}
		page, large := &corev1.ConfigMap{}, &corev1.ConfigMap{}
		Expect(cluster.Get(ctx, key(volumes["certificate"].Secret.SecretName), secret)).To(Succeed())
		Expect(cluster.Get(ctx, key(volumes["environment"].Secret.SecretName), environment)).To(Succeed())
		Expect(cluster.Get(ctx, key(volumes["page"].ConfigMap.Name), page)).To(Succeed())
		Expect(cluster.Get(ctx, key(volumes["large"].ConfigMap.Name), large)).To(Succeed())
		Expect(secret.Data).To(Equal(map[string][]byte{"tls.crt": []byte(certificate)}))
		Expect(environment.Data).To(Equal(map[string][]byte{"SIMULATED": []byte("true")}), "no test has put that file")
		Expect(page.Data).To(Equal(map[string]string{"index.html": "<h1>moo</h1>"}))
		Expect(large.Data["large"]).To(HaveLen(1 << 20))
		Expect(secret.OwnerReferences).To(ConsistOf(HaveField("Kind", "Instance")))
		Expect(secret.Labels).To(HaveKeyWithValue(kudo.LabelInstance, "piped"))
	})

	It("has no pod of a Pipe task left", func(ctx SpecContext) {
		Expect(pipePods(ctx, cluster)).To(BeEmpty())
	})

	It("finds its files in plans that do not make them, and restarts nothing", func(ctx SpecContext) {
		template := pipeDeployment(ctx, cluster).Spec.Template
		change(ctx, hub, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"REPLICAS": "2"} })
		Eventually(func(g Gomega) {
			g.Expect(ptr.Deref(pipeDeployment(ctx, cluster).Spec.Replicas, 0)).To(BeEquivalentTo(2))
			condition, err := pipeReady(ctx, hub)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(condition.Status).To(Equal(metav1.ConditionTrue), condition.Message)
			instance := pipeInstance()
			g.Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
			g.Expect(instance.Status.PlanStatus["update"].Status).To(Equal(kudo.Complete))
		}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed())
		Expect(pipeDeployment(ctx, cluster).Spec.Template).To(Equal(template))
		Expect(countCreations(box.Cluster("cluster1").AuditLog(), "pods")).To(HaveLen(1))
	})

	It("says of a file that is too large which it is, and leaves no pod", func(ctx SpecContext) {
		change(ctx, hub, func(i *kudo.Instance) { i.Spec.PlanExecution = kudo.PlanExecution{PlanName: "bulk", UID: "now"} })
		Eventually(func(g Gomega) {
			condition, err := pipeCondition(ctx, hub, kudo.ConditionLastRequestSucceeded)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(condition.Message).To(HaveSuffix(`task "bulk": file "/out/too-large" is larger than the 1048576 bytes that a ConfigMap can hold`))
			g.Expect(pipePods(ctx, cluster)).To(BeEmpty())
		}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed())
	})

	It("leaves nothing behind when it is removed", func(ctx SpecContext) {
		Expect(hub.Delete(ctx, pipeInstance())).To(Succeed())
		Eventually(func(g Gomega) {
			err := hub.Get(ctx, client.ObjectKeyFromObject(pipeInstance()), pipeInstance())
			g.Expect(err).To(HaveOccurred())
			g.Expect(client.IgnoreNotFound(err)).To(Succeed())
			for _, list := range []client.ObjectList{&corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.PodList{}, &appsv1.DeploymentList{}} {
				g.Expect(cluster.List(ctx, list, client.InNamespace("piped"), client.HasLabels{kudo.LabelInstance})).To(Succeed())
				g.Expect(meta.LenList(list)).To(BeZero())
			}
		}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed())
	})
})

// killAgent kills the agent whenever it has restarted, until ctx ends, and returns the number of kills.
func killAgent(ctx context.Context, box *sandbox.Sandbox) int {
	killed, last := 0, 0
	ticker := time.NewTicker(700 * time.Millisecond)
	defer ticker.Stop()
	for killed < 8 {
		select {
		case <-ctx.Done():
			return killed
		case <-ticker.C:
		}
		if pid := find(box, "cluster1", "addon-agent").PID; pid != 0 && pid != last {
			Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
			killed, last = killed+1, pid
		}
	}
	return killed
}

func pipeReady(ctx context.Context, hub client.Client) (metav1.Condition, error) {
	return pipeCondition(ctx, hub, kudo.ConditionReady)
}

func pipeCondition(ctx context.Context, hub client.Client, name string) (metav1.Condition, error) {
	instance := pipeInstance()
	if err := hub.Get(ctx, client.ObjectKeyFromObject(instance), instance); err != nil {
		return metav1.Condition{}, err
	}
	return ptr.Deref(meta.FindStatusCondition(instance.Status.Conditions, name), metav1.Condition{}), nil
}

func change(ctx context.Context, hub client.Client, edit func(*kudo.Instance)) {
	GinkgoHelper()
	instance := pipeInstance()
	Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
	before := instance.DeepCopy()
	edit(instance)
	Expect(hub.Patch(ctx, instance, client.MergeFrom(before))).To(Succeed())
}

func pipeDeployment(ctx context.Context, cluster client.Client) *appsv1.Deployment {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	Expect(cluster.Get(ctx, client.ObjectKey{Namespace: "piped", Name: "piped"}, deployment)).To(Succeed())
	return deployment
}

// pipePods returns the names of the existing pods of Pipe tasks.
func pipePods(ctx context.Context, cluster client.Client) []string {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(cluster.List(ctx, &pods, client.InNamespace("piped"))).To(Succeed())
	var names []string
	for _, pod := range pods.Items {
		if pod.Annotations[kudo.AnnotationPipe] != "" {
			names = append(names, pod.Name)
		}
	}
	return names
}

func pipeInstance() *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Name: "piped", Namespace: "cluster1"},
		Spec: kudo.InstanceSpec{
			OperatorVersion:  corev1.ObjectReference{Namespace: kudo.DefaultPackagesNamespace, Name: "piped-1.0.0"},
			InstallNamespace: "piped",
		},
	}
}

const (
	makerTemplate = `
apiVersion: v1
kind: Pod
spec:
  volumes: [{name: out, emptyDir: {}}]
  initContainers:
  - name: make
    image: simulated
    volumeMounts: [{name: out, mountPath: /out}]
`
	pipedTemplate = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Name }}"}
spec:
  replicas: {{ .Params.REPLICAS }}
  selector: {matchLabels: {app: "{{ .Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Name }}"}}
    spec:
      containers: [{name: web, image: simulated}]
      volumes:
      - {name: certificate, secret: {secretName: "{{ .Pipes.certificate }}"}}
      - {name: environment, secret: {secretName: "{{ .Pipes.environment }}"}}
      - {name: page, configMap: {name: "{{ .Pipes.page }}"}}
      - {name: large, configMap: {name: "{{ .Pipes.large }}"}}
`
)

// pipePackage returns a package that creates files of several kinds, and an application that uses them.
func pipePackage() *kudo.OperatorVersion {
	maker := func(name string, files ...kudo.PipeSpec) kudo.Task {
		return kudo.Task{Name: name, Kind: kudo.TaskPipe, Spec: kudo.TaskSpec{PipeTaskSpec: kudo.PipeTaskSpec{Pod: "maker.yaml", Pipe: files}}}
	}
	serial := func(tasks ...string) kudo.Plan {
		phase := kudo.Phase{Name: "main"}
		for _, task := range tasks {
			phase.Steps = append(phase.Steps, kudo.Step{Name: task, Tasks: []string{task}})
		}
		return kudo.Plan{Phases: []kudo.Phase{phase}}
	}
	return &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "piped-1.0.0", Namespace: kudo.DefaultPackagesNamespace},
		Spec: kudo.OperatorVersionSpec{
			Operator:   corev1.ObjectReference{Name: "piped"},
			Version:    "1.0.0",
			Templates:  map[string]string{"maker.yaml": makerTemplate, "app.yaml": pipedTemplate},
			Parameters: []kudo.Parameter{{Name: "REPLICAS", Default: ptr.To("1"), ForcePodRestart: new(kudo.Flag(false))}},
			Tasks: []kudo.Task{
				maker("files",
					kudo.PipeSpec{File: "/out/tls.crt", Kind: "Secret", Key: "certificate"},
					kudo.PipeSpec{EnvFile: "/out/settings.env", Kind: "Secret", Key: "environment"},
					kudo.PipeSpec{File: "/out/index.html", Kind: "ConfigMap", Key: "page"},
					kudo.PipeSpec{File: "/out/large", Kind: "ConfigMap", Key: "large"}),
				maker("bulk", kudo.PipeSpec{File: "/out/too-large", Kind: "ConfigMap", Key: "bulk"}),
				{Name: "app", Kind: kudo.TaskApply, Spec: kudo.TaskSpec{ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"app.yaml"}}}},
			},
			Plans: map[string]kudo.Plan{"deploy": serial("files", "app"), "update": serial("app"), "bulk": serial("bulk")},
		},
	}
}
