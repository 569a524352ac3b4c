// Package chart compares what pkg/chart renders with what Helm's own command renders on the same API server.
package chart

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// Set once before the specs run: the server, a client of it, what it serves, and Helm.
var (
	server       *environment.Environment
	cluster      client.Client
	capabilities chart.Capabilities
	helm         helmCommand
)

// TestMain makes the suite's program also the one that renders charts.
func TestMain(m *testing.M) {
	chart.ServeChild()
	os.Exit(m.Run())
}

func TestChart(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "Chart")
}

var _ = BeforeSuite(func(ctx context.Context) {
	ctrl.SetLogger(GinkgoLogr)
	var err error
	server, err = environment.Bare()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return server.Stop() })
	cluster, err = client.New(server.Config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	Expect(cluster.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	capabilities = discover(server.Config)

	home := GinkgoT().TempDir()
	helm = helmCommand{program: filepath.Join(home, "helm"), home: home, namespace: namespace}
	version := []string{"list", "-m", "-f", "{{.Version}}", "helm.sh/helm/v4"}
	Expect(goCommand(ctx, root, version...)).To(Equal(goCommand(ctx, helmModule, version...)), "go.mod and hack/helm/go.mod have different versions of Helm")
	goCommand(ctx, helmModule, "build", "-o", helm.program, "helm.sh/helm/v4/cmd/helm")
	content := clientcmdapi.NewConfig()
	content.Clusters["cluster"] = &clientcmdapi.Cluster{Server: server.Config.Host, CertificateAuthorityData: server.Config.CAData}
	content.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: server.Config.CertData, ClientKeyData: server.Config.KeyData}
	content.Contexts["cluster"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "admin"}
	content.CurrentContext = "cluster"
	Expect(clientcmd.WriteToFile(*content, filepath.Join(home, "kubeconfig"))).To(Succeed())
})

// The folders of modules. Helm's command has a dependency graph of its own, like other tools.
var root, helmModule = filepath.Join("..", "..", ".."), filepath.Join("..", "..", "..", "hack", "helm")

// goCommand runs go in the folder of a module, and returns its output.
func goCommand(ctx context.Context, module string, arguments ...string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = module
	command.Stderr = GinkgoWriter
	out, err := command.Output()
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(out))
}
