package chart

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/release"
	"github.com/tandem-addons/tandem/pkg/core/wrap"
)

// published is the folder of charts of other projects. It is not part of the repository.
const published = "../../../../shared/charts"

var _ = Describe("What a chart renders", Ordered, ContinueOnFailure, func() {
	var upgraded string
	BeforeAll(func(ctx context.Context) {
		By("installing a release that others can be dry-run upgrades of")
		upgraded = GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(upgraded, "Chart.yaml"), []byte("apiVersion: v2\nname: nothing\nversion: 1.0.0\n"), 0o600)).To(Succeed())
		_, err := helm.run(ctx, "install", "shop", upgraded)
		Expect(err).NotTo(HaveOccurred())
	})
	// compare returns how an installation and an upgrade differ from Helm's, and the error with which both refuse the chart.
	compare := func(ctx context.Context, path string, flags ...string) (difference string, refused error) {
		GinkgoHelper()
		archive, values := archiveOf(path), valuesOf(flags)
		for action, r := range map[string]chart.Release{
			"install": {Name: "fresh", Namespace: namespace, Revision: 1}, "upgrade": {Name: "shop", Namespace: namespace, Revision: 2, Upgrade: true},
		} {
			wanted, err := helm.render(ctx, action, r.Name, path, flags...)
			rendered, refused := ours(ctx, archive, r, values)
			rendered.Definitions = nil
			if refused == nil && isInvalid(err) { // what it renders is no object of Kubernetes
				wanted, err = helm.template(ctx, r, path, flags...)
				rendered = release.Rendering{Objects: sorted(rendered)}
			}
			switch {
			case (err == nil) != (refused == nil):
				return fmt.Sprintf("%s: Helm's error is %v, and ours %v", action, err, refused), nil
			case refused != nil:
				return "", refused
			case different(wanted, rendered) != "":
				return action + ": " + different(wanted, rendered), nil
			}
		}
		return "", nil
	}

	It("equals Helm for the charts in the tests of Helm", func(ctx context.Context) {
		module := goCommand(ctx, helmModule, "list", "-m", "-f", "{{.Dir}}", "helm.sh/helm/v4")
		var compared, refused, differences []string
		for _, folder := range []string{"pkg/cmd/testdata/testcharts", "pkg/chart/v2/util/testdata", "pkg/action/testdata/charts"} {
			for _, path := range chartsIn(filepath.Join(module, folder)) {
				name := filepath.Base(folder) + "/" + filepath.Base(path)
				By(name)
				switch difference, err := compare(ctx, path); {
				case difference != "":
					differences = append(differences, name+": "+difference)
				case err != nil:
					refused = append(refused, name+": "+err.Error())
				default:
					compared = append(compared, name)
				}
			}
		}
		GinkgoWriter.Printf("%d charts are equal; %d are refused by both:\n%s\n", len(compared), len(refused), strings.Join(refused, "\n"))
		Expect(differences).To(BeEmpty())
		Expect(len(compared)).To(BeNumerically(">=", 30))
	})

	It("equals Helm for published charts", func(ctx context.Context) {
		for _, path := range chartsIn(published) { // none without the folder
			By(filepath.Base(path))
			Expect(compare(ctx, path)).To(BeEmpty())
		}
	})

	DescribeTable("equals Helm for the example", func(ctx context.Context, flags ...string) {
		Expect(compare(ctx, "../../../examples/charts/shop", flags...)).To(BeEmpty())
	},
		Entry("with default values"),
		Entry("without the subchart", "--set-json", `cache={"enabled":false}`),
		Entry("with the subchart of a tag", "--set-json", `tags={"monitoring":true}`),
		Entry("with values of a subchart and of all", "--set-json", `cache={"size":"1Gi"}`, "--set-json", `global={"zone":"us"}`),
		Entry("with labels and hosts", "--set-json", `labels={"team":"a","b":"yes"}`, "--set-json", `hosts=["a.example.com","b.example.com"]`),
		Entry("with a value that is removed", "--set-json", `cacheConnection={"host":null}`, "--set-json", `labels=null`),
		Entry("with large numbers", "--set-json", `replicas=1000000`),
		Entry("with arguments", "--set-json", `cleanup={"schedule":"*/5 * * * *","args":["--a=b","c: d","- e","{}","0x1F","yes"]}`),
	)

	It("stays the same with parameters for the values of a chart and of its subcharts", func(ctx context.Context) {
		module := goCommand(ctx, helmModule, "list", "-m", "-f", "{{.Dir}}", "helm.sh/helm/v4")
		paths := append(chartsIn(published), "../../../examples/charts/shop")
		for _, folder := range []string{"pkg/cmd/testdata/testcharts", "pkg/chart/v2/util/testdata", "pkg/action/testdata/charts"} {
			paths = append(paths, chartsIn(filepath.Join(module, folder))...)
		}
		var compared []string
		for _, path := range paths {
			By(path)
			archive, r := archiveOf(path), chart.Release{Name: "fresh", Namespace: namespace, Revision: 1}
			described, err := chart.Describe(ctx, archive)
			if err == nil && len(described.Subcharts) == 0 && !strings.HasPrefix(path, published) {
				continue
			}
			wanted, refused := ours(ctx, archive, r, "")
			if refused != nil || err != nil && strings.Contains(err.Error(), "is a library") {
				continue
			}
			Expect(err).NotTo(HaveOccurred())
			values, number := withParameters(ctx, described, archive)
			rendered, err := ours(ctx, archive, r, values)
			Expect(err).NotTo(HaveOccurred(), values)
			Expect(different(wanted, rendered)).To(BeEmpty(), values)
			compared = append(compared, fmt.Sprintf("%s with %d", filepath.Base(path), number))
		}
		GinkgoWriter.Printf("charts that are equal, with their parameters:\n%s\n", strings.Join(compared, "\n"))
		Expect(len(compared)).To(BeNumerically(">=", 10))
	})

	It("looks up what the cluster has, as Helm does", func(ctx context.Context) {
		for _, name := range []string{"fresh-shop", "shop-shop"} {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}}}
			secret.Annotations = map[string]string{"meta.helm.sh/release-name": strings.TrimSuffix(name, "-shop"), "meta.helm.sh/release-namespace": namespace}
			secret.Data = map[string][]byte{"PASSWORD": []byte("from the cluster")}
			Expect(cluster.Create(ctx, secret)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { Expect(cluster.Delete(ctx, secret)).To(Succeed()) })
		}
		Expect(compare(ctx, "../../../examples/charts/shop")).To(BeEmpty())
		rendered, err := ours(ctx, archiveOf("../../../examples/charts/shop"), chart.Release{Name: "shop", Namespace: namespace, Revision: 1}, "")
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Join(readable(rendered), "\n")).To(ContainSubstring("ZnJvbSB0aGUgY2x1c3Rlcg=="))
	})

	It("contains the definitions that Helm would create", func(ctx context.Context) {
		for _, path := range append(chartsIn(published), "../../../examples/charts/shop") {
			By(filepath.Base(path))
			rendered, err := ours(ctx, archiveOf(path), chart.Release{Name: "shop", Namespace: namespace, Revision: 1}, "")
			Expect(err).NotTo(HaveOccurred())
			wanted := rendered
			wanted.Definitions = helm.definitions(ctx, path)
			Expect(different(wanted, rendered)).To(BeEmpty())
		}
	})

	DescribeTable("is refused as by Helm", func(ctx context.Context, message string, flags ...string) {
		difference, err := compare(ctx, "../../../examples/charts/shop", flags...)
		Expect(difference).To(BeEmpty())
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("for a violation of the schema", `at '/replicas': minimum: got 0, want 1`, "--set-json", "replicas=0"),
		Entry("for another one", `at '/hosts/0': 'a b' does not match pattern`, "--set-json", `hosts=["a b"]`),
		Entry("for values that are no map", `chart "shop"`, "--set-json", `labels="a"`),
	)
})

