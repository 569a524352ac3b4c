package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	images "github.com/google/go-containerregistry/pkg/v1/tarball"
	"sigs.k8s.io/yaml"

	"github.com/tandem-addons/tandem/pkg/chart"
)

// TestMain makes the program of the tests also the one that renders charts.
func TestMain(m *testing.M) {
	chart.ServeChild()
	os.Exit(m.Run())
}

// tiny is a release of a program that builds fast.
func tiny(t *testing.T, platforms ...platform) release {
	return release{
		version: "v1.2.3", revision: "abc", created: time.Date(2026, 11, 28, 10, 0, 1, 0, time.UTC), repository: "registry.example.com/tandem",
		url: "https://example.com/releases", source: filepath.Join("..", ".."), output: filepath.Join(t.TempDir(), "dist"),
		plugin: program{name: "hello", path: "./hack/release/testdata/hello"}, platforms: platforms, images: "linux/amd64,linux/arm64",
	}
}

var here = platform{os: runtime.GOOS, arch: runtime.GOARCH}

func TestReleaseIsBuiltTwiceWithTheSameBytes(t *testing.T) {
	parts := []step{{"the plugin", buildPlugin}, {"the manifests", buildManifests}, {"the chart", buildChart}}
	var built []map[string]string
	for range 2 {
		r := tiny(t, here, platform{"windows", "amd64"})
		if err := r.build(t.Context(), parts); err != nil {
			t.Fatal(err)
		}
		built = append(built, readFolder(t, r.output))
	}
	for name, content := range built[0] {
		if built[1][name] != content {
			t.Errorf("%s differs", name)
		}
	}
	var names []string
	for _, line := range strings.Split(strings.TrimSpace(built[0][sumsFile]), "\n") {
		sum, name, _ := strings.Cut(line, "  ")
		if sum != sumOf([]byte(built[0][name])) {
			t.Errorf("the checksum of %s is wrong", name)
		}
		names = append(names, name)
	}
	base := "hello_v1.2.3_" + here.os + "_" + here.arch
	if diff := cmp.Diff([]string{
		"artifacthub-repo.yml", base + bomExtension, base + ".tar.gz", "hello_v1.2.3_windows_amd64" + bomExtension, "hello_v1.2.3_windows_amd64.zip",
		"install-agent.yaml", "install-hub-before-1.36.yaml", "install-hub-ocm-before-1.36.yaml", "install-hub-ocm.yaml", "install-hub.yaml", "install-packagesources.yaml", "install-ui.yaml",
		"krew-addon.yaml", provenanceFile, "tandem-1.2.3.tgz", "uninstall-hub.yaml",
	}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestAPartThatFailsLeavesThePreviousRelease(t *testing.T) {
	r := tiny(t)
	part := func(content string, err error) step {
		return step{"a part", func(context.Context, release) (map[string][]byte, error) {
			return map[string][]byte{"file": []byte(content)}, err
		}}
	}
	if err := r.build(t.Context(), []step{part("1", nil)}); err != nil {
		t.Fatal(err)
	}
	for sentence, parts := range map[string][]step{
		"building a part: broken":                       {part("2", errors.New("broken"))},
		"building a part: two files have the name file": {part("2", nil), part("3", nil)},
	} {
		if err := r.build(t.Context(), parts); err == nil || err.Error() != sentence {
			t.Errorf("the error is %v, want %q", err, sentence)
		}
	}
	if got := readFolder(t, r.output)["file"]; got != "1" {
		t.Errorf("the previous release contains %q", got)
	}
	beside, err := os.ReadDir(filepath.Dir(r.output))
	if err != nil || len(beside) != 1 {
		t.Errorf("%v remain beside the release, %v", beside, err)
	}
}

func TestProgramInTheArchiveKnowsItsVersion(t *testing.T) {
	files, err := buildPlugin(t.Context(), tiny(t, here))
	if err != nil {
		t.Fatal(err)
	}
	packed := files["hello_v1.2.3_"+here.os+"_"+here.arch+here.extension()]
	binary := filepath.Join(t.TempDir(), "hello")
	if err := os.WriteFile(binary, []byte(entriesOf(t, packed)["-rwxr-xr-x hello 2026-11-28T10:00:01Z"]), 0o755); err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), binary).CombinedOutput()
	if err != nil || string(output) != "hello v1.2.3\n" {
		t.Errorf("it prints %q, %v", output, err)
	}
}

