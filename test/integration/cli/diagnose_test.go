package cli

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/pkg/core/content"
)

// unpack returns the files of an archive by their names in its folder.
func unpack(name string) map[string]string {
	GinkgoHelper()
	file, err := os.Open(name)
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	Expect(err).NotTo(HaveOccurred())
	files := map[string]string{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(archive)
		Expect(err).NotTo(HaveOccurred())
		files[strings.TrimPrefix(header.Name, "tandem-diagnosis/")] = string(content)
	}
}

var _ = Describe("diagnose", func() {
	const secret = "planted-S3cret"
	// infest plants a secret everywhere users may put one, and returns the cluster.
	infest := func(ctx context.Context) string {
		GinkgoHelper()
		cluster := newCluster(ctx, nil)
		Expect(run(ctx, "package", "push", packageDir("a: "+secret+"\n"), "-n", cluster).err).NotTo(HaveOccurred())
		at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: cluster, Name: name} }
		instance := &kudo.Instance{ObjectMeta: at("shop"), Spec: kudo.InstanceSpec{
			OperatorVersion: corev1.ObjectReference{Name: "shop-1.10-1.2.0"}, Parameters: map[string]string{"SIZE": secret},
		}}
		instance.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: `{"spec":{"parameters":{"SIZE":"` + secret + `"}}}`}
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: at("charts")}
		config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: at("charts-parameters")}
		config.Spec.CustomizedVariables = []upstream.CustomizedVariable{{Name: "WHATEVER", Value: secret}}
		large := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "large-1.0.0", UID: "1"}}
		Expect(hub.Create(ctx, content.New(large, []byte(secret)))).To(Succeed())
		Expect(hub.Create(ctx, instance)).To(Succeed())
		Expect(hub.Create(ctx, addOn)).To(Succeed())
		Expect(hub.Create(ctx, config)).To(Succeed())
		Expect(hub.Create(ctx, &corev1.Secret{ObjectMeta: at("login"), StringData: map[string]string{"password": secret}})).To(Succeed())
		Expect(hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: at("settings"), Data: map[string]string{"login": secret}})).To(Succeed())
		Expect(hub.Create(ctx, &corev1.Event{
			ObjectMeta: at("shop.1"), InvolvedObject: corev1.ObjectReference{Kind: "Instance", Namespace: cluster, Name: "shop"},
			Reason: "Told", Message: "it is " + secret,
		})).To(Succeed())
		return cluster
	}
	free := func(files map[string]string) {
		GinkgoHelper()
		for name, content := range files {
			Expect(content).NotTo(ContainSubstring(secret), name)
		}
	}

	It("collects from the hub and the managed cluster, and no secret", func(ctx SpecContext) {
		cluster := infest(ctx)
		file := filepath.Join(GinkgoT().TempDir(), "diagnosis.tar.gz")
		got := run(ctx, "diagnose", "--cluster", cluster, "-n", cluster, "-o", file, "--cluster-kubeconfig", kubeconfig)
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.out).To(HavePrefix(file + " written"))
		there, err := os.Stat(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(there.Mode().Perm()).To(Equal(os.FileMode(0o600)))

		files := unpack(file)
		free(files)
		Expect(files).To(And(
			HaveKeyWithValue("summary.txt", And(HavePrefix("Diagnosis of Tandem"), ContainSubstring("1 managed cluster, 1 add-on"))),
			HaveKeyWithValue("hub/clusters/"+cluster+"/instance.yaml", And(ContainSubstring("SIZE: REDACTED"), Not(ContainSubstring("managedFields")))),
			HaveKeyWithValue("hub/clusters/"+cluster+"/event.yaml", ContainSubstring("message: it is REDACTED")),
			HaveKeyWithValue("hub/clusters/"+cluster+"/why.txt", ContainSubstring("charts")),
			HaveKeyWithValue("hub/clusters/"+cluster+"/plans.txt", ContainSubstring("shop-1.10-1.2.0")),
			HaveKeyWithValue("hub/addondeploymentconfig.yaml", ContainSubstring("name: WHATEVER\n    value: REDACTED")),
			HaveKeyWithValue("hub/operatorversion.yaml", ContainSubstring("sha256")),
			HaveKeyWithValue("hub/operatorcontent.yaml", And(ContainSubstring("name: large-1.0.0."), Not(ContainSubstring("\ndata:")))),
			HaveKeyWithValue("hub/server/customresourcedefinition.yaml", And(ContainSubstring("storedVersions"), Not(ContainSubstring("openAPIV3Schema")))),
			HaveKey("hub/server/version.json"),
			HaveKeyWithValue("managed/instance.yaml", ContainSubstring("name: shop")),
		))

		again := run(ctx, "diagnose", "--cluster", cluster, "-o", file)
		Expect(again.code).To(Equal(cli.ExitFailure))
		Expect(again.err).To(MatchError(ContainSubstring("file exists")))
	})

	It("continues where something cannot be read, and reports it", func(ctx SpecContext) {
		cluster := infest(ctx)
		allow(ctx, cluster, "half-blind", rbacv1.PolicyRule{
			APIGroups: []string{addonv1alpha1.GroupVersion.Group}, Resources: []string{"managedclusteraddons"}, Verbs: []string{"list"},
		})
		file := filepath.Join(GinkgoT().TempDir(), "diagnosis.tar.gz")
		got := run(ctx, "diagnose", "--cluster", cluster, "-o", file, "--as", "half-blind")
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.errOut).To(ContainSubstring("could not be read: see summary.txt"))
		files := unpack(file)
		free(files)
		Expect(files["hub/clusters/"+cluster+"/managedclusteraddon.yaml"]).To(ContainSubstring("name: charts"))
		Expect(files["summary.txt"]).To(And(
			ContainSubstring("the hub: Instance in namespace "+cluster+": "), ContainSubstring("add-ons of cluster "+cluster+": "),
		))
	})

	It("refuses a cluster that is not there", func(ctx SpecContext) {
		got := run(ctx, "diagnose", "--cluster", "nowhere", "-o", filepath.Join(GinkgoT().TempDir(), "x"))
		Expect(got.code).To(Equal(cli.ExitFailure))
		Expect(got.err).To(MatchError(ContainSubstring(`managed cluster "nowhere" not found`)))
	})
})

