package ui

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/sandbox/port"
	fleet "github.com/tandem-addons/tandem/test/dashboard"
	"github.com/tandem-addons/tandem/test/scrape"
)

// deployment is what deploy/ui installs.
type deployment struct {
	// arguments are those of the container; config has the permissions of its ServiceAccount.
	arguments []string
	config    *rest.Config
}

// applyDeployment applies deploy/ui to the API server.
func applyDeployment(ctx context.Context) deployment {
	GinkgoHelper()
	var d deployment
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tandem-system"}}
	Expect(client.IgnoreAlreadyExists(hub.Create(ctx, namespace))).To(Succeed())
	for _, file := range []string{"rights.yaml", "addon-manager-ui.yaml"} { // the resources of kustomization.yaml
		objects, err := manifests.Objects(os.DirFS("../../../deploy/ui"), file, nil)
		Expect(err).NotTo(HaveOccurred())
		for _, object := range objects {
			Expect(hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("administrator"))).To(Succeed())
			if object.GetKind() != "Deployment" {
				continue
			}
			containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			Expect(err).NotTo(HaveOccurred())
			d.arguments, _, err = unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
			Expect(err).NotTo(HaveOccurred())
		}
	}
	Expect(d.arguments).To(ContainElements("ui", "--read-only"))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "addon-manager-ui"}}
	bearer, err := fleet.Token(ctx, hub, account)
	Expect(err).NotTo(HaveOccurred())
	d.config = rest.AnonymousClientConfig(env.Config)
	d.config.BearerToken = bearer
	return d
}

// kubeconfig writes a kubeconfig.
func kubeconfig(config *rest.Config) string {
	GinkgoHelper()
	server, _, err := rest.DefaultServerUrlFor(config)
	Expect(err).NotTo(HaveOccurred())
	const name = "hub"
	content := clientcmdapi.NewConfig()
	content.CurrentContext = name
	content.Clusters[name] = &clientcmdapi.Cluster{Server: server.String(), CertificateAuthorityData: config.CAData}
	content.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	content.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*content, file)).To(Succeed())
	return file
}

// launch starts the program, which is stopped when the spec ends.
func launch(arguments ...string) *gexec.Session {
	GinkgoHelper()
	session, err := gexec.Start(exec.Command(program, arguments...), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait() })
	return session
}

// free returns a loopback address that is reserved until the spec ends.
func free() string {
	GinkgoHelper()
	reserved, err := port.Find()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(reserved.Release)
	return reserved.Address()
}

// program is the path of addon-manager.
var program string

