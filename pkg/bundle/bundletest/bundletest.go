// Package bundletest has packages for tests.
package bundletest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// WritePackage writes a package named after its folder. Each child is the spec of a task, in YAML.
func WritePackage(t *testing.T, dir, version string, children ...string) {
	t.Helper()
	var tasks, steps strings.Builder
	for i, spec := range children {
		fmt.Fprintf(&tasks, "- {name: t%d, kind: KudoOperator, spec: {%s}}\n", i+1, spec)
		fmt.Fprintf(&steps, "t%d, ", i+1)
	}
	for file, text := range map[string]string{
		"operator.yaml": fmt.Sprintf("name: %s\noperatorVersion: %s\ntasks:\n- {name: done, kind: Dummy, spec: {done: true}}\n%s"+
			"plans: {deploy: {phases: [{name: main, steps: [{name: main, tasks: [%sdone]}]}]}}\n", filepath.Base(dir), version, &tasks, &steps),
		"params.yaml": "parameters:\n- {name: ON, type: boolean, default: true, trigger: deploy}\n",
	} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TarballOf returns the tarball of a folder as KUDO packs it: the files without the folder itself.
func TarballOf(t *testing.T, dir string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))})
		}
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	})
	for _, closing := range []func() error{func() error { return err }, w.Close, zipped.Close} {
		if err := closing(); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// WriteFile writes a file, or fails the test.
func WriteFile(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Repository returns a folder with tarballs of the operator zz in the given versions.
func Repository(t *testing.T, versions ...string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range Tarballs(t, versions...) {
		WriteFile(t, filepath.Join(dir, name), content)
	}
	return dir
}

// Tarballs returns tarballs of the operator zz in the given versions, by path in a repository.
func Tarballs(t *testing.T, versions ...string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, version := range versions {
		dir := filepath.Join(t.TempDir(), "zz")
		WritePackage(t, dir, version)
		files["zz-"+version+".tgz"] = TarballOf(t, dir)
	}
	return files
}

// IndexOf returns an index.yaml with entries of the operator zz, each the body of a YAML map, and its includes.
func IndexOf(entries []string, includes ...string) []byte {
	text := "apiVersion: v1\nentries:\n  zz:\n"
	for _, entry := range entries {
		text += "  - {" + entry + "}\n"
	}
	return []byte(text + "includes: [" + strings.Join(includes, ", ") + "]\n")
}

// WithChart returns a package with a chart, with some files replaced.
func WithChart(replaced map[string]string) fstest.MapFS {
	texts := map[string]string{
		"operator.yaml": "apiVersion: kudo.dev/v1beta1\nname: app\noperatorVersion: 1.0.0\n" +
			"tasks: [{name: c, kind: Helm, spec: {chart: web, valuesFile: values.yaml}}]\nplans: {deploy: {phases: [{name: a, steps: [{name: a, tasks: [c]}]}]}}\n",
		"params.yaml":           "apiVersion: kudo.dev/v1beta1\nparameters: [{name: COLOR, default: red}]\n",
		"templates/values.yaml": "color: {{ .Params.COLOR | quote }}\n",
		"web/Chart.yaml":        "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"web/templates/a.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata:\n  color: {{ .Values.color | quote }}\n",
	}
	maps.Copy(texts, replaced)
	files := fstest.MapFS{}
	for name, text := range texts {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}