// chartsIn returns the folders and archives of charts in a folder.
func chartsIn(folder string) []string {
	folders, _ := filepath.Glob(filepath.Join(folder, "*", "Chart.yaml"))
	for i := range folders {
		folders[i] = filepath.Dir(folders[i])
	}
	archives, _ := filepath.Glob(filepath.Join(folder, "*.tgz"))
	return slices.Concat(folders, archives)
}

// archiveOf returns the archive of a chart, or nothing of a folder that cannot be packed.
func archiveOf(path string) []byte {
	GinkgoHelper()
	if strings.HasSuffix(path, ".tgz") {
		archive, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		return archive
	}
	archive, err := chart.Pack(os.DirFS(path))
	if err != nil {
		GinkgoWriter.Println(path, err)
	}
	return archive
}

// valuesOf returns the values of flags --set-json.
func valuesOf(flags []string) string {
	GinkgoHelper()
	values := map[string]any{}
	for _, flag := range flags {
		if name, text, is := strings.Cut(flag, "="); is {
			var value any
			Expect(json.Unmarshal([]byte(text), &value)).To(Succeed())
			values[name] = value
		}
	}
	encoded, err := json.Marshal(values)
	Expect(err).NotTo(HaveOccurred())
	return string(encoded)
}

// withParameters returns the values that a package with parameters for the values of a chart renders without parameters that are set, and their number.
func withParameters(ctx context.Context, described wrap.Chart, archive []byte) (values string, number int) {
	GinkgoHelper()
	leaves, err := wrap.CompareValues(wrap.Chart{}, described)
	Expect(err).NotTo(HaveOccurred())
	var named []string
	for i, leaf := range leaves[:min(len(leaves), wrap.MaxChoices)] {
		named = append(named, fmt.Sprintf("%s=P%d", leaf.Name, i))
	}
	choices, err := wrap.ParseChoices(named)
	Expect(err).NotTo(HaveOccurred())
	files, err := wrap.Files("site", "chart.tgz", described, choices)
	Expect(err).NotTo(HaveOccurred())
	files["chart.tgz"] = string(archive)
	loader := bundle.Loader{}
	loaded, err := loader.LoadFiles(ctx, "site", files)
	Expect(err).NotTo(HaveOccurred())
	pkg := loaded.Root().Pkg
	values, _, known := pkg.ChartValues(pkg.Version.Tasks[0])
	Expect(known).To(BeTrue(), loaded.ProblemsText())
	return values, len(choices)
}
