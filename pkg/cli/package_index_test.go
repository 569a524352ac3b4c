package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/pkg/bundle/bundletest"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
)

func TestIndexMakesARepository(t *testing.T) {
	dir := bundletest.Repository(t, "1.9.0", "1.10.0")
	packed := filepath.Join(dir, "the shop.tgz")
	if output, code := run("package", "pack", "testdata/versions/old", "-o", packed); code != ExitOK {
		t.Fatal(output)
	}
	bundletest.WriteFile(t, filepath.Join(dir, "index.yaml"), bundletest.IndexOf([]string{"operatorVersion: 0.1.0, urls: [gone.tgz]"}, "https://example.org/more"))
	output, code := run("package", "index", dir, "--url", "https://example.org/packages/")
	if want := filepath.Join(dir, "index.yaml") + " created: 3 packages\n"; code != ExitOK || output != want {
		t.Fatalf("exit code %d: %s", code, output)
	}
	written, err := os.ReadFile(filepath.Join(dir, "index.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "index-written", regexp.MustCompile(`[0-9a-f]{64}`).ReplaceAllString(string(written), "SHA-256"))
	if output, code := run("package", "index", dir, "--url", "https://example.org/packages"); code != ExitOK {
		t.Fatal(output)
	}
	again, err := os.ReadFile(filepath.Join(dir, "index.yaml"))
	if diff := cmp.Diff(string(written), string(again)); err != nil || diff != "" {
		t.Error("the second index differs:", err, diff)
	}
}

func TestIndexIsNotWrittenWhereSomethingIsWrong(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken")
	bundletest.WritePackage(t, broken, "1.0.0", "package: ./none")
	for sentence, test := range map[string]struct {
		file    string
		content []byte
		want    string
	}{
		"a tarball that is none":    {"x.tgz", []byte("no"), "DIR/x.tgz: "},
		"a package that is invalid": {"x.tgz", bundletest.TarballOf(t, broken), "package DIR/x.tgz is not valid: 1 error; run 'kubectl addon package verify DIR/x.tgz'"},
		"a version twice":           {"x.tgz", bundletest.Tarballs(t, "1.9.0")["zz-1.9.0.tgz"], "x.tgz and zz-1.9.0.tgz both contain zz-1.9.0: remove one of them"},
		"an index that is none":     {"index.yaml", []byte("no"), "DIR/index.yaml: not an index of KUDO packages"},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := bundletest.Repository(t, "1.9.0")
			bundletest.WriteFile(t, filepath.Join(dir, test.file), test.content)
			output, code := run("package", "index", dir)
			if code != ExitFailure || !strings.Contains(strings.ReplaceAll(output, dir, "DIR"), test.want) {
				t.Errorf("exit code %d: %s", code, output)
			}
			if content, err := os.ReadFile(filepath.Join(dir, "index.yaml")); err == nil && string(content) != string(test.content) {
				t.Errorf("an index was written: %s", content)
			}
		})
	}
}
