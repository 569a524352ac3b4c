package pack_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/pkg/core/pack"
)

// tarball returns a tarball with regular files, written as "NAME" or "NAME=TEXT", links as "NAME->TARGET", and folders as "NAME/".
func tarball(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, file := range files {
		name, text, _ := strings.Cut(file, "=")
		header := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if link, target, ok := strings.Cut(name, "->"); ok {
			header.Name, header.Linkname, header.Typeflag = link, target, tar.TypeSymlink
		}
		if strings.HasSuffix(name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestArchive(t *testing.T) {
	many, full := make([]string, 10_001), map[string]string{}
	for i := range many {
		many[i] = fmt.Sprint(i)
		full[many[i]] = ""
	}
	delete(full, "10000")
	for sentence, test := range map[string]struct {
		tarball []byte
		want    map[string]string
		problem string
	}{
		"files, and folders by those that are in them": {
			tarball: tarball(t, "templates/", "operator.yaml=a", "./params.yaml=b", "templates/deep/x.yaml=c"),
			want:    map[string]string{"operator.yaml": "a", "params.yaml": "b", "templates/deep/x.yaml": "c"},
		},
		"links are left out":                {tarball: tarball(t, "operator.yaml->/etc/passwd", "params.yaml=b"), want: map[string]string{"params.yaml": "b"}},
		"nothing":                           {tarball: tarball(t), want: map[string]string{}},
		"a path that leads out":             {tarball: tarball(t, "templates/../../x=a"), problem: `contains "templates/../../x", a path outside of it`},
		"a path that leads nowhere else":    {tarball: tarball(t, "templates/../x=a"), want: map[string]string{"x": "a"}},
		"a path from the root":              {tarball: tarball(t, "/etc/passwd=a"), problem: "a path outside of it"},
		"a path of Windows":                 {tarball: tarball(t, `..\x=a`), problem: "a path outside of it"},
		"a file twice":                      {tarball: tarball(t, "x=a", "./x=b"), problem: "contains a path twice: x"},
		"a file of the name of a folder":    {tarball: tarball(t, "x=a", "x/y=b"), problem: "contains a path twice: x"},
		"no gzip":                           {tarball: []byte("operator.yaml"), problem: "reading a tarball (.tgz)"},
		"no tar":                            {tarball: gzipText(t, strings.Repeat("operator.yaml", 99)), problem: "reading the tarball"},
		"cut short":                         {tarball: tarball(t, "x="+strings.Repeat("a", 1<<16))[:99], problem: "unexpected EOF"},
		"a small file that becomes a large": {tarball: tarball(t, "x="+strings.Repeat("a", pack.MaxArchive)), problem: "contains more than 33554432 bytes"},
		"a sparse file, which is large and takes next to nothing": {tarball: sparse(t, "1099511627776"), problem: "contains more than 33554432 bytes"},
		"as many files as may be":                                 {tarball: tarball(t, many[:10_000]...), want: full},
		"more files than may be":                                  {tarball: tarball(t, many...), problem: "more than 10000 files"},
	} {
		t.Run(sentence, func(t *testing.T) {
			files, size, err := pack.Archive(bytes.NewReader(test.tarball))
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("got %v, want the error %s", err, test.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			kept := contents(t, files)
			if diff := cmp.Diff(test.want, kept); diff != "" {
				t.Error(diff)
			}
			for name, text := range kept {
				size -= int64(len(name) + len(text))
			}
			if size < 0 {
				t.Errorf("what is kept is said to be %d bytes less than it is", -size)
			}
		})
	}
}

// sparse returns a sparse file of that size with one byte of data. The standard library reads such files but does not write them: it is
// given records of the same length under another name.
func sparse(t *testing.T, size string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err := w.WriteHeader(&tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: 1, Format: tar.FormatPAX, PAXRecords: map[string]string{
		"XNU.sparse.map": "0,1", "XNU.sparse.numblocks": "1", "XNU.sparse.size": size,
	}})
	if err == nil {
		_, err = w.Write([]byte("a"))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return gzipText(t, strings.ReplaceAll(out.String(), "XNU.sparse", "GNU.sparse"))
}

func gzipText(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func contents(t *testing.T, files fs.FS) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		found[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func FuzzArchive(f *testing.F) {
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, content []byte) {
		files, _, err := pack.Archive(bytes.NewReader(content))
		if err == nil {
			p, _ := pack.Load(files)
			p.Verify()
		}
	})
}

func TestWriteArchiveIsReadByArchive(t *testing.T) {
	files := fstest.MapFS{
		"operator.yaml": {Data: []byte("a"), ModTime: time.Unix(1, 0), Mode: 0o600},
		"templates/" + strings.Repeat("long/", 50) + "x": {Data: nil},
		"left/out": {Data: []byte("b")},
	}
	names := []string{"operator.yaml", "templates/" + strings.Repeat("long/", 50) + "x"}
	var first, second bytes.Buffer
	if err := pack.WriteArchive(&first, files, names); err != nil {
		t.Fatal(err)
	}
	files["operator.yaml"].ModTime, files["operator.yaml"].Mode = time.Unix(2, 0), 0o755
	if err := pack.WriteArchive(&second, files, names); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same files make another tarball")
	}
	read, _, err := pack.Archive(&first)
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(read, names...); err != nil {
		t.Error(err)
	}
	if _, err := fs.Stat(read, "left/out"); err == nil {
		t.Error("it holds what was not named")
	}
}

func TestWriteArchiveNeedsItsFiles(t *testing.T) {
	if err := pack.WriteArchive(io.Discard, fstest.MapFS{}, []string{"operator.yaml"}); err == nil || !strings.Contains(err.Error(), `reading "operator.yaml"`) {
		t.Errorf("got %v", err)
	}
}
