package cli

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/pkg/bundle/bundletest"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

func TestANewPackageIsValidAndCanBePacked(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	output, code := run("package", "new", "web")
	if code != ExitOK {
		t.Fatal(output)
	}
	clitest.Golden(t, "new", filepath.ToSlash(output))
	for _, command := range [][]string{
		{"package", "verify", "web"}, {"package", "pack", "web"}, {"package", "verify", "web-1.27.3-0.1.0.tgz"}, {"package", "diff", "./web", "web-1.27.3-0.1.0.tgz"},
	} {
		output, code := run(command...)
		if code != ExitOK || strings.Contains(output, "warning") {
			t.Errorf("%s: exit code %d\n%s", strings.Join(command, " "), code, output)
		}
		if command[1] == "pack" {
			clitest.Golden(t, "pack", output)
		}
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	if output, code := run("package", "show", "web"); code != ExitFailure || !strings.HasSuffix(output, "; for the local path, use ./web\n") {
		t.Errorf("a name alone is one on the hub, got exit code %d\n%s", code, output)
	}
}

func TestNewPackageTouchesNothingThatIsThere(t *testing.T) {
	dir := t.TempDir()
	bundletest.WriteFile(t, filepath.Join(dir, "README.md"), []byte("mine"))
	if output, code := run("package", "new", "web", dir); code != ExitFailure || !strings.Contains(output, "is not empty") {
		t.Errorf("exit code %d: %s", code, output)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v", entries, err)
	}
}

// filesIn returns the paths of all files in a tarball.
func filesIn(t *testing.T, tarball string) []string {
	t.Helper()
	content, err := os.ReadFile(tarball)
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := pack.Archive(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func TestPackTakesAlongWhatThePackageNeedsAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	shop := filepath.Join(dir, "shop")
	bundletest.WritePackage(t, shop, "1.0.0", "package: ./packages/cart", "package: ./stock.tgz")
	bundletest.WritePackage(t, filepath.Join(shop, "packages", "cart"), "1.0.0")
	bundletest.WritePackage(t, filepath.Join(dir, "stock"), "1.0.0")
	bundletest.WriteFile(t, filepath.Join(shop, "stock.tgz"), bundletest.TarballOf(t, filepath.Join(dir, "stock")))
	if err := os.MkdirAll(filepath.Join(shop, "templates", ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"README.md", ".hidden", "templates/.swp", "templates/.git/x", "templates/used.yaml", "packages/other.txt"} {
		bundletest.WriteFile(t, filepath.Join(shop, file), []byte("x: y\n"))
	}
	first, second := filepath.Join(dir, "first.tgz"), filepath.Join(shop, "second.tgz")
	for _, file := range []string{first, second} {
		if output, code := run("package", "pack", shop, "-o", file); code != ExitOK {
			t.Fatal(output)
		}
	}
	want := []string{
		"operator.yaml", "packages/cart/operator.yaml", "packages/cart/params.yaml", "params.yaml", "stock.tgz", "templates/used.yaml",
	}
	if diff := cmp.Diff(want, filesIn(t, second)); diff != "" {
		t.Error(diff)
	}
	one, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, other) {
		t.Error("the same package makes another tarball the second time")
	}
	output, code := run("package", "tree", first, "-o", "name")
	names := "operatorversion.kudo.dev/shop-1.0.0\noperatorversion.kudo.dev/cart-1.0.0\noperatorversion.kudo.dev/stock-1.0.0\n"
	if code != ExitOK || !strings.HasSuffix(output, names) {
		t.Errorf("exit code %d: %s", code, output)
	}
}

func TestPackWritesNothingWhereItFails(t *testing.T) {
	dir := t.TempDir()
	if output, code := run("package", "pack", "testdata/broken", "-o", filepath.Join(dir, "x.tgz")); code != ExitFailure {
		t.Error(output)
	}
	if output, code := run("package", "pack", "testdata/valid", "-o", filepath.Join(dir, "none", "x.tgz")); code != ExitFailure {
		t.Error(output)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("got %v, %v", entries, err)
	}
}

func TestPackagesOfARepository(t *testing.T) {
	dir := t.TempDir()
	for name, content := range bundletest.Tarballs(t, "1.9.0", "1.10.0") {
		bundletest.WriteFile(t, filepath.Join(dir, name), content)
	}
	const old, young = "operatorVersion: 1.9.0, urls: [zz-1.9.0.tgz]", "operatorVersion: 1.10.0, urls: [zz-1.10.0.tgz]"
	const lost, removed = "operatorVersion: 1.8.0, urls: [zz-1.8.0.tgz, 'https://example.org/zz-1.8.0.tgz'], digest: 00", "operatorVersion: 2.0.0, removed: true"
	bundletest.WriteFile(t, filepath.Join(dir, "index.yaml"), bundletest.IndexOf([]string{lost, old, young, removed}))
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"repository-list":      {[]string{"list"}, ExitOK},
		"repository-list-yaml": {[]string{"list", "-o", "yaml"}, ExitOK},
		"repository-list-name": {[]string{"list", "-o", "name"}, ExitOK},
		"repository-show":      {[]string{"show", "zz"}, ExitOK},

		"repository-show-unknown": {[]string{"show", "zy"}, ExitFailure},
		"repository-diff":         {[]string{"diff", "zz-1.9.0", "zz"}, ExitOK},
		"repository-none":         {[]string{"list", "--repository", filepath.Join(dir, "none")}, ExitFailure},
	} {
		t.Run(name, func(t *testing.T) {
			output, code := run(append([]string{"package", test.args[0], "--repository", dir}, test.args[1:]...)...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			clitest.Golden(t, name, strings.ReplaceAll(output, dir, "DIR"))
		})
	}
}
