package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

func TestCheckFindsWhatIsWrong(t *testing.T) {
	r := tiny(t, here, platform{"windows", "amd64"})
	images := step{"the images", func(context.Context, release) (map[string][]byte, error) { return tinyImages(t, r) }}
	if err := r.build(t.Context(), []step{{"the plugin", buildPlugin}, images, {"the manifests", buildManifests}, {"the chart", buildChart}}); err != nil {
		t.Fatal(err)
	}
	whole := readFolder(t, r.output)
	archive := "hello_v1.2.3_" + here.os + "_" + here.arch + here.extension()
	for sentence, test := range map[string]struct {
		change func(files map[string]string)
		want   []string
	}{
		"a release": {func(map[string]string) {}, nil},
		"a file that was changed": {func(files map[string]string) { files["install-hub.yaml"] += " " },
			[]string{"checksums: install-hub.yaml differs from its checksum"}},
		"a file that is missing": {func(files map[string]string) { delete(files, "install-hub.yaml") },
			[]string{`checksums: "install-hub.yaml" is listed in SHA256SUMS, but missing`}},
		"a file of another release": {func(files map[string]string) { files["a.yaml"] = "" }, []string{"checksums: a.yaml has no checksum"}},
		"another archive": {func(files map[string]string) { files[archive] = files["tandem-1.2.3.tgz"] },
			[]string{"plugin: " + archive + ": krew-addon.yaml has another checksum"}},
		"an archive that krew would not find": {func(files map[string]string) { delete(files, "hello_v1.2.3_windows_amd64.zip") },
			[]string{"plugin: hello_v1.2.3_windows_amd64.zip: it is missing"}},
		"an archive without the program": {func(files map[string]string) {
			old := sumOf([]byte(files[archive]))
			files[archive] = files["tandem-1.2.3.tgz"]
			files[krewFile] = strings.Replace(files[krewFile], old, sumOf([]byte(files[archive])), 1)
		}, []string{"plugin: " + archive + ": it does not contain LICENSE and hello"}},
		"an SBOM of another program": {func(files map[string]string) {
			base := strings.TrimSuffix(archive, here.extension())
			files[base+bomExtension] = strings.ReplaceAll(files[base+bomExtension], `"content": "`, `"content": "0`)
		}, []string{"plugin: " + archive + ": its SBOM is about another program"}},
		"an SBOM that is none": {func(files map[string]string) {
			files["addon-agent_v1.2.3_linux_amd64"+bomExtension] = `{"specVersion": "1.6"}`
		},
			[]string{"SBOMs: addon-agent_v1.2.3_linux_amd64.cdx.json: its format is  1.6", "addon-agent v1.2.3 has none"}},
		"a program of another version": {func(files map[string]string) {
			files[krewFile] = strings.Replace(files[krewFile], "version: v1.2.3", "version: v1.2.4", 1)
		},
			[]string{"plugin: ", "not version v1.2.4", "chart: tandem-1.2.4.tgz is missing"}},
		"an image that was changed": {func(files map[string]string) {
			files["addon-manager_v1.2.3_oci.tar"] = strings.Replace(files["addon-manager_v1.2.3_oci.tar"], `"architecture":"`, `"architecturE":"`, 1)
		}, []string{"images: addon-manager_v1.2.3_oci.tar: blob sha256:", "has another content"}},
		"no image": {func(files map[string]string) { delete(files, "addon-agent_v1.2.3_oci.tar") }, []string{"images: addon-agent_v1.2.3_oci.tar is missing"}},
		"a chart of another version": {func(files map[string]string) {
			other := tiny(t)
			other.version = "v1.2.4"
			built, err := buildChart(t.Context(), other)
			if err != nil {
				t.Fatal(err)
			}
			files["tandem-1.2.3.tgz"] = string(built["tandem-1.2.4.tgz"])
		}, []string{`chart: tandem-1.2.3.tgz has version "1.2.4"`}},
		"a provenance of other files": {func(files map[string]string) {
			files[provenanceFile] = strings.ReplaceAll(files[provenanceFile], sumOf([]byte(files["install-hub.yaml"])), "0")
		}, []string{"provenance: it does not describe install-hub.yaml"}},
		"a provenance of another kind": {func(files map[string]string) {
			files[provenanceFile] = strings.ReplaceAll(files[provenanceFile], predicateType, "https://example.com")
		}, []string{`provenance: its types are "https://in-toto.io/Statement/v1" and "https://example.com"`}},
		"no plugin": {func(files map[string]string) { delete(files, krewFile) }, []string{`krew-addon.yaml has version ""`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			folder := t.TempDir()
			files := map[string]string{}
			for name, content := range whole {
				files[name] = content
			}
			test.change(files)
			for name, content := range files {
				if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var relevant []requirement // rendering the chart takes seconds, and the last two need API servers
			for _, r := range requirements[:len(requirements)-2] {
				if test.want == nil || strings.Contains(strings.Join(test.want, "\n"), r.name+": ") {
					relevant = append(relevant, r)
				}
			}
			p, err := readRelease(folder)
			if err == nil {
				err = check(t.Context(), p, relevant)
			}
			if (err != nil) != (len(test.want) > 0) {
				t.Fatalf("the error is %v, want %q", err, test.want)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v, want one with %q", err, want)
				}
			}
		})
	}
}

// tinyImages returns images without a program, and SBOMs of another one.
func tinyImages(t *testing.T, r release) (map[string][]byte, error) {
	binary, err := r.plugin.build(t.Context(), r.source, r.version, here)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, pod := range pods {
		folder := t.TempDir()
		path, err := layout.Write(folder, empty.Index)
		if err != nil {
			return nil, err
		}
		described, err := bomOf(binary, pod, here, r)
		index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: empty.Image})
		if err := errors.Join(err, path.AppendIndex(index)); err != nil {
			return nil, err
		}
		var content bytes.Buffer
		if err := writeTar(&content, os.DirFS(folder)); err != nil {
			return nil, err
		}
		files[pod+"_"+r.version+"_oci.tar"], files[pod+"_"+r.version+"_linux_amd64"+bomExtension] = content.Bytes(), described
	}
	return files, nil
}

func TestLayoutsStayInTheirFolder(t *testing.T) {
	for _, name := range []string{"../outside", "/outside", "a/../../outside"} {
		var content bytes.Buffer
		w := newTar(&content)
		if err := w.file(name, []byte("text")); err != nil {
			t.Fatal(err)
		}
		if err := extract(content.Bytes(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "which is no file in its folder") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// writeTar archives the files of a folder.
func writeTar(to *bytes.Buffer, folder fs.FS) error {
	w := newTar(to)
	err := fs.WalkDir(folder, ".", func(name string, file fs.DirEntry, err error) error {
		if err != nil || file.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, name)
		return errors.Join(err, w.file(name, content))
	})
	return errors.Join(err, w.Close())
}

// tarWriter writes regular files.
type tarWriter struct{ *tar.Writer }

func newTar(to *bytes.Buffer) tarWriter { return tarWriter{tar.NewWriter(to)} }

func (w tarWriter) file(name string, content []byte) error {
	err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))})
	return errors.Join(err, second(w.Write(content)))
}
