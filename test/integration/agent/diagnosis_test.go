package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// ask requests a diagnosis on the hub.
func (h *hubPart) ask(ctx context.Context, request string) {
	GinkgoHelper()
	h.edit(ctx, func(i *kudo.Instance) { metav1.SetMetaDataAnnotation(&i.ObjectMeta, kudo.AnnotationDiagnose, request) })
}

// answer returns the answer on the hub to a request.
func (h *hubPart) answer(ctx context.Context, request string) *kudo.Diagnosis {
	GinkgoHelper()
	h.ask(ctx, request)
	var d *kudo.Diagnosis
	Eventually(func() string {
		if d = h.get(ctx).Status.Diagnosis; d == nil {
			return ""
		}
		return d.Request
	}).Should(Equal(request))
	return d
}

// controlled returns the metadata of a pod of the standard Deployment, as its ReplicaSet would.
func (h *hubPart) controlled() metav1.ObjectMeta {
	const hash = "5f6c"
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: h.name + "-app-" + hash, UID: "replica-set", Controller: new(true)}
	return metav1.ObjectMeta{
		Namespace: h.namespace, Name: owner.Name + "-1", Labels: map[string]string{"app": h.name, "pod-template-hash": hash}, OwnerReferences: []metav1.OwnerReference{owner},
	}
}

// controlledPod creates a pod of the standard Deployment with containers of these names, like its ReplicaSet.
func (h *hubPart) controlledPod(ctx context.Context, containers ...string) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{ObjectMeta: h.controlled()}
	for _, name := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: "app:1"})
	}
	Eventually(func() error { return managed.Create(ctx, pod) }).Should(Succeed(), "the plan creates its namespace")
	return pod
}

// logs joins a node whose containers have a log.
func logs(ctx context.Context, name string, log func(r *http.Request) string) *environment.Node {
	GinkgoHelper()
	mux := http.NewServeMux()
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, log(r)) })
	kubelet := httptest.NewTLSServer(mux)
	DeferCleanup(kubelet.Close)
	node := &environment.Node{Name: name}
	join(ctx, node, kubelet.Listener.Addr().String())
	return node
}

// confidentialApp installs the standard package with a sensitive parameter, whose value is in a Secret.
func confidentialApp(ctx context.Context, value, deployment string) *hubPart {
	GinkgoHelper()
	spec := standard()
	spec.Templates["app.yaml"] = deployment
	spec.Parameters = append(spec.Parameters, kudo.Parameter{Name: "PASSWORD", Default: ptr.To(""), Sensitive: new(true)})
	h := newInstance(ctx, spec, nil)
	Expect(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())
	Expect(managed.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "given"}, Data: map[string][]byte{"password": []byte(value)}})).To(Succeed())
	h.edit(ctx, func(i *kudo.Instance) { i.Spec.ParametersFrom = from("given", "password") })
	h.resolve(ctx)
	h.rollOut(ctx)
	h.completes(ctx, "deploy", kudo.PlanStatus{})
	return h
}

