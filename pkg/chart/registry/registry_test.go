package registry_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/chart/registry"
	"github.com/tandem-addons/tandem/pkg/chart/registry/registrytest"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/core/content"
)

// fetch fetches a chart as a user names it.
func fetch(t *testing.T, place, repository, version, digest string) (*registry.Chart, error) {
	t.Helper()
	ref, err := catalog.ParseReference(place, repository)
	if err != nil {
		t.Fatal(err)
	}
	if version != "" {
		ref.Version = version
	}
	ref.Digest = digest
	client, err := registry.New()
	if err != nil {
		return nil, err
	}
	return client.Fetch(t.Context(), ref)
}

// expect checks what was fetched.
func expect(t *testing.T, got *registry.Chart, err error, archive []byte, version, repository string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Archive, archive) || got.Digest != content.DigestOf(archive) || got.Name != "web" || got.Version != version || got.Repository != repository {
		t.Errorf("got %s %s of %q with digest %s", got.Name, got.Version, got.Repository, got.Digest)
	}
}

func expectError(t *testing.T, err error, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), registrytest.Password) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

func TestRegistries(t *testing.T) {
	registrytest.Alone(t)
	host := registrytest.Registry(t, false)
	archives, manifest := map[string][]byte{}, ""
	for _, version := range []string{"1.0.0", "1.1.0", "2.0.0-rc.1", "1.2.0+a"} {
		archives[version] = registrytest.Chart(t, "web", version, nil)
		manifest = registrytest.Push(t, host+"/charts/web:"+strings.ReplaceAll(version, "+", "_"), archives[version])
	}
	at, above := "oci://"+host+"/charts/web", "oci://"+host+"/charts"
	for _, test := range []struct{ version, want string }{
		{"1.0.0", "1.0.0"}, {"", "1.2.0+a"}, {"1.1.x", "1.1.0"}, {"1.2.0+a", "1.2.0+a"}, {">=2.0.0-0", "2.0.0-rc.1"},
	} {
		got, err := fetch(t, at, "", test.version, "")
		expect(t, got, err, archives[test.want], test.want, above)
	}
	got, err := fetch(t, at+":1.0.0", "", "", content.DigestOf(archives["1.0.0"]))
	expect(t, got, err, archives["1.0.0"], "1.0.0", above)
	got, err = fetch(t, at+"@"+manifest, "", "", manifest)
	expect(t, got, err, archives["1.2.0+a"], "1.2.0+a", above)
	got, err = fetch(t, "web", above, "1.0.0", "")
	expect(t, got, err, archives["1.0.0"], "1.0.0", above)

	_, err = fetch(t, at, "", "1.0.1", "")
	expectError(t, err, `chart "web" has no version "1.0.1": the nearest are 1.2.0+a, 1.1.0, 1.0.0; the highest is 2.0.0-rc.1`)
	_, err = fetch(t, at, "", "1.0.0", manifest)
	expectError(t, err, "its archive has digest "+content.DigestOf(archives["1.0.0"])+", expected "+manifest)
	_, err = fetch(t, above+"/wbe", "", "1.0.0", "")
	expectError(t, err, "has no chart at this place", "helm registry login "+host)
	_, err = fetch(t, at+"@sha256:"+strings.Repeat("0", 64), "", "", "")
	expectError(t, err, "does not have what was asked for")

	registrytest.Push(t, host+"/charts/other:1.0.0", archives["1.0.0"])
	_, err = fetch(t, above+"/other", "", "1.0.0", "")
	expectError(t, err, `contains chart "web"`)
	registrytest.Push(t, host+"/charts/web:3.0.0", archives["1.0.0"])
	_, err = fetch(t, at, "", "3.0.0", "")
	expectError(t, err, `contains version "1.0.0", not "3.0.0"`)
}

func TestPrivateRegistries(t *testing.T) {
	folder := registrytest.Alone(t)
	host := registrytest.Registry(t, true)
	archive := registrytest.Chart(t, "web", "1.0.0", nil)
	registrytest.Push(t, host+"/web:1.0.0", archive)
	for _, version := range []string{"1.0.0", ""} {
		_, err := fetch(t, "oci://"+host+"/web", "", version, "")
		expectError(t, err, host+" refused access (401 Unauthorized)", "helm registry login "+host, "docker login "+host)
	}
	login := func(password string) []byte {
		return fmt.Appendf(nil, `{"auths": {%q: {"auth": %q}}}`, host, base64.StdEncoding.EncodeToString([]byte(registrytest.User+":"+password)))
	}
	writeFile(t, filepath.Join(folder, "docker", "config.json"), login(registrytest.Password))
	got, err := fetch(t, "oci://"+host+"/web", "", "", "")
	expect(t, got, err, archive, "1.0.0", "oci://"+host)
	writeFile(t, filepath.Join(folder, "registry.json"), login("wrong"))
	_, err = fetch(t, "oci://"+host+"/web", "", "", "")
	expectError(t, err, host+" refused access (401 Unauthorized)")
	writeFile(t, filepath.Join(folder, "registry.json"), []byte("{"))
	_, err = fetch(t, "oci://"+host+"/web", "", "", "")
	expectError(t, err, "registry.json, the credentials of Helm")
}

