package packages

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/bundle/bundletest"
	"github.com/tandem-addons/tandem/pkg/chart/registry/registrytest"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/core/content"
)

// web is a chart in a version.
func web(t *testing.T, version string) []byte {
	t.Helper()
	return registrytest.Chart(t, "web", version, map[string]string{
		"values.yaml":      "# Number of pods\nreplicas: 2\n",
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {replicas: {{ .Values.replicas | quote }}}\n",
	})
}

// run runs a command, and returns all of its output.
func run(t *testing.T, command func(*hubclient.Factory) *cobra.Command, args ...string) (string, error) {
	t.Helper()
	f := clitest.Factory("")
	cmd := command(f)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return f.Out.(*bytes.Buffer).String() + f.ErrOut.(*bytes.Buffer).String(), err
}

func runFromChartCommand(f *hubclient.Factory) *cobra.Command { return NewCmdFromChart(f, nil) }
func runVerifyCommand(f *hubclient.Factory) *cobra.Command    { return NewCmdVerify(f, nil) }

func TestFromChartElsewhere(t *testing.T) {
	registrytest.Alone(t)
	t.Chdir(t.TempDir())
	host, archive := registrytest.Registry(t, false), web(t, "1.2.3")
	manifest := registrytest.Push(t, host+"/charts/web:1.2.3", archive)
	at := registrytest.Serve(t, registrytest.Repository(map[string][]byte{"web-1.2.3.tgz": archive}))
	registrytest.Repositories(t, "- {name: example, url: '"+at+"'}\n")
	clean := strings.NewReplacer(manifest, "MANIFEST", content.DigestOf(archive), "DIGEST", host, "registry.example.com", at, "https://charts.example.com")
	output := ""
	for i, args := range [][]string{
		{"oci://" + host + "/charts/web", "--version", "1.2.3", "--digest", content.DigestOf(archive), "--param", "replicas"},
		{"example/web"}, {"web", "--repo", at, "--version", "^1"}, {at + "/web-1.2.3.tgz"},
	} {
		folder := fmt.Sprintf("web%d", i)
		shown, err := run(t, runFromChartCommand, append(args, folder)...)
		if err != nil {
			t.Fatalf("%v\n%s", err, shown)
		}
		text, err := os.ReadFile(filepath.Join(folder, "operator.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		output += "$ from-chart " + strings.Join(args, " ") + "\n" + shown + "--- operator.yaml\n" + string(text)
	}
	clitest.Golden(t, "from-chart-elsewhere", clean.Replace(output))

	if _, err := run(t, runFromChartCommand, "example/wbe", "other"); err == nil || !strings.Contains(err.Error(), `it has no chart "wbe"`) {
		t.Errorf("got error %v", err)
	}
	_, err := run(t, runFromChartCommand, "example/web", "other", "--digest", manifest)
	if err == nil || !strings.Contains(err.Error(), "expected "+manifest) {
		t.Errorf("got error %v", err)
	}
	if _, err := os.Stat("other"); err == nil {
		t.Error("an error leaves files")
	}
}

// remotePackage writes a package with one task whose chart is elsewhere.
func remotePackage(t *testing.T, spec string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "app")
	for name, text := range map[string]string{
		"operator.yaml": "apiVersion: kudo.dev/v1beta1\nname: app\noperatorVersion: 1.0.0\ntasks: [{name: c, kind: Helm, spec: " + spec + "}]\n" +
			"plans: {deploy: {phases: [{name: a, steps: [{name: a, tasks: [c]}]}]}}\n",
		"params.yaml": "apiVersion: kudo.dev/v1beta1\nparameters: []\n",
	} {
		bundletest.WriteFile(t, filepath.Join(folder, name), []byte(text))
	}
	return folder
}

func TestChartsElsewhereAreStoredAsTheyAre(t *testing.T) {
	registrytest.Alone(t)
	host, archive := registrytest.Registry(t, false), web(t, "1.2.3")
	registrytest.Push(t, host+"/charts/web:1.2.3", archive)
	folder := remotePackage(t, "{chart: 'oci://"+host+"/charts/web', version: 1.2.3}")
	var l loader
	b, err := l.LoadBundle(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	if problems := b.Root().Problems; len(problems) > 0 {
		t.Fatal(problems)
	}
	_, version := b.Root().Objects("ns")
	want := kudo.HelmTaskSpec{Chart: "web-1.2.3.tgz", Repository: "oci://" + host + "/charts", Version: "1.2.3", Digest: content.DigestOf(archive)}
	if got := version.Spec.Tasks[0].Spec.HelmTaskSpec; got != want {
		t.Errorf("the task is %+v, want %+v", got, want)
	}
	stored, found := content.Find(&version.Spec, "web-1.2.3.tgz")
	if !found || stored.Digest != content.DigestOf(archive) || !bytes.Equal(b.Root().Charts["web-1.2.3.tgz"], archive) {
		t.Errorf("the content is %+v", version.Spec.Content)
	}
	output, err := run(t, runVerifyCommand, folder)
	if want := "chart web 1.2.3 fetched from oci://" + host + "/charts/web@sha256:"; err != nil || !strings.Contains(output, want) {
		t.Errorf("got error %v and\n%s", err, output)
	}
	output, err = run(t, runVerifyCommand, folder, "-o", "json")
	if err != nil || !strings.Contains(output, `"repository": "oci://`+host+`/charts"`) {
		t.Errorf("got error %v and\n%s", err, output)
	}
}

func TestProblemsOfChartsElsewhere(t *testing.T) {
	registrytest.Alone(t)
	host, archive := registrytest.Registry(t, true), web(t, "1.2.3")
	registrytest.Push(t, host+"/web:1.2.3", archive)
	at := registrytest.Serve(t, registrytest.Repository(map[string][]byte{"web-1.2.3.tgz": archive}))
	for sentence, test := range map[string]struct{ spec, want string }{
		"no credentials":  {"{chart: 'oci://" + host + "/web', version: 1.2.3}", `4:38: error: task "c": chart "oci://` + host + `/web": ` + host + ` refused access (401 Unauthorized): log in with 'helm registry login`},
		"another version": {"{chart: web, repository: '" + at + "', version: 1.2.4}", `4:38: error: task "c": chart "` + at + `/web": ` + at + `: chart "web" has no version "1.2.4": the nearest are 1.2.3`},
		"another digest":  {"{chart: web, repository: '" + at + "', version: 1.2.3, digest: 'sha256:" + strings.Repeat("0", 64) + "'}", "expected sha256:0000"},
		"no server":       {"{chart: web, repository: 'http://127.0.0.1:1', version: 1.2.3}", `connecting to 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused`},
	} {
		t.Run(sentence, func(t *testing.T) {
			output, err := run(t, runVerifyCommand, remotePackage(t, test.spec))
			if err == nil || !strings.Contains(output, test.want) {
				t.Errorf("got error %v and\n%s\nwant %s", err, output, test.want)
			}
		})
	}
}

func TestArchivesArePinned(t *testing.T) {
	registrytest.Alone(t)
	archive := web(t, "1.2.3")
	for spec, want := range map[string]string{
		"{chart: web.tgz, repository: 'oci://registry.example.com/charts', version: 1.2.3, digest: '" + content.DigestOf(archive) + "'}":      "",
		"{chart: web.tgz, repository: 'oci://registry.example.com/charts', version: 1.2.4}":                                                   `chart "web.tgz": the archive contains version "1.2.3", but the task expects "1.2.4"`,
		"{chart: web.tgz, repository: 'oci://registry.example.com/charts', version: 1.2.3, digest: 'sha256:" + strings.Repeat("0", 64) + "'}": "the archive has digest " + content.DigestOf(archive) + ", but the task expects sha256:0000",
	} {
		folder := remotePackage(t, spec)
		bundletest.WriteFile(t, filepath.Join(folder, "web.tgz"), archive)
		output, err := run(t, runVerifyCommand, folder)
		if want == "" != (err == nil) || !strings.Contains(output, want) {
			t.Errorf("%s: got error %v and\n%s", spec, err, output)
		}
	}
}

func TestDependenciesOfFoldersAreFetched(t *testing.T) {
	registrytest.Alone(t)
	at := registrytest.Serve(t, registrytest.Repository(map[string][]byte{"db-1.4.2.tgz": registrytest.Chart(t, "db", "1.4.2", map[string]string{
		"templates/db.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\n"})}))
	folder := remotePackage(t, "{chart: web}")
	chart := "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: [{name: db, version: 1.4.2, repository: '" + at + "'}]\n"
	bundletest.WriteFile(t, filepath.Join(folder, "web", "Chart.yaml"), []byte(chart))
	var l loader
	b, err := l.LoadBundle(t.Context(), folder)
	if err != nil || len(b.Root().Problems) > 0 {
		t.Fatal(err, b.Root().Problems)
	}
	needed, err := rightsOf(b).text()
	if err != nil || !strings.Contains(needed, "secrets") {
		t.Errorf("got error %v and\n%s", err, needed)
	}
	output, err := run(t, runFromChartCommand, filepath.Join(folder, "web"), filepath.Join(t.TempDir(), "made"))
	if err != nil || !strings.Contains(output, "secrets") {
		t.Errorf("got error %v and\n%s", err, output)
	}
	bundletest.WriteFile(t, filepath.Join(folder, "web", "Chart.yaml"), []byte(strings.Replace(chart, "1.4.2", "1.4.3", 1)))
	output, err = run(t, runVerifyCommand, folder)
	if err == nil || !strings.Contains(output, `fetching a dependency that is not in folder charts: chart "`+at+`/db": `) || !strings.Contains(output, "or run 'helm dependency build'") {
		t.Errorf("got error %v and\n%s", err, output)
	}
}

func TestPackKeepsReferences(t *testing.T) {
	registrytest.Alone(t)
	archive := web(t, "1.2.3")
	at := registrytest.Serve(t, registrytest.Repository(map[string][]byte{"web-1.2.3.tgz": archive}))
	folder, file := remotePackage(t, "{chart: web, repository: '"+at+"', version: 1.2.3}"), filepath.Join(t.TempDir(), "app.tgz")
	if output, err := run(t, func(f *hubclient.Factory) *cobra.Command { return NewCmdPack(f, nil) }, folder, "-o", file); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if output, err := run(t, runVerifyCommand, file); err != nil || !strings.Contains(output, "chart web 1.2.3 fetched from "+at) {
		t.Errorf("got error %v and\n%s", err, output)
	}
}
