package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// hello is a test program in place of Tandem's programs.
var hello = program{name: "hello", path: "./testdata/hello", description: "says its version"}

// made returns the archive that the flags build from hello.
func made(t *testing.T, arguments ...string) string {
	t.Helper()
	out := t.TempDir()
	arguments = append([]string{"-out=" + out, "-version=v1.2.3", "-revision=abc", "-created=1700000000"}, arguments...)
	var report bytes.Buffer
	if err := run(t.Context(), []program{hello}, arguments, &report); err != nil {
		t.Fatal(err)
	}
	t.Log(report.String())
	return filepath.Join(out, "hello.tar")
}

func TestTheSameSourcesMakeTheSameArchive(t *testing.T) {
	first, err := os.ReadFile(made(t))
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(made(t))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("the second archive differs from the first")
	}
}

func TestArchiveIsAnOCILayoutOfBothPlatforms(t *testing.T) {
	archive, err := os.Open(made(t, "-repository=tandem"))
	if err != nil {
		t.Fatal(err)
	}
	top, err := layout.ImageIndexFromPath(unpacked(t, archive))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Error(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("the layout has not one image: %v %v", manifest, err)
	}
	for _, key := range []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"} {
		if got, want := manifest.Manifests[0].Annotations[key], "docker.io/tandem/hello:v1.2.3"; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	of, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, variant := range of.Manifests {
		platforms = append(platforms, variant.Platform.String())
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	if got := of.Annotations["org.opencontainers.image.version"]; got != "v1.2.3" {
		t.Errorf("the index is annotated with version %q", got)
	}
}

func TestImageHoldsTheProgramAndNothingToRunBesideIt(t *testing.T) {
	archive := made(t)
	for _, architecture := range []string{"amd64", "arm64"} {
		image := dockerImage(t, archive, "localhost/hello:v1.2.3-"+architecture)
		modes := map[string]string{}
		each(t, mutate.Extract(image), func(header *tar.Header, _ io.Reader) error {
			modes[header.Name] = fmt.Sprintf("%v %d:%d", header.FileInfo().Mode(), header.Uid, header.Gid)
			return nil
		})
		if diff := cmp.Diff(map[string]string{
			"etc": "drwxr-xr-x 0:0", "etc/ssl": "drwxr-xr-x 0:0", "etc/ssl/certs": "drwxr-xr-x 0:0",
			"etc/ssl/certs/ca-certificates.crt": "-rw-r--r-- 0:0", "hello": "-rwxr-xr-x 0:0",
		}, modes); diff != "" {
			t.Errorf("files for %s (-want +got):\n%s", architecture, diff)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v1.Config{
			User: "65532:65532", Entrypoint: []string{"/hello"}, WorkingDir: "/",
			Labels: map[string]string{
				"org.opencontainers.image.title": "hello", "org.opencontainers.image.description": "says its version",
				"org.opencontainers.image.source":   "https://github.com/tandem-addons/tandem",
				"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.version": "v1.2.3",
				"org.opencontainers.image.revision": "abc", "org.opencontainers.image.created": "2023-11-14T22:13:20Z",
			},
		}, config.Config); diff != "" {
			t.Errorf("config for %s (-want +got):\n%s", architecture, diff)
		}
		if config.OS != "linux" || config.Architecture != architecture {
			t.Errorf("it is for %s/%s", config.OS, config.Architecture)
		}
	}
}

func TestProgramRunsAndKnowsItsVersion(t *testing.T) {
	image := dockerImage(t, made(t, "-platforms="+runtime.GOOS+"/"+runtime.GOARCH), "localhost/hello:v1.2.3")
	output, err := exec.Command(filepath.Join(unpacked(t, mutate.Extract(image)), "hello")).CombinedOutput()
	if err != nil || string(output) != "hello v1.2.3\n" {
		t.Errorf("it says %q, %v", output, err)
	}
}

func TestAuthoritiesAreThoseOfMozilla(t *testing.T) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities()) {
		t.Fatal("crypto/x509 reads none")
	}
	if n := bytes.Count(authorities(), []byte("BEGIN CERTIFICATE")); n < 100 {
		t.Errorf("there are %d, want most of about 150", n)
	}
}

func TestPushBringsTheImageToItsRegistry(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/tandem"
	made(t, "-repository="+repository, "-push")
	tag, err := name.NewTag(repository + "/hello:v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
}

func TestMistakesAreErrors(t *testing.T) {
	for sentence, test := range map[string]struct {
		argument, want string
	}{
		"a platform that is none":      {"-platforms=linux", `"linux" is not of the form linux/amd64`},
		"a platform that Go knows not": {"-platforms=linux/vax", "building it for linux/vax"},
		"a version that is no tag":     {"-version=1 2", `tagging it with version "1 2"`},
		"an argument":                  {"all", `unexpected argument "all"`},
		"no such module":               {"-source=testdata/nowhere", "building it for linux/amd64"},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := run(t.Context(), []program{hello}, []string{"-out=" + t.TempDir(), test.argument}, io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}

// dockerImage loads an image as Docker's older image store does.
func dockerImage(t *testing.T, archive, tagged string) v1.Image {
	t.Helper()
	tag, err := name.NewTag(tagged)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	return image
}

// unpacked extracts a tar archive and returns the folder.
func unpacked(t *testing.T, archive io.ReadCloser) string {
	t.Helper()
	folder := t.TempDir()
	each(t, archive, func(header *tar.Header, content io.Reader) error {
		path := filepath.Join(folder, header.Name)
		if header.Typeflag == tar.TypeDir {
			return os.MkdirAll(path, 0o755)
		}
		data, err := io.ReadAll(content)
		return errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, header.FileInfo().Mode()))
	})
	return folder
}

// each calls visit for each entry of a tar archive.
func each(t *testing.T, archive io.ReadCloser, visit func(*tar.Header, io.Reader) error) {
	t.Helper()
	defer archive.Close()
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = visit(header, reader)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