func writeFile(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRepositories(t *testing.T) {
	registrytest.Alone(t)
	archives := map[string][]byte{}
	for _, version := range []string{"1.0.0", "1.1.0", "2.0.0-rc.1"} {
		archives["web-"+version+".tgz"] = registrytest.Chart(t, "web", version, nil)
	}
	archives["website-1.0.0.tgz"] = registrytest.Chart(t, "web", "1.0.0", nil)
	archives["worker-1.0.0.tgz"] = registrytest.Chart(t, "worker", "1.0.1", nil)
	archives["broken-1.0.0.tgz"] = []byte("nothing")
	archives["large-1.0.0.tgz"] = make([]byte, chart.MaxArchiveBytes+1)
	at := registrytest.Serve(t, registrytest.Repository(archives))
	registrytest.Repositories(t, "- {name: example, url: '"+at+"/'}\n")
	for _, place := range []struct{ chart, repository string }{{"web", at}, {at + "/web", ""}, {"example/web", ""}} {
		got, err := fetch(t, place.chart, place.repository, "1.0.0", "")
		expect(t, got, err, archives["web-1.0.0.tgz"], "1.0.0", at)
	}
	got, err := fetch(t, at+"/web", "", "", "")
	expect(t, got, err, archives["web-1.1.0.tgz"], "1.1.0", at)
	got, err = fetch(t, at+"/web-1.1.0.tgz", "", "", "")
	expect(t, got, err, archives["web-1.1.0.tgz"], "1.1.0", "")

	for _, test := range []struct{ chart, version, digest, want string }{
		{at + "/websits", "", "", `it has no chart "websits" (did you mean website?)`},
		{at + "/web", "1.0.5", "", `chart "web" has no version "1.0.5": the nearest are`},
		{at + "/web", "1.0.0", content.DigestOf(archives["web-1.1.0.tgz"]), "expected " + content.DigestOf(archives["web-1.1.0.tgz"])},
		{at + "/web-1.1.0.tgz", "1.0.0", "", `contains version "1.1.0", not "1.0.0"`},
		{at + "/website", "", "", `contains chart "web"`},
		{at + "/worker", "1.0.0", "", `contains version "1.0.1", not "1.0.0"`},
		{at + "/broken", "", "", "is not a gzipped archive"},
		{at + "/large", "", "", "has more than 16777216 bytes"},
		{at + "/none/web", "", "", "404 Not Found: give the URL of a repository"},
		{at + "/none.tgz", "", "", "404 Not Found"},
		{"examples/web", "", "", `Helm has no repository "examples" (did you mean example?): add it with 'helm repo add'`},
	} {
		_, err := fetch(t, test.chart, "", test.version, test.digest)
		expectError(t, err, test.want)
	}
}

func TestPrivateRepositories(t *testing.T) {
	registrytest.Alone(t)
	archive := registrytest.Chart(t, "web", "1.0.0", nil)
	at := registrytest.Serve(t, registrytest.Private(registrytest.Repository(map[string][]byte{"web-1.0.0.tgz": archive})))
	_, err := fetch(t, at+"/web", "", "", "")
	expectError(t, err, "401 Unauthorized: store credentials for it with 'helm repo add NAME URL --username USER'")
	registrytest.Repositories(t, fmt.Sprintf("- {name: private, url: %s, username: %s, password: %s}\n", at, registrytest.User, registrytest.Password))
	for _, place := range []string{"private/web", at + "/web", at + "/web-1.0.0.tgz"} {
		if got, err := fetch(t, place, "", "", ""); err != nil || got.Version != "1.0.0" {
			t.Errorf("%s: %v", place, err)
		}
	}
	registrytest.Repositories(t, fmt.Sprintf("- {name: private, url: %s, username: %s, password: wrong}\n", at, registrytest.User))
	_, err = fetch(t, "private/web", "", "", "")
	expectError(t, err, `renew the credentials of repository "private" with 'helm repo add --force-update'`)
	withPassword := strings.Replace(at, "http://", "http://"+registrytest.User+":"+strings.ReplaceAll(registrytest.Password, " ", "%20")+"@", 1)
	registrytest.Repositories(t, fmt.Sprintf("- {name: private, url: '%s'}\n", withPassword))
	got, err := fetch(t, "private/web", "", "", "")
	expect(t, got, err, archive, "1.0.0", at)
	if strings.Contains(got.From, "reader") {
		t.Errorf("it was read from %s", got.From)
	}
}

// requests records which paths were requested with credentials.
type requests struct {
	mutex sync.Mutex
	with  map[string]bool
}

func (r *requests) record(request *http.Request) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.with == nil {
		r.with = map[string]bool{}
	}
	_, _, with := request.BasicAuth()
	r.with[request.URL.Path] = with
}

