package agent

import (
	"context"
	"errors"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/sandbox/kubelet"
	"github.com/tandem-addons/tandem/pkg/sandbox/port"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

const makerTemplate = `
apiVersion: v1
kind: Pod
spec:
  volumes: [{name: out, emptyDir: {}}]
  initContainers:
  - name: make
    image: maker:1
    env: [{name: VALUE, value: "{{ .Params.VALUE }}"}]
    volumeMounts: [{name: out, mountPath: /out}]
`

const userTemplate = `
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}-user"}
data: {value: "{{ .Pipes.Key }}"}
`

// pipePackage returns a package whose plan deploy creates two files, which update uses without creating them.
func pipePackage() kudo.OperatorVersionSpec {
	spec := standard()
	spec.Templates["maker.yaml"], spec.Templates["user.yaml"] = makerTemplate, userTemplate
	files := kudo.Task{Name: "files", Kind: kudo.TaskPipe}
	files.Spec.Pod = "maker.yaml"
	files.Spec.Pipe = []kudo.PipeSpec{{File: "/out/key", Kind: "Secret", Key: "Key"}, {File: "/out/crt", Kind: "ConfigMap", Key: "Crt"}}
	spec.Tasks = append(spec.Tasks, files, task("user", kudo.TaskApply, "user.yaml"))
	spec.Plans = map[string]kudo.Plan{"deploy": serial("files", "user"), "update": serial("user"), "other": serial("config")}
	return spec
}

// newNode returns a node that serves the API server's requests at its own address until the end of the spec.
func newNode(ctx context.Context) *environment.Node {
	GinkgoHelper()
	made++
	n := &environment.Node{Name: "node-" + strconv.Itoa(made)}
	n.Put("/pipe/out/key", "secret")
	n.Put("/pipe/out/crt", "public")
	server := httptest.NewTLSServer(kubelet.Handler(n.Open))
	DeferCleanup(server.Close)
	join(ctx, n, server.Listener.Addr().String())
	return n
}

// join adds a node, whose kubelet listens at address, to the managed cluster until the end of the spec.
func join(ctx context.Context, n *environment.Node, address string) {
	GinkgoHelper()
	playing, end := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(end)
	Expect(n.Join(playing, managed, address)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(managed.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}})).To(Succeed())
	})
}

// pod returns the pod of the Instance's Pipe task, or nil.
func (h *hubPart) pod(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{}
	err := managed.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: pipe.PodName(h.name, "files")}, pod)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	if err != nil {
		return nil
	}
	return pod
}

// runs acts as scheduler and kubelet up to the status that edit sets, with the current or the next pod.
func (h *hubPart) runs(ctx context.Context, n *environment.Node, edit func(*corev1.PodStatus)) {
	GinkgoHelper()
	Eventually(func() error {
		pod := h.pod(ctx)
		if pod == nil || pod.DeletionTimestamp != nil {
			return errors.New("there is no pod yet")
		}
		return n.Run(ctx, managed, pod, edit)
	}).Should(Succeed())
}

// withFailedInit is the status in which the init container has exited with a non-zero code.
func withFailedInit(phase corev1.PodPhase) func(*corev1.PodStatus) {
	return func(status *corev1.PodStatus) {
		status.Phase = phase
		status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "make", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", Message: "no entropy"}}}}
	}
}

// keeps returns the content of the task's objects.
func (h *hubPart) keeps(ctx context.Context) (key, crt string) {
	GinkgoHelper()
	secret, config := &corev1.Secret{}, &corev1.ConfigMap{}
	for name, into := range map[string]client.Object{"Key": secret, "Crt": config} {
		err := managed.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: pipe.ArtifactName(h.name, "files", name)}, into)
		Expect(client.IgnoreNotFound(err)).To(Succeed())
	}
	return string(secret.Data["key"]), config.Data["crt"]
}

// bare expects that no pod of the Instance exists.
func (h *hubPart) bare(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() *corev1.Pod { return h.pod(ctx) }).Should(BeNil())
}