func TestArchivesHaveTheDateOfTheRelease(t *testing.T) {
	created := time.Date(2026, 11, 28, 11, 0, 2, 0, time.FixedZone("", 3600))
	entries := []entry{{"a/b", 0o644, []byte("text")}, {"c", 0o755, nil}}
	want := map[string]string{"-rw-r--r-- a/b 2026-11-28T10:00:02Z": "text", "-rwxr-xr-x c 2026-11-28T10:00:02Z": ""}
	for _, p := range []platform{{os: "linux"}, {os: "windows"}} {
		packed, err := p.pack(entries, created)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, entriesOf(t, packed)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p.extension(), diff)
		}
	}
}

func TestBOMListsWhatIsLinked(t *testing.T) {
	r := tiny(t, here)
	r.plugin = program{name: "chart", path: "./hack/chart"} // which has dependencies
	binary, err := r.plugin.build(t.Context(), r.source, r.version, here)
	if err != nil {
		t.Fatal(err)
	}
	content, err := bomOf(binary, "chart", here, r)
	if err != nil {
		t.Fatal(err)
	}
	var got bom
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	main := got.Metadata.Component
	if main.PURL != "pkg:golang/github.com/tandem-addons/tandem@v1.2.3#hack/chart" || main.Hashes[0].Content != sumOf(binary) {
		t.Errorf("the program is %+v", main)
	}
	if got.Metadata.Timestamp != "2026-11-28T10:00:01Z" {
		t.Errorf("it is from %s", got.Metadata.Timestamp)
	}
	versions := map[string]string{}
	for _, c := range got.Components {
		versions[c.Name] = c.Version
	}
	if versions["std"] != strings.TrimPrefix(runtime.Version(), "go") || versions["helm.sh/helm/v4"] != "" || versions["sigs.k8s.io/kustomize/api"] == "" {
		t.Errorf("modules: %v", versions)
	}
	if len(got.Dependencies) != 1 || len(got.Dependencies[0].DependsOn) != len(got.Components) {
		t.Errorf("the program depends on %v", got.Dependencies)
	}
	if _, err := bomOf([]byte("text"), "chart", here, r); err == nil {
		t.Error("a text has modules")
	}
}

func TestProgramIsReadFromItsImage(t *testing.T) {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "hello", Mode: 0o755, Size: 4}), second(w.Write([]byte("text"))), w.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := images.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, content)
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "hello.tar")
	if err := images.WriteToFile(archive, name.MustParseReference("localhost/hello:v1-amd64"), image); err != nil {
		t.Fatal(err)
	}
	binary, err := programIn(archive, "localhost/hello:v1-amd64", "hello")
	if err != nil || string(binary) != "text" {
		t.Errorf("it is %q, %v", binary, err)
	}
	if _, err := programIn(archive, "localhost/hello:v1-amd64", "other"); err == nil || !strings.Contains(err.Error(), "has no file other") {
		t.Errorf("the error is %v", err)
	}
}

func second(_ int, err error) error { return err }

