package oci

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/pkg/core/artifact"
)

// TestCredentialsLeaveNoServer redirects from a server to another one, from there on to a second page of it, and back: each request of net/http gets the
// headers of the first one again.
func TestCredentialsLeaveNoServer(t *testing.T) {
	seen := map[string]string{}
	var other *httptest.Server
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen["home"+r.URL.Path] = r.Header.Get("Authorization")
		switch r.URL.Path {
		case "/":
			http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
		case "/moved":
			http.Redirect(w, r, other.URL+"/one", http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(home.Close)
	other = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen["other"+r.URL.Path] = r.Header.Get("Authorization")
		next := "/two"
		if r.URL.Path == "/two" {
			next = home.URL + "/back"
		}
		http.Redirect(w, r, next, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(other.Close)
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, home.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("user", "password")
	response, err := (&http.Client{CheckRedirect: CheckRedirect}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	for page, isHome := range map[string]bool{"home/": true, "home/moved": true, "other/one": false, "other/two": false, "home/back": false} {
		sent, reached := seen[page]
		if !reached || (sent != "") != isHome {
			t.Errorf("%s: reached %t, credentials %q", page, reached, sent)
		}
	}
}

// TestTLS reaches a registry with a certificate of an authority that the user names, and none without it.
func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		place := filepath.Join(dir, name)
		if err := os.WriteFile(place, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return place
	}
	authority := write("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for _, test := range []struct{ sentence, file, want string }{
		{"no file", filepath.Join(dir, "none"), "reading the certificate authority"},
		{"an empty file", write("empty.pem", nil), "contains no certificate"},
		{"no authority", "", "the certificate of example.com is not trusted"},
		{"its authority", authority, "example.com has nothing at this place"},
	} {
		t.Run(test.sentence, func(t *testing.T) {
			client, err := New(Options{CAFile: test.file})
			if err == nil {
				transport := client.transport.(*http.Transport)
				transport.Proxy = nil
				transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) { // the certificate is for example.com
					return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
				}
				_, err = client.Pull(context.Background(), artifact.Reference{Host: "example.com", Repository: "kafka", Tag: "1.0.0"})
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1:5000": true, "[::1]:5000": true, "localhost": true, "localhost.example.com": false, "example.com:5000": false, "10.0.0.1": false,
	} {
		if IsLoopback(host) != want {
			t.Errorf("%s: plain http is used %t", host, !want)
		}
	}
}
