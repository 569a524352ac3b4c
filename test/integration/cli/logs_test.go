package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// The hub is its own managed cluster. The specs act as the agent, and as the kubelet of a node, from which the API server reads the logs.
var _ = Describe("logs", func() {
	var (
		cluster, namespace string
		instance           *kudo.Instance
		node               *environment.Node
		// requests are the queries of the logs that were read.
		requests chan url.Values
		// serve serves the log of a container.
		serve func(w http.ResponseWriter, r *http.Request)
	)
	logs := func(ctx context.Context, args ...string) result {
		return run(ctx, append([]string{"logs", "shop", "--cluster", cluster, "--cluster-context", "hub"}, args...)...)
	}
	// mirror creates an Instance on the hub, and the agent's copy of it.
	mirror := func(ctx context.Context, name string, inventory ...kudo.InventoryEntry) *kudo.Instance {
		GinkgoHelper()
		of := kudo.InstanceSpec{OperatorVersion: corev1.ObjectReference{Name: "shop-1.0.0"}, InstallNamespace: namespace}
		made := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}, Spec: of}
		Expect(hub.Create(ctx, made)).To(Succeed())
		Expect(environment.EditStatus(ctx, hub, made, func(i *kudo.Instance) { i.Status.Inventory = inventory })).To(Succeed())
		Expect(hub.Create(ctx, &kudo.Instance{Spec: of, ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Annotations: map[string]string{kudo.AnnotationHubUID: string(made.UID)},
		}})).To(Succeed())
		return made
	}
	// start creates a pod that runs on the node.
	start := func(ctx context.Context, in, name string, labels map[string]string, owner *metav1.OwnerReference, containers ...string) {
		GinkgoHelper()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name, Labels: labels}}
		if owner != nil {
			pod.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		for _, name := range containers {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: "example.com/image"})
		}
		Expect(hub.Create(ctx, pod)).To(Succeed())
		Expect(node.Run(ctx, hub, pod, func(status *corev1.PodStatus) {
			status.Phase = corev1.PodRunning
			for _, name := range containers {
				status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
					Name: name, ContainerID: "containerd://" + name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				})
			}
		})).To(Succeed())
	}
	own := map[string]string{kudo.LabelInstance: "shop"}
	chartPod := func() *metav1.OwnerReference {
		return &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "db", Controller: ptr.To(true)}
	}

	BeforeEach(func(ctx context.Context) {
		cluster, namespace = newCluster(ctx, nil), newNamespace(ctx)
		requests = make(chan url.Values, 100)
		serve = func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s starts\n\x1b[2Jready\n", r.PathValue("container"))
		}
		mux := http.NewServeMux()
		mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
			select {
			case requests <- r.URL.Query():
			default: // a spec that tries often reads none, and the response must not wait for it
			}
			serve(w, r)
		})
		kubelet := httptest.NewTLSServer(mux)
		DeferCleanup(kubelet.Close)
		node = &environment.Node{Name: "node-" + namespace}
		playing, end := context.WithCancel(context.WithoutCancel(ctx))
		DeferCleanup(end)
		Expect(node.Join(playing, hub, kubelet.Listener.Addr().String())).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			Expect(hub.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}})).To(Succeed())
		})
		instance = mirror(ctx, "shop", kudo.InventoryEntry{Group: "apps", Kind: "StatefulSet", Namespace: namespace, Name: "db"})
	})

	It("prints those of the pods of an Instance, with control characters escaped", func(ctx SpecContext) {
		start(ctx, namespace, "web-0", own, nil, "main", "proxy")
		start(ctx, namespace, "db-0", nil, chartPod(), "store")
		start(ctx, namespace, "foreign", map[string]string{kudo.LabelInstance: "other"}, nil, "main")
		got := logs(ctx)
		golden("logs", got)
		Expect(got.errOut).To(BeEmpty())
		Expect(<-requests).To(Equal(url.Values{"tailLines": {"10"}, "limitBytes": {"16777217"}}))
		Expect(<-requests).To(HaveKeyWithValue("tailLines", []string{"10"}))
		Expect(requests).NotTo(Receive())

		By("choosing containers, lines and the prefix")
		chosen := logs(ctx, "-c", "proxy", "--since", "5m", "--timestamps", "--prefix=false", "--limit-bytes", "0")
		Expect(chosen.err).NotTo(HaveOccurred())
		Expect(chosen.out).To(Equal("proxy starts\n^[[2Jready\n"))
		Expect(<-requests).To(Equal(url.Values{"sinceSeconds": {"300"}, "timestamps": {"true"}}))
		Expect(logs(ctx, "--all-containers", "--tail=1").out).To(And(ContainSubstring("[web-0/main] main starts\n"), ContainSubstring("[web-0/proxy] proxy starts\n")))
		Expect(logs(ctx, "-c", "prxy").err).To(MatchError(ContainSubstring(
			`none of 2 pods has a container "prxy" (did you mean proxy?); containers: main, proxy, store`)))
		Expect(logs(ctx, "--previous").err).To(MatchError(ContainSubstring("none of 2 containers has a previous run: omit --previous")))

		By("cutting long logs")
		cut := logs(ctx, "-c", "proxy", "--limit-bytes", "5")
		Expect(cut.err).NotTo(HaveOccurred())
		Expect(cut.out).To(Equal("[web-0/proxy] proxy\n"))
		Expect(cut.errOut).To(Equal("Warning: the log of container proxy of pod web-0 in namespace " + namespace +
			" continues after 5 bytes: see --limit-bytes, --tail and --since\n"))
	})

	It("prints those of children, and of pods in other namespaces", func(ctx SpecContext) {
		elsewhere := newNamespace(ctx)
		child := mirror(ctx, "shop-db")
		Expect(environment.Edit(ctx, hub, child, func(i *kudo.Instance) {
			i.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: kudo.GroupVersion.String(), Kind: "Instance", Name: "shop", UID: instance.UID, Controller: ptr.To(true),
			}}
		})).To(Succeed())
		Expect(environment.EditStatus(ctx, hub, instance, func(i *kudo.Instance) {
			i.Status.Inventory = []kudo.InventoryEntry{{Group: "apps", Kind: "StatefulSet", Namespace: elsewhere, Name: "db"}}
			i.Status.Children = []kudo.ChildStatus{{Task: "db", Instance: "shop-db"}}
		})).To(Succeed())
		start(ctx, namespace, "child-0", map[string]string{kudo.LabelInstance: "shop-db"}, nil, "main")
		Expect(logs(ctx).err).To(MatchError(fmt.Sprintf(`no pods of Instance "shop", or with label kudo.dev/instance=shop, in namespace %q of managed cluster %q; `+
			"its children may have some: add --tree: see 'kubectl addon plan status shop --cluster %s'", namespace, cluster, cluster)))
		start(ctx, elsewhere, "db-0", nil, chartPod(), "store")
		got := logs(ctx, "--tree")
		Expect(got.err).NotTo(HaveOccurred())
		Expect(strings.Split(got.out, "\n")).To(ContainElements("[child-0/main] main starts", "["+elsewhere+"/db-0/store] store starts"))

		By("warning of another namespace that it may not read")
		for _, allowed := range []string{cluster, namespace} {
			allow(ctx, allowed, "log-reader", rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{"", kudo.GroupVersion.Group}, Resources: []string{"pods", "pods/log", "instances"}})
		}
		limited := managedKubeconfig("log-reader", "")
		Eventually(func(g Gomega) {
			got := run(ctx, "logs", "shop", "--cluster", cluster, "--cluster-kubeconfig", limited, "--tree")
			g.Expect(got.err).NotTo(HaveOccurred())
			g.Expect(got.out).To(Equal("[child-0/main] main starts\n[child-0/main] ^[[2Jready\n"))
			g.Expect(got.errOut).To(HavePrefix(fmt.Sprintf("Warning: pods in namespace %q are not shown: pods is forbidden: ", elsewhere)))
		}).Should(Succeed())
	})

	It("follows them until they end, and reports those that it cannot read", func(ctx SpecContext) {
		more := make(chan string)
		serve = func(w http.ResponseWriter, r *http.Request) {
			if r.PathValue("pod") == "broken" {
				http.Error(w, "the disk is full\x1b[1m", http.StatusInternalServerError)
				return
			}
			for line := range more {
				_, _ = io.WriteString(w, line+"\n")
				w.(http.Flusher).Flush()
			}
		}
		start(ctx, namespace, "web-0", own, nil, "main")
		start(ctx, namespace, "broken", own, nil, "main")
		out, errOut, ended := gbytes.NewBuffer(), gbytes.NewBuffer(), make(chan error, 1)
		go func() {
			ended <- runTo(ctx, out, errOut, "logs", "shop", "--cluster", cluster, "--cluster-context", "hub", "-f")
		}()
		Eventually(errOut).Should(gbytes.Say(`Warning: reading the log of container main of pod broken in namespace ` + namespace + `: .*the disk is full`))
		Expect(string(errOut.Contents())).NotTo(ContainSubstring("\x1b"))
		Expect(<-requests).To(And(HaveKeyWithValue("follow", []string{"true"}), Not(HaveKey("limitBytes"))))
		for _, line := range []string{"first", "second"} {
			Eventually(more).Should(BeSent(line))
			Eventually(out).Should(gbytes.Say(`\[web-0/main\] ` + line + "\n"))
		}
		Consistently(ended).ShouldNot(Receive())
		close(more)
		Eventually(ended).Should(Receive(MatchError("1 log of 2 could not be read to the end")))

		By("ending when it is interrupted")
		more = make(chan string)
		interrupted, interrupt := context.WithCancel(ctx)
		go func() {
			ended <- runTo(interrupted, out, errOut, "logs", "shop", "--cluster", cluster, "--cluster-context", "hub", "-f")
		}()
		Eventually(more).Should(BeSent("third"))
		Eventually(out).Should(gbytes.Say("third\n"))
		interrupt()
		Eventually(ended).Should(Receive(BeNil()))
		close(more)

		By("refusing to follow too many")
		Expect(logs(ctx, "-f", "--max-log-requests", "1").err).To(MatchError(
			"there are 2 logs to follow, more than 1: choose a container with --container, or raise --max-log-requests"))
	})

	It("reports each log that it cannot read, and prints the others", func(ctx SpecContext) {
		start(ctx, namespace, "web-0", own, nil, "main")
		Expect(hub.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pending", Labels: own},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/image"}}},
		})).To(Succeed())
		got := logs(ctx)
		Expect(got.code).To(Equal(cli.ExitFailure))
		Expect(got.err).To(MatchError("there is no log of container main of pod pending in namespace " + namespace + " yet: the pod is not scheduled"))
		Expect(got.out).To(Equal("[web-0/main] main starts\n[web-0/main] ^[[2Jready\n"))

		By("needing permission to get logs")
		allow(ctx, namespace, "lister", rbacv1.PolicyRule{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"pods"}})
		limited := managedKubeconfig("lister", "")
		Eventually(func() error {
			return run(ctx, "logs", "shop", "--cluster", cluster, "--cluster-kubeconfig", limited).err
		}).Should(MatchError(ContainSubstring(`User "lister" cannot get resource "pods/log" in API group "" in the namespace "` + namespace + `": you need permission to get pods/log there`)))
	})

	It("explains why there are none", func(ctx SpecContext) {
		By("naming what exists")
		Expect(run(ctx, "logs", "shp", "--cluster", cluster, "--cluster-context", "hub").err).To(MatchError(
			fmt.Sprintf("cluster %q has no Instance or add-on \"shp\" (did you mean shop?); Instances: shop; add-ons: none", cluster)))
		Expect(hub.Create(ctx, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "mesh"}})).To(Succeed())
		Expect(run(ctx, "logs", "mesh", "--cluster", cluster, "--cluster-context", "hub").err).To(MatchError(ContainSubstring(`add-on "mesh" has no Instance on cluster`)))

		By("finding no pods")
		Expect(logs(ctx).err).To(MatchError(fmt.Sprintf(`no pods of Instance "shop", or with label kudo.dev/instance=shop, in namespace %q of managed cluster %q: `+
			"see 'kubectl addon plan status shop --cluster %s'", namespace, cluster, cluster)))

		By("not reaching the cluster")
		unreachable := []string{"logs", "shop", "--cluster", cluster, "--cluster-kubeconfig", managedKubeconfig("", "https://127.0.0.1:1")}
		Expect(run(ctx, unreachable...).err).To(MatchError(And(ContainSubstring("connection refused"),
			ContainSubstring("check that the cluster is running, and that --cluster-context and --cluster-kubeconfig name it"))))
		Expect(logs(ctx, "--cluster-context", "none").err).To(MatchError(ContainSubstring(`context "none" does not exist`)))

		By("reading another cluster")
		var copied kudo.Instance
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shop"}, &copied)).To(Succeed())
		Expect(environment.Edit(ctx, hub, &copied, func(i *kudo.Instance) { i.Annotations[kudo.AnnotationHubUID] = "another" })).To(Succeed())
		other := fmt.Sprintf(`the cluster of --cluster-context and --cluster-kubeconfig has no copy of Instance "shop" in namespace %q: check that they name cluster %q, `+
			"and that its addon-agent runs", namespace, cluster)
		Expect(logs(ctx).err).To(MatchError(other))
		Expect(hub.Delete(ctx, &copied)).To(Succeed())
		Expect(logs(ctx).err).To(MatchError(other))

		By("having no permission")
		Expect(run(ctx, "logs", "shop", "--cluster", cluster, "--cluster-kubeconfig", managedKubeconfig("nobody", "")).err).To(MatchError(ContainSubstring(
			`User "nobody" cannot list resource "pods" in API group "" in the namespace "` + namespace + `": you need permission to list pods there, and to get pods/log`)))
	})

	It("completes the contexts of managed clusters", func(ctx SpecContext) {
		Expect(completions(ctx, "logs", "shop", "--cluster-context", "h")).To(Equal([]string{"hub"}))
		Expect(completions(ctx, "logs", "shop", "--cluster-kubeconfig", managedKubeconfig("nobody", ""), "--cluster-context", "")).To(Equal([]string{"managed"}))
	})
})

// managedKubeconfig writes a kubeconfig with the single context "managed", for a user and a server unless they are empty.
func managedKubeconfig(user, server string) string {
	GinkgoHelper()
	content, err := clientcmd.LoadFromFile(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	content.AuthInfos["admin"].Impersonate = user
	if server != "" {
		content.Clusters["hub"].Server = server
	}
	content.Contexts = map[string]*clientcmdapi.Context{"managed": content.Contexts["hub"]}
	content.CurrentContext = "managed"
	file := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*content, file)).To(Succeed())
	return file
}
