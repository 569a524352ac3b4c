package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/test/rights"
)

// agentsOwn returns the hub connection of a cluster's delivered agent, from the Secret written by OCM's klusterlet.
func agentsOwn(ctx context.Context, cluster *sandbox.Cluster) *rest.Config {
	GinkgoHelper()
	c, err := client.New(cluster.Config(), client.Options{})
	Expect(err).NotTo(HaveOccurred())
	var secret corev1.Secret
	Expect(c.Get(ctx, client.ObjectKey{Namespace: "tandem-system", Name: "tandem-hub-kubeconfig"}, &secret)).To(Succeed())
	folder := GinkgoT().TempDir()
	for file, data := range secret.Data {
		Expect(os.WriteFile(filepath.Join(folder, file), data, 0o600)).To(Succeed())
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(folder, "kubeconfig"))
	Expect(err).NotTo(HaveOccurred())
	return config
}

// expectNoMoreThanDocumented checks that the credentials of a cluster's agent are rejected for everything beyond its purpose.
func expectNoMoreThanDocumented(ctx context.Context, box *sandbox.Sandbox, cluster, other string) {
	GinkgoHelper()
	own := agentsOwn(ctx, box.Cluster(cluster))
	granted, err := rights.Of(ctx, box.Hub().Config(), own, "addon-agent", cluster, other)
	Expect(err).NotTo(HaveOccurred())
	documented, err := rights.DocumentedRows(filepath.Join(root, "docs", "operations.md"), cluster)
	Expect(err).NotTo(HaveOccurred())
	Expect(rights.Table(granted)).To(ConsistOf(documented))

	By("impersonating other users, and bypassing the API")
	refused := func(config *rest.Config, path, why string) {
		GinkgoHelper()
		through, err := rest.HTTPClientFor(config)
		Expect(err).NotTo(HaveOccurred())
		answer, err := through.Get(config.Host + path)
		Expect(err).NotTo(HaveOccurred())
		defer answer.Body.Close()
		said, err := io.ReadAll(answer.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.StatusCode).To(Equal(http.StatusForbidden), "%s: %s", path, said)
		Expect(string(said)).To(ContainSubstring(why), path)
	}
	neighbours := "system:open-cluster-management:cluster:" + other + ":addon:tandem"
	for _, as := range []rest.ImpersonationConfig{
		{UserName: "admin", Groups: []string{"system:masters"}},
		{UserName: "system:serviceaccount:tandem-system:addon-manager"},
		{UserName: neighbours + ":agent:addon-agent", Groups: []string{neighbours}},
		{UserName: "nobody", UID: "1"},
	} {
		config := rest.CopyConfig(own)
		config.Impersonate = as
		refused(config, "/apis/kudo.dev/v1beta1/namespaces/"+cluster+"/instances", "cannot impersonate")
	}
	for _, path := range []string{"/metrics", "/logs/", "/debug/pprof/", "/configz"} {
		refused(own, path, "cannot get path")
	}
	expectNoWordButAvailable(ctx, own, cluster)
}

// expectNoWordButAvailable checks that the agent cannot write the conditions of its own add-on that belong to other writers. Conditions
// that it may not write on any add-on are tested with the policies (test/integration/policy).
func expectNoWordButAvailable(ctx context.Context, own *rest.Config, cluster string) {
	GinkgoHelper()
	c, err := client.New(own, client.Options{Scheme: ocmScheme()})
	Expect(err).NotTo(HaveOccurred())
	itself := &addonv1alpha1.ManagedClusterAddOn{}
	Expect(c.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "tandem"}, itself)).To(Succeed())
	for _, word := range []string{
		`{"conditions":[{"type":"Degraded","status":"False","reason":"Fine","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}`,
		`{"conditions":[]}`, `{"registrations":[]}`, `{"namespace":"kube-system"}`,
	} {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":%s}`, word))
		Expect(c.Status().Patch(ctx, itself.DeepCopy(), patch)).To(MatchError(ContainSubstring("tandem-agents-on-add-ons")), word)
	}
}
