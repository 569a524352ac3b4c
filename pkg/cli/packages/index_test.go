package packages

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/bundle/bundletest"
)

func TestIndexedPackagesAreFound(t *testing.T) {
	dir := bundletest.Repository(t, "1.9.0", "1.10.0")
	if _, err := writeIndex(context.Background(), dir, ""); err != nil {
		t.Fatal(err)
	}
	parent := filepath.Join(t.TempDir(), "parent")
	bundletest.WritePackage(t, parent, "1.0.0", "package: zz")
	b, err := (&bundle.Loader{Repository: dir}).LoadBundle(t.Context(), parent)
	if err != nil || b.ProblemsText() != "" || strings.Join(b.Brings(), " ") != "zz-1.10.0" {
		t.Errorf("got error %v, problems %s, children %v", err, b.ProblemsText(), b.Brings())
	}
	bundletest.WriteFile(t, filepath.Join(dir, "zz-1.10.0.tgz"), bundletest.Tarballs(t, "1.9.0")["zz-1.9.0.tgz"])
	if b, err = (&bundle.Loader{Repository: dir}).LoadBundle(t.Context(), parent); err != nil || !strings.Contains(b.ProblemsText(), "has SHA-256") {
		t.Errorf("another tarball in its place: got error %v, problems %s", err, b.ProblemsText())
	}
}