func TestCredentialsStayWithTheirServer(t *testing.T) {
	registrytest.Alone(t)
	archive := registrytest.Chart(t, "web", "1.0.0", nil)
	var there requests
	other := registrytest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		there.record(r)
		_, _ = w.Write(archive)
	}))
	var here requests
	at := registrytest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		here.record(r)
		switch r.URL.Path {
		case "/charts/index.yaml":
			fmt.Fprintf(w, "apiVersion: v1\nentries:\n  web:\n  - {version: 1.0.0, urls: [%s/listed.tgz]}\n  - {version: 2.0.0, urls: [moved.tgz]}\n"+
				"  - {version: 3.0.0, urls: ['file:///etc/passwd']}\n", other)
		default:
			http.Redirect(w, r, other+"/redirected.tgz", http.StatusFound)
		}
	}))
	registrytest.Repositories(t, fmt.Sprintf("- {name: private, url: %s, username: %s, password: %s}\n", at, registrytest.User, registrytest.Password))
	_, _ = fetch(t, "private/web", "", "1.0.0", "")
	_, _ = fetch(t, "private/web", "", "2.0.0", "")
	if !here.with["/charts/index.yaml"] || !here.with["/charts/moved.tgz"] {
		t.Errorf("the repository did not get its credentials: %v", here.with)
	}
	for _, path := range []string{"/charts/listed.tgz", "/charts/redirected.tgz"} {
		if with, is := there.with[path]; with || !is {
			t.Errorf("%s: requested %t, with credentials %t", path, is, with)
		}
	}
	_, err := fetch(t, "private/web", "", "3.0.0", "")
	expectError(t, err, `the index lists "file:///etc/passwd"`)
	registrytest.Repositories(t, fmt.Sprintf("- {name: private, url: %s, username: %s, password: %s, pass_credentials_all: true}\n", at, registrytest.User, registrytest.Password))
	_, _ = fetch(t, "private/web", "", "1.0.0", "")
	if !there.with["/charts/listed.tgz"] {
		t.Error("pass_credentials_all has no effect")
	}
}

func TestTLS(t *testing.T) {
	folder := registrytest.Alone(t)
	archive := registrytest.Chart(t, "web", "1.0.0", nil)
	plain := registrytest.Serve(t, registrytest.Repository(map[string][]byte{"web-1.0.0.tgz": archive}))
	handler := registrytest.Repository(map[string][]byte{"web-1.0.0.tgz": archive})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	at := server.URL + "/charts"
	_, err := fetch(t, at+"/web", "", "", "")
	expectError(t, err, "the certificate of "+strings.TrimPrefix(server.URL, "https://")+" is not trusted", "helm repo add --ca-file")
	_, err = fetch(t, strings.Replace(plain, "http:", "https:", 1)+"/web", "", "", "")
	expectError(t, err, "does not use TLS")

	ca := filepath.Join(folder, "ca.crt")
	writeFile(t, ca, fmt.Appendf(nil, "-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n", base64.StdEncoding.EncodeToString(server.Certificate().Raw)))
	registrytest.Repositories(t, fmt.Sprintf("- {name: example, url: %s, caFile: %s}\n", at, ca))
	got, err := fetch(t, "example/web", "", "", "")
	expect(t, got, err, archive, "1.0.0", at)
	registrytest.Repositories(t, fmt.Sprintf("- {name: example, url: %s, caFile: %s}\n", at, filepath.Join(folder, "repositories.yaml")))
	_, err = fetch(t, "example/web", "", "", "")
	expectError(t, err, "contains no certificate")
	registrytest.Repositories(t, fmt.Sprintf("- {name: example, url: %s, insecure_skip_tls_verify: true}\n", at))
	got, err = fetch(t, "example/web", "", "", "")
	expect(t, got, err, archive, "1.0.0", at)

	handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "apiVersion: v1\nentries:\n  web:\n  - {version: 1.0.0, urls: [%s/web-1.0.0.tgz]}\n", plain)
	})
	_, err = fetch(t, "example/web", "", "", "")
	expectError(t, err, "the index has no digest of it")
	handler = http.RedirectHandler(plain+"/index.yaml", http.StatusFound)
	_, err = fetch(t, "example/web", "", "", "")
	expectError(t, err, "redirected from https to http://")
}