var _ = Describe("A Pipe task", func() {
	var stop func()
	var n *environment.Node
	BeforeEach(func(ctx context.Context) {
		n = newNode(ctx)
		stop = runAgent()
	})
	AfterEach(func() { stop() })

	It("keeps the files of a pod, which goes, for all plans", func(ctx context.Context) {
		h := newInstance(ctx, pipePackage(), nil)
		h.resolve(ctx)
		Eventually(func() string { return h.ready(ctx).Message }).Should(HaveSuffix(
			`plan "deploy" is running: phase "main": step "files": task "files": Pod ` + h.namespace + "/" + pipe.PodName(h.name, "files") +
				": has not started yet"))
		Expect(h.pod(ctx).Spec.Containers).To(ConsistOf(HaveField("Image", pipe.DefaultImage)))
		h.runs(ctx, n, environment.WaitInPipe)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.pod(ctx)).To(BeNil())
		key, crt := h.keeps(ctx)
		Expect([]string{key, crt}).To(Equal([]string{"secret", "public"}))
		Expect(h.config(ctx, "-user")).To(Equal(pipe.ArtifactName(h.name, "files", "Key")))
		Expect(h.get(ctx).Status.Inventory).To(ContainElement(And(HaveField("Kind", "Secret"), HaveField("Namespace", h.namespace),
			HaveField("Name", pipe.ArtifactName(h.name, "files", "Key")), HaveField("Task", "files"), HaveField("Pending", false))))

		By("in a plan that does not make them")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"VALUE": "two"} })
		h.completes(ctx, "update", kudo.PlanStatus{})
		Expect(h.config(ctx, "-user")).To(Equal(pipe.ArtifactName(h.name, "files", "Key")))

		By("and re-creates them in its next execution")
		n.Put("/pipe/out/key", "changed")
		before := h.plan(ctx, "deploy")
		h.change(ctx, func(s *kudo.InstanceSpec) { s.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "again"} })
		h.runs(ctx, n, environment.WaitInPipe)
		h.completes(ctx, "deploy", before)
		key, _ = h.keeps(ctx)
		Expect(key).To(Equal("changed"))

		By("and misses them when they are gone")
		Expect(managed.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: h.namespace, Name: pipe.ArtifactName(h.name, "files", "Key")}})).To(Succeed())
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("is missing"))
		h.finish(ctx)
		key, crt = h.keeps(ctx)
		Expect([]string{key, crt}).To(Equal([]string{"", ""}))
	})

	It("makes nothing twice, wherever the agent was when it stopped", func(ctx context.Context) {
		h := newInstance(ctx, pipePackage(), nil)
		h.resolve(ctx)
		Eventually(func() *corev1.Pod { return h.pod(ctx) }).ShouldNot(BeNil())
		uid := h.pod(ctx).UID
		stop()

		By("stopping before the files are there")
		stop = runAgent()
		Consistently(func() *corev1.Pod { return h.pod(ctx) }).Should(HaveField("UID", uid))
		stop()

		By("stopping when they have been kept and the pod is still there")
		h.runs(ctx, n, environment.WaitInPipe)
		hold := func(finalizers ...string) func(context.Context) error {
			return func(ctx context.Context) error {
				pod := h.pod(ctx)
				pod.Finalizers = finalizers
				return managed.Update(ctx, pod)
			}
		}
		Eventually(hold("tandem.test/held")).WithContext(ctx).Should(Succeed())
		stop = runAgent()
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("held by finalizer tandem.test/held"))
		stop()
		reads := n.Reads.Load()
		n.Put("/pipe/out/key", "of a second run")
		Eventually(hold()).WithContext(ctx).Should(Succeed())
		Eventually(func() *corev1.Pod { return h.pod(ctx) }).Should(BeNil())

		By("losing the record of that, which the agent makes after it has stored the files")
		h.tamperStatus(ctx, func(mirror *kudo.Instance) {
			for i := range mirror.Status.Inventory {
				mirror.Status.Inventory[i].Pending = true
			}
		})

		By("continuing from there")
		stop = runAgent()
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(n.Reads.Load()).To(Equal(reads))
		Expect(h.pod(ctx)).To(BeNil())
		key, _ := h.keeps(ctx)
		Expect(key).To(Equal("secret"))
		Expect(h.mirror(ctx).Status.Inventory).NotTo(ContainElement(HaveField("Pending", true)), "their absence would not be noticed")
		h.finish(ctx)
	})

	It("reports how the init container failed, and continues when it succeeds", func(ctx context.Context) {
		h := newInstance(ctx, pipePackage(), nil)
		h.resolve(ctx)
		h.runs(ctx, n, withFailedInit(corev1.PodPending))
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.Error),
			HaveField("Message", HaveSuffix("init container make ended with exit code 3 (Error): no entropy; it is restarted"))))
		h.runs(ctx, n, environment.WaitInPipe)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.finish(ctx)
	})

	It("fails permanently when the init container has failed and is not restarted, and leaves no pod", func(ctx context.Context) {
		spec := pipePackage()
		spec.Templates["maker.yaml"] += "  restartPolicy: Never\n"
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.runs(ctx, n, withFailedInit(corev1.PodFailed))
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", HaveSuffix("init container make ended with exit code 3 (Error): no entropy"))))
		h.bare(ctx)
		h.finish(ctx)
	})

	It("starts another pod in the place of one that was evicted", func(ctx context.Context) {
		h := newInstance(ctx, pipePackage(), nil)
		h.resolve(ctx)
		h.runs(ctx, n, func(s *corev1.PodStatus) { s.Phase, s.Reason = corev1.PodFailed, "Evicted" })
		uid := h.pod(ctx).UID
		Eventually(func() *corev1.Pod { return h.pod(ctx) }).Should(And(Not(BeNil()), HaveField("UID", Not(Equal(uid)))))
		h.runs(ctx, n, environment.WaitInPipe)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.finish(ctx)
	})

	DescribeTable("leaves no pod of an execution that does not continue",
		func(ctx context.Context, end func(context.Context, *hubPart)) {
			h := newInstance(ctx, pipePackage(), nil)
			h.resolve(ctx)
			Eventually(func() *corev1.Pod { return h.pod(ctx) }).ShouldNot(BeNil())
			end(ctx, h)
			h.bare(ctx)
			h.finish(ctx)
		},
		Entry("because it was cancelled", func(ctx context.Context, h *hubPart) {
			Eventually(func() *kudo.Execution { return h.get(ctx).Status.Execution }).ShouldNot(BeNil())
			h.change(ctx, func(s *kudo.InstanceSpec) {
				s.PlanExecution = kudo.PlanExecution{UID: h.get(ctx).Status.Execution.UID, Cancel: true}
			})
			Eventually(func() string { return h.plan(ctx, "deploy").Message }).Should(Equal("cancelled"))
		}),
		Entry("because another one superseded it, of a version without Pipe tasks", func(ctx context.Context, h *hubPart) {
			h.runs(ctx, n, withFailedInit(corev1.PodPending))
			Eventually(func() kudo.ExecutionStatus { return h.plan(ctx, "deploy").Status }).Should(Equal(kudo.Error))
			next := configOnly()
			next.Version = "2.0.0"
			push(ctx, h.name+"-2.0.0", next)
			h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-2.0.0" })
			h.completes(ctx, "deploy", h.plan(ctx, "deploy"))
		}),
		Entry("because the Instance was removed", func(ctx context.Context, h *hubPart) {
			Expect(hub.Delete(ctx, h.get(ctx))).To(Succeed())
		}),
	)

	It("takes no file of an earlier execution's pod", func(ctx context.Context) {
		h := newInstance(ctx, pipePackage(), map[string]string{"VALUE": "one"})
		h.resolve(ctx)
		Eventually(func() *corev1.Pod { return h.pod(ctx) }).ShouldNot(BeNil())
		uid := h.pod(ctx).UID
		h.change(ctx, func(s *kudo.InstanceSpec) { s.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "again"} })
		Eventually(func() *corev1.Pod { return h.pod(ctx) }).Should(And(Not(BeNil()), HaveField("UID", Not(Equal(uid)))))
		h.runs(ctx, n, environment.WaitInPipe)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.finish(ctx)
	})

	It("takes over no object of another owner, and runs no pod for it", func(ctx context.Context) {
		h := newInstance(ctx, pipePackage(), nil)
		Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())
		foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: pipe.ArtifactName(h.name, "files", "Key")},
			Data: map[string][]byte{"key": []byte("foreign")}}
		Expect(managed.Create(ctx, foreign)).To(Succeed())
		h.resolve(ctx)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.FatalError),
			HaveField("Message", ContainSubstring("already exists and was not created by this Instance"))))
		Expect(h.pod(ctx)).To(BeNil())
		h.finish(ctx)
		key, _ := h.keeps(ctx)
		Expect(key).To(Equal("foreign"))
	})

	DescribeTable("that cannot get its files states why, and does not quote them",
		func(ctx context.Context, edit func(*kudo.OperatorVersionSpec), state kudo.ExecutionStatus, says string) {
			n.Put("/pipe/out/env", "OPEN=1\nhidden")
			n.Put("/pipe/out/large", strings.Repeat("hidden", 1<<20))
			spec := pipePackage()
			edit(&spec)
			h := newInstance(ctx, spec, nil)
			h.resolve(ctx)
			if !strings.HasPrefix(says, "template") {
				h.runs(ctx, n, environment.WaitInPipe)
			}
			Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", state),
				HaveField("Message", And(MatchRegexp(`task "files": `+says), Not(ContainSubstring("hidden"))))))
			if state == kudo.FatalError {
				h.bare(ctx)
			}
			key, crt := h.keeps(ctx)
			Expect([]string{key, crt}).To(Equal([]string{"", ""}), "all or nothing")
			h.finish(ctx)
		},
		Entry("a file that is not there",
			func(s *kudo.OperatorVersionSpec) { s.Tasks[4].Spec.Pipe[1].File = "/out/missing" },
			kudo.FatalError, `file "/out/missing" cannot be read: .*exit code 1: head: /pipe/out/missing: No such file or directory`),
		Entry("a file that is too large",
			func(s *kudo.OperatorVersionSpec) { s.Tasks[4].Spec.Pipe[1].File = "/out/large" },
			kudo.FatalError, `file "/out/large" is larger than the 1048576 bytes that a ConfigMap can hold`),
		Entry("a file of variables that is none",
			func(s *kudo.OperatorVersionSpec) {
				s.Tasks[4].Spec.Pipe[1] = kudo.PipeSpec{EnvFile: "/out/env", Kind: "Secret", Key: "Crt"}
			},
			kudo.FatalError, `file "/out/env", line 2: must be NAME=VALUE`),
		Entry("a template that is no Pod",
			func(s *kudo.OperatorVersionSpec) { s.Tasks[4].Spec.Pod = "user.yaml" },
			kudo.FatalError, `template "user.yaml": a Pipe task must run a Pod of v1, got a ConfigMap of v1`),
		Entry("a Pod that the API server refuses",
			func(s *kudo.OperatorVersionSpec) { s.Templates["maker.yaml"] += "  dnsPolicy: Never\n" },
			kudo.FatalError, `template|applying Pod .*spec.dnsPolicy`),
	)

	It("says what keeps it from a kubelet, and tries again", func(ctx context.Context) {
		reserved, err := port.Find()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(reserved.Release)
		deaf := &environment.Node{Name: n.Name + "-deaf"}
		join(ctx, deaf, reserved.Address())

		h := newInstance(ctx, pipePackage(), nil)
		h.resolve(ctx)
		h.runs(ctx, deaf, environment.WaitInPipe)
		Eventually(func() kudo.PlanStatus { return h.plan(ctx, "deploy") }).Should(And(HaveField("Status", kudo.Error),
			HaveField("Message", ContainSubstring("connection refused"))))
		server := httptest.NewUnstartedServer(kubelet.Handler(n.Open))
		server.Listener, err = net.Listen("tcp", reserved.Address())
		Expect(err).NotTo(HaveOccurred())
		server.StartTLS()
		DeferCleanup(server.Close)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		h.finish(ctx)
	})
})
