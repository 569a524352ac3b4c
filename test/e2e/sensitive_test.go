package e2e

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var _ = Describe("A sensitive value", Label(quick), onSandbox("it searches the files of etcd and the logs of programs"), func() {
	It("leaves its cluster at no time of the life of a package", func(ctx SpecContext) {
		const first, second = "the-first-hunter2", "the-second-hunter2"
		box := startSandbox(ctx, 1)
		cluster, err := client.New(box.Cluster("cluster1").Config(), client.Options{})
		Expect(err).NotTo(HaveOccurred())
		d := &day{folder: GinkgoT().TempDir(), kubeconfig: box.Hub().Kubeconfig()}
		d.plugin, err = filepath.Abs(filepath.Join(programs, "kubectl-addon"))
		Expect(err).NotTo(HaveOccurred())
		redis, err := filepath.Abs(filepath.Join(examplePackages, "redis"))
		Expect(err).NotTo(HaveOccurred())
		var printed strings.Builder
		run := func(args ...string) {
			GinkgoHelper()
			printed.WriteString(d.run(ctx, args...).all())
		}
		uses := func(value string) func(Gomega) {
			return func(g Gomega) {
				for _, name := range []string{"redis-credentials", "redis-redis-exporter-credentials"} {
					stored := &corev1.Secret{}
					g.Expect(cluster.Get(ctx, client.ObjectKey{Namespace: "cache", Name: name}, stored)).To(Succeed())
					g.Expect(string(stored.Data["password"])).To(Equal(value), name)
				}
			}
		}
		given := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "cache", Name: "redis"}, Data: map[string][]byte{"password": []byte(first)},
		}
		Expect(cluster.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cache"}})).To(Succeed())
		Expect(cluster.Create(ctx, given)).To(Succeed())

		run("package", "push", redis)
		refused := d.fails(ctx, cli.ExitFailure, "install", "redis", "--cluster", "cluster1", "-n", "cache", "-p", "PASSWORD="+first).all()
		Expect(refused).To(And(ContainSubstring("secret:NAME/KEY"), Not(ContainSubstring(first))))
		run("install", "redis", "--cluster", "cluster1", "-n", "cache", "-p", "PASSWORD=secret:redis/password", "--wait", "--timeout", "2m")
		Eventually(uses(first)).WithContext(ctx).WithTimeout(timeout).Should(Succeed())

		given.Data["password"] = []byte(second)
		Expect(cluster.Update(ctx, given)).To(Succeed())
		Eventually(uses(second)).WithContext(ctx).WithTimeout(timeout).Should(Succeed())
		run("update", "redis", "--cluster", "cluster1", "-p", "MAX_CLIENTS=1001", "--dry-run", "-o", "yaml")
		run("update", "redis", "--cluster", "cluster1", "-p", "MEMORY=much", "--validate=warn") // the API server refuses this value
		run("plan", "status", "redis", "--cluster", "cluster1")
		run("diagnose", "--cluster", "cluster1", "--cluster-kubeconfig", box.Cluster("cluster1").Kubeconfig(), "-o", "archive.tar.gz")
		run("update", "redis", "--cluster", "cluster1", "-p", "MEMORY=128Mi", "--wait", "--timeout", "2m")
		run("uninstall", "redis", "--cluster", "cluster1", "--yes", "--timeout", "2m")
		copies := &corev1.SecretList{}
		Expect(cluster.List(ctx, copies, client.HasLabels{"kudo.dev/parameters-of"})).To(Succeed())
		Expect(copies.Items).To(BeEmpty())

		By("searching everything that the hub has stored since it started, and all logs")
		hubFolder, clusterFolder := filepath.Dir(box.Hub().AuditLog()), filepath.Dir(box.Cluster("cluster1").AuditLog())
		agentLog, err := os.ReadFile(filepath.Join(clusterFolder, "addon-agent.log"))
		Expect(err).NotTo(HaveOccurred())
		Expect(agentLog).NotTo(BeEmpty())
		Expect(filesWith(os.DirFS(hubFolder), `"secretKeyRef":{"key":"password","name":"redis"}`)).NotTo(BeEmpty(), "the reference is in the files of etcd")
		for _, value := range []string{first, second} {
			Expect(filesWith(os.DirFS(clusterFolder), value)).NotTo(BeEmpty(), "the search finds it where it is")
			Expect(filesWith(os.DirFS(hubFolder), value)).To(BeEmpty())
			Expect(environment.Quotes(agentLog, value)).To(BeFalse(), "the agent's log")
			Expect(environment.Quotes([]byte(printed.String()), value)).To(BeFalse(), "the output of the plugin")
			for name, content := range unpack(filepath.Join(d.folder, "archive.tar.gz")) {
				Expect(environment.Quotes([]byte(content), value)).To(BeFalse(), name)
			}
		}
	})
})

// filesWith returns the files below a folder that contain a text, or its base64.
func filesWith(folder fs.FS, text string) []string {
	GinkgoHelper()
	var files []string
	Expect(fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := fs.ReadFile(folder, name)
		if err == nil && environment.Quotes(content, text) {
			files = append(files, name)
		}
		return err
	})).To(Succeed())
	return files
}

// unpack returns the content of all files of an archive.
func unpack(archive string) map[string]string {
	GinkgoHelper()
	packed, err := os.Open(archive)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = packed.Close() }()
	unzipped, err := gzip.NewReader(packed)
	Expect(err).NotTo(HaveOccurred())
	contents := map[string]string{}
	for files := tar.NewReader(unzipped); ; {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			return contents
		}
		Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(files)
		Expect(err).NotTo(HaveOccurred())
		contents[file.Name] = string(content)
	}
}