func TestHostileServers(t *testing.T) {
	registrytest.Alone(t)
	for sentence, test := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"an index without end": {func(w http.ResponseWriter, _ *http.Request) {
			for data := bytes.Repeat([]byte("#"), 1<<20); ; {
				if _, err := w.Write(data); err != nil {
					return
				}
			}
		}, "has more than 33554432 bytes"},
		"redirects without end": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) }, "more than 10 redirects"},
		"an index of another archive": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(`{"apiVersion": "v1", "entries": {"web": [{"version": "1.0.0", "urls": ["web.tgz"], "digest": "12\u001b[1m"}]}}`))
		}, `but the index of the repository lists`},
		"a page": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>\n<a>: [")) }, "index.yaml is invalid"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := fetch(t, registrytest.Serve(t, test.handler)+"/web", "", "", "")
			expectError(t, err, test.want)
			if err != nil && strings.Contains(err.Error(), "\x1b") {
				t.Errorf("a character controls a terminal: %q", err)
			}
		})
	}
	layer := func(mediaType, size string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			fmt.Fprintf(w, `{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": {}, "layers": [{"mediaType": %q, "size": %s, "digest": "sha256:%064d"}]}`,
				mediaType, size, 0)
		}
	}
	for sentence, test := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"an image":             {layer("application/vnd.oci.image.layer.v1.tar+gzip", "10"), "has something else at this place"},
		"an archive too large": {layer("application/vnd.cncf.helm.chart.content.v1.tar+gzip", "999999999999"), "its archive has 999999999999 bytes"},
		"another archive":      {layer("application/vnd.cncf.helm.chart.content.v1.tar+gzip", "10"), "mismatch Content-Length"},
		"an error with control": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(`{"errors": [{"code": "A", "message": "\u001b[1m"}]}`))
		}, "returned 418"},
	} {
		t.Run(sentence, func(t *testing.T) {
			server := httptest.NewServer(test.handler)
			t.Cleanup(server.Close)
			_, err := fetch(t, "oci://"+strings.TrimPrefix(server.URL, "http://")+"/web", "", "1.0.0", "")
			expectError(t, err, test.want)
			if err != nil && strings.Contains(err.Error(), "\x1b") {
				t.Errorf("a character controls a terminal: %q", err)
			}
		})
	}
}

func TestMirrors(t *testing.T) {
	registrytest.Alone(t)
	archive := registrytest.Chart(t, "web", "1.0.0", nil)
	at, host := registrytest.Serve(t, registrytest.Repository(map[string][]byte{"web-1.0.0.tgz": archive})), registrytest.Registry(t, false)
	registrytest.Push(t, host+"/mirrored/web:1.0.0", archive)
	t.Setenv(registry.MirrorsVariable, "https://charts.invalid/stable="+at+" oci://registry.invalid=oci://"+host+"/mirrored https://moved.invalid=oci://"+host+"/mirrored")
	for place, repository := range map[string]string{
		"https://charts.invalid/stable/web": "https://charts.invalid/stable", "https://charts.invalid/stable/web-1.0.0.tgz": "",
		"oci://registry.invalid/web": "oci://registry.invalid", "https://moved.invalid/web": "https://moved.invalid",
	} {
		got, err := fetch(t, place, "", "1.0.0", "")
		expect(t, got, err, archive, "1.0.0", repository)
	}
	t.Setenv(registry.MirrorsVariable, "https://charts.invalid")
	_, err := fetch(t, "https://charts.invalid/stable/web", "", "1.0.0", "")
	expectError(t, err, "TANDEM_CHART_MIRRORS", "must be FROM=TO")
}

func TestIndexesLeadToRegistries(t *testing.T) {
	registrytest.Alone(t)
	archive, host := registrytest.Chart(t, "web", "1.0.0", nil), registrytest.Registry(t, false)
	registrytest.Push(t, host+"/web:1.0.0", archive)
	at := registrytest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "apiVersion: v1\nentries: {web: [{version: 1.0.0, urls: ['oci://%s/web:1.0.0']}]}\n", host)
	}))
	got, err := fetch(t, at+"/web", "", "", "")
	expect(t, got, err, archive, "1.0.0", at)
}
