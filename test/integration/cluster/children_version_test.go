package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli"
)

// pushPackage stores a package with `kubectl addon package push` in the cluster's own namespace.
func (g *grove) pushPackage(ctx context.Context, dir string) {
	GinkgoHelper()
	config := hubServer.Config
	content := clientcmdapi.NewConfig()
	content.Clusters["hub"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	content.AuthInfos["user"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
	}
	content.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "user"}
	content.CurrentContext = "hub"
	file := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*content, file)).To(Succeed())
	var out bytes.Buffer
	cmd := cli.New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out}, "v0.0.0")
	cmd.SetArgs([]string{"package", "push", dir, "-n", g.name, "--kubeconfig", file, "--cache-dir", GinkgoT().TempDir()})
	Expect(cmd.ExecuteContext(ctx)).To(Succeed(), out.String())
}

// packageOf writes a package whose plan runs the tasks, and then one that is done at once. It returns its folder, which has its name.
func packageOf(parent, name, versions, tasks, steps string) string {
	GinkgoHelper()
	dir := filepath.Join(parent, name)
	Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	for file, text := range map[string]string{
		"operator.yaml": fmt.Sprintf("name: %s\n%s\ntasks:\n%s- {name: done, kind: Dummy, spec: {done: true}}\n"+
			"plans: {deploy: {phases: [{name: main, steps: [{name: main, tasks: [%sdone]}]}]}}\n", name, versions, tasks, steps),
		"params.yaml": "parameters: []\n",
	} {
		Expect(os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600)).To(Succeed())
	}
	return dir
}

var _ = Describe("The version of a child", func() {
	var g *grove
	plantEach(&g)

	It("stays the one that its parent was pushed with, whatever is pushed later", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		packageOf(dir, "cache", "operatorVersion: 1.0.0", "", "")
		g.pushPackage(ctx, packageOf(dir, "shop", "operatorVersion: 1.0.0",
			"- {name: cache, kind: KudoOperator, spec: {package: ../cache}}\n", "cache, "))
		g.root(ctx, "shop", "shop-1.0.0", nil)
		g.settles(ctx, "shop")
		Expect(g.onHub(ctx, "shop.cache").Spec.OperatorVersion.Name).To(Equal("cache-1.0.0"))

		By("pushing the same version of the package with an appVersion, from elsewhere")
		g.pushPackage(ctx, packageOf(GinkgoT().TempDir(), "cache", "operatorVersion: 1.0.0\nappVersion: \"7.2\"", "", ""))
		g.runs(ctx, "shop", kudo.DeployPlan, "again")
		Eventually(func() string { return string(g.executions(ctx, "shop")["shop"]) }).WithContext(ctx).Should(Equal("again"))
		g.settles(ctx, "shop")
		Expect(g.onHub(ctx, "shop.cache").Spec.OperatorVersion.Name).To(Equal("cache-1.0.0"))
	})

	It("is adopted if it is deleted and re-created with equal content", func(ctx SpecContext) {
		deleted := g.push(ctx, "bb", "1.0.0")
		g.push(ctx, "aa", "1.0.0", child("bb"))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.settles(ctx, "aa")
		executed, mirrored := g.executions(ctx, "aa", "aa.bb"), g.mirror(ctx, "aa.bb").Spec.OperatorVersion.Name
		Expect(server.Delete(ctx, deleted)).To(Succeed())
		again := g.push(ctx, "bb", "1.0.0")
		Eventually(func() string { return g.mirror(ctx, "aa.bb").Spec.OperatorVersion.Name }).WithContext(ctx).ShouldNot(Equal(mirrored))
		Eventually(func() types.UID { return g.onHub(ctx, "aa.bb").Status.Execution.OperatorVersion.UID }).WithContext(ctx).Should(Equal(again.UID))
		g.settles(ctx, "aa")
		g.settles(ctx, "aa.bb")
		Expect(g.executions(ctx, "aa", "aa.bb")).To(Equal(executed))
	})

	It("is not replaced before its parent's plan reaches it again", func(ctx SpecContext) {
		replaced := g.push(ctx, "bb", "1.0.0")
		g.push(ctx, "aa", "1.0.0", child("bb"))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.settles(ctx, "aa")
		executed, mirrored := g.executions(ctx, "aa.bb"), g.mirror(ctx, "aa.bb").Spec.OperatorVersion.Name

		By("replacing its OperatorVersion by another one of the same name")
		Expect(server.Delete(ctx, replaced)).To(Succeed())
		g.pushWith(ctx, "bb", "1.0.0", func(v *kudo.OperatorVersionSpec) {
			v.Parameters = []kudo.Parameter{stringParameter("REPLACED", "true")}
		})
		Eventually(func() []metav1.Condition { return g.onHub(ctx, "aa.bb").Status.Conditions }).WithContext(ctx).Should(ContainElement(And(
			HaveField("Type", kudo.ConditionResolved), HaveField("Reason", kudo.ReasonOperatorVersionNotFound),
			HaveField("Message", `OperatorVersion `+g.name+`/bb-1.0.0 was replaced: run a plan of Instance "aa" to use the new one`))))
		Consistently(func() string { return g.mirror(ctx, "aa.bb").Spec.OperatorVersion.Name }).WithContext(ctx).Should(Equal(mirrored))
		Expect(g.executions(ctx, "aa.bb")).To(Equal(executed))
		Expect(g.config(ctx, "aa.bb")).To(BeEmpty())
		g.settles(ctx, "aa")

		By("starting the agent again")
		g.stopAgent()
		g.stopAgent = runAgentOf(g.name)
		Consistently(func() string { return g.mirror(ctx, "aa.bb").Spec.OperatorVersion.Name }).WithContext(ctx).Should(Equal(mirrored))

		By("running a plan of the parent")
		g.runs(ctx, "aa", kudo.DeployPlan, "again")
		Eventually(func() map[string]string { return g.config(ctx, "aa.bb") }).WithContext(ctx).Should(Equal(map[string]string{"REPLACED": "true"}))
		g.settles(ctx, "aa")
		g.settles(ctx, "aa.bb")
	})
})
