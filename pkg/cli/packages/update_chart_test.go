package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/bundle/bundletest"
	"github.com/tandem-addons/tandem/pkg/chart/registry/registrytest"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/core/content"
)

func runUpdateChartCommand(f *hubclient.Factory) *cobra.Command { return NewCmdUpdateChart(f, nil) }

// web2 is version 2.0.0 of the chart web: with other values, objects, a hook and a definition.
func web2(t *testing.T) []byte {
	t.Helper()
	return registrytest.Chart(t, "web", "2.0.0", map[string]string{
		"Chart.yaml":       "apiVersion: v2\nname: web\nversion: 2.0.0\nappVersion: \"9\"\n",
		"values.yaml":      "# Number of pods\nreplicas: 3\nimage: {tag: new}\n",
		"crds/a.yaml":      "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.example.com}\nspec: {group: example.com, names: {kind: A, plural: as}, scope: Namespaced, versions: []}\n",
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {replicas: {{ .Values.replicas | quote }}, tag: x}\n",
		"templates/b.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: init, annotations: {helm.sh/hook: pre-install}}\nspec: {template: {spec: {restartPolicy: Never, containers: []}}}\n",
	})
}

// charts serves both versions of the chart in a repository.
func charts(t *testing.T) string {
	t.Helper()
	registrytest.Alone(t)
	t.Chdir(t.TempDir())
	return registrytest.Serve(t, registrytest.Repository(map[string][]byte{
		"web-1.2.3.tgz": web(t, "1.2.3"), "web-2.0.0.tgz": web2(t), "web-3.0.0.tgz": registrytest.Chart(t, "web", "3.0.0", map[string]string{"values.yaml": "pods: 1\n"}),
		"api-1.0.0.tgz": registrytest.Chart(t, "api", "1.0.0", nil),
	}))
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestUpdateChart(t *testing.T) {
	at := charts(t)
	if output, err := run(t, runFromChartCommand, at+"/web", "--version", "1.2.3", "--param", "replicas", "shop"); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	operator := strings.Replace(readText(t, "shop/operator.yaml"), "kind: Helm", "kind: Helm # ours", 1)
	bundletest.WriteFile(t, "shop/operator.yaml", []byte(operator))
	clean := strings.NewReplacer(content.DigestOf(web2(t)), "DIGEST", at, "https://charts.example.com")
	dry, err := run(t, runUpdateChartCommand, "shop", "--version", "2.0.0", "--dry-run")
	if err != nil {
		t.Fatalf("%v\n%s", err, dry)
	}
	if readText(t, "shop/operator.yaml") != operator {
		t.Error("a dry run has changed operator.yaml")
	}
	output, err := run(t, runUpdateChartCommand, "shop", "--version", "2.0.0")
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	clitest.Golden(t, "update-chart", clean.Replace("$ update-chart shop --version 2.0.0 --dry-run\n"+dry+"$ update-chart shop --version 2.0.0\n"+output+
		"--- operator.yaml\n"+readText(t, "shop/operator.yaml")))
	if files, _ := filepath.Glob("shop/*.tgz"); len(files) != 1 || readText(t, "shop/web-2.0.0.tgz") != string(web2(t)) {
		t.Errorf("the package has %v", files)
	}
	if output, err := run(t, runVerifyCommand, "shop"); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	output, err = run(t, runUpdateChartCommand, "shop", "--version", "2.0.0", "--operator-version", "2.0.0", "-o", "json")
	if err != nil || !strings.Contains(output, `"changes": []`) || !strings.Contains(readText(t, "shop/operator.yaml"), "operatorVersion: 2.0.0\n") {
		t.Errorf("got error %v and\n%s", err, output)
	}
}

func TestUpdateChartOfReferences(t *testing.T) {
	at := charts(t)
	folder := remotePackage(t, "{chart: web, repository: '"+at+"', version: 1.2.3, digest: '"+content.DigestOf(web(t, "1.2.3"))+"'}")
	output, err := run(t, runUpdateChartCommand, folder, "--version", "~2")
	want := "{chart: web, repository: '" + at + "', version: 2.0.0, digest: " + content.DigestOf(web2(t)) + "}"
	if got := readText(t, filepath.Join(folder, "operator.yaml")); err != nil || !strings.Contains(got, want) {
		t.Errorf("got error %v, %s and\n%s", err, output, got)
	}
}

func TestUpdateChartErrors(t *testing.T) {
	at := charts(t)
	bundletest.WriteFile(t, "web-2.0.0.tgz", web2(t))
	local := remotePackage(t, "{chart: web.tgz}")
	bundletest.WriteFile(t, filepath.Join(local, "web.tgz"), web(t, "1.2.3"))
	folder := remotePackage(t, "{chart: web}")
	bundletest.WriteFile(t, filepath.Join(folder, "web", "Chart.yaml"), []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n"))
	elsewhere := remotePackage(t, "{chart: web, repository: '"+at+"', version: 1.2.3}")
	if output, err := run(t, runFromChartCommand, at+"/web", "--version", "1.2.3", "--param", "replicas", "shop"); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for sentence, test := range map[string]struct {
		args []string
		want string
	}{
		"a value that is gone":           {[]string{"shop", "--version", "3.0.0"}, "chart web 3.0.0 does not have values that templates/values.yaml sets: replicas: remove or rename them there, or set --allow-gone-values"},
		"another chart":                  {[]string{"shop", at + "/api"}, `the new chart is called "api", and that of the package "web"`},
		"an unknown task":                {[]string{"shop", "--version", "2.0.0", "--task", "charts"}, `no task of kind Helm is called "charts" (did you mean chart?): chart`},
		"an unknown version":             {[]string{"shop", "--version", "2.0.1"}, `chart "web" has no version "2.0.1": the nearest are`},
		"another digest":                 {[]string{"shop", "--version", "2.0.0", "--digest", "sha256:" + strings.Repeat("0", 64)}, "expected sha256:0000"},
		"no repository":                  {[]string{local, "--version", "2.0.0"}, `task "c" does not say which repository its chart is from: name the new chart as CHART`},
		"a folder in the package":        {[]string{folder, "web-2.0.0.tgz"}, `chart "web" is a folder in the package: replace its content`},
		"an archive instead of a place":  {[]string{elsewhere, "web-2.0.0.tgz"}, "the package contains no chart, only its place"},
		"neither a version nor a chart":  {[]string{"shop"}, "set --version, or name the new CHART"},
		"a package that does not exist":  {[]string{"none", "--version", "2.0.0"}, "none"},
		"an operatorVersion that is bad": {[]string{"shop", "--version", "2.0.0", "--operator-version", "A B"}, "package shop is not valid"},
	} {
		t.Run(sentence, func(t *testing.T) {
			output, err := run(t, runUpdateChartCommand, test.args...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q\n%s", err, test.want, output)
			}
			if strings.Contains(readText(t, "shop/operator.yaml"), "2.0.0") {
				t.Error("an error has changed the package")
			}
		})
	}
	if output, err := run(t, runUpdateChartCommand, "shop", "--version", "3.0.0", "--allow-gone-values"); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	if output, err := run(t, runUpdateChartCommand, local, "web-2.0.0.tgz"); err != nil || readText(t, filepath.Join(local, "web.tgz")) != string(web2(t)) {
		t.Errorf("%v\n%s", err, output)
	}
}
