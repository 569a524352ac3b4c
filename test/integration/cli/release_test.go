package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// helmRecord is a record of a revision as Helm stores it, with a chart that has one template.
func helmRecord(namespace string, revision int, status string) map[string]any {
	file := func(name, text string) map[string]any { return map[string]any{"name": name, "data": []byte(text)} }
	return map[string]any{
		"name": "web", "namespace": namespace, "version": revision, "info": map[string]any{"status": status},
		"chart": map[string]any{
			"metadata": map[string]any{"apiVersion": "v2", "name": "site", "version": "1.2.3", "description": "Serves pages"},
			"templates": []any{file("templates/app.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\n"+
				"data: {size: {{ .Values.size | quote }}, title: {{ .Values.title | quote }}, about: {{ .Files.Get \"about.txt\" | quote }}, password: {{ .Values.auth.password | quote }}}\n")},
			"files":  []any{file("about.txt", "all of it")},
			"values": map[string]any{"size": 1, "title": "", "auth": map[string]any{"password": "", "user": "me"}},
		},
		"config": map[string]any{"size": 3, "title": "Pages: {{ all }}\nof \"it\"\n"},
		"manifest": "---\n# Source: site/templates/app.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'web'}\n" +
			`data: {size: "3", title: "Pages: {{ all }}\nof \"it\"\n", about: "all of it", password: ""}` + "\n",
	}
}

// encode encodes a record as Helm does.
func encode(content map[string]any) []byte {
	GinkgoHelper()
	text, err := json.Marshal(content)
	Expect(err).NotTo(HaveOccurred())
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	_, err = zipped.Write(text)
	Expect(err).NotTo(HaveOccurred())
	Expect(zipped.Close()).To(Succeed())
	return []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))
}

func recordLabels(content map[string]any) map[string]string {
	return map[string]string{
		"owner": "helm", "name": content["name"].(string), "version": fmt.Sprint(content["version"]), "status": content["info"].(map[string]any)["status"].(string),
	}
}

// store writes a record.
func store(ctx context.Context, namespace string, content map[string]any) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", content["name"], content["version"]), Labels: recordLabels(content),
		},
		Type: "helm.sh/release.v1", Data: map[string][]byte{"release": encode(content)},
	}
	Expect(hub.Create(ctx, secret)).To(Succeed())
	return secret
}