var _ = Describe("A request for a diagnosis", func() {
	const value = "hunter2-diagnosed"
	var stop func()

	BeforeEach(func(ctx context.Context) {
		makeAgentNamespace(ctx)
		stop = runAgent()
	})
	now := func() string { return time.Now().UTC().Format(time.RFC3339) }

	It("is answered once, with pods, Events and the last lines of logs, and without sensitive values", func(ctx context.Context) {
		var reads atomic.Int32
		node := logs(ctx, "node-diagnosis", func(r *http.Request) string {
			reads.Add(1)
			return fmt.Sprintf("previous %s\n\x1b[2Jpassword is %s\n%s\n", r.URL.Query().Get("previous"), value, strings.Repeat("long ", 200))
		})
		h := confidentialApp(ctx, value, deploymentTemplate)
		pod := h.controlledPod(ctx, "app")
		foreign := h.podOf(ctx, map[string]string{"app": h.name}) // no ReplicaSet of the Deployment controls it
		Expect(node.Run(ctx, managed, pod, func(status *corev1.PodStatus) {
			status.Phase = corev1.PodRunning
			status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "app", RestartCount: 4, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}},
			}}
		})).To(Succeed())
		event := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: h.name, Namespace: h.namespace}, Reason: "BackOff", Message: "restarting with hunter2-\u200bdiagnosed",
			LastTimestamp: metav1.Now(), Count: 3,
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		}
		Expect(managed.Create(ctx, event)).To(Succeed())

		request := now()
		d := h.answer(ctx, request)
		Expect(d.Message).To(BeEmpty())
		Expect(d.Truncated).To(BeFalse())
		Expect(d.Pods).To(HaveLen(1))
		Expect(d.Pods[0]).To(And(HaveField("Name", pod.Name), HaveField("Namespace", h.namespace), HaveField("Phase", "Running"), HaveField("Ready", "0/1"),
			HaveField("Restarts", BeEquivalentTo(4)), HaveField("Image", "app:1"), HaveField("Reason", ContainSubstring("exited with code 1 (Error)"))))
		Expect(d.Pods[0].Logs).To(HaveLen(1))
		log := d.Pods[0].Logs[0]
		Expect(log.Previous).To(BeTrue())
		Expect(log.Lines).To(HaveExactElements("previous true", "[2Jpassword is *****", And(HavePrefix("long long"), HaveLen(256))))
		Expect(d.Events).To(ConsistOf(And(HaveField("Object", "Pod "+pod.Name), HaveField("Reason", "BackOff"), HaveField("Message", "restarting with *****"),
			HaveField("Count", BeEquivalentTo(3)))))

		By("answering no request twice")
		before, onHub := h.mirror(ctx), h.get(ctx)
		h.change(ctx, func(spec *kudo.InstanceSpec) { spec.Suspend = true }) // a pass
		Eventually(func() int64 { return h.get(ctx).Status.ObservedGeneration }).Should(BeNumerically(">", onHub.Status.ObservedGeneration))
		Expect(h.mirror(ctx).Status.Diagnosis).To(Equal(before.Status.Diagnosis))
		Expect(h.get(ctx).Status.Diagnosis).To(Equal(onHub.Status.Diagnosis))
		h.change(ctx, func(spec *kudo.InstanceSpec) { spec.Suspend = false })
		Eventually(func() int64 { return h.get(ctx).Status.ObservedGeneration }).Should(BeNumerically(">", onHub.Status.ObservedGeneration+1))

		By("writing nothing in the passes of the next agent")
		stop()
		versions := func() []string { return []string{h.get(ctx).ResourceVersion, h.mirror(ctx).ResourceVersion} }
		written := versions()
		runAgent()
		next := newInstance(ctx, configOnly(), nil)
		next.resolve(ctx)
		next.completes(ctx, "deploy", kudo.PlanStatus{}) // the agent is at work
		Consistently(versions).Should(Equal(written))
		Expect(reads.Load()).To(BeEquivalentTo(1))
		next.finish(ctx)

		By("dropping an answer whose request is withdrawn")
		h.edit(ctx, func(i *kudo.Instance) { delete(i.Annotations, kudo.AnnotationDiagnose) })
		Eventually(func() *kudo.Diagnosis { return h.get(ctx).Status.Diagnosis }).Should(BeNil())
		Expect(hubServer.Traces(ctx, value)).To(BeEmpty(), "the hub has a sensitive value")
		Expect(managed.Delete(ctx, event)).To(Succeed())
		Expect(managed.Delete(ctx, pod)).To(Succeed())
		Expect(managed.Delete(ctx, foreign)).To(Succeed())
		h.finish(ctx)
	})

	It("is answered with at most 16 KiB", func(ctx context.Context) {
		node := logs(ctx, "node-long-logs", func(*http.Request) string {
			return strings.Repeat(strings.Repeat("é", 1000)+"\n", 9) + "the last line\n"
		})
		h := newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		containers := []string{"a", "b", "c", "d"}
		pod := h.controlledPod(ctx, containers...)
		Expect(node.Run(ctx, managed, pod, func(status *corev1.PodStatus) {
			status.Phase = corev1.PodRunning
			for _, name := range containers {
				status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
			}
		})).To(Succeed())
		d := h.answer(ctx, now())
		Expect(d.Message).To(BeEmpty())
		Expect(d.Truncated).To(BeTrue())
		Expect(d.Pods).To(HaveExactElements(HaveField("Logs", HaveLen(3))))
		Expect(d.Pods[0].Logs[0].Lines).To(And(HaveLen(10), HaveEach(Satisfy(func(line string) bool { return len(line) <= 256 })), ContainElement("the last line")))
		encoded, err := json.Marshal(d)
		Expect(err).NotTo(HaveOccurred())
		Expect(len(encoded)).To(BeNumerically("<", 16<<10))
		Expect(managed.Delete(ctx, pod)).To(Succeed())
		h.finish(ctx)
	})

	It("is answered without pods of an object that holds a part of a sensitive value", func(ctx context.Context) {
		node := logs(ctx, "node-opaque", func(*http.Request) string { return "hun is the beginning\n" })
		h := confidentialApp(ctx, value, strings.Replace(deploymentTemplate, "image: app:1", `image: app:1, args: ["{{ .Params.PASSWORD | trunc 3 }}"]`, 1))
		pod := h.controlledPod(ctx, "app")
		Expect(node.Run(ctx, managed, pod, func(status *corev1.PodStatus) {
			status.Phase = corev1.PodRunning
			status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		})).To(Succeed())
		d := h.answer(ctx, now())
		Expect(d.Message).To(ContainSubstring("which cannot be masked, are omitted"))
		Expect(d.Truncated).To(BeTrue())
		Expect(append([]any{}, d.Pods, d.Events)).To(HaveEach(BeEmpty()))
		Expect(hubServer.Traces(ctx, value)).To(BeEmpty(), "the hub has a sensitive value")
		Expect(managed.Delete(ctx, pod)).To(Succeed())
		h.finish(ctx)
	})

	It("is answered for an Instance without pods", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.answer(ctx, now())).To(And(HaveField("Message", BeEmpty()), HaveField("Pods", BeEmpty()), HaveField("Events", BeEmpty()), HaveField("Truncated", BeFalse())))
		h.finish(ctx)
	})

	It("has a reason why it is not answered, and drops old answers", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(h.answer(ctx, "now").Message).To(ContainSubstring("is not a time in the format of RFC 3339"))
		age := func(by time.Duration) { // instead of ten seconds between two answers, and of an hour
			h.tamperStatus(ctx, func(i *kudo.Instance) {
				i.Status.Diagnosis.Time = metav1.NewTime(time.Now().Add(-by))
				i.Status.Diagnosis.Pods = []kudo.DiagnosedPod{{Name: "old"}}
			})
		}
		age(time.Minute)
		Expect(h.answer(ctx, "2099-01-01T00:00:00Z").Message).To(ContainSubstring("is in the future"))
		age(time.Minute)
		request := now()
		h.answer(ctx, request)
		age(2 * time.Hour)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Suspend = true }) // any event
		Eventually(func() *kudo.Diagnosis { return h.get(ctx).Status.Diagnosis }).Should(And(
			HaveField("Request", request), HaveField("Pods", BeEmpty()), HaveField("Message", ContainSubstring("was dropped one hour after"))))
		h.finish(ctx)
	})

	It("is not gathered again and again while the managed cluster's CustomResourceDefinition is older, and an event says so", func(ctx context.Context) {
		h := newInstance(ctx, configOnly(), nil)
		h.resolve(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		restore := dropFieldOf(ctx, "status", "diagnosis", func(ctx context.Context) bool {
			var probe *kudo.Instance
			Eventually(func() error { // its agent writes, too
				if probe = h.mirror(ctx); probe == nil { // after the spec
					return nil
				}
				probe.Status.Diagnosis = &kudo.Diagnosis{Request: "probe", Time: metav1.Now()}
				return managed.Status().Update(ctx, probe, client.DryRunAll)
			}).Should(Succeed())
			return probe == nil || probe.Status.Diagnosis != nil
		})
		request := now()
		h.ask(ctx, request)
		notes := func() (notes []string) {
			events := &eventsv1.EventList{}
			Expect(managed.List(ctx, events)).To(Succeed())
			for _, e := range events.Items {
				if e.Reason == "DiagnosisDropped" && e.Regarding.UID == h.mirror(ctx).UID {
					notes = append(notes, e.Note)
				}
			}
			return notes
		}
		Eventually(notes).Should(ConsistOf(ContainSubstring("drops the diagnosis that was requested at " + request)))
		h.change(ctx, func(s *kudo.InstanceSpec) { s.Suspend = true }) // another pass
		Eventually(func() string { return waitCondition(ctx, h).Reason }).Should(Equal(kudo.ReasonSuspended))
		Consistently(notes).Should(HaveLen(1))

		restore(ctx)
		h.finish(ctx)
	})
})
