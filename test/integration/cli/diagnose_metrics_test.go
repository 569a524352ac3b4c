package cli

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/cri-streaming/pkg/streaming/portforward"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/kube/monitoring"
	"github.com/tandem-addons/tandem/pkg/sandbox/port"
)

// localPods forwards ports of pods to those of this machine.
type localPods struct{}

// PortForward implements portforward.PortForwarder.
func (localPods) PortForward(ctx context.Context, _, _ string, number int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	pod, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(number))))
	if err != nil {
		return err
	}
	defer pod.Close()
	go func() { _, _ = io.Copy(pod, stream) }()
	_, err = io.Copy(stream, pod)
	return err
}

// newNode creates a node whose kubelet forwards ports, with the server of Kubernetes.
func newNode(ctx context.Context, name string) {
	GinkgoHelper()
	kubelet := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		portforward.ServePortForward(w, r, localPods{}, "", "", &portforward.V4Options{}, time.Minute, time.Minute, portforward.SupportedProtocols)
	}))
	kubelet.StartTLS()
	DeferCleanup(kubelet.Close)
	address, err := url.Parse(kubelet.URL)
	Expect(err).NotTo(HaveOccurred())
	number, err := strconv.Atoi(address.Port())
	Expect(err).NotTo(HaveOccurred())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(hub.Create(ctx, node)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(hub.Delete(ctx, node)).To(Succeed()) })
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.Hostname()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number)
	Expect(hub.Status().Update(ctx, node)).To(Succeed())
}

// serveMetrics serves the metrics of this process as addon-manager does, until the spec ends. It returns the port.
func serveMetrics(config *rest.Config) int32 {
	GinkgoHelper()
	reserved, err := port.Find()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(reserved.Release)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- monitoring.Access{}.Serve(ctx, reserved.Address(), config) }()
	DeferCleanup(func() {
		stop()
		Eventually(ended).Should(Receive(Succeed()))
	})
	Eventually(func() error {
		connection, err := net.Dial("tcp", reserved.Address())
		if err == nil {
			err = connection.Close()
		}
		return err
	}).Should(Succeed())
	_, text, err := net.SplitHostPort(reserved.Address())
	Expect(err).NotTo(HaveOccurred())
	number, err := strconv.Atoi(text)
	Expect(err).NotTo(HaveOccurred())
	return int32(number)
}

var _ = Describe("diagnose", func() {
	It("collects the metrics of a pod as a ServiceAccount that may read nothing else", func(ctx SpecContext) {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		cluster := newCluster(ctx, nil)
		newNode(ctx, cluster)
		objects, err := manifests.Objects(manifests.FS, "hub/metrics.yaml", nil)
		Expect(err).NotTo(HaveOccurred())
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "addon-manager-metrics-reader"}}
		role, binding := &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}
		for _, object := range objects { // in the namespace of the spec
			switch object.GetKind() {
			case "ClusterRole":
				Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role)).To(Succeed())
			case "ClusterRoleBinding":
				Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, binding)).To(Succeed())
			}
		}
		binding.Subjects[0].Namespace = cluster
		Expect(hub.Create(ctx, account)).To(Succeed())
		Expect(hub.Create(ctx, role)).To(Succeed())
		Expect(hub.Create(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(hub.Delete(ctx, role)).To(Succeed())
			Expect(hub.Delete(ctx, binding)).To(Succeed())
		})
		Expect(hub.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "addon-manager"}})).To(Succeed())
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "addon-manager-0", Labels: map[string]string{
			"app.kubernetes.io/name": "addon-manager", "app.kubernetes.io/part-of": "tandem",
		}}}
		pod.Spec = corev1.PodSpec{NodeName: cluster, ServiceAccountName: "addon-manager", Containers: []corev1.Container{{
			Name: "addon-manager", Image: "addon-manager", Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: serveMetrics(config)}},
		}}}
		Expect(hub.Create(ctx, pod)).To(Succeed())

		file := filepath.Join(GinkgoT().TempDir(), "diagnosis.tar.gz")
		got := run(ctx, "diagnose", "--cluster", cluster, "-n", cluster, "-o", file)
		Expect(got.err).NotTo(HaveOccurred())
		Expect(unpack(file)).To(HaveKeyWithValue("hub/program/metrics/addon-manager-0.txt", ContainSubstring("process_resident_memory_bytes")))

		By("reporting what it may not do")
		Expect(hub.Delete(ctx, account)).To(Succeed())
		again := filepath.Join(GinkgoT().TempDir(), "again.tar.gz")
		Expect(run(ctx, "diagnose", "--cluster", cluster, "-n", cluster, "-o", again).err).NotTo(HaveOccurred())
		Expect(unpack(again)["summary.txt"]).To(ContainSubstring(
			`metrics of pod addon-manager-0: requesting a token of ServiceAccount addon-manager-metrics-reader: `))
	})
})