var _ = Describe("package from-release", func() {
	var namespace, folder string
	BeforeEach(func(ctx context.Context) {
		namespace = newNamespace(ctx)
		folder = filepath.Join(GinkgoT().TempDir(), "site")
	})
	fromRelease := func(ctx context.Context, args ...string) result {
		return run(ctx, append([]string{"package", "from-release", "web", folder, "-n", namespace}, args...)...)
	}
	read := func(name string) string {
		GinkgoHelper()
		content, err := os.ReadFile(filepath.Join(folder, name))
		Expect(err).NotTo(HaveOccurred())
		return string(content)
	}

	It("writes a package of the latest deployed revision, which can be pushed", func(ctx context.Context) {
		store(ctx, namespace, helmRecord(namespace, 1, "superseded"))
		store(ctx, namespace, helmRecord(namespace, 3, "failed"))
		store(ctx, namespace, helmRecord(namespace, 2, "deployed"))
		created := fromRelease(ctx, "--param", "size")
		golden("from-release", created, namespace, "$NAMESPACE", folder, "$FOLDER")
		Expect(created.errOut).To(BeEmpty())
		Expect(read("operator.yaml")).To(And(ContainSubstring("releaseName: web\n"), ContainSubstring("chart: site-1.2.3.tgz\n")))
		Expect(read("params.yaml")).To(ContainSubstring("name: SIZE\n    description: Value size of chart site\n    type: integer\n    default: 3\n"))
		Expect(read("templates/values.yaml")).To(Equal("size: {{ .Params.SIZE }}\n" + `title: "Pages: {\u007b all }\u007d\nof \"it\"\n"` + "\n"))
		Expect(run(ctx, "package", "push", folder, "-n", namespace).err).NotTo(HaveOccurred())
	})

	It("writes the package of a revision that is chosen, from a ConfigMap too", func(ctx context.Context) {
		content := helmRecord(namespace, 4, "uninstalled")
		record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sh.helm.release.v1.web.v4", Labels: recordLabels(content)}}
		record.Data = map[string]string{"release": string(encode(content))}
		Expect(hub.Create(ctx, record)).To(Succeed())
		Expect(fromRelease(ctx).err).To(MatchError(fmt.Sprintf("release \"web\" in namespace %q is uninstalled: choose a revision with --revision: 4 (uninstalled)", namespace)))
		created := fromRelease(ctx, "--revision", "4", "--name", "pages")
		Expect(created.err).NotTo(HaveOccurred())
		Expect(created.out).To(And(ContainSubstring("renders exactly what the release runs: 1 object.\n"), ContainSubstring("kubectl delete configmap -n "+namespace)))
	})

	It("keeps sensitive values out of the package", func(ctx context.Context) {
		content := helmRecord(namespace, 1, "deployed")
		content["config"] = map[string]any{"size": 3, "title": "a", "auth": map[string]any{"password": "hunter2", "user": "you"}}
		content["manifest"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {size: \"3\", title: a, about: all of it, password: hunter2}\n"
		store(ctx, namespace, content)

		By("refusing them")
		refused := fromRelease(ctx)
		Expect(refused.err).To(MatchError("1 value of release \"web\" may be secret, and everyone who reads the package could read them: " +
			"keep each out of it with --sensitive auth.password; or write them with --allow-sensitive-values"))
		Expect(folder).NotTo(BeADirectory())

		By("making them sensitive parameters")
		created := fromRelease(ctx, "--sensitive", "auth.password=PASSWORD")
		Expect(created.err).NotTo(HaveOccurred())
		Expect(created.out).To(And(ContainSubstring("renders exactly what the release runs"), HaveSuffix(" \\\n    -p PASSWORD=secret:SECRET/KEY\n")))
		Expect(read("params.yaml")).To(ContainSubstring("name: PASSWORD\n    description: Value auth.password of chart site\n    sensitive: true\n"))
		Expect(created.out + created.errOut + read("operator.yaml") + read("params.yaml") + read("templates/values.yaml")).NotTo(ContainSubstring("hunter2"))

		By("printing data for programs")
		folder += "-data"
		data := fromRelease(ctx, "--sensitive", "auth.password=PASSWORD", "-o", "json")
		golden("from-release-json", data, namespace, "$NAMESPACE", folder, "$FOLDER")
		Expect(data.errOut).NotTo(ContainSubstring("hunter2"))
		Expect(data.out).NotTo(ContainSubstring("hunter2"))
		Expect(json.Valid([]byte(data.out))).To(BeTrue())

		By("writing them if that is allowed")
		folder += "2"
		allowed := fromRelease(ctx, "--allow-sensitive-values")
		Expect(allowed.err).NotTo(HaveOccurred())
		Expect(allowed.errOut).To(ContainSubstring("warning: the package contains values that may be secret: auth.password\n"))
		Expect(allowed.out + allowed.errOut).NotTo(ContainSubstring("hunter2"))
		Expect(read("templates/values.yaml")).To(ContainSubstring("password: hunter2"))
		folder += "3"
		Expect(fromRelease(ctx, "--allow-sensitive-values", "-o", "jsonpath={.suspects}").out).To(Equal(`["auth.password"]`))
	})

	It("does not print a sensitive value that the schema of the chart refuses", func(ctx context.Context) {
		content := helmRecord(namespace, 1, "deployed")
		content["config"] = map[string]any{"auth": map[string]any{"password": "hunter2"}}
		content["chart"].(map[string]any)["schema"] = []byte(`{"properties": {"auth": {"properties": {"password": {"pattern": "^[a-z]*$"}}}}}`)
		store(ctx, namespace, content)
		created := fromRelease(ctx, "--sensitive", "auth.password=PASSWORD")
		Expect(created.err).NotTo(HaveOccurred())
		Expect(created.out).To(ContainSubstring("What the package renders was not compared with the release: the chart does not render with the values of the sensitive parameters\n"))
		Expect(created.out + created.errOut).NotTo(ContainSubstring("hunter2"))
	})

	It("takes a chart that the record does not contain, if it is that of the release", func(ctx context.Context) {
		content := helmRecord(namespace, 1, "deployed")
		content["chart"].(map[string]any)["metadata"].(map[string]any)["dependencies"] = []any{map[string]any{"name": "db", "version": "1.0.0", "repository": ""}}
		store(ctx, namespace, content)
		Expect(fromRelease(ctx).err).To(MatchError(`chart "site" 1.2.3 of release "web" has dependencies, which Helm does not store in its records: db: ` +
			"name the chart with --chart: a folder, an archive, or a chart in a repository or registry"))
		chart := GinkgoT().TempDir()
		write := func(name, text string) {
			Expect(os.MkdirAll(filepath.Join(chart, filepath.Dir(name)), 0o755)).To(Succeed())
			Expect(os.WriteFile(filepath.Join(chart, name), []byte(text), 0o600)).To(Succeed())
		}
		write("Chart.yaml", "{apiVersion: v2, name: site, version: 1.2.4}")
		Expect(fromRelease(ctx, "--chart", chart).err).To(MatchError(fmt.Sprintf("--chart %q is chart \"site\" 1.2.4, but release \"web\" has chart \"site\" 1.2.3: name this one", chart)))
		write("Chart.yaml", "{apiVersion: v2, name: site, version: 1.2.3}")
		write("templates/other.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n")
		created := fromRelease(ctx, "--chart", chart)
		Expect(created.err).NotTo(HaveOccurred())
		Expect(created.out).To(ContainSubstring("~ different):\n  + ConfigMap \"other\"\n  - ConfigMap \"web\"\n"))
	})

	DescribeTable("explains why it has written nothing", func(ctx context.Context, prepare func(ctx context.Context), args []string, want string) {
		if prepare != nil {
			prepare(ctx)
		}
		got := fromRelease(ctx, args...)
		Expect(got.err).To(HaveOccurred())
		Expect(strings.ReplaceAll(got.err.Error(), namespace, "NS")).To(ContainSubstring(want))
		Expect(got.code).To(Equal(1))
		Expect(folder).NotTo(BeADirectory())
	},
		Entry("no release", nil, nil, `release "web" not found: Helm has no release in namespace "NS": select another namespace with -n, or another cluster with --context`),
		Entry("another name", func(ctx context.Context) {
			content := helmRecord(namespace, 1, "deployed")
			content["name"] = "webs"
			store(ctx, namespace, content)
		}, nil, `release "web" not found in namespace "NS" (did you mean webs?): releases there: webs`),
		Entry("no such revision", func(ctx context.Context) { store(ctx, namespace, helmRecord(namespace, 1, "deployed")) }, []string{"--revision", "2"},
			`release "web" in namespace "NS" has no revision 2: choose one of 1 (deployed)`),
		Entry("none deployed", func(ctx context.Context) { store(ctx, namespace, helmRecord(namespace, 1, "failed")) }, nil,
			`release "web" in namespace "NS" has no deployed revision: install or upgrade it until that succeeds, or choose a revision with --revision: 1 (failed)`),
		Entry("no permission", func(ctx context.Context) { store(ctx, namespace, helmRecord(namespace, 1, "deployed")) }, []string{"--as", "nobody"},
			`cannot list resource "secrets" in API group "" in the namespace "NS": Helm stores releases in Secrets: you need permission to list and get them`),
		Entry("a record without content", func(ctx context.Context) {
			alter(ctx, store(ctx, namespace, helmRecord(namespace, 1, "deployed")), nil)
		}, nil, `Secret sh.helm.release.v1.web.v1 in namespace "NS" is not a record of revision 1 of release "web", as Helm writes it: its JSON is invalid`),
		Entry("a record that is no record", func(ctx context.Context) {
			alter(ctx, store(ctx, namespace, helmRecord(namespace, 1, "deployed")), []byte("{}"))
		}, nil, "as Helm writes it: its key release is not base64"),
		Entry("a record of another revision", func(ctx context.Context) {
			alter(ctx, store(ctx, namespace, helmRecord(namespace, 1, "deployed")), encode(helmRecord(namespace, 2, "deployed")))
		}, nil, `it is of revision 2 of release "web" in namespace "NS"`),
		Entry("a file outside of the chart", func(ctx context.Context) {
			content := helmRecord(namespace, 1, "deployed")
			content["chart"].(map[string]any)["files"] = []any{map[string]any{"name": "../../../escaped\x1b[1m", "data": []byte("x")}}
			store(ctx, namespace, content)
		}, nil, `its chart contains "../../../escaped\x1b[1m", which Helm does not store as a file, or twice`),
		Entry("a chart whose name is a path", func(ctx context.Context) {
			content := helmRecord(namespace, 1, "deployed")
			content["chart"].(map[string]any)["metadata"].(map[string]any)["name"] = "../site"
			store(ctx, namespace, content)
		}, nil, `chart.metadata.name "../site" is invalid`),
		Entry("a value that does not exist", func(ctx context.Context) { store(ctx, namespace, helmRecord(namespace, 1, "deployed")) }, []string{"--param", "sizes"},
			`chart "site" has no value "sizes" (did you mean size?)`),
	)

	It("needs permission to get a single record, if its revision is given", func(ctx context.Context) {
		store(ctx, namespace, helmRecord(namespace, 1, "superseded"))
		store(ctx, namespace, helmRecord(namespace, 2, "deployed"))
		getting := func(user, resource, name string) {
			allow(ctx, namespace, user, rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: []string{name}})
		}
		getting("getter", "secrets", "sh.helm.release.v1.web.v1")
		var created result
		Eventually(func() error {
			created = fromRelease(ctx, "--revision", "1", "--as", "getter")
			return created.err
		}).Should(Succeed())
		Expect(created.out).To(And(HavePrefix(`release web, revision 1 (superseded), in namespace `+namespace), ContainSubstring("renders exactly what the release runs")))
		folder += "2"
		Expect(fromRelease(ctx, "--as", "getter").err).To(MatchError(ContainSubstring(
			"you need permission to list and get them, or to get the one that --revision selects")))
		Expect(fromRelease(ctx, "--revision", "2", "--as", "getter").err).To(MatchError(ContainSubstring(`cannot get resource "secrets"`)))
		Expect(folder).NotTo(BeADirectory())

		By("storing it in a ConfigMap")
		content := helmRecord(namespace, 3, "deployed")
		inMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sh.helm.release.v1.web.v3", Labels: recordLabels(content)}}
		inMap.Data = map[string]string{"release": string(encode(content))}
		Expect(hub.Create(ctx, inMap)).To(Succeed())
		getting("getter-of-maps", "configmaps", "sh.helm.release.v1.web.v3")
		Eventually(func() error {
			created = fromRelease(ctx, "--revision", "3", "--as", "getter-of-maps")
			return created.err
		}).Should(Succeed())
		Expect(created.out).To(HavePrefix("release web, revision 3 (deployed)"))
		folder += "3"
		allow(ctx, namespace, "getter-of-all", rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}})
		Eventually(func() error { return fromRelease(ctx, "--revision", "4", "--as", "getter-of-all").err }).Should(MatchError(
			fmt.Sprintf(`release "web" in namespace %q has no revision 4: you may not list the existing ones`, namespace)))

		By("refusing one without the labels of Helm")
		unlabelled := store(ctx, namespace, helmRecord(namespace, 5, "deployed"))
		Expect(hub.Patch(ctx, unlabelled, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": null}}`)))).To(Succeed())
		Expect(fromRelease(ctx, "--revision", "5", "--as", "getter-of-all").err).To(MatchError(
			fmt.Sprintf("the Secret sh.helm.release.v1.web.v5 in namespace %q lacks the labels of a record of Helm", namespace)))
		Expect(folder).NotTo(BeADirectory())
	})

	It("says that the cluster is unreachable", func(ctx context.Context) {
		got := fromRelease(ctx, "--server", "https://127.0.0.1:1")
		Expect(got.err).To(MatchError(And(ContainSubstring("connection refused"), ContainSubstring("check that the cluster is running, and that --context and --kubeconfig name it"))))
	})

	It("completes the names of releases", func(ctx context.Context) {
		store(ctx, namespace, helmRecord(namespace, 1, "superseded"))
		store(ctx, namespace, helmRecord(namespace, 2, "deployed"))
		allow(ctx, namespace, "lister", rbacv1.PolicyRule{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"secrets"}})
		Eventually(func() []string {
			return completions(ctx, "package", "from-release", "-n", namespace, "--as", "lister", "w")
		}).Should(Equal([]string{"web"}))
	})
})

// alter replaces the content of a record.
func alter(ctx context.Context, secret *corev1.Secret, content []byte) {
	GinkgoHelper()
	before := secret.DeepCopy()
	secret.Data = map[string][]byte{"release": content}
	Expect(hub.Patch(ctx, secret, client.MergeFrom(before))).To(Succeed())
}
