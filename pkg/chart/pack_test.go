package chart

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// TestPackedChartsAreEqual compares what Helm loads from a folder with what it loads from the packed one.
func TestPackedChartsAreEqual(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"Chart.yaml": metadata, "values.yaml": "\xEF\xBB\xBFa: 1\n", ".helmignore": "*.bak\n/docs/\nci/*.yaml\n# comment\n",
		"templates/a.yaml": "a", "templates/.hidden.yaml": "b", "templates/old.bak": "c", "docs/page.md": "d", "sub/docs/page.md": "e", "ci/x.yaml": "f",
		"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/templates/x.yaml": "g", "charts/sub/x.bak": "h", "crds/c.yaml": "i",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packed, err := Pack(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	got, err := load(packed)
	if err != nil {
		t.Fatal(err)
	}
	want, err := loader.LoadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(filesOf(want), filesOf(got)); diff != "" {
		t.Errorf("files (-from the folder +packed):\n%s", diff)
	}
	if err := os.Chtimes(filepath.Join(root, "Chart.yaml"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	again, err := Pack(os.DirFS(root))
	if err != nil || !bytes.Equal(packed, again) {
		t.Errorf("the same files result in other bytes, or in error %v", err)
	}
}

func filesOf(c *helm.Chart) []string {
	var files []string
	for _, f := range c.Raw {
		files = append(files, c.ChartFullPath()+"/"+f.Name+": "+string(f.Data))
	}
	for _, sub := range c.Dependencies() {
		files = append(files, filesOf(sub)...)
	}
	slices.Sort(files)
	return files
}

func TestFoldersThatAreNotPacked(t *testing.T) {
	with := func(name string, file *fstest.MapFile) fstest.MapFS {
		return fstest.MapFS{"Chart.yaml": {Data: []byte(metadata)}, name: file}
	}
	many := with("x", &fstest.MapFile{})
	for i := range maxFiles {
		many["f/"+strings.Repeat("x", i/100)+string(rune('a'+i%100))] = &fstest.MapFile{}
	}
	for sentence, test := range map[string]struct {
		folder fs.FS
		want   string
	}{
		"no chart":          {fstest.MapFS{"values.yaml": {}}, "the folder of the chart has no Chart.yaml"},
		"a link":            {with("templates/a.yaml", &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("../Chart.yaml")}), `contains "templates/a.yaml", which is no regular file`},
		"an invalid rule":   {with(".helmignore", &fstest.MapFile{Data: []byte("**/x")}), "reading .helmignore: double-star (**) syntax is not supported"},
		"too many files":    {many, "more than 10000 files"},
		"too many bytes":    {with("big", &fstest.MapFile{Data: make([]byte, 101<<20)}), "more than 104857600 bytes"},
		"too large, packed": {with("random", &fstest.MapFile{Data: random(17 << 20)}), "more than the limit of 16777216: list files that it does not need in .helmignore"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if packed, err := Pack(test.folder); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %d bytes and error %v, want %q", len(packed), err, test.want)
			}
		})
	}
}

// random returns bytes that cannot be compressed.
func random(size int) []byte {
	content, state := make([]byte, size), uint64(1)
	for i := range content {
		state = state*6364136223846793005 + 1442695040888963407
		content[i] = byte(state >> 56)
	}
	return content
}