var _ = Describe("version", func() {
	It("is that of addon-manager and of the agents, by their labels", func(ctx SpecContext) {
		first, second, third := newCluster(ctx, nil), newCluster(ctx, nil), newCluster(ctx, nil)
		say := map[string]string{addonv1alpha1.LabelVersion: "v0.0.0"}
		Expect(hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: first, Name: addonv1alpha1.ManagerConfigMap, Labels: say}})).To(Succeed())
		for cluster, version := range map[string]string{first: "v0.0.0", second: "v0.0.9"} {
			Expect(hub.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
				Namespace: cluster, Name: addonv1alpha1.AgentLease, Labels: map[string]string{addonv1alpha1.LabelVersion: version},
			}})).To(Succeed())
		}
		Expect(hub.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: third, Name: "another", Labels: say}})).To(Succeed())
		got := run(ctx, "version", "-n", first, "--cluster", first+","+second+","+third, "-o", "jsonpath={.hub} {.agents[*].version} {.agents[2].clusters} {.skew}")
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.out).To(Equal(`v0.0.0 v0.0.0 v0.0.9 ["` + third + `"] ["addon-agent is v0.0.9 on cluster ` + second + ` and addon-manager is v0.0.0"]`))
		Expect(run(ctx, "version", "-n", first).out).To(MatchRegexp(`addon-agent +v0\.0\.9 +1 \(` + second + `\)`))
	})

	It("of the plugin is shown in any case", func(ctx SpecContext) {
		got := run(ctx, "version", "--as", "nobody")
		Expect(got.code).To(Equal(cli.ExitFailure))
		Expect(got.out).To(ContainSubstring("kubectl-addon   v0.0.0"))
		Expect(got.err).To(MatchError(ContainSubstring("reading the version of addon-manager")))
	})
})
