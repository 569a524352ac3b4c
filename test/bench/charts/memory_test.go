package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

// TestMain makes the test's program also the one that renders charts.
func TestMain(m *testing.M) {
	chart.ServeChild()
	os.Exit(m.Run())
}

func TestPackagesOfBothKindsAreValid(t *testing.T) {
	b := &bench{settings: settings{folder: "package"}}
	for kind, wanted := range map[packageKind]string{charts: "kind: Helm", templates: "kind: Apply"} {
		folder := filepath.Join(t.TempDir(), "web-01")
		if err := b.writePackage(t.Context(), kind, folder, "web-01", 20<<10); err != nil {
			t.Fatal(err)
		}
		if _, problems := pack.Load(os.DirFS(folder)); len(problems) > 0 {
			t.Errorf("%s: %v", kind, problems)
		}
		operator, err := os.ReadFile(filepath.Join(folder, "operator.yaml"))
		if err != nil || !strings.Contains(string(operator), wanted) || !strings.Contains(string(operator), "name: web-01\n") {
			t.Errorf("%s: error %v, operator.yaml\n%s", kind, err, operator)
		}
		files, err := filepath.Glob(filepath.Join(folder, "templates", "object-*.yaml"))
		if err != nil || kind == templates && len(files) != 30 {
			t.Errorf("%s: %d templates, error %v, want 30", kind, len(files), err)
		}
	}
}

func TestSizesOfArchives(t *testing.T) {
	last := 0
	for i := range 20 {
		size := archiveSize(i, 20)
		if size < last || i == 0 && size != minArchive || i == 19 && size != maxArchive {
			t.Errorf("archive %d has %d bytes after one of %d", i, size, last)
		}
		last = size
	}
	var zipped bytes.Buffer
	to := gzip.NewWriter(&zipped)
	if _, err := to.Write(noise(100 << 10)); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if zipped.Len() < 99<<10 || zipped.Len() > 105<<10 {
		t.Errorf("%d bytes, want about 100 KiB", zipped.Len())
	}
}