func TestManifestsRunTheImagesOfTheRelease(t *testing.T) {
	files, err := buildManifests(t.Context(), tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]map[string]int{
		"install-hub.yaml":                 {"addon-manager": 1},
		"install-hub-before-1.36.yaml":     {"addon-manager": 1},
		"install-hub-ocm.yaml":             {"addon-manager": 1, "addon-agent": 1},
		"install-hub-ocm-before-1.36.yaml": {"addon-manager": 1, "addon-agent": 1},
		"install-agent.yaml":               {"addon-agent": 1},
		"install-ui.yaml":                  {"addon-manager": 1},
		"install-packagesources.yaml":      {"package-controller": 1},
		"uninstall-hub.yaml":               {"addon-manager": 1},
	} {
		got := map[string]int{}
		for _, pod := range pods {
			if n := strings.Count(string(files[name]), "registry.example.com/tandem/"+pod+":v1.2.3\n"); n > 0 {
				got[pod] = n
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("images in %s (-want +got):\n%s", name, diff)
		}
		if mutating := strings.Contains(string(files[name]), "\nkind: MutatingAdmissionPolicy\n"); mutating != (name == "install-hub.yaml" || name == "install-hub-ocm.yaml") {
			t.Errorf("%s has mutating policies: %t", name, mutating)
		}
	}
}

func TestChartHasTheVersionAndImagesOfTheRelease(t *testing.T) {
	files, err := buildChart(t.Context(), tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	archive := files["tandem-1.2.3.tgz"]
	if version := chart.VersionOf(archive); version != "1.2.3" {
		t.Errorf("its version is %q", version)
	}
	var metadata struct {
		AppVersion  string
		Annotations map[string]string
	}
	if err := yaml.Unmarshal([]byte(entriesOf(t, archive)["-rw-r--r-- tandem/Chart.yaml 2026-11-28T10:00:01Z"]), &metadata); err != nil {
		t.Fatal(err)
	}
	var listed []struct {
		Name, Image string
		Platforms   []string
	}
	if err := yaml.Unmarshal([]byte(metadata.Annotations["artifacthub.io/images"]), &listed); err != nil {
		t.Fatal(err)
	}
	if metadata.AppVersion != "v1.2.3" || metadata.Annotations["artifacthub.io/prerelease"] != "false" || len(listed) != len(pods) ||
		listed[0].Image != "registry.example.com/tandem/addon-manager:v1.2.3" || len(listed[0].Platforms) != 2 {
		t.Errorf("metadata: %+v, images: %+v", metadata, listed)
	}
	renderer, err := chart.NewRenderer()
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := renderer.Render(t.Context(), chart.Input{
		Archive: archive, Release: chart.Release{Name: "tandem", Namespace: "tandem-system"}, Capabilities: chart.Capabilities{KubeVersion: "v1.37.0"},
	}, func(context.Context, string, string, string, string) (map[string]any, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(rendered.Objects)
	if err != nil || !bytes.Contains(content, []byte(`"image":"registry.example.com/tandem/addon-manager:v1.2.3"`)) {
		t.Errorf("it does not run the image of the release: %v", err)
	}
}

func TestLinesAreReplacedOnce(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: 2\n":    "a: 3\nb: 2\n",
		"b: 2\na: 1\n":    "b: 2\na: 3\n",
		"a: 11\n":         "",
		"a: 1\nx\na: 1\n": "",
	} {
		got, err := replaceLines(text, map[string]string{"a: 1": "a: 3"})
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q becomes %q, %v", text, got, err)
		}
	}
}

func TestKrewFindsTheArchives(t *testing.T) {
	content, err := krew{Version: "v1.2.3", Platforms: []krewPlatform{{"windows", "amd64", "https://example.com/a.zip", sumOf(nil), "hello.exe"}}}.yaml()
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := yaml.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	spec := got.(map[string]any)["spec"].(map[string]any)
	if diff := cmp.Diff([]any{map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"os": "windows", "arch": "amd64"}},
		"uri":      "https://example.com/a.zip", "sha256": sumOf(nil), "bin": "hello.exe",
	}}, spec["platforms"]); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	if text := spec["shortDescription"].(string); len(text) > 50 || strings.HasSuffix(text, ".") {
		t.Errorf("krew accepts no short description such as %q", text)
	}
}

func TestMistakesAreErrors(t *testing.T) {
	for sentence, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"no version":              {nil, `"" is not a semantic version`},
		"a version without v":     {[]string{"-version=1.2.3"}, `"1.2.3" is not a semantic version`},
		"a commit":                {[]string{"-version=v1.2.3-4-gabc+dirty"}, "is not a semantic version"},
		"a line":                  {[]string{"-version=v1.2.3-a\nb"}, "is not a semantic version"},
		"a platform that is none": {[]string{"-version=v1.2.3", "-platforms=linux"}, `"linux" is not of the form linux/amd64`},
		"an argument":             {[]string{"-version=v1.2.3", "all"}, `unexpected argument "all"`},
		"no such module":          {[]string{"-version=v1.2.3", "-source=testdata/nowhere"}, "building the plugin"},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := run(t.Context(), append([]string{"-output=" + filepath.Join(t.TempDir(), "dist")}, test.arguments...))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}

// readFolder returns the files in a folder.
func readFolder(t *testing.T, folder string) map[string]string {
	t.Helper()
	listed, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, file := range listed {
		content, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[file.Name()] = string(content)
	}
	return files
}

// entriesOf returns the contents of an archive by mode, name and date.
func entriesOf(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	found := map[string]string{}
	add := func(mode fmt.Stringer, name string, date time.Time, content io.Reader) {
		text, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		found[fmt.Sprintf("%s %s %s", mode, name, date.UTC().Format(time.RFC3339))] = string(text)
	}
	if files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive))); err == nil {
		for _, file := range files.File {
			content, err := file.Open()
			if err != nil {
				t.Fatal(err)
			}
			add(file.Mode(), file.Name, file.Modified, content)
		}
		return found
	}
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(compressed); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		add(header.FileInfo().Mode(), header.Name, header.ModTime, files)
	}
}
