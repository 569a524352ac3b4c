package chart

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/pkg/core/release"
)

var _ = Describe("A package from a release that Helm has installed", func() {
	var source, values string
	BeforeEach(func() {
		source, values = GinkgoT().TempDir(), filepath.Join(GinkgoT().TempDir(), "values.yaml")
		for name, text := range map[string]string{
			"Chart.yaml":         "apiVersion: v2\nname: site\nversion: 1.2.3+build.5\nappVersion: v7\ndescription: 'Serves: pages'\nannotations: {a/b: '1'}\n",
			".helmignore":        "*.bak\n",
			"ignored.bak":        "x",
			"values.schema.json": `{"properties": {"size": {"type": "integer", "minimum": 1}}}`,
			"values.yaml": "# Number of pods\nsize: 1\nlimits: {cpu: 0.5, memory: 1Gi}\nlabels: {a: b, c: d}\nlist: [x, y]\nlarge: 12345678901234567890\nnothing: null\n" +
				"on: 'yes'\ntext: |\n  one\n  two\nempty: {}\n",
			"files/about.txt":      "\x00\xff binary",
			"templates/_names.tpl": `{{ define "name" }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}`,
			"templates/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ include \"name\" . }}', labels: {{ .Values.labels | toJson }}}\n" +
				"data:\n  values: {{ omit .Values \"labels\" | toJson | quote }}\n  revision: '{{ .Release.Revision }} {{ .Release.IsUpgrade }} {{ .Chart.Version }} {{ .Chart.AppVersion }}'\n" +
				"  about: {{ .Files.Get \"files/about.txt\" | b64enc }}\n  kubernetes: {{ .Capabilities.KubeVersion.Version }}\n" +
				"  size: '{{ .Values.size }} {{ .Values.large }} {{ .Values.factor }} {{ .Values.nothing }}'\n",
			"templates/hook.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}}\ndata: {size: '{{ .Values.size }}'}\n",
			"templates/NOTES.txt": "Enjoy.",
			"crds/things.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\nspec: {group: example.com, scope: Namespaced, " +
				"names: {kind: Thing, plural: things}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n",
		} {
			place := filepath.Join(source, name)
			Expect(os.MkdirAll(filepath.Dir(place), 0o755)).To(Succeed())
			Expect(os.WriteFile(place, []byte(text), 0o600)).To(Succeed())
		}
		Expect(os.WriteFile(values, []byte("size: 1000000\nlimits: {cpu: null, storage: 10Gi}\nlabels: {c: null, e: 'on'}\nlist: [{a: [1, {b: '012'}]}, [], 'no']\nfactor: 1.50\n"+
			"added: {'{{ x }}': '{{ y }}', \"z\\u0085\": \"a\\tb\\u2028\"}\ntext: |\n  # three\n\n    four: {{ five }}\n"), 0o600)).To(Succeed())
	})
	// install installs a release, and removes it at the end of the spec.
	install := func(ctx context.Context, name, path string, flags ...string) {
		GinkgoHelper()
		_, err := helm.run(ctx, append([]string{"install", name, path}, flags...)...)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) error {
			_, err := helm.run(ctx, "uninstall", name, "--no-hooks")
			return err
		})
	}
	// fromRelease creates a package, and returns its folder and what the command has printed.
	fromRelease := func(ctx context.Context, name string, flags ...string) (folder, output string) {
		GinkgoHelper()
		folder = filepath.Join(GinkgoT().TempDir(), "site")
		var out bytes.Buffer
		cmd := cli.New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out}, "v0.0.0")
		cmd.SetArgs(append([]string{"package", "from-release", name, folder, "-n", namespace, "--kubeconfig", filepath.Join(helm.home, "kubeconfig"), "--context", "cluster"}, flags...))
		Expect(cmd.ExecuteContext(ctx)).To(Succeed(), out.String())
		return folder, out.String()
	}
	// runs returns what Helm says that a release runs.
	runs := func(ctx context.Context, name string) release.Rendering {
		GinkgoHelper()
		manifest, err := helm.run(ctx, "get", "manifest", name)
		Expect(err).NotTo(HaveOccurred())
		hooks, err := helm.run(ctx, "get", "hooks", name)
		Expect(err).NotTo(HaveOccurred())
		return release.Rendering{Objects: sorted(release.Rendering{Objects: append(objectsIn(string(manifest)), objectsIn(string(hooks))...)})}
	}
	// renders returns what the chart and the values of a package without parameters render.
	renders := func(ctx context.Context, folder string, r chart.Release) release.Rendering {
		GinkgoHelper()
		archives, err := filepath.Glob(filepath.Join(folder, "*.tgz"))
		Expect(err).NotTo(HaveOccurred())
		Expect(archives).To(HaveLen(1))
		archive, err := os.ReadFile(archives[0])
		Expect(err).NotTo(HaveOccurred())
		text, err := os.ReadFile(filepath.Join(folder, "templates", "values.yaml"))
		if !os.IsNotExist(err) {
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(string(text)).NotTo(ContainSubstring("{{"))
		rendered, err := ours(ctx, archive, r, string(text))
		Expect(err).NotTo(HaveOccurred())
		return release.Rendering{Objects: sorted(rendered)}
	}

	It("renders what the release runs, object for object, at each revision", func(ctx context.Context) {
		install(ctx, "pages", source, "-f", values)
		first := runs(ctx, "pages")
		_, err := helm.run(ctx, "upgrade", "pages", source, "--set", "size=3,nested.key=x")
		Expect(err).NotTo(HaveOccurred())

		By("creating it from the latest")
		folder, output := fromRelease(ctx, "pages")
		Expect(output).To(And(HavePrefix("release pages, revision 2 (deployed), in namespace shops: chart site 1.2.3+build.5\n"),
			ContainSubstring("The package renders exactly what the release runs: 2 objects.\n")))
		Expect(different(runs(ctx, "pages"), renders(ctx, folder, chart.Release{Name: "pages", Namespace: namespace, Revision: 2, Upgrade: true}))).To(BeEmpty())

		By("creating it from the first")
		folder, output = fromRelease(ctx, "pages", "--revision", "1")
		Expect(output).To(ContainSubstring("The package renders exactly what the release runs: 2 objects.\n"))
		Expect(different(first, renders(ctx, folder, chart.Release{Name: "pages", Namespace: namespace, Revision: 1}))).To(BeEmpty())

		By("making parameters of values")
		folder, output = fromRelease(ctx, "pages", "--revision", "1", "--param", "size", "--param", "limits", "--param", "labels", "--param", "list", "--param", "factor", "--param", "text")
		Expect(output).To(ContainSubstring("The package renders exactly what the release runs: 2 objects.\n"))
		parameters, err := os.ReadFile(filepath.Join(folder, "params.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(parameters)).To(ContainSubstring("name: SIZE\n    description: Value size of chart site\n    type: integer\n    default: 1000000\n"))
	})

	It("is followed by commands that hand the objects over", func(ctx context.Context) {
		_, err := helm.run(ctx, "install", "handed", source, "-f", values)
		Expect(err).NotTo(HaveOccurred())
		_, output := fromRelease(ctx, "handed", "--name", "pages")
		_, after, _ := strings.Cut(output, "run on the cluster:\n\n")
		commands, _, _ := strings.Cut(after, "\nThen, on the hub")
		Expect(commands).To(ContainSubstring("helm get manifest"))
		shell := exec.CommandContext(ctx, "sh", "-ec", commands)
		shell.Env = append(os.Environ(), "HOME="+helm.home, "KUBECONFIG="+filepath.Join(helm.home, "kubeconfig"),
			"PATH="+strings.Join([]string{helm.home, os.Getenv("KUBEBUILDER_ASSETS"), os.Getenv("PATH")}, ":"))
		shell.Stdout, shell.Stderr = GinkgoWriter, GinkgoWriter
		Expect(shell.Run()).To(Succeed())
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "handed-site"}}
		Expect(cluster.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		Expect(object.Annotations).To(Equal(map[string]string{"kudo.dev/released-by": namespace + "/pages"}))
		listed, err := helm.run(ctx, "list", "--short")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(listed)).NotTo(ContainSubstring("handed"))
		Expect(cluster.Delete(ctx, object)).To(Succeed())
	})

	It("is created from records in ConfigMaps", func(ctx context.Context) {
		Expect(os.Setenv("HELM_DRIVER", "configmap")).To(Succeed())
		DeferCleanup(os.Unsetenv, "HELM_DRIVER")
		install(ctx, "mapped", source, "-f", values)
		folder, output := fromRelease(ctx, "mapped")
		Expect(output).To(ContainSubstring("The package renders exactly what the release runs: 2 objects.\n"))
		Expect(different(runs(ctx, "mapped"), renders(ctx, folder, chart.Release{Name: "mapped", Namespace: namespace, Revision: 1}))).To(BeEmpty())
	})

	It("has the dependencies of a chart that is named, and none that the release disables", func(ctx context.Context) {
		example := "../../../examples/charts/shop"
		install(ctx, "small", example, "--no-hooks", "--set", "cache.enabled=false")
		folder, output := fromRelease(ctx, "small", "--chart", example, "--allow-sensitive-values")
		Expect(output).To(ContainSubstring("The package "))
		archives, err := filepath.Glob(filepath.Join(folder, "*.tgz"))
		Expect(err).NotTo(HaveOccurred())
		Expect(archives).To(HaveLen(1))
		install(ctx, "large", example, "--no-hooks")
		cmd := cli.New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: GinkgoWriter, ErrOut: GinkgoWriter}, "v0.0.0")
		cmd.SetArgs([]string{"package", "from-release", "large", GinkgoT().TempDir(), "-n", namespace, "--kubeconfig", filepath.Join(helm.home, "kubeconfig")})
		Expect(cmd.ExecuteContext(ctx)).To(MatchError(ContainSubstring(`has dependencies, which Helm does not store in its records: cache`)))
		_, output = fromRelease(ctx, "large", "--chart", example)
		Expect(strings.Split(output, "\n")).To(ContainElement(HavePrefix("The package ")))
		GinkgoWriter.Println(output)
	})
})