var _ = Describe("addon-manager ui", Ordered, func() {
	BeforeAll(func() {
		var err error
		program, err = gexec.Build("github.com/tandem-addons/tandem/cmd/addon-manager")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(gexec.CleanupBuildArtifacts)
	})

	It("serves users with the arguments and permissions of deploy/ui, and stops when it is asked to", func(ctx context.Context) {
		d := applyDeployment(ctx)
		address, probes := free(), free()
		running := launch(append(d.arguments, "--kubeconfig="+kubeconfig(d.config), "--bind-address="+address, "--health-probe-bind-address="+probes)...)
		Eventually(func() int {
			response, err := http.Get("http://" + probes + "/healthz")
			if err != nil {
				return 0
			}
			defer response.Body.Close()
			return response.StatusCode
		}).Should(Equal(http.StatusOK))
		s := site{address: "http://" + address}
		expectRights(ctx, s)

		By("offering and doing nothing that changes the hub")
		operator := s.as(token(ctx, "operates", "", fleet.Operating))
		const page = "/clusters/cluster-06/instances/kafka"
		Expect(operator.get(page).body).To(And(ContainSubstring("Plans"), Not(ContainSubstring("Run…"))))
		Expect(operator.post(page+"/run/preview", url.Values{"plan": {"deploy"}}).status).To(Equal(http.StatusMethodNotAllowed))
		hubAsServer, err := kubernetes.NewForConfig(d.config)
		Expect(err).NotTo(HaveOccurred())
		rules, err := hubAsServer.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx,
			&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "cluster-06"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, rule := range rules.Status.ResourceRules {
			if reviews := slices.Contains([]string{"authentication.k8s.io", "authorization.k8s.io"}, rule.APIGroups[0]); !reviews {
				Expect(rule.Verbs).To(HaveEach(BeElementOf("get", "list", "watch")), "%v", rule)
			}
			Expect(rule.Verbs).NotTo(ContainElement("impersonate"))
		}

		By("stopping while a page is open")
		operator.stream("/")
		Eventually(running.Terminate()).Should(gexec.Exit(0))
	})

	It("serves its metrics to users who may read them", func(ctx context.Context) {
		d := applyDeployment(ctx)
		address, metrics := free(), free()
		launch(append(d.arguments, "--kubeconfig="+kubeconfig(d.config), "--bind-address="+address, "--health-probe-bind-address=0",
			"--metrics-bind-address="+metrics)...)
		read := func(token string) (int, string) {
			status, body, err := scrape.Do(ctx, http.MethodGet, "https://"+metrics+"/metrics", token)
			if err != nil {
				return 0, err.Error()
			}
			return status, body
		}
		Eventually(func() int { status, _ := read(""); return status }).Should(Equal(http.StatusUnauthorized))
		reader := token(ctx, "reads-metrics", "", []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}})
		refused, _ := read(token(ctx, "reads-no-metrics", "", fleet.Reading))
		Expect(refused).To(Equal(http.StatusForbidden))
		s := site{address: "http://" + address}
		Eventually(func() string { _, text := read(reader); return text }).Should(ContainSubstring("addon_ui_connections"))
		s.as(reader)
		status, text := read(reader)
		Expect(status).To(Equal(http.StatusOK))
		Expect(text).To(And(ContainSubstring(`addon_ui_token_reviews_total{answer="accepted"} 1`), ContainSubstring("addon_ui_live_pages 0")))
	})

	It("acts as its users only if it may impersonate them", func(ctx context.Context) {
		d := applyDeployment(ctx)
		address := free()
		arguments := slices.DeleteFunc(slices.Clone(d.arguments), func(argument string) bool { return argument == "--read-only" })
		launch(append(arguments, "--kubeconfig="+kubeconfig(d.config), "--bind-address="+address, "--health-probe-bind-address=0")...)
		s := site{address: "http://" + address}
		Eventually(func() error {
			response, err := http.Get(s.address + "/healthz")
			if err == nil {
				err = response.Body.Close()
			}
			return err
		}).Should(Succeed())
		operator := s.as(token(ctx, "acts-in-process", "", fleet.Operating))
		refused := operator.post("/clusters/cluster-06/instances/kafka/run/preview", url.Values{"plan": {"deploy"}})
		Expect(refused.status).To(Equal(http.StatusForbidden))
		Expect(refused.body).To(ContainSubstring("cannot impersonate resource"))
	})

	It("serves HTTPS with a certificate, and cookies for HTTPS only", func(ctx context.Context) {
		d := applyDeployment(ctx)
		certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
		Expect(err).NotTo(HaveOccurred())
		folder := GinkgoT().TempDir()
		files := []string{filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")}
		Expect(os.WriteFile(files[0], certificate, 0o600)).To(Succeed())
		Expect(os.WriteFile(files[1], key, 0o600)).To(Succeed())
		address := free()
		launch(append(d.arguments, "--kubeconfig="+kubeconfig(d.config), "--bind-address="+address, "--health-probe-bind-address=0",
			"--tls-cert-file="+files[0], "--tls-private-key-file="+files[1])...)
		trusting, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: certificate}})
		Expect(err).NotTo(HaveOccurred())
		trusting.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		form := url.Values{"bearer": {token(ctx, "by-https", "", fleet.Reading)}}
		var entered *http.Response
		Eventually(func() (err error) {
			entered, err = trusting.PostForm("https://"+address+"/session/enter", form)
			return err
		}).Should(Succeed())
		Expect(entered.Body.Close()).To(Succeed())
		Expect(entered.Cookies()).To(ConsistOf(And(HaveField("Name", "__Host-tandem"), HaveField("Secure", true), HaveField("HttpOnly", true))))
	})

	DescribeTable("ends with an error that names the mistake", func(ctx context.Context, message string, arguments ...string) {
		d := applyDeployment(ctx)
		session := launch(append([]string{"ui", "--kubeconfig=" + kubeconfig(d.config), "--bind-address=" + free()}, arguments...)...)
		Eventually(session).Should(gexec.Exit(1))
		Expect(session.Err).To(gbytes.Say("addon-manager: .*" + message))
	},
		Entry("an argument", `unexpected argument "start": addon-manager ui takes flags only`, "start"),
		Entry("a flag that does not exist", "flag provided but not defined: -frobnicate", "--frobnicate"),
		Entry("a certificate without a key", "--tls-cert-file and --tls-private-key-file must be set together", "--tls-cert-file=a"),
		Entry("a certificate that does not exist", "reading --tls-cert-file: open /nowhere", "--tls-cert-file=/nowhere", "--tls-private-key-file=/nowhere"),
		Entry("a host without a name", "names must not be empty", "--hosts=a,,b"),
		Entry("an address without a port", "listening on --bind-address: .*missing port", "--bind-address=localhost"),
		Entry("an address of probes without a port", "serving --health-probe-bind-address: .*missing port", "--health-probe-bind-address=localhost"),
		Entry("a proxy that is no address", `"ingress" is neither a CIDR`, "--trusted-proxies=ingress"),
		Entry("no live page", "--max-live-pages must be greater than 0, got 0", "--max-live-pages=0"),
		Entry("a negative number of connections", "--max-client-connections must be greater than 0, got -1", "--max-client-connections=-1"),
		Entry("metrics for everyone", "--metrics-insecure requires a loopback address", "--metrics-bind-address=:0", "--metrics-insecure"),
		Entry("an address of metrics without a port", "serving --metrics-bind-address: .*missing port", "--metrics-bind-address=localhost"),
		Entry("a kubeconfig that does not exist", "finding the hub", "--kubeconfig=/nowhere"),
	)

	It("ends with an error that names missing permissions, or an address that is in use", func(ctx context.Context) {
		config := rest.AnonymousClientConfig(env.Config)
		config.BearerToken = token(ctx, "not-enough", "", nil)
		forbidden := launch("ui", "--kubeconfig="+kubeconfig(config))
		Eventually(forbidden).Should(gexec.Exit(1))
		Expect(forbidden.Err).To(gbytes.Say("you are not allowed to read managedclusteraddons in all namespaces; grant the permissions of deploy/ui"))
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(listener.Close)
		session := launch("ui", "--kubeconfig="+kubeconfig(applyDeployment(ctx).config), "--bind-address="+listener.Addr().String())
		Eventually(session).Should(gexec.Exit(1))
		Expect(session.Err).To(gbytes.Say("listening on --bind-address: .*address already in use"))
	})
})
