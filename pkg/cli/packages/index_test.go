package packages

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/pkg/cli/clitest"
)

func TestIndexedPackagesAreFound(t *testing.T) {
	dir := clitest.Repository(t, "1.9.0", "1.10.0")
	if _, err := writeIndex(context.Background(), dir, ""); err != nil {
		t.Fatal(err)
	}
	if found, problem := childFrom(t, dir, ""); found != "zz-1.10.0" || problem != "" {
		t.Errorf("got %s, %s", found, problem)
	}
	clitest.WriteFile(t, filepath.Join(dir, "zz-1.10.0.tgz"), clitest.Tarballs(t, "1.9.0")["zz-1.9.0.tgz"])
	if _, problem := childFrom(t, dir, ""); !strings.Contains(problem, "has SHA-256") {
		t.Errorf("another tarball in its place: got %s", problem)
	}
}
