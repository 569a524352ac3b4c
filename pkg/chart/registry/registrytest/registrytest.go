// Package registrytest serves charts on loopback, for tests: an OCI registry, and a Helm repository. It touches no cluster.
package registrytest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	helmregistry "helm.sh/helm/v4/pkg/registry"

	"github.com/tandem-addons/tandem/pkg/core/content"
)

// User and Password are the credentials of servers that need some.
const (
	User     = "reader"
	Password = "correct horse"
)

// Alone makes a test use configuration files in a folder of its own, which do not exist yet, instead of those of the user. It returns the folder.
func Alone(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	for variable, file := range map[string]string{
		"HELM_REPOSITORY_CONFIG": "repositories.yaml", "HELM_REGISTRY_CONFIG": "registry.json", "HELM_CONFIG_HOME": "helm", "DOCKER_CONFIG": "docker",
	} {
		t.Setenv(variable, filepath.Join(folder, file))
	}
	t.Setenv("TANDEM_CHART_MIRRORS", "")
	return folder
}

// Chart returns the archive of a chart with some files beside Chart.yaml; one of them may replace it.
func Chart(t testing.TB, name, version string, files map[string]string) []byte {
	t.Helper()
	all := map[string]string{"Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", name, version)}
	maps.Copy(all, files)
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	into := tar.NewWriter(zipped)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		err := into.WriteHeader(&tar.Header{Name: name + "/" + file, Mode: 0o644, Size: int64(len(all[file]))})
		if err == nil {
			_, err = io.WriteString(into, all[file])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := into.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// Registry serves an OCI registry, and returns its host. With private, it needs the credentials.
func Registry(t testing.TB, private bool) string {
	t.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if private && !isAuthorized(r) {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func isAuthorized(r *http.Request) bool {
	user, password, _ := r.BasicAuth()
	return user == User && password == Password
}

// Push pushes an archive to a place in a registry, HOST/PATH/NAME:TAG, as `helm push` does, and returns the digest of its manifest.
func Push(t testing.TB, place string, archive []byte) string {
	t.Helper()
	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptBasicAuth(User, Password))
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := client.Push(archive, place, helmregistry.PushOptStrictMode(false))
	if err != nil {
		t.Fatal(err)
	}
	return pushed.Manifest.Digest
}

// beforeVersion is the dash between the name and the version of a chart.
var beforeVersion = regexp.MustCompile(`-\d+\.`)

// Repository serves a Helm repository with archives, by the names of their files, NAME-VERSION.tgz, and an index. It returns its handler, which a test
// may serve as it likes.
func Repository(archives map[string][]byte) http.Handler {
	entries := map[string][]string{}
	for file, archive := range archives {
		at := beforeVersion.FindStringIndex(file)[0]
		name, version := file[:at], strings.TrimSuffix(file[at+1:], ".tgz")
		entries[name] = append(entries[name], fmt.Sprintf("  - {name: %s, version: %s, digest: %s, urls: [%s]}\n", name, version,
			strings.TrimPrefix(content.DigestOf(archive), "sha256:"), file))
	}
	index := "apiVersion: v1\nentries:\n"
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		index += "  " + name + ":\n" + strings.Join(entries[name], "")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, file, _ := strings.Cut(r.URL.Path, "/charts/")
		archive, found := archives[file]
		switch {
		case file == "index.yaml":
			_, _ = io.WriteString(w, index)
		case found:
			_, _ = w.Write(archive)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
}

// Serve serves a repository on loopback, and returns its URL.
func Serve(t testing.TB, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL + "/charts"
}

// Private makes a handler need the credentials.
func Private(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isAuthorized(r) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// Repositories writes repositories.yaml of the test's Helm.
func Repositories(t testing.TB, text string) {
	t.Helper()
	if err := os.WriteFile(os.Getenv("HELM_REPOSITORY_CONFIG"), []byte("apiVersion: v1\nrepositories:\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
}
